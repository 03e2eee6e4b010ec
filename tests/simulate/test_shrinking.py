"""What is left of a schedule once all is gone that it was not found for. Nothing is run: the question is asked of the scenario."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.simulate.search.schedule import schedule_of
from kaudit.simulate.search.shrinking import Shrinking, _fewer, _simpler, ddmin

CONFIG = {"linger.ms": 0}


def producer(name, topic, **fields):
    return {"name": name, "topic": topic, "config": CONFIG, **fields}


DOCUMENT: dict[str, Any] = {
    "title": "t",
    "seed": 7,
    "duration_ms": 90_000,
    "cluster": {"version": "3.9.1", "brokers": 3},
    "network": {"delay_ms": [1, 5]},
    "topics": [{"name": "orders", "replication_factor": 3}, {"name": "pay", "replication_factor": 1}],
    "producers": [
        producer("shop", "orders", records=60, every_ms=10, start_ms=1234),
        producer("till", "pay", records=20, every_ms=7),
    ],
    "faults": [
        {"kind": "lose-response", "producer": "till", "request": 3},
        {"kind": "lose-request", "request": 2},
        {"kind": "kill-broker", "broker": 1, "at_ms": 4321, "restart_after_ms": 777},
        {"kind": "kill-broker", "broker": 2, "at_ms": 300},
        {"kind": "lose-response", "producer": "shop", "request": 9, "times": 2},
    ],
}


def shrunk(still_does, document=None):
    """The document that is left, and that of each schedule that was asked about."""
    asked = []

    def ask(schedule):
        asked.append(schedule.document)
        return still_does(schedule.scenario)

    found = schedule_of(DOCUMENT if document is None else document, "t")
    assert found is not None
    assert still_does(found.scenario)
    best = Shrinking(found, ask).run()
    assert still_does(best.scenario)
    return best.document, asked


def killed(scenario, broker):
    return [fault for fault in scenario.faults if type(fault).__name__ == "KillBroker" and fault.broker == broker]


def test_only_what_it_was_found_for_is_left():
    left, _ = shrunk(lambda scenario: bool(killed(scenario, 1)))
    assert left["faults"] == [{"kind": "kill-broker", "broker": 1, "at_ms": 0}]
    (only,) = left["producers"]
    assert only["records"] == 1
    assert {"start_ms", "every_ms"}.isdisjoint(only)
    assert [topic["name"] for topic in left["topics"]] == [only["topic"]]
    assert left["seed"] == 0
    assert {"network", "duration_ms"}.isdisjoint(left)


@pytest.mark.parametrize(("name", "topic"), [("shop", "orders"), ("till", "pay")])
def test_the_producer_that_is_needed_keeps_its_faults_and_its_topic(name, topic):
    """A fault that names no producer is the first one's."""

    def does(scenario):
        return any(one.name == name for one in scenario.producers) and any(
            getattr(fault, "request", 0) in ((3,) if name == "till" else (2, 9)) for fault in scenario.faults
        )

    left, _ = shrunk(does)
    assert [one["name"] for one in left["producers"]] == [name]
    assert [one["name"] for one in left["topics"]] == [topic]
    (fault,) = left["faults"]
    assert fault.get("producer", "shop") == name


def test_all_producers_stay_where_all_are_needed():
    left, _ = shrunk(lambda scenario: len(scenario.producers) == 2)
    assert [one["name"] for one in left["producers"]] == ["shop", "till"]
    assert "faults" not in left


def test_what_is_left_out_first_is_a_producer_with_its_faults():
    """Only all of it does what it was found for: first each producer is left out, then all faults and each half of them."""
    found = schedule_of(DOCUMENT, "t")
    assert found is not None
    _, asked = shrunk(lambda scenario: scenario == found.scenario)
    till, first, *killing, shop = DOCUMENT["faults"]
    assert [(document["producers"], document["topics"], document.get("faults")) for document in asked[:5]] == [
        (DOCUMENT["producers"][1:], DOCUMENT["topics"], [till, *killing]),
        (DOCUMENT["producers"][:1], DOCUMENT["topics"], [first, *killing, shop]),
        (DOCUMENT["producers"], DOCUMENT["topics"], None),
        (DOCUMENT["producers"], DOCUMENT["topics"], [killing[1], shop]),
        (DOCUMENT["producers"], DOCUMENT["topics"], [till, first, killing[0]]),
    ]


