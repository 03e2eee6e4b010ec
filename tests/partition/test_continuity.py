"""Which chunks go on from those before them, and what is listed of what does not."""

from typing import Any

import numpy as np
import pytest

from kaudit.model.damage import DamageKind, LeaderEpochRegression, LogDamage, MissingCause, PlacedDamage
from kaudit.partition import continuity
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.continuity import Continuity
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.rows import GAP, LEADER_EPOCH_START
from kaudit.source.layout import SegmentFile
from tests.scanning.test_not_covered import NOTHING_WRONG, SEGMENTS


def segments(*sizes_by_base):
    return [SegmentFile(f"/d/{base}.log", f"{base}.log", base, size, 0) for base, size in sizes_by_base]


THREE = segments((0, 100), (50, 100), (80, 100))
WITH_EMPTY = segments((0, 100), (50, 0), (80, 100))


@pytest.mark.parametrize(
    ("log", "segment", "joined", "first", "last", "next_offset", "accepted"),
    [
        (THREE, 0, 0, 0, 49, None, True),
        (THREE, 0, 0, 0, 50, None, False),
        (THREE, 1, 0, 50, 79, None, True),
        (THREE, 1, 0, 49, 60, None, False),
        (THREE, 1, 0, 50, 80, None, False),
        (THREE, 2, 0, 80, 10**12, None, True),
        # segments read together end where the one behind them begins
        (THREE, 0, 1, 0, 79, None, True),
        (THREE, 0, 1, 0, 80, None, False),
        (THREE, 0, 2, 0, 10**12, None, True),
        # an empty one bounds nothing
        (WITH_EMPTY, 0, 0, 0, 60, None, True),
        (WITH_EMPTY, 0, 0, 0, 79, None, True),
        (WITH_EMPTY, 0, 0, 0, 80, None, False),
        (segments((0, 100), (50, 0)), 0, 0, 0, 60, None, True),
        # what was there before ends below
        (THREE, 1, 0, 60, 70, 60, True),
        (THREE, 1, 0, 60, 70, 59, True),
        (THREE, 1, 0, 60, 70, 61, False),
        # without a batch there is no offset to be wrong
        (THREE, 0, 0, None, None, 99, True),
    ],
)
def test_a_chunk_goes_on_within_its_segments_and_behind_what_was_before(
    log, segment, joined, first, last, next_offset, accepted
):
    followed = Continuity(log, None, next_offset=next_offset)
    chunk = ChunkRows(segment, 0, 100, 100, first_offset=first, last_offset=last, joined=joined)
    assert followed.accepts(chunk) is accepted
    chunk.ordered = False
    assert not followed.accepts(chunk)


@pytest.mark.parametrize(("gaps", "listed", "unlisted"), [(1, 1, 0), (2, 2, 0), (3, 2, 1), (5, 2, 3)])
def test_so_many_gaps_are_listed_and_the_rest_counted(monkeypatch, gaps, listed, unlisted):
    monkeypatch.setattr(continuity, "MAX_LISTED", 2)
    chunk = ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=99)
    chunk.gaps = np.zeros(gaps, dtype=GAP)
    for number in range(gaps):
        values = {"position": 10 * (number + 1), "first_missing": 10 * number + 5, "last_missing": 10 * number + 6}
        for name, value in values.items():
            chunk.gaps[name][number] = value
    followed = Continuity(THREE, None)
    followed.feed(chunk)
    assert [(missing.first_offset, missing.last_offset, missing.position) for missing in followed.missing] == [
        (10 * number + 5, 10 * number + 6, 10 * (number + 1)) for number in range(listed)
    ]
    assert followed.unlisted == unlisted


def placed(segment, kind=DamageKind.UNPARSABLE):
    return PlacedDamage(LogDamage(kind, 5, 9, resynchronised=True, detail="?"), segment, None, None, None)


