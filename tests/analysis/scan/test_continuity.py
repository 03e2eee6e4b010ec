"""Which chunks go on from those before them, and what is listed of what does not."""

import numpy as np
import pytest

from kaudit.analysis.scan import continuity
from kaudit.analysis.scan.chunk_rows import ChunkRows
from kaudit.analysis.scan.continuity import Continuity
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.rows import GAP
from kaudit.model.continuity import LeaderEpochRegression, PlacedDamage
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.source.layout import SegmentFile
from tests.analysis.scan.test_not_audited import NOTHING_WRONG, SEGMENTS


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
