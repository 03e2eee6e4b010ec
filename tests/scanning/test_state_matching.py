"""Which saved ranges hold for the segments that are there, by tables of what changed; and the pieces they are read in."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.model.result import StateUse
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import LastBatch
from kaudit.reading.saved_partition import FileIdentity, SavedPiece
from kaudit.reading.state_files import Checkpoint, PartitionIndex, SavedRange, SavedSegment
from kaudit.scanning.state_matching import _by_base_offset, _Held, _Matching, _pieces
from kaudit.source.layout import PartitionDirectory, SegmentFile
from tests.scanning.test_not_covered import NOTHING_WRONG

MODIFIED = 1_700_000_000_000
LATEST = 2**62
Files = list[tuple[int, int]]
"""Base offsets and sizes."""


def name(base: int) -> str:
    return f"{base:020d}.log"


def saved_range(
    segment: int, start: int, stop: int, last: int | None = None, joined: int = 0, length: int = 10
) -> SavedRange:
    """Bytes of a segment, whose last batch has the offsets up to `last`."""
    batch = None if last is None else LastBatch(stop - 80, 80, last, last, 0, 1)
    return SavedRange(segment, joined, start, stop, 0, 0, length, 0, None, 0, 5, None, batch)


def saved_segment(base: int, size: int, **more: Any) -> SavedSegment:
    return replace(SavedSegment(name(base), base, size, MODIFIED, FileIdentity(base + 1, 1)), **more)


def index_of(segments: Files, *ranges: SavedRange) -> PartitionIndex:
    settings: Any = None
    return PartitionIndex(settings, b"", [saved_segment(*each) for each in segments], ranges, ["rows"])


def partition(segments: Files, **more: Any) -> PartitionDirectory:
    files = [SegmentFile(f"/d/{name(base)}", name(base), base, size, MODIFIED) for base, size in segments]
    return replace(NOTHING_WRONG.directory, segments=files, **{"log_start_offset": None, "side_files": (), **more})


def matching(
    index: PartitionIndex, now: PartitionDirectory, identities: dict[int, FileIdentity] | None = None
) -> _Matching:
    """What is found for `now`; files are the ones that were read but for `identities` by base offset."""
    plan = [
        ChunkSpec(number, file, 0, file.size, file.size, now.log_start_offset, True, LATEST)
        for number, file in enumerate(now.segments)
        if file.size
    ]
    files = [(identities or {}).get(file.base_offset, FileIdentity(file.base_offset + 1, 1)) for file in now.segments]

    def refuse(_: SegmentFile) -> Any:
        raise FileNotFoundError

    return _Matching(now, plan, files, index, refuse)


TWO: Files = [(0, 100), (10, 200)]
RANGES = (saved_range(0, 0, 100, 9), saved_range(1, 0, 120, 14), saved_range(1, 120, 200, 19))


def counts(use: StateUse) -> dict[str, int]:
    names = ("unchanged", "grown", "new", "read_again", "dropped", "damaged")
    return {each: getattr(use, each) for each in names if getattr(use, each)}


@pytest.mark.parametrize(
    ("now", "identities", "expected", "places"),
    [
        (TWO, {}, {"unchanged": 2}, [0, 1]),
        ([*TWO, (20, 50)], {}, {"unchanged": 2, "new": 1}, [0, 1]),
        (TWO[1:], {}, {"unchanged": 1, "dropped": 1}, [1]),
        (TWO[:1], {}, {"unchanged": 1, "dropped": 1}, [0]),
        ([(0, 100), (11, 200)], {}, {"unchanged": 1, "new": 1, "dropped": 1}, [0]),
        ([(0, 100), (10, 199)], {}, {"unchanged": 1, "read_again": 1}, [0]),
        ([(0, 101), (10, 200)], {}, {"unchanged": 1, "read_again": 1}, [1]),
        (TWO, {0: FileIdentity(1, 2)}, {"unchanged": 1, "read_again": 1}, [1]),
        (TWO, {10: FileIdentity(12, 1)}, {"unchanged": 1, "read_again": 1}, [0]),
        # of a segment that is empty now nothing is planned, and it has not gone
        ([(0, 100), (10, 0)], {}, {"unchanged": 1, "dropped": 1}, [0]),
    ],
)
def test_what_became_of_each_segment(now, identities, expected, places):
    use = StateUse()
    held = matching(index_of(TWO, *RANGES), partition(now), identities).held(use)
    assert counts(use) == expected
    assert [each.number for each in held] == places
    assert [list(each.ranges) for each in held] == [list(RANGES[:1] if place == 0 else RANGES[1:]) for place in places]


@pytest.mark.parametrize(
    ("log_start", "ranges", "expected"),
    [
        # of the offsets from 0 on; a log start within the segment changes its rows
        (None, RANGES, {"unchanged": 2}),
        (3, RANGES, {"read_again": 2}),
        # not all bytes of the segment, or not from its first one on
        (None, (RANGES[0], RANGES[2]), {"unchanged": 1, "read_again": 1}),
        (None, (RANGES[0], RANGES[1], saved_range(1, 121, 200, 19)), {"unchanged": 1, "read_again": 1}),
        (None, RANGES[:1], {"unchanged": 1, "read_again": 1}),
    ],
)
def test_ranges_that_do_not_hold_are_read_again(log_start, ranges, expected):
    use = StateUse()
    matching(index_of(TWO, *ranges), partition(TWO, log_start_offset=log_start)).held(use)
    assert counts(use) == expected


THREE: Files = [(0, 100), (10, 100), (20, 100)]
TOGETHER = saved_range(0, 0, 100, 29, joined=2)


@pytest.mark.parametrize(
    ("now", "more", "whole"),
    [
        (THREE, {}, True),
        ([*THREE, (30, 10)], {}, True),
        (THREE[:2], {}, False),
        ([(0, 100), (10, 100), (20, 101)], {}, False),
        ([(0, 100), (10, 99), (20, 100)], {}, False),
        (THREE, {"log_start_offset": 5}, False),
        (THREE, {"side_files": (10,)}, True),
        (THREE, {"side_files": (30,)}, True),
        # the rows are cut at snapshots: there is one within by now
        (THREE, {"side_files": (29,)}, False),
        (THREE, {"side_files": (1,)}, False),
    ],
)
def test_segments_that_were_read_together_hold_together(now, more, whole):
    snapshots = [
        SegmentFile(f"/d/{base:020d}.snapshot", f"{base:020d}.snapshot", base, 10, MODIFIED)
        for base in more.pop("side_files", ())
    ]
    use = StateUse()
    held = matching(index_of(THREE, TOGETHER), partition(now, side_files=snapshots, **more)).held(use)
    assert [(each.number, list(each.ranges)) for each in held] == ([(0, [TOGETHER])] if whole else [])
    assert use.unchanged == (3 if whole else 0)
    assert use.read_again == (0 if whole else min(len(now), 3))


def test_ranges_by_segment():
    """The first number of each, the first segment of those read together, and the last segment that had bytes."""
    index = index_of([(0, 100), (10, 100), (20, 200), (30, 0)], saved_range(0, 0, 100, 19, joined=1), *(
        saved_range(2, start, start + 50, 20) for start in (0, 50, 100, 150)
    ))  # fmt: skip
    found = _by_base_offset(index)
    assert [(base, each.number, each.within, each.is_last, len(each.ranges)) for base, each in found.items()] == [
        (0, 0, None, False, 1),
        (10, 0, 0, False, 0),
        (20, 1, None, True, 4),
        (30, 0, None, False, 0),
    ]


@pytest.mark.parametrize(
    ("changed", "resumes"),
    [
        ({}, True),
        ({"log_start_offset": 1}, False),
        ({"is_compacted": True}, False),
        ({"ranges": 2}, True),
        ({"snapshots": [saved_segment(0, 1)]}, False),
    ],
)
def test_a_checkpoint_is_of_what_was_there(changed, resumes):
    checkpoint = replace(Checkpoint(3, "replay", 1, 0, 20, None, False, []), **changed)
    for now, alike in ((TWO, True), ([*TWO, (20, 10)], True), ([(0, 99), (10, 200)], False), (TWO[:1], False)):
        found = matching(index_of(TWO, *RANGES), partition(now))
        held = found.held(StateUse())
        assert found.resumes(checkpoint, held, []) is (resumes and alike), now


MIB = 1 << 20


@pytest.mark.parametrize("seed", range(12))
def test_pieces_are_those_of_so_many_bytes_within_a_window(seed):
    """Ranges `first` to `end` of the index, this segment's from number 3 on: cut where 32 MiB are full, and at the window's ends."""
    chance = random.Random(seed)
    ranges, stop, offset = [], 0, 100
    for _ in range(chance.randint(1, 9)):
        start, stop = stop, stop + chance.randint(1, 9)
        offset += chance.randint(0, 3)
        last = chance.choice((None, offset))
        ranges.append(
            saved_range(
                2, start, stop, last, joined=chance.randint(0, 1), length=chance.choice((10, 16, 31, 32, 40)) * MIB
            )
        )
    file = SegmentFile("/d/s", name(100), 100, stop, MODIFIED)
    held = _Held(ChunkSpec(2, file, 0, stop, stop, None, True, LATEST), ranges, 3)
    for first, end in (
        (0, 99),
        (3, 3 + len(ranges)),
        (chance.randint(0, 12), chance.randint(0, 12)),
        (5, 5),
        (0, 3),
        (99, 100),
    ):
        inside = [number for number in range(len(ranges)) if first <= number + 3 < end]
        groups: list[list[int]] = []
        for number in inside:
            if groups and sum(ranges[each].length for each in groups[-1]) < 32 * MIB:
                groups[-1].append(number)
            else:
                groups.append([number])

        def offset_before(number: int) -> int:
            known = [each.last_batch.last_offset + 1 for each in ranges[:number] if each.last_batch is not None]
            return known[-1] if known else 100

        expected = [
            SavedPiece(
                2,
                ranges[own[0]].start,
                ranges[own[-1]].stop,
                offset_before(own[0]),
                offset_before(own[-1] + 1),
                ranges[own[-1]].joined,
            )
            for own in groups
        ]
        assert _pieces(held, first, end) == expected
