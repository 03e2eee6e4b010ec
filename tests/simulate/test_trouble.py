"""Lost and duplicated records of simulated schedules are found, or cannot be seen in a log; none are invented.

tests/simulate/trouble.py compares, and says what a log can show; it prints figures for thousands of seeds.
"""

import json

import pytest
from msgspec.structs import replace

from kaudit.cli.app import run
from kaudit.model.severity import Severity
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.output.visibility import LOST
from kaudit.simulate.scenario.reading import ORDER, shipped
from kaudit.simulate.simulation import Simulation
from tests.simulate.trouble import CUT_OFF, INVENTED, OTHER_BUMP, SENT_AGAIN, TRUE, trial_of, tried

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


def test_what_findings_say_it_cost_is_true(trials):
    costs = [cost for trial in trials.values() for cost in trial.costs]
    assert sum(cost.impact.records_duplicated is not None for cost in costs) > 5
    for cost in costs:
        impact = cost.impact
        assert (impact.records_duplicated or 0) <= cost.again
        assert (impact.records_lost_at_least or 0) <= cost.absent
        if impact.records_lost_at_most is not None:
            assert (impact.records_lost_at_least or 0) <= impact.records_lost_at_most
        if impact.records_duplicated_at_most is not None:
            assert cost.again <= impact.records_duplicated_at_most


def test_nothing_is_invented(trials):
    invented = [
        (seed, finding.code, finding.offset)
        for seed, trial in trials.items()
        for finding, truth in trial.findings
        if truth == INVENTED or (finding.severity is Severity.ERROR and truth != TRUE)
    ]
    assert invented == []


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(225, id="the sixth batch in flight was refused on another partition"),
        pytest.param(729, id="a broker that kept every batch lost its snapshot"),
        pytest.param(2230, id="the first of three copies was deleted"),
        pytest.param(70991, id="of the tail that was cut off only the first batch was sent again"),
        pytest.param(71323, id="the clock went back between two records of a batch"),
    ],
)
def test_nothing_is_invented_where_the_cause_is_rare(seed, tmp_path):
    trial = tried(seed, tmp_path)
    assert trial.troubles or trial.findings
    assert [finding for finding, truth in trial.findings if truth == INVENTED] == []
    assert [trouble for trouble, found in trial.troubles if found != (trouble.offset is not None)] == []


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
        "wrote before and after",
        "a transaction without them looks whole (committed)",
        "without producer ids no sequence is missing",
        "the producer wrote nothing more under that producer id",
        "under another epoch",
        "retried without idempotence",
        "older than those before them",
        SENT_AGAIN,
    } <= kinds


@pytest.mark.parametrize("name", ORDER)
def test_what_the_truth_of_a_shipped_scenario_calls_invisible_is_not_reported_and_all_else_is(name, tmp_path):
    scenario = shipped(name)
    trial = trial_of(Simulation(scenario, scenario.seed, 0).run(), tmp_path / "run")
    assert [trouble for trouble, found in trial.troubles if found != (trouble.offset is not None)] == []
    assert [finding for finding, truth in trial.findings if truth == INVENTED] == []


def test_what_only_another_replica_has_still_is_shown_by_diff(tmp_path, capsys):
    scenario = shipped("acks1-leader-dies")
    at_once = replace(scenario, duration_ms=500)
    truth = Truth(Simulation(at_once, scenario.seed, 0).run())
    (hidden,) = [entry for entry in truth.hidden() if entry["what"] == LOST]
    assert hidden["because"] == "only another replica has them still: kaudit diff compares the replicas"
    write_run(tmp_path / "run", truth.simulation, truth)
    brokers = [str(path) for path in sorted((tmp_path / "run").glob("broker-*"))]
    assert run(["scan", brokers[0], "-q"]) == 0
    capsys.readouterr()
    assert run(["diff", *brokers, "--output-format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["code"] for finding in found} & {"KA601", "KA603"}
    later = Truth(Simulation(scenario, scenario.seed, 0).run())
    assert {entry["because"] for entry in later.hidden()} == {"without producer ids no sequence is missing"}
