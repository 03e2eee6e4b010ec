"""Lost and duplicated records of simulated schedules are found, or cannot be seen in a log; none are invented.

tests/simulate/trouble.py compares, and says what a log can show; it prints figures for thousands of seeds.
"""

import pytest

from kaudit.model.finding import Severity
from tests.simulate.trouble import CUT_OFF, INVENTED, OTHER_BUMP, TRUE, tried

SEEDS = range(60)


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trouble")
    return {seed: tried(seed, directory) for seed in SEEDS}


def test_what_a_log_can_show_is_found(trials):
    missed = [
        (seed, trouble)
        for seed, trial in trials.items()
        for trouble, found in trial.troubles
        if trouble.offset is not None and not found
    ]
    assert missed == []


def test_nothing_is_invented(trials):
    invented = [
        (seed, finding.code, finding.offset)
        for seed, trial in trials.items()
        for finding, truth in trial.findings
        if truth == INVENTED or (finding.severity is Severity.ERROR and truth != TRUE)
    ]
    assert invented == []


def test_without_loss_and_duplication_nothing_is_said_but_that_a_bump_may_be_one(trials):
    healthy = {seed: trial for seed, trial in trials.items() if not trial.troubles}
    assert len(healthy) > 5
    assert {(finding.code, truth) for trial in healthy.values() for finding, truth in trial.findings} <= {
        ("KA206", CUT_OFF),
        ("KA206", OTHER_BUMP),
    }


def test_the_schedules_have_what_they_are_for(trials):
    kinds = {trouble.kind for trial in trials.values() for trouble, _ in trial.troubles}
    assert {
        "lost: idempotent, wrote before and after",
        "lost: transactional, committed",
        "lost: no idempotence, acks=1",
        "twice: under another epoch",
        "twice: retried without idempotence",
        "twice: sent again by a restarted application",
    } <= kinds
