"""Sessions that follow on one another: which are compared, and what of their records is the same."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kaudit.audits.repeats.session_copies import compare_sessions
from kaudit.audits.repeats.sessions import Handover, Session, SessionTracker
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BoundaryBatch, Run
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.source.schemes import open_segment
from tests.audits.repeats.stored import batches_of, written
from tests.logs import Batch, data

Row = Mapping[str, int]


def columns(kind: type, rows: Sequence[Row]) -> Columns:
    dtype = dtype_of(kind)
    return Columns(dtype, len(rows), {name: np.array([row.get(name, 0) for row in rows]) for name in dtype.names or ()})


def fed(tracker: SessionTracker, *runs: tuple[int, int, int, int], transactional: bool = False) -> None:
    """Feed a chunk of runs: producer id, epoch, first sequence and first offset, with so many batches of one record."""
    rows: list[Row] = []
    boundary: list[Row] = []
    for number, (producer_id, sequence, offset, count) in enumerate(runs):
        batches = [
            {"base_offset": offset + at, "last_offset": offset + at, "last_sequence": sequence + at}
            for at in range(count)
        ]
        kept = batches if count <= 10 else batches[:5] + batches[-5:]
        rows.append({
            "producer_id": producer_id, "producer_epoch": 3, "is_transactional": int(transactional),
            "first_sequence": sequence, "first_offset": offset, "last_offset": offset + count - 1,
            "boundary_start": len(boundary), "boundary_count": len(kept), "head_count": min(count, 5),
            "batches": count, "records": number,
        })  # fmt: skip
        boundary += kept
    tracker.feed(columns(Run, rows), columns(BoundaryBatch, boundary))


def seen(session: Session) -> tuple[object, ...]:
    head, tail = ([batch.base_offset for batch in batches] for batches in (session.head, session.tail))
    return session.producer_id, session.producer_epoch, session.first_offset, session.last_offset, head, tail


def handed(tracker: SessionTracker) -> list[tuple[int, list[int]]]:
    return [
        (handover.session.producer_id, [before.producer_id for before in handover.before])
        for handover in tracker.handovers()
    ]


def test_a_session_has_its_first_and_its_last_five_batches():
    tracker = SessionTracker()
    fed(tracker, (1, 0, 10, 3), (2, 0, 20, 12))
    fed(tracker, (2, 12, 40, 2), (3, 0, 50, 1))
    (found,) = [handover for handover in tracker.handovers() if handover.session.producer_id == 3]
    assert seen(found.session) == (3, 3, 50, 50, [50], [50])
    assert [seen(before) for before in found.before] == [
        (2, 3, 20, 41, [20, 21, 22, 23, 24], [29, 30, 31, 40, 41]),
        (1, 3, 10, 12, [10, 11, 12], [10, 11, 12]),
    ]


def test_the_first_five_may_come_in_several_chunks():
    tracker = SessionTracker()
    fed(tracker, (9, 0, 1, 1), (1, 0, 10, 2))
    fed(tracker, (1, 2, 12, 1))
    fed(tracker, (1, 3, 20, 4))
    fed(tracker, (1, 7, 30, 1))
    (found,) = [handover for handover in tracker.handovers() if handover.session.producer_id == 1]
    assert seen(found.session) == (1, 3, 10, 30, [10, 11, 12, 20, 21], [20, 21, 22, 23, 30])


@pytest.mark.parametrize(("sequence", "head"), [(2, [10, 11, 20]), (1, [10, 11]), (3, [10, 11]), (0, [10, 11])])
def test_what_does_not_go_on_is_not_the_beginning(sequence, head):
    tracker = SessionTracker()
    fed(tracker, (9, 0, 1, 1), (1, 0, 10, 2))
    fed(tracker, (1, sequence, 20, 1))
    (found,) = [handover for handover in tracker.handovers() if handover.session.producer_id == 1]
    assert [batch.base_offset for batch in found.session.head] == head


def test_the_sequence_after_the_highest_is_zero():
    tracker = SessionTracker()
    fed(tracker, (9, 0, 1, 1), (1, 0, 10, 1))
    session = next(one.session for one in tracker.handovers() if one.session.producer_id == 1)
    session.head[-1] = session.head[-1]._replace(last_sequence=2**31 - 1)
    fed(tracker, (1, 0, 20, 1))
    assert [batch.base_offset for batch in session.head] == [10, 20]


def test_only_sessions_that_begin_here_behind_the_end_of_others_are_compared():
    tracker = SessionTracker()
    fed(tracker, (1, 0, 10, 3), (2, 0, 13, 1), (3, 5, 20, 1), (4, 0, 30, 1), (1, 3, 40, 1), (5, 0, 41, 1))
    assert handed(tracker) == [(4, [3, 2]), (5, [1, 4, 3, 2])]
    fed(tracker, (6, 0, 50, 1), transactional=True)
    assert len(handed(tracker)) == 2


def test_the_eight_that_ended_last_are_compared():
    tracker = SessionTracker()
    fed(tracker, *((number, 0, number, 1) for number in range(12)))
    assert handed(tracker)[7:] == [
        *((8, [7, 6, 5, 4, 3, 2, 1, 0]), (9, [8, 7, 6, 5, 4, 3, 2, 1])),
        *((10, [9, 8, 7, 6, 5, 4, 3, 2]), (11, [10, 9, 8, 7, 6, 5, 4, 3])),
    ]


def test_sessions_beyond_the_bound_are_counted(monkeypatch):
    monkeypatch.setattr("kaudit.audits.repeats.sessions.MAX_SESSIONS", 2)
    tracker = SessionTracker()
    fed(tracker, (1, 0, 1, 1), (2, 0, 2, 1), (3, 0, 3, 1), (1, 1, 4, 1), (4, 0, 5, 1))
    assert (tracker.unlisted, handed(tracker)) == (2, [])


def compared(tmp_path, before: Sequence[bytes], after: Sequence[bytes], *, next_id: int = 8, same_times: bool = False):
    """Sessions of producer 7 and then `next_id`, a batch of one record for each payload: all their batches are compared."""
    batches = [data(7, 0, number, payload=payload) for number, payload in enumerate(before)]
    batches += [data(next_id, 1, number, payload=payload) for number, payload in enumerate(after)]
    directory = written(
        tmp_path, *batches, times=range(len(batches)) if not same_times else _repeated_times(before, after)
    )
    rows = batches_of(directory)
    end = len(before)
    old = Session(7, 0, 0, end - 1, rows[:end], rows[:end])
    new = Session(next_id, 1, end, len(rows) - 1, rows[end:], rows[end:])
    sessions, epochs = compare_sessions([Handover(new, [old])], directory, open_segment)
    return rows, sessions, epochs


def _repeated_times(before: Sequence[bytes], after: Sequence[bytes]) -> list[int]:
    """Each record's time by its payload."""
    return [payload[0] for payload in (*before, *after)]


