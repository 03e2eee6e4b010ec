"""Inputs held against outputs: what is compared, and what is said where that is too much."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kaudit
from kaudit.audits.transactions import committed_inputs
from kaudit.audits.transactions.outputs import WrittenContent
from kaudit.model.batch_fields import ABORT_MARKER
from kaudit.model.exactly_once import EndOfTransaction, ProcessedTwice, Skipped
from kaudit.scanning import exactly_once
from kaudit.scanning.exactly_once import _are_alike, _in_turn, _OutputReader
from tests.live_brokers.exactly_once.stage import DATA

LEVEL = DATA / "zombie-level.tar.xz"


def said(result):
    codes = [finding.code for finding in result.findings]
    return codes, [note.reason for note in result.not_audited if "KA915" in note.reason]


def test_outputs_are_compared_and_those_that_are_not_are_counted(monkeypatch):
    assert said(kaudit.scan(LEVEL)) == (["KA915"], [])
    monkeypatch.setattr(exactly_once, "_MOST_COMPARED", 0)
    codes, notes = said(kaudit.scan(LEVEL))
    assert codes == []
    assert [note.split(",")[0] for note in notes] == ["the outputs of 2 transactions were not compared"]


def test_what_is_not_listed_is_counted(monkeypatch):
    monkeypatch.setattr(committed_inputs, "_MOST_LISTED", 0)
    codes, notes = said(kaudit.scan(DATA / "processed-again.tar.xz"))
    assert "KA915" not in codes
    assert [note[:6] for note in notes] == ["2 more"]


# -- outputs held against one another, in place of transactions those that are made up ----------------------------------

INPUTS: Any = SimpleNamespace(end=7)


def end(number: int) -> EndOfTransaction:
    return EndOfTransaction(number, 0, 1000 * number, 10 * number)


def content(contents: Any, keys: Any = (), *, keyed: bool = True) -> WrittenContent:
    return WrittenContent(np.array(sorted(contents), dtype=np.int64), np.array(sorted(keys), dtype=np.int64), keyed)


class Outputs:
    """What transactions wrote, by producer id; of one that is not there nothing can be read. `asked` for: with what."""

    def __init__(self, *written: WrittenContent | None) -> None:
        self.written = written
        self.asked: list[tuple[int, bool]] = []

    def content(self, one: EndOfTransaction, _: object, *, aborted: bool) -> WrittenContent:
        self.asked.append((one.producer_id, aborted))
        found = self.written[one.producer_id] if one.producer_id < len(self.written) else None
        if found is None:
            raise FileNotFoundError
        return found

    def committed(self, *ends: EndOfTransaction) -> Any:
        return "committed", ends

    def between(self, *place: Any) -> Any:
        return place

    def ranges(self, rows: Any) -> Any:
        return "ranges", rows

    def some(self, producer_id: int, *_: int) -> list[EndOfTransaction]:
        return [end(number) for number in range(len(self.written))] if producer_id == 5 else []


def reader(outputs: Any, directories: Any = ()) -> _OutputReader:
    unused: Any = None
    return _OutputReader(outputs, directories, unused)


@pytest.mark.parametrize(
    ("before", "again", "twice"),
    [
        ({1, 2}, {1, 2}, True),
        ({1, 2, 3, 4}, {1, 2}, True),
        ({1, 2, 3, 4}, {3, 4, 5, 6}, True),  # half of the one with fewer
        ({1, 2, 3, 4}, {4, 5, 6, 7}, False),
        ({1}, {1, 2, 3, 4}, True),
        ({1, 2}, {3, 4}, False),
        (set(), {1}, False),
        (set(), set(), False),
        (None, {1}, False),
        ({1}, None, False),
    ],
)
def test_inputs_were_processed_twice_where_both_transactions_wrote_the_same(before, again, twice):
    outputs = Outputs(*(None if each is None else content(each) for each in (before, again)))
    compared = reader(outputs)
    same: Any = SimpleNamespace(inputs=INPUTS, before=end(0), again=end(1))
    expected = ProcessedTwice(INPUTS, 7, end(0), end(1), end(1), 1, True, outputs.committed(end(1), end(1)))
    assert compared.same_offset(same) == (expected if twice else None)
    assert compared.not_compared == (before is None) + (again is None)
    assert outputs.asked == [(0, False), (1, False)]


@pytest.mark.parametrize(
    ("aborted", "committed", "skipped"),
    [
        (content({1, 2}, {11, 12}), content({3}, {13}), True),
        (content({1, 2}, {11, 12}), content({3}, {12, 13}), False),  # a key that was written after all
        (content({1, 2}, {11, 12}), content({2}, {13}), False),  # or a record
        (content({1, 2}, {11}, keyed=False), content({3}, {13}), False),  # without keys nobody knows
        (content(set(), set()), content({3}, {13}), True),
        (None, content({3}, {13}), False),
        (content({1}, {11}), None, False),
    ],
)
def test_inputs_were_skipped_where_nothing_of_the_aborted_transaction_came_again(aborted, committed, skipped):
    outputs = Outputs(aborted, committed)
    went: Any = SimpleNamespace(inputs=INPUTS, aborted=end(0), committed=end(1))
    found = reader(outputs).went_on(went)
    ranges = outputs.ranges((end(0), end(0), ABORT_MARKER))
    assert found == (Skipped(INPUTS, 10, 1000, end(0), end(1), ranges) if skipped else None)
    assert outputs.asked == [(0, True), (1, False)]


def test_how_many_records_were_written_again():
    for before, again, count in (({1, 2, 3}, {2, 3, 4}, 2), ({1}, {2}, 0), (None, {2}, 0), ({1}, None, 0)):
        compared = reader(Outputs(*(None if each is None else content(each) for each in (before, again))))
        assert compared.written_again(end(0), end(1)) == count


def test_so_many_transactions_are_read_and_the_rest_counted(monkeypatch):
    monkeypatch.setattr(exactly_once, "_MOST_COMPARED", 2)
    compared = reader(Outputs(content({1}), content({1})))
    assert [compared.written_again(end(0), end(1)) for _ in range(4)] == [1, 1, 0, 0]
    assert compared.not_compared == 4


KEYS = set(range(100, 120))


@pytest.mark.parametrize(
    ("written", "read", "are"),
    [
        ([KEYS], KEYS, True),
        ([KEYS], set(range(100, 118)), True),  # nine of ten
        ([KEYS], set(range(100, 117)), False),
        ([set(range(100, 110)), set(range(105, 120))], KEYS, True),
        ([set(range(100, 119))], KEYS, False),  # too few to tell
        ([], KEYS, False),
        ([KEYS, None], KEYS, False),  # not all of them can be read
    ],
)
def test_keys_are_those_of_the_inputs(monkeypatch, written, read, are):
    asked = []

    def keys_read(directory: Any, first: int, stop: int, _: object) -> Any:
        asked.append((directory.topic, first, stop))
        if directory.topic == "gone":
            raise FileNotFoundError
        return np.array(sorted(read), dtype=np.int64)

    monkeypatch.setattr(exactly_once, "keys_read", keys_read)
    there: Any = [SimpleNamespace(topic=topic, partition=0) for topic in ("in", "gone")]
    group: Any = SimpleNamespace(
        times=[1, 9], read=[("in", 0, 10_005, 20_000), ("not here", 0, 0, 1), ("gone", 0, 9, 99)]
    )
    compared = reader(Outputs(*(None if each is None else content({1}, each) for each in written)), there)
    assert compared.has_keys_of(group, 5) is are
    enough = None not in written and len(set().union(*(each or set() for each in written))) >= 20
    # ten thousand records before the first commit, or from the first one on
    assert asked == ([("in", 5, 20_000), ("gone", 0, 99)] if enough else [])
    assert compared.not_compared == (1 if enough else 0) + written.count(None)
    without_keys = reader(Outputs(content({1}, KEYS, keyed=False)), there)
    assert not without_keys.has_keys_of(group, 5)
    assert not compared.has_keys_of(group, 6)


@pytest.mark.parametrize(
    ("group", "name", "alike"),
    [("app", "app-1", True), ("app-1", "app", True), ("app", "other", False), ("app", "app", True)],
)
def test_a_group_and_a_producer_of_one_program_have_like_names(group, name, alike):
    assert _are_alike(group, name) is alike


def test_programs_that_keep_their_offsets_elsewhere_are_left_out():
    assert not _are_alike("connect", "connect-cluster-connect-sink-0")
    assert not _are_alike("job", "job-0-12")


def test_a_group_commits_in_turn_with_the_producer_that_writes_what_it_read():
    group: Any = SimpleNamespace(
        group="app",
        times=list(range(100, 3100, 100)),
        commits=30,
        topics=("in",),
        first_offset=1,
        last_offset=8,
        read=[],
    )
    times = {7: np.arange(90, 3090, 100), 8: np.array([1, 2, 3])}
    outputs: Any = SimpleNamespace(ends_without_inputs=lambda: times, some=lambda *_: [])
    found = _in_turn([group], outputs, lambda _: {7: "app-1", 8: "app-2", 9: "app-3"}, reader(outputs))
    assert list(found) == ["app"]
    one = found["app"]
    assert (one.group, one.commits, one.in_transactions, one.topics) == ("app", 30, 0, ("in",))
    assert (one.first_offset, one.first_ms, one.last_offset, one.last_ms) == (1, 100, 8, 3000)
    assert (one.producer_id, one.transactional_id) == (7, "app-1")
    assert _in_turn([group], outputs, lambda _: {7: "others"}, reader(outputs)) == {}
    assert _in_turn([], outputs, lambda _: {7: "app-1"}, reader(outputs)) == {}
