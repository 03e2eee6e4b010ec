"""Faults drawn at random: over many draws every kind, value and bound occurs, and nothing beyond."""

import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from kaudit.simulate.scenario.reading import scenario_of
from kaudit.simulate.search.fault_space import WEIGHTS, Activity, FaultSpace, table_of

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
    jumps = [value for table in drawn if "clock" in table["kind"] for value in table.values() if isinstance(value, int)]
    assert min(jumps) < 0 < max(jumps)


def test_a_broker_is_named_by_number_or_by_what_it_leads(drawn):
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
    told = values(losses, "silent")
    assert 0.4 < sum(told) / len(told) < 0.6
    assert all("request" in table for table in losses)


def test_lists_have_one_or_two_different_values_in_order(drawn):
    lists = [value for table in drawn for value in table.values() if isinstance(value, list)]
    assert {len(each) for each in lists} == {1, 2}
    assert all(each == sorted(set(each)) for each in lists)


def test_a_table_says_what_is_not_the_default():
    table = {"kind": "lose-response", "producer": "p", "request": 3, "times": 2}
    (fault,) = scenario_of({**DOCUMENT, "faults": [{**table, "behind": True}]}, "t").faults
    assert table_of(fault) == table
