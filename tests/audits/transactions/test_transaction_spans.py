"""Transactions of a partition, chunk by chunk, against a diary: open transactions in a dict, one event after the other."""

from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
import pytest

from kaudit.audits.transactions import transaction_spans as module
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.model.columns import Columns
from kaudit.reading.producer_grouping import merge
from kaudit.reading.rows import MARKER, RUN

ABORT, COMMIT, DATA, PLAIN, OTHER = range(5)
"""OTHER: a control record of a type that ends no transaction."""
MARKERS = (ABORT, COMMIT, OTHER)


@dataclass(frozen=True)
class Event:
    """A marker, or a run of transactional or plain data, of so many offsets."""

    producer_id: int
    offset: int
    kind: int
    offsets: int


@dataclass
class Diary:
    """What each marker ended, and what became of each offset of data."""

    ended: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """Type, offset, first offset of its transaction, for aborts that of the oldest one open (-1: none), records, least timestamp."""
    outcomes: dict[tuple[int, int], str] = field(default_factory=dict)


def diary_of(events: list[Event]) -> Diary:
    diary = Diary()
    opened: dict[int, int] = {}
    data: dict[int, list[Event]] = {}
    for event in events:
        if event.kind == DATA:
            opened.setdefault(event.producer_id, event.offset)
            data.setdefault(event.producer_id, []).append(event)
            for offset in range(event.offset, event.offset + event.offsets):
                diary.outcomes[event.producer_id, offset] = "open"
        elif event.kind in (ABORT, COMMIT):
            first = opened.pop(event.producer_id, -1)
            oldest = min(opened.values(), default=-1) if event.kind == ABORT else -1
            own = data.pop(event.producer_id, [])
            least = min((timestamp_of(part) for part in own), default=-1)
            diary.ended.append((event.kind, event.offset, first, oldest, sum(part.offsets for part in own), least))
            diary.outcomes |= {
                key: "aborted" if event.kind == ABORT else "committed"
                for key, outcome in diary.outcomes.items()
                if key[0] == event.producer_id and outcome == "open"
            }
    return diary


def timestamp_of(event: Event) -> int:
    return event.offset * 37 % 101


def events_of(random: np.random.Generator) -> list[Event]:
    events, offset = [], int(random.integers(0, 3))
    for _ in range(60):
        kind = int(random.integers(0, 5))
        offsets = 1 if kind in MARKERS else int(random.integers(1, 4))
        events.append(Event(int(random.integers(0, 4)), offset, kind, offsets))
        offset += offsets
    return events


def fed(events: list[Event], pieces: int) -> TransactionSpans:
    spans = TransactionSpans()
    for piece in np.array_split(np.arange(len(events)), pieces):
        chosen = [events[index] for index in piece]
        spans.feed(
            merge(
                rows_of(RUN, [e for e in chosen if e.kind not in MARKERS]),
                rows_of(MARKER, [e for e in chosen if e.kind in MARKERS]),
            )
        )
    return spans


def rows_of(dtype: np.dtype, events: list[Event]) -> Columns:
    rows = np.zeros(len(events), dtype=dtype)
    rows["producer_id"] = [event.producer_id for event in events]
    if dtype == RUN:
        rows["first_offset"] = [event.offset for event in events]
        rows["last_offset"] = [event.offset + event.offsets - 1 for event in events]
        rows["records"] = [event.offsets for event in events]
        rows["min_timestamp"] = [timestamp_of(event) for event in events]
        rows["is_transactional"] = [event.kind == DATA for event in events]
        rows.sort(order=["producer_id", "first_offset"])
    else:
        rows["offset"], rows["type"] = [event.offset for event in events], [event.kind for event in events]
        rows["record_count"] = 1
        rows["timestamp"], rows["position"] = rows["offset"] + 1000, rows["offset"] * 70
        rows["producer_epoch"], rows["coordinator_epoch"] = rows["offset"] % 7, rows["offset"] % 5
        rows["segment"] = rows["offset"] // 20
        rows.sort(order=["producer_id", "offset"])
    return Columns(rows.dtype, len(rows), {name: rows[name] for name in rows.dtype.names or ()})


def ended(spans: TransactionSpans) -> list[tuple[int, ...]]:
    names = ("type", "marker_offset", "first_offset", "stable_offset", "records", "begun_timestamp")
    return [tuple(int(row[name]) for name in names) for row in spans.ended()]


HISTORIES = [events_of(np.random.default_rng(seed)) for seed in range(20)]


@pytest.mark.parametrize("pieces", [1, 7, 60])
def test_what_each_marker_ended_wherever_the_log_is_cut(pieces):
    for events in HISTORIES:
        spans = fed(events, pieces)
        assert ended(spans) == diary_of(events).ended
        for row in spans.ended():
            offset = int(row["marker_offset"])
            own = {event.offset: event.producer_id for event in events}
            assert [
                int(row[name])
                for name in ("producer_id", "producer_epoch", "coordinator_epoch", "timestamp", "position", "segment")
            ] == [own[offset], offset % 7, offset % 5, offset + 1000, offset * 70, offset // 20]


@pytest.mark.parametrize("pieces", [1, 7])
def test_what_became_of_each_offset(pieces):
    for events in HISTORIES:
        expected = diary_of(events).outcomes
        asked = [*expected, (-1, 0), (-1, 30)]
        found = fed(events, pieces).outcomes(np.array([who for who, _ in asked]), np.array([at for _, at in asked]))
        assert found == [*expected.values(), None, None]


def test_with_too_many_commits_aborts_are_still_all_there():
    for events in HISTORIES:
        expected = diary_of(events).ended
        commits, aborts = (sum(kind == wanted for kind, *_ in expected) for wanted in (COMMIT, ABORT))
        for limit in (commits - 1, commits):
            with patch.object(module, "MAX_COMMITS", limit):
                spans = fed(events, 7)
                assert spans.has_all_commits is (limit == commits)
                kept = [row for row in expected if spans.has_all_commits or row[0] == ABORT]
                assert ended(spans) == kept
        for limit in (aborts - 1, aborts):
            with patch.object(module, "MAX_ABORTS", limit):
                spans = fed(events, 7)
                assert spans.has_all_aborts is (limit == aborts)
                assert ended(spans) == (expected if spans.has_all_aborts else [])


def test_many_parts_are_put_together():
    events = HISTORIES[0]
    with patch.object(module, "_MOST_PARTS", 2):
        spans = fed(events, 60)
        assert ended(spans) == diary_of(events).ended
        assert len(spans._ended) <= 2


def test_nothing_has_ended_at_first():
    assert ended(TransactionSpans()) == []
