"""Many seeds of one scenario: which outcomes there were, how often, and the first seed of each."""

import pytest

from kaudit.simulate.output.truth import SUMMARY, Truth
from kaudit.simulate.scenario.reading import parse_scenario, scenario_text
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.sweep import SweepOutcome, Tally, sweep


def summary(**counts):
    return dict.fromkeys(SUMMARY, 0) | counts


@pytest.mark.parametrize(
    ("name", "is_trouble"),
    [
        ("sent", False),
        ("acknowledged", False),
        ("failed", False),  # the application knows
        ("unanswered", True),
        ("present", False),
        ("absent", False),
        ("deleted", False),
        ("acknowledged_but_lost", True),
        ("written_but_not_acknowledged", False),
        ("duplicate_copies", True),
        ("repeated_across_sessions", True),
        ("out_of_order", True),
        ("on_a_replica_only", False),
        ("open_transactions", True),
        ("hanging_transactions", False),  # one of the open ones
    ],
)
def test_a_run_is_untouched_without_trouble(name, is_trouble):
    outcome = SweepOutcome()
    outcome.add(0, summary(**{name: 3}))
    assert (outcome.runs, outcome.untouched) == (1, int(not is_trouble))


def test_each_outcome_is_counted_by_runs_and_records_with_the_first_seed():
    outcome = SweepOutcome()
    assert (outcome.runs, outcome.untouched) == (0, 0)
    assert all(tally == Tally(0, 0, -1) for tally in outcome.tallies.values())
    outcome.add(4, summary(sent=10))
    outcome.add(5, summary(sent=10, duplicate_copies=2))
    outcome.add(6, summary(sent=9, duplicate_copies=3, out_of_order=1))
    assert (outcome.runs, outcome.untouched) == (3, 1)
    found = {name: tally for name, tally in outcome.tallies.items() if tally.runs}
    assert found == {"sent": Tally(3, 29, 4), "duplicate_copies": Tally(2, 5, 5), "out_of_order": Tally(1, 1, 6)}
    assert list(outcome.tallies) == list(SUMMARY)


def test_seeds_that_follow_one_another_are_run():
    scenario = parse_scenario(scenario_text("six-in-flight"), "six-in-flight")
    expected = SweepOutcome()
    for seed in (3, 4, 5):
        expected.add(seed, Truth(Simulation(scenario, seed, trace_limit=0).run()).summary())
    assert sweep(scenario, 3, 3) == expected
    assert sweep(scenario, 3, 0) == SweepOutcome()
