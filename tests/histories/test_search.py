"""The search for histories: how schedules are counted, grouped and ordered, with strings for schedules."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.histories import explain as module
from kaudit.histories.explain import (
    LOST,
    ORDINARY,
    SLOW_TRANSACTION,
    UNCLEAN,
    WITHOUT_SNAPSHOTS,
    cause_of,
    causes_of,
    explain,
)
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity

FINDING = Finding("KA104", "", Severity.ERROR, Confidence.CERTAIN, "", topic="t", partition=0)


@pytest.fixture
def histories_of(monkeypatch):
    """Search schedules like `a1`, `b2` or `-`: the letter is what happened, `-` leaves no trace; `tried` is what was said."""
    said: list[tuple[int, object]] = []

    def run(schedules: str, tries: int = 99, stop_after: int = 99) -> Any:
        said.clear()
        monkeypatch.setattr(module, "_schedules", lambda *_: iter(schedules.split()))
        monkeypatch.setattr(module, "trace_of", lambda finding: ("trace", finding.code))
        monkeypatch.setattr(module, "leaves", lambda schedule, wanted: schedule != "-" and wanted == ("trace", "KA104"))
        monkeypatch.setattr(module, "_with_fewest_faults", lambda schedule, wanted: f"{schedule} made smaller")
        monkeypatch.setattr(module, "causes_of", lambda schedule: (schedule[0],))
        versions: Any = None
        found = explain(
            FINDING,
            versions,
            seed=0,
            tries=tries,
            progress=lambda *given: said.append(given),
            stopped=lambda: len(said) >= stop_after,
        )
        histories = [(*each.causes, each.example, each.count) for each in found.histories]
        assert said == [(number, None) for number in range(1, found.tried + 1)]
        return found.tried, found.same, found.interrupted, histories

    return run


def test_histories_are_counted_by_what_happened_the_most_frequent_first(histories_of):
    assert histories_of("a1 - b1 b2 - c1 b3 a2") == (
        8,
        6,
        False,
        [("b", "b1 made smaller", 3), ("a", "a1 made smaller", 2), ("c", "c1 made smaller", 1)],
    )


def test_three_are_shown_at_most_and_of_those_alike_the_first(histories_of):
    tried, same, _, histories = histories_of("a1 b1 c1 d1 d2")
    assert (tried, same) == (5, 5)
    assert [(name, count) for name, _, count in histories] == [("d", 2), ("a", 1), ("b", 1)]


@pytest.mark.parametrize(("tries", "tried", "same"), [(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 3, 2)])
def test_no_more_are_tried_than_asked_for(histories_of, tries, tried, same):
    assert histories_of("a1 - a2", tries=tries)[:3] == (tried, same, False)


@pytest.mark.parametrize(("stop_after", "tried"), [(0, 0), (1, 1), (2, 2)])
def test_a_search_that_is_stopped_says_so_and_keeps_what_it_found(histories_of, stop_after, tried):
    found = histories_of("a1 a2 a3", stop_after=stop_after)
    histories = [("a", "a1 made smaller", tried)] if tried else []
    assert found == (tried, tried, True, histories)


def data(
    sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7, *, transactional: bool = False
) -> DataBatch:
    return DataBatch(producer_id, epoch, sequence, sequence + count - 1, 0, 0, 0, transactional)


def marker(epoch: int = 0) -> Any:
    return SimpleNamespace(producer_epoch=epoch)


@pytest.mark.parametrize(("batches", "noticeable"), [
    ([], False),
    ([(data(0), [1])], False),
    ([(data(0, 2), [1, 2]), (data(2), [3])], False),
    ([(data(0), [1]), (data(2), [2])], True),  # a gap
    ([(data(0), [1]), (data(0), [2])], True),
    ([(data(0), [1]), (data(1, epoch=1), [2])], True),
    ([(data(0), [1]), (data(1, producer_id=8), [2])], True),
    ([(data(0), [2]), (data(1), [2])], True),  # a record again
    ([(data(0), [2]), (data(1), [1])], True),
    ([(None, [1]), (None, [2])], False),  # without a producer id
    ([(None, [1, 2]), (None, [2])], True),
    ([(data(0, transactional=True), [1])], True),  # it is open
    ([(data(0, transactional=True), [1]), (marker(), None)], False),
    ([(data(0, transactional=True), [1]), (marker(1), None)], True),
    ([(marker(1), None), (data(0), [1])], False),
    ([(data(0, transactional=True), [1]), (marker(), None), (data(1, transactional=True), [2])], True),
    ([(data(0, transactional=True), [1]), (marker(), None), (data(1), [2])], False),
])  # fmt: skip
def test_a_log_in_sequence_needs_no_scan(monkeypatch, batches, noticeable):
    stored = [
        SimpleNamespace(state=state, sent=None if sent is None else SimpleNamespace(numbers=sent))
        for state, sent in batches
    ]
    monkeypatch.setattr(module, "leader_log", lambda _: SimpleNamespace(batches=stored))
    partition: Any = None
    assert module._is_noticeable(partition) is noticeable


def played(faults=(), *, unclean=False, by_timeout=False, lost=0, topic="orders") -> Any:
    partition = SimpleNamespace(elections=[SimpleNamespace(unclean=False), SimpleNamespace(unclean=unclean)])
    ended = [SimpleNamespace(by_timeout=False), SimpleNamespace(by_timeout=by_timeout)]
    cluster = SimpleNamespace(partitions={(topic, 0): partition}, transactions=SimpleNamespace(ended=ended))
    truth = SimpleNamespace(
        simulation=SimpleNamespace(cluster=cluster), summary=lambda: {"acknowledged_but_lost": lost}
    )
    document = {"faults": list(faults)} if faults else {}
    return SimpleNamespace(document=document, play=lambda: truth)


KILL, LOSE = {"kind": "kill-broker"}, {"kind": "lose-response"}


@pytest.mark.parametrize(("schedule", "causes"), [
    (played(), (ORDINARY,)),
    (played([LOSE, KILL, LOSE]), (cause_of("kill-broker"), cause_of("lose-response"))),
    (played([KILL, {**KILL, "without_snapshots": True}]), (cause_of("kill-broker"), WITHOUT_SNAPSHOTS)),
    (played([{**KILL, "without_snapshots": False}]), (cause_of("kill-broker"),)),
    (played(unclean=True), (UNCLEAN,)),
    (played(unclean=True, topic="__transaction_state"), (ORDINARY,)),
    (played(by_timeout=True), (SLOW_TRANSACTION,)),
    (played(lost=1), (LOST,)),
    (
        played([{**LOSE, "without_snapshots": 1}], unclean=True, by_timeout=True, lost=2),
        (cause_of("lose-response"), WITHOUT_SNAPSHOTS, UNCLEAN, SLOW_TRANSACTION, LOST),
    ),
])  # fmt: skip
def test_what_happened_in_a_schedule_is_listed_in_one_order(schedule, causes):
    assert causes_of(schedule) == causes