def test_three_records_in_a_row_are_a_repetition(tmp_path):
    rows, sessions, epochs = compared(tmp_path, [b"a", b"b", b"c", b"d"], [b"b", b"c", b"d", b"e"])
    assert epochs == []
    assert sessions == [
        RepeatedSession(
            producer_id=8,
            producer_epoch=1,
            first_offset=4,
            last_offset=6,
            previous_id=7,
            previous_epoch=0,
            copied_first=1,
            copied_last=3,
            records=3,
            same_times=False,
            previous=rows[1],
            batch=rows[4],
        )
    ]


def test_an_epoch_that_repeats_its_last_one_is_of_the_same_producer(tmp_path):
    rows, sessions, epochs = compared(tmp_path, [b"a", b"b", b"c", b"d", b"z"], [b"b", b"c", b"d", b"e"], next_id=7)
    assert sessions == []
    assert epochs == [
        RepeatedEpoch(
            producer_id=7,
            producer_epoch=1,
            previous_epoch=0,
            first_offset=5,
            last_offset=7,
            copied_first=1,
            copied_last=3,
            copied=rows[1:4],
            again=rows[5:8],
            records=3,
            distinct=3,
            same_times=False,
            to_the_end=False,
        )
    ]


@pytest.mark.parametrize(
    ("before", "after", "to_the_end"),
    [
        ([b"a", b"b", b"c", b"z"], [b"a", b"b", b"c", b"e"], False),
        ([b"a", b"b", b"c"], [b"a", b"b", b"c", b"e"], True),
        ([b"a", b"b", b"c", b"z"], [b"a", b"b", b"c"], True),
    ],
)
def test_whether_it_is_repeated_to_the_end(tmp_path, before, after, to_the_end):
    (found,) = compared(tmp_path, before, after, next_id=7)[2]
    assert found.to_the_end is to_the_end


