"""Producers that begin after others: what of their records is the same."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kaudit.audits.repeats.identities import CONTENT
from kaudit.audits.repeats.restarts import Edge, Restart
from kaudit.audits.repeats.session_copies import compare_restarts
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.source.schemes import open_segment
from tests.audits.repeats.stored import batches_of, written
from tests.logs import Batch, data

READER = IdentityReader(parse_identity(CONTENT))


def compared(tmp_path, before: Sequence[bytes], after: Sequence[bytes], *, next_id: int = 8, same_times: bool = False):
    """Sessions of producer 7 and then `next_id`, a batch of one record for each payload: all their batches are compared."""
    batches = [data(7, 0, number, payload=payload) for number, payload in enumerate(before)]
    batches += [data(next_id, 1, number, payload=payload) for number, payload in enumerate(after)]
    directory = written(
        tmp_path, *batches, times=range(len(batches)) if not same_times else _repeated_times(before, after)
    )
    rows = batches_of(directory)
    end = len(before)
    restart = Restart(Edge(next_id, 1, rows[end]), [Edge(7, 0, rows[end - 1])])
    found = [compare_restarts([restart], directory, open_segment, READER, most) for most in (0, None)]
    assert found[0] == found[1]
    return rows, found[0][0], found[0][1]


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
            records_at_most=3,
        )
    ]


@pytest.mark.parametrize(
    ("after", "most"),
    [
        ([b"a", b"b", b"c"], 3),
        ([b"a", b"b", b"c", b"x", b"e"], 4),  # one more, after another one
        ([b"a", b"b", b"c", b"x", b"x"], 3),  # its own
    ],
)
@pytest.mark.parametrize("next_id", [7, 8])
def test_what_else_others_wrote_before_may_be_repeated_too(tmp_path, after, most, next_id, monkeypatch):
    before = [b"a", b"b", b"c", b"d", b"e"]
    _, *found = compared(tmp_path, before, after, next_id=next_id)
    assert [(each.records, each.records_at_most) for kind in found for each in kind] == [(3, most)]
    monkeypatch.setattr("kaudit.audits.repeats.records_again.MOST_BYTES", 1)
    _, *found = compared(tmp_path / "large", before, after, next_id=next_id)
    assert [(each.records, each.records_at_most) for kind in found for each in kind] == [(3, None)]


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
            records_at_most=3,
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
    """What four producers write is evidence where it is more than a few records."""
    parts = ((0, 10), (10, 21), (21, 32), (32, 43))
    payloads = [b"%d" % (at - begin) for begin, end in parts for at in range(begin, end)]
    sent = [(number, at) for number, (begin, end) in enumerate(parts) for at in range(begin, end)]
    directory = written(tmp_path, *(data(number, 0, at, payload=payloads[at]) for number, at in sent))
    rows = batches_of(directory)
    first, lasts = Edge(3, 0, rows[32]), [Edge(number, 0, rows[end - 1]) for number, (_, end) in enumerate(parts[:3])]
    for before, previous in (([2, 1, 0], (2, 11, 21)), ([0, 1], (1, 11, 10))):
        restart = Restart(first, [lasts[number] for number in before])
        ((found,), _, _) = compare_restarts([restart], directory, open_segment, READER)
        assert (found.previous_id, found.records, found.copied_first) == previous


def test_batches_of_several_records_are_compared_record_by_record(tmp_path):
    batches = [data(7, 0, 0, payload=b"a"), data(7, 0, 1, payload=b"b"), data(7, 0, 2, payload=b"c"), Batch(count=2)]
    directory = written(tmp_path, *batches, *(replace(batch, producer_id=8) for batch in batches[:3]))
    rows = batches_of(directory)
    restart = Restart(Edge(8, 0, rows[4]), [Edge(7, 0, rows[2])])
    ((found,), _, _) = compare_restarts([restart], directory, open_segment, READER)
    assert (found.first_offset, found.last_offset, found.copied_first, found.copied_last) == (5, 7, 0, 2)
    Path(directory.segments[0].path).write_bytes(b"")
    assert compare_restarts([restart], directory, open_segment, READER) == ([], [], 0)