def test_a_fault_of_the_first_producer_does_not_become_the_next_ones():
    document = {**DOCUMENT, "faults": [{"kind": "lose-request", "request": 2}]}
    left, _ = shrunk(lambda scenario: [getattr(fault, "request", 0) for fault in scenario.faults] == [2], document)
    assert [one["name"] for one in left["producers"]] == ["shop"]
    assert left["faults"] == [{"kind": "lose-request", "request": 2}]


def test_faults_that_are_needed_together():
    left, _ = shrunk(lambda scenario: bool(killed(scenario, 1)) and bool(killed(scenario, 2)))
    assert [(fault["kind"], fault["broker"]) for fault in left["faults"]] == [("kill-broker", 1), ("kill-broker", 2)]


@pytest.mark.parametrize(
    ("needed", "records"),
    [(1, 1), (2, 2), (5, 5), (7, 8), (50, 50), (51, 60)],
)
def test_as_few_records_as_are_tried(needed, records):
    """1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50 ... of sixty."""
    left, _ = shrunk(lambda scenario: any(one.name == "shop" and one.records >= needed for one in scenario.producers))
    (only,) = left["producers"]
    assert only["records"] == records


def test_the_last_records_alone_begin_when_they_did():
    """What is needed is a record at 1,800 ms: the sixty-first of one each 10 ms from 1,234 ms on would be at 1,824."""

    def does(scenario):
        return any(one.start_ms + (one.records - 1) * one.every_ms >= 1_800 for one in scenario.producers)

    left, _ = shrunk(does)
    (only,) = left["producers"]
    assert only["records"] == 1
    assert only.get("start_ms", 0) >= 1_800


def test_fewer_records_in_the_same_time():
    """Both the beginning and the end are needed: the interval grows as the records get fewer."""

    def does(scenario):
        return any(
            one.name == "shop" and one.start_ms == 1234 and one.records >= 2 and one.records * one.every_ms >= 590
            for one in scenario.producers
        )

    left, _ = shrunk(does)
    (only,) = left["producers"]
    assert (only["records"], only["every_ms"] * only["records"] >= 590, only["start_ms"]) == (2, True, 1234)


def test_values_become_absent_zero_or_round():
    def does(scenario):
        return any(fault.at_ms >= 4_000 and (fault.restart_after_ms or 0) >= 700 for fault in killed(scenario, 1))

    left, _ = shrunk(does)
    assert left["faults"] == [{"kind": "kill-broker", "broker": 1, "at_ms": 4000, "restart_after_ms": 700}]


def test_what_an_event_is_about_is_no_value_that_could_be_simpler():
    left, asked = shrunk(lambda scenario: any(getattr(fault, "request", 0) == 9 for fault in scenario.faults))
    assert left["faults"] == [{"kind": "lose-response", "producer": "shop", "request": 9}]
    assert all(one["config"] == CONFIG for document in asked for one in document["producers"])


def test_the_same_schedule_is_not_asked_about_twice_in_a_row():
    _, asked = shrunk(lambda scenario: bool(killed(scenario, 1)))
    assert DOCUMENT not in asked


@pytest.mark.parametrize(
    ("value", "simpler"),
    [
        (0, []),
        (1, [0]),
        (-1, [0]),
        (2, [0, 1]),
        (10, [0, 1, 5]),
        (57, [0, 1, 28, 50]),
        (-57, [0, -1, -28, -50]),
        (1234, [0, 1, 617, 1000, 1200, 1230]),
    ],
)
def test_simpler_numbers(value, simpler):
    assert list(_simpler(value)) == simpler


@pytest.mark.parametrize(
    ("records", "fewer"), [(1, []), (2, [1]), (3, [1, 2]), (10, [1, 2, 3, 4, 5, 6, 8]), (11, [1, 2, 3, 4, 5, 6, 8, 10])]
)
def test_fewer_records(records, fewer):
    assert list(_fewer(records)) == fewer


@given(st.integers(0, 40), st.sets(st.integers(0, 39), max_size=5))
def test_ddmin_leaves_exactly_what_is_needed(count, needed):
    needed = {item for item in needed if item < count}
    kept = ddmin(range(count), lambda items: needed <= set(items))
    assert needed <= set(kept)
    assert list(kept) == sorted(kept)
    assert len(kept) == max(len(needed), min(count, 1))
