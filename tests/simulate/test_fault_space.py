"""Faults drawn at random: over many draws every kind, value and bound occurs, and nothing beyond."""

import random
from collections import Counter, defaultdict
from itertools import islice
from typing import Any

import pytest

from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_scenario, scenario_of
from kaudit.simulate.search.candidates import WEIGHTS, Activity, Candidates, FaultSpace, table_of
from kaudit.simulate.simulation import Simulation

DOCUMENT: dict[str, Any] = {
    "title": "t",
    "cluster": {"brokers": 3},
    "topics": [
        {"name": "a", "replication_factor": 1, "partitions": 2},
        {"name": "b", "replication_factor": 1},
    ],
    "producers": [{"name": "p", "topic": "a", "config": {}}, {"name": "q", "topic": "b", "config": {}}],
}
UNTIL = 1000
ACTIVITY = Activity(UNTIL, {"p": 9, "q": 4})
PARTITIONS = {"a-0", "a-1", "b-0"}


@pytest.fixture(scope="module")
def drawn():
    space, chance = FaultSpace(scenario_of(DOCUMENT, "t"), ACTIVITY), random.Random(5)
    return [space.draw(chance) for _ in range(8000)]


def values(drawn, name):
    return [table[name] for table in drawn if name in table]


def test_kinds_are_drawn_by_their_weight(drawn):
    counts = Counter(table["kind"] for table in drawn)
    assert "error-response" not in counts
    # two in a sum of weights, against a fifth of one
    assert 7 < counts["lose-response"] / counts["jump-broker-clock"] < 14
    assert {kind for kind, weight in WEIGHTS.items() if weight} <= set(counts)
    assert len(counts) > len(WEIGHTS)


@pytest.mark.parametrize(
    ("name", "least", "most"), [("at_ms", 0, UNTIL), ("broker", 1, 3), ("request", 1, 11), ("times", 1, 8)]
)
def test_numbers_take_every_value_between_their_bounds(drawn, name, least, most):
    found = set(values(drawn, name))
    assert (min(found), max(found)) == (least, most)
    if most < 20:
        assert found == set(range(least, most + 1))
    else:
        assert len(found) > 800