def test_of_a_partition_that_was_judged_the_lists_are_left_out():
    """Of its damages what a text leaves out, and the first in the last segment: they say how the log ends."""
    damages = [placed(0), placed(0, DamageKind.LEFT_OUT), placed(1), placed(1, DamageKind.LEFT_OUT), placed(1)]
    regressions = [LeaderEpochRegression(*range(len(LeaderEpochRegression.__struct_fields__))) for _ in range(2)]
    whole = PartitionAudit(
        **{name: getattr(NOTHING_WRONG, name) for name in PartitionAudit.__struct_fields__}
        | {"damages": damages, "regressions": regressions, "missing": ["?"], "observations": ["?"], "producers": 3}
    )
    outline = whole.outline()
    assert outline.damages == [damages[1], damages[3], damages[2]]
    assert (outline.regressions, outline.missing, outline.observations) == (regressions[:1], (), ())
    assert (outline.directory.name, outline.directory.segments) == (NOTHING_WRONG.directory.name, ())
    assert (outline.producers, outline.log_end_offset) == (3, 100)
    assert len(whole.directory.segments) == len(SEGMENTS)


def damage(position, end, claims=None):
    kind = DamageKind.UNPARSABLE if claims is None else DamageKind.CRC_MISMATCH
    first, last = claims or (None, None)
    return LogDamage(kind, position, end, resynchronised=True, detail="?", base_offset=first, last_offset=last)


D, U, S = MissingCause.DAMAGE, MissingCause.UNKNOWN, MissingCause.MISSING_SEGMENT


@pytest.mark.parametrize(
    ("damages", "costs", "missing"),
    [
        ([damage(100, 200)], [(10, 20)], [(10, 20, D, 200)]),
        ([damage(100, 200, (10, 20))], [(10, 20)], [(10, 20, D, 200)]),
        # what its header claims is its own, the rest was cut out before it and behind it
        ([damage(100, 200, (12, 14))], [(12, 14)], [(10, 11, U, 100), (12, 14, D, 200), (15, 20, U, 200)]),
        ([damage(100, 200, (10, 14))], [(10, 14)], [(10, 14, D, 200), (15, 20, U, 200)]),
        ([damage(100, 200, (14, 20))], [(14, 20)], [(10, 13, U, 100), (14, 20, D, 200)]),
        # a claim to what is not missing is none
        ([damage(100, 200, (9, 14))], [(10, 20)], [(10, 20, D, 200)]),
        ([damage(100, 200, (14, 21))], [(10, 20)], [(10, 20, D, 200)]),
        ([damage(100, 200, (14, 13))], [(10, 20)], [(10, 20, D, 200)]),
        (
            [damage(100, 150, (12, 13)), damage(150, 200, (15, 16))], [(12, 13), (15, 16)],
            [(10, 11, U, 100), (12, 13, D, 200), (14, 14, U, 150), (15, 16, D, 200), (17, 20, U, 200)],
        ),
        (
            [damage(100, 150, (12, 13)), damage(150, 200, (14, 16))], [(12, 13), (14, 16)],
            [(10, 11, U, 100), (12, 16, D, 200), (17, 20, U, 200)],
        ),
        # batches that were swapped, one that is there twice, one that lies in another
        (
            [damage(100, 150, (16, 17)), damage(150, 200, (12, 13))], [(16, 17), (12, 13)],
            [(10, 11, U, 150), (12, 13, D, 200), (14, 15, U, 100), (16, 17, D, 200), (18, 20, U, 200)],
        ),
        (
            [damage(100, 150, (12, 16)), damage(150, 200, (12, 16))], [(12, 16)] * 2,
            [(10, 11, U, 100), (12, 16, D, 200), (17, 20, U, 200)],
        ),
        ([damage(100, 150), damage(150, 200, (12, 13))], [(10, 20), (12, 13)], [(10, 20, D, 200)]),
    ],
)  # fmt: skip
def test_missing_offsets_are_shared_out_to_the_damages_among_them(damages, costs, missing):
    gaps = np.zeros(1, dtype=GAP)
    for name, value in {"position": 200, "first_missing": 10, "last_missing": 20}.items():
        gaps[name] = value
    bounds: Any = {"first_offset": 0, "first_position": 0, "last_offset": 30, "last_position": 200}
    chunk = ChunkRows(0, 0, 300, 300, gaps=gaps, damages=damages, expected_offsets=[10] * len(damages), **bounds)
    followed = Continuity(THREE, None)
    followed.feed(chunk)
    assert [(each.first_missing, each.last_missing) for each in followed.damages] == costs
    assert {(each.expected_offset, each.segment) for each in followed.damages} == {(10, 0)}
    assert listed(followed) == [(*row, 0) for row in missing]
    # the same where the damage ends one range and the next begins behind it
    before = ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=9, last_position=0)
    before.damages, before.expected_offsets = damages, [10] * len(damages)
    behind = ChunkRows(0, 200, 300, 300, first_offset=21, first_position=200, last_offset=30, last_position=200)
    followed = Continuity(THREE, None)
    followed.feed(before)
    followed.feed(behind)
    assert [(each.first_missing, each.last_missing) for each in followed.damages] == costs
    assert listed(followed) == [(*row, 0) for row in missing]