@pytest.mark.parametrize(
    ("before", "after", "same_times", "records"),
    [
        ([b"a", b"b"], [b"a", b"b"], False, 0),  # two may be chance
        ([b"x", b"a", b"b"], [b"a", b"b", b"c"], True, 2),  # not at the same times
        ([b"x", b"a"], [b"a", b"c"], True, 1),
        ([b"a"], [b"a"], True, 0),  # the only record there is: none to be unlike
        ([b"a", b"a", b"b"], [b"a", b"b"], True, 0),  # not the only one like it
        ([b"a", b"a", b"a"], [b"a", b"a", b"a"], False, 0),  # one record over and over
        ([b"a", b"b", b"c"], [b"b", b"a", b"c"], False, 0),
        ([b"a", b"b", b"x", b"a", b"b", b"c", b"a"], [b"a", b"b", b"c"], False, 3),  # the longest
        ([b"a", b"b", b"c"], [b"z", b"a", b"b", b"c"], False, 0),  # it does not begin with them
    ],
)
def test_what_may_be_chance_is_none(tmp_path, before, after, same_times, records):
    sessions = compared(tmp_path, before, after, same_times=same_times)[1]
    assert [(found.records, found.same_times) for found in sessions] == ([(records, same_times)] if records else [])


def test_the_predecessor_with_the_longest_copy_is_named_of_equal_ones_the_latest(tmp_path):
    payloads = [b"a", b"b", b"c", b"a", b"b", b"c", b"d", b"a", b"b", b"c", b"d", b"a", b"b", b"c", b"d"]
    parts = ((0, 3), (3, 7), (7, 11), (11, 15))
    sent = [(number, at) for number, (begin, end) in enumerate(parts) for at in range(begin, end)]
    directory = written(tmp_path, *(data(number, 0, at, payload=payloads[at]) for number, at in sent))
    rows = batches_of(directory)
    sessions = [
        Session(number, 0, begin, end - 1, rows[begin:end], rows[begin:end])
        for number, (begin, end) in enumerate(parts)
    ]
    handover = Handover(sessions[3], [sessions[2], sessions[1], sessions[0]])
    (found,), _ = compare_sessions([handover], directory, open_segment)
    assert (found.previous_id, found.records, found.copied_first) == (2, 4, 7)
    (found,), _ = compare_sessions([Handover(sessions[3], [sessions[0], sessions[1]])], directory, open_segment)
    assert (found.previous_id, found.records, found.copied_first) == (1, 4, 3)


def test_batches_of_several_records_are_compared_record_by_record(tmp_path):
    batches = [data(7, 0, 0, payload=b"a"), data(7, 0, 1, payload=b"b"), data(7, 0, 2, payload=b"c"), Batch(count=2)]
    directory = written(tmp_path, *batches, *(replace(batch, producer_id=8) for batch in batches[:3]))
    rows = batches_of(directory)
    old, new = Session(7, 0, 0, 4, rows[:4], rows[:4]), Session(8, 0, 5, 7, rows[4:], rows[4:])
    (found,), _ = compare_sessions([Handover(new, [old])], directory, open_segment)
    assert (found.first_offset, found.last_offset, found.copied_first, found.copied_last) == (5, 7, 0, 2)
    Path(directory.segments[0].path).write_bytes(b"")
    assert compare_sessions([Handover(new, [old])], directory, open_segment) == ([], [])