def test_durations_are_up_to_four_times_the_activity_and_short_ones_are_as_likely(drawn):
    by_name: dict[str, list[int]] = defaultdict(list)
    for table in drawn:
        for name, value in table.items():
            if name.endswith("_ms") and name != "at_ms":
                by_name[name].append(value)
    assert by_name
    for name, found in by_name.items():
        assert max(map(abs, found)) <= 4 * UNTIL, name
        magnitudes = sorted(map(abs, found))
        # the logarithm is drawn: half of them are below the square root of the longest
        assert 30 <= magnitudes[len(magnitudes) // 2] <= 130, name


def test_clocks_jump_both_ways(drawn):
    jumps = [table["by_ms"] for table in drawn if "clock" in table["kind"]]
    assert 0.4 < sum(by_ms < 0 for by_ms in jumps) / len(jumps) < 0.6
    others = [value for table in drawn for name, value in table.items() if name.endswith("_ms") and name != "by_ms"]
    assert min(others) >= 0


def test_a_broker_is_named_by_number_or_by_what_it_leads():
    space, chance = FaultSpace(scenario_of(DOCUMENT, "t"), ACTIVITY), random.Random(6)
    drawn = [space.draw(chance) for _ in range(3000)]
    both = [table for table in drawn if "broker" in table and "leader_of" in table]
    assert not both
    ended = [table for table in drawn if table["kind"] == "kill-broker"]
    shares = Counter("broker" in table for table in ended)
    assert min(shares.values()) > 0.2 * len(ended)
    assert all(("broker" in table) != ("leader_of" in table) for table in ended)
    assert set(values(drawn, "leader_of")) == PARTITIONS


def test_names_are_those_of_the_scenario(drawn):
    assert set(values(drawn, "producer")) == {"p", "q"}
    assert set(values(drawn, "partition")) <= PARTITIONS


def test_what_is_not_required_is_there_half_of_the_time(drawn):
    losses = [table for table in drawn if table["kind"] == "lose-response"]
    for name in ("silent", "behind", "times", "api"):
        share = sum(name in table for table in losses) / len(losses)
        assert 0.42 < share < 0.58, name
    silent = values(losses, "silent")
    assert 0.4 < sum(silent) / len(silent) < 0.6
    assert all("request" in table for table in losses)


def test_lists_have_one_or_two_different_values_in_order(drawn):
    lists = [value for table in drawn for value in table.values() if isinstance(value, list)]
    assert {len(each) for each in lists} == {1, 2}
    assert all(each == sorted(set(each)) for each in lists)


ACTIVE = """
starts_at = 2024-01-02T03:04:05.678Z
duration_ms = 2000
[[topics]]
name = "a"
[[producers]]
name = "p"
records = 3
every_ms = 10
start_ms = 100
config = { "linger.ms" = 0, "batch.size" = 100 }
[[producers]]
name = "q"
records = 4
burst = 4
start_ms = 500
config = { "linger.ms" = 5 }
[[producers]]
name = "later"
records = 2
start_ms = 3000
config = {}
"""


def test_how_much_producers_send_is_read_off_a_run():
    """`q` sends four records at once, in one batch, last of all; the run ends before `later` would."""
    scenario = parse_scenario(ACTIVE, "t")
    activity = Activity.of(Truth(Simulation(scenario, 1, 0).run()))
    assert activity == Activity(500 + 300, {"p": 3, "q": 1, "later": 0})


def test_a_table_says_what_is_not_the_default():
    table = {"kind": "lose-response", "producer": "p", "request": 3, "times": 2}
    (fault,) = scenario_of({**DOCUMENT, "faults": [{**table, "behind": True}]}, "t").faults
    assert table_of(fault) == table


# -- schedules to try ---------------------------------------------------------------------------------------------------

SEARCHED: dict[str, Any] = {
    "duration_ms": 170_000,
    "topics": [{"name": "a"}],
    "producers": [{"name": "p", "records": 80, "every_ms": 5, "config": {"linger.ms": 0, "batch.size": 100}}],
    "faults": [{"kind": "kill-broker", "broker": 1, "at_ms": 1000}, {"kind": "lose-response", "request": 10}],
    "network": {"delay_ms": [2, 3]},
    "random": {"request_loss": 0.25, "response_loss": 0.5, "silent_share": 0.75, "pause_brokers": [1, 2]},
}
RECORDS = 60
"""What a drawn schedule sends at most; each record is a batch of its own."""


@pytest.fixture(scope="module")
def schedules():
    return [schedule.document for schedule in islice(Candidates(SEARCHED, "t", 7), 401)]


def test_the_scenarios_own_schedule_is_tried_first_unless_it_is_a_long_one(schedules):
    assert schedules[0] == {key: value for key, value in SEARCHED.items() if key != "random"}
    long = {**SEARCHED, "producers": [{**SEARCHED["producers"][0], "records": 1001}], "faults": []}
    for records, tried in ((1001, RECORDS), (1000, 1000)):
        long["producers"][0]["records"] = records
        assert next(iter(Candidates(long, "t", 7))).document["producers"][0]["records"] == tried


@pytest.mark.parametrize(
    ("own", "drawn"), [({}, {}), ({"records": 59}, {"records": 59}), ({"records": 61}, {"records": 60})]
)
def test_a_drawn_schedule_sends_no_more_than_its_scenario(own, drawn):
    document = {**SEARCHED, "producers": [{"name": "p", "config": {}, **own}]}
    (_, one) = islice(Candidates(document, "t", 7), 2)
    assert one.document["producers"] == [{"name": "p", "config": {}, **drawn}]


def test_drawn_schedules_are_short_with_delays_up_to_six_times_doubled(schedules):
    drawn = schedules[1:]
    assert {each["producers"][0]["records"] for each in drawn} == {RECORDS}
    assert all("random" not in each for each in drawn)
    assert len({each["seed"] for each in drawn}) == len(drawn)
    assert {each["duration_ms"] for each in drawn} == {170_000}
    delays = Counter(tuple(each["network"]["delay_ms"]) for each in drawn)
    assert set(delays) == {(2, 3 << doubled) for doubled in range(7)}
    assert 0.4 < delays[2, 3] / len(drawn) < 0.6
    open_ended = {key: value for key, value in SEARCHED.items() if key != "duration_ms"}
    (_, one) = islice(Candidates(open_ended, "t", 7), 2)
    # three minutes after the last record, or less where the scenario ends before
    assert one.document["duration_ms"] == 180_000


def test_every_other_one_has_the_faults_that_the_bounds_allow(schedules):
    """By the rates: requests 1 to 60 of the producer, and the events of [random]."""
    found = [schedule.get("faults", []) for schedule in schedules[1::2]]
    kinds = {fault["kind"] for faults in found for fault in faults}
    assert kinds == {"pause-broker", "lose-request", "lose-response"}
    for kind, rate in (("lose-request", 0.25), ("lose-response", 0.5)):
        lost = [fault for faults in found for fault in faults if fault["kind"] == kind]
        assert {fault["request"] for fault in lost} == set(range(1, RECORDS + 1))
        assert abs(len(lost) / (RECORDS * len(found)) - rate) < 0.03
        assert abs(sum(fault["silent"] for fault in lost) / len(lost) - 0.75) < 0.05
        assert abs(sum(fault["behind"] for fault in lost) / len(lost) - 0.5) < 0.05
    assert {sum(fault["kind"] == "pause-broker" for fault in faults) for faults in found} == {1, 2}


@pytest.mark.parametrize(
    ("own", "key", "least"),
    [
        ({"kind": "kill-broker", "broker": 1, "at_ms": 1000}, "at_ms", 500),
        ({"kind": "lose-response", "producer": "p", "request": 10}, "request", 5),
        ({"kind": "lose-response", "producer": "p", "request": 1}, "request", 1),
    ],
)
def test_the_others_have_the_scenarios_own_faults_moved_perhaps_and_some_of_every_kind(own, key, least):
    """At up to half as early or late, four of five times; one to five others, none where it has its own."""
    document = {name: value for name, value in SEARCHED.items() if name != "random"} | {"faults": [own]}
    found = [each.document["faults"] for each in islice(Candidates(document, "t", 7), 1, 301)]
    kept = [faults for faults in found if faults[0] | {key: 0} == own | {key: 0}]
    assert 0.72 < len(kept) / len(found) < 0.88
    value = own[key]
    moved = [faults[0][key] for faults in kept if faults[0][key] != value]
    assert min(moved, default=least) >= least
    assert max(moved, default=value) <= value * 3 // 2 + (value == 1)
    if value > 1:
        assert 0.3 < len(moved) / len(kept) < 0.6
        assert min(moved) <= value * 0.6
        assert max(moved) >= value * 1.4
    assert {len(faults) for faults in kept} == {1, 2, 3, 4, 5, 6}
    assert {len(faults) for faults in found if faults not in kept} == {1, 2, 3, 4, 5}
    assert len({fault["kind"] for faults in found for fault in faults}) > 12