def listed(followed):
    return [(each.first_offset, each.last_offset, each.cause, each.position, each.segment) for each in followed.missing]


@pytest.mark.parametrize(
    ("first", "start", "missing"),
    [
        (50, 0, []),
        (51, 0, [(50, 50, U, 0, 1)]),
        (51, 100, [(50, 50, U, 0, 1)]),
    ],
)
def test_offsets_missing_behind_the_segment_before(first, start, missing):
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=49))
    followed.feed(ChunkRows(1, start, 200, 200, first_offset=first, first_position=start, last_offset=60))
    assert listed(followed) == [(*row[:3], start, 1) for row in missing]


@pytest.mark.parametrize(("last", "segment"), [(49, []), (48, [(49, 49, S, 0, 1)]), (10, [(11, 49, S, 0, 1)])])
@pytest.mark.parametrize(("first", "own"), [(50, []), (55, [(50, 54, U, 7, 1)])])
def test_offsets_missing_in_front_of_a_segment_are_a_segments(last, segment, first, own):
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=last))
    followed.feed(ChunkRows(1, 0, 200, 200, first_offset=first, first_position=7, last_offset=60))
    assert listed(followed) == [*segment, *own]
    assert followed.is_whole_from(last + 1 if not listed(followed) else 55)
    assert followed.is_whole_from(50) is not bool(own)


@pytest.mark.parametrize(("log_start", "first", "missing"), [
    (None, 0, []), (None, 3, [(0, 2)]), (0, 3, [(0, 2)]), (2, 3, [(2, 2)]), (3, 3, []), (9, 3, []),
])  # fmt: skip
def test_below_the_log_start_nothing_is_missing(log_start, first, missing):
    followed = Continuity(THREE, log_start)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=first, first_position=0, last_offset=49))
    assert [row[:2] for row in listed(followed)] == missing
    assert (followed.first_offset, followed.next_offset) == (first, 50)


@pytest.mark.parametrize(
    ("wrapper", "before", "first", "present"),
    [
        (True, 9, 10, 1),
        (True, 9, 12, 3),
        (True, None, 0, 1),
        (True, None, 4, 5),
        (False, 9, 12, 1),
        (False, None, 4, 1),
    ],
)
def test_a_wrapper_holds_the_offsets_since_the_batch_before(wrapper, before, first, present):
    """A compressed set of magic 0 or 1 names its last offset alone."""
    followed = Continuity(THREE, None)
    if before is not None:
        followed.feed(
            ChunkRows(0, 0, 100, 100, first_offset=before, first_position=0, last_offset=before, offsets_present=1)
        )
    known = followed.offsets_present
    bounds: Any = {"first_offset": first, "first_position": 100, "last_offset": first}
    chunk = ChunkRows(0, 100, 200, 200, wrapper_first=wrapper, offsets_present=1, **bounds)
    assert followed.present_before(chunk) == known + present - 1
    followed.feed(chunk)
    assert followed.offsets_present == known + present


def test_damage_that_nothing_follows_costs_an_unknown_number_of_offsets():
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=49))
    torn = damage(0, 50, (50, 60))
    followed.feed(ChunkRows(1, 0, 50, 50, damages=[torn], expected_offsets=[None]))
    assert followed.damages == []
    followed.finish()
    assert followed.damages == [PlacedDamage(torn, 1, 50, None, None)]
    followed.finish()
    assert (len(followed.damages), followed.missing, followed.is_whole_from(50)) == (1, [], False)


Step = tuple[int, int, int]
"""A range of batches with one leader epoch: that, and the first and last offset of the first batch."""


def steps_of(steps):
    rows = np.zeros(len(steps), dtype=LEADER_EPOCH_START)
    for number, (epoch, base, last) in enumerate(steps):
        rows[number] = tuple(
            {
                "leader_epoch": epoch,
                "base_offset": base,
                "last_offset": last,
                "position": 10 * base,
                "segment": number % 3,
            }[name]
            for name in rows.dtype.names or ()
        )
    return rows


def in_a_row(*epochs: int) -> list[Step]:
    """Ranges of several batches, the first with two offsets."""
    return [(epoch, 10 * number, 10 * number + 1) for number, epoch in enumerate(epochs)]


@pytest.mark.parametrize(
    ("steps", "odd"),
    [
        ([], []),
        (in_a_row(0, 1, 5), []),
        # below one before: that one is expected
        (in_a_row(3, 1, 4), [(1, 3)]),
        (in_a_row(3, 1, 2, 4), [(1, 3), (2, 3)]),
        (in_a_row(3, 1), [(1, 3)]),
        # above its neighbours
        (in_a_row(1, 9, 1, 2), [(9, 1)]),
        (in_a_row(1, 9, 2), [(9, 1)]),
        (in_a_row(1, 9), []),
        # the first has no neighbour before it
        (in_a_row(9, 1, 2), [(1, 9), (2, 9)]),
        # none
        (in_a_row(-2), [(-2, -1)]),
        (in_a_row(-2, 4), [(-2, 4)]),
        (in_a_row(3, -2, 4), [(-2, 3)]),
        # of a range of several batches and one batch between two of its epoch or a later, that one is odd
        ([(1, 0, 1), (5, 10, 11), (2, 20, 29), (5, 30, 31)], [(2, 5)]),
        ([(1, 0, 1), (5, 10, 11), (2, 20, 29), (6, 30, 31)], [(2, 5)]),
        ([(1, 0, 1), (5, 10, 11), (2, 20, 29), (4, 30, 31)], [(5, 1)]),
        # both are one batch, or both are several
        ([(1, 0, 1), (5, 10, 19), (2, 20, 29), (5, 30, 31)], [(5, 1)]),
        ([(1, 0, 1), (5, 10, 11), (2, 20, 21), (5, 30, 31)], [(5, 1)]),
    ],
)
def test_leader_epochs_that_no_leader_wrote(steps, odd):
    """Read as one chunk, and as chunks that each begin with the epoch the one before ended with."""
    first_of: dict[int, tuple[int, int, int, int]] = {}
    for number, (epoch, base, last) in enumerate(steps):
        first_of.setdefault(epoch, (base, last, 10 * base, number % 3))
    expected = [LeaderEpochRegression(epoch, wanted, *first_of[epoch]) for epoch, wanted in odd]
    rows = steps_of(steps)
    for cuts in ([], *([cut] for cut in range(1, len(steps)))):
        followed = Continuity(THREE, None)
        for part in np.split(rows, cuts):
            followed.feed(ChunkRows(0, 0, 100, 100, leader_epochs=part))
            # a chunk that has nothing but the last epoch of the one before it
            followed.feed(ChunkRows(0, 0, 100, 100, leader_epochs=part[-1:]))
        assert followed.epoch_regressions() == expected
        assert followed.epoch_steps()["leader_epoch"].tolist() == [epoch for epoch, *_ in steps if epoch >= 0]
        assert followed.leader_epoch_changed is (len(steps) > 1)


def test_so_many_damages_are_listed_and_the_rest_counted(monkeypatch):
    monkeypatch.setattr(continuity, "MAX_LISTED", 2)
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=9))
    torn = [damage(20 * number, 20 * number + 10) for number in range(4)]
    followed.feed(ChunkRows(1, 0, 100, 100, damages=torn, expected_offsets=[None] * 4))
    followed.finish()
    assert (followed.damages, followed.unlisted) == ([PlacedDamage(each, 1, 10, None, None) for each in torn[:2]], 2)
    assert (followed.unlisted_missing, followed.is_whole_from(99)) == ({}, False)


def test_gaps_that_are_only_counted_are_counted_by_segment(monkeypatch):
    monkeypatch.setattr(continuity, "MAX_LISTED", 0)
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=3, first_position=0, last_offset=49))
    followed.feed(ChunkRows(1, 0, 100, 100, first_offset=52, first_position=0, last_offset=60))
    followed.feed(ChunkRows(1, 100, 200, 200, first_offset=65, first_position=100, last_offset=79))
    assert (followed.missing, followed.unlisted, followed.unlisted_missing) == ([], 3, {0: 3, 1: 2 + 4})


def test_the_figures_of_chunks_are_added_up():
    followed = Continuity(THREE, None)
    figures: list[dict[str, Any]] = [
        {"offsets_present": 40, "marker_offsets": 3, "cleaned_offsets": 2, "cleaned_to": 30},
        {"offsets_present": 5, "marker_offsets": 1, "cleaned_offsets": 4, "cleaned_to": -1},
    ]
    for each in figures:
        followed.feed(ChunkRows(0, 0, 100, 100, **each))
    found = followed.offsets_present, followed.marker_offsets, followed.cleaned_offsets, followed.cleaned_to
    assert found == (45, 4, 6, 30)
    assert (followed.first_offset, followed.next_offset) == (None, None)


@pytest.mark.parametrize(
    ("start", "first", "expected"),
    [
        (0, 50, []),
        # the segment's first offsets are expected, since it was read from its first byte on
        (0, 53, [(50, 52, U, 7, 1)]),
        # what lies before it in the segment could not be read either
        (60, 53, []),
    ],
)
def test_after_what_could_not_be_read_nothing_before_the_next_segment_is_missing(start, first, expected):
    followed = Continuity(THREE, None)
    followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=9))
    torn = damage(80, 100)
    followed.feed(ChunkRows(0, 80, 100, 100, damages=[torn], expected_offsets=[None]))
    followed.skip()
    assert (followed.damages, followed.pending) == ([PlacedDamage(torn, 0, 10, None, None)], [])
    assert (followed.first_offset, followed.next_offset) == (None, None)
    followed.feed(ChunkRows(1, start, 100, 100, first_offset=first, first_position=start or 7, last_offset=60))
    assert listed(followed) == expected
    assert (followed.first_offset, followed.next_offset) == (first, 61)


@pytest.mark.parametrize(
    ("log", "log_start", "last", "missing"),
    [
        # a broker begins a segment at the log's end
        (segments((0, 100), (50, 0)), None, 49, []),
        (segments((0, 100), (50, 0)), None, 40, [(41, 49, S, 0, 1)]),
        (segments((0, 100), (50, 1)), None, 40, []),
        (
            segments(
                (50, 0),
            ),
            None,
            None,
            [],
        ),
        # a log of which nothing is left: from its start on
        (segments((0, 0), (50, 0)), None, None, [(0, 49, S, 0, 1)]),
        (segments((0, 0), (50, 0)), 30, None, [(30, 49, S, 0, 1)]),
        (segments((0, 0), (50, 0)), 50, None, []),
        (segments((20, 0), (50, 0)), 10, None, [(20, 49, S, 0, 1)]),
    ],
)
def test_before_an_empty_last_segment_every_offset_was_written(log, log_start, last, missing):
    followed = Continuity(log, log_start)
    if last is not None:
        followed.feed(ChunkRows(0, 0, 100, 100, first_offset=0, first_position=0, last_offset=last))
    followed.finish()
    assert listed(followed) == missing
    skipped = Continuity(log, log_start)
    skipped.skip()
    skipped.finish()
    assert listed(skipped) == []
