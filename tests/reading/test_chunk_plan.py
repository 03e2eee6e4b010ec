"""How segments are cut into ranges: by bytes when planning, at batches where they are read, around what is saved."""

import pytest
from msgspec.structs import replace

from kaudit.model.result import StateUse
from kaudit.reading import chunk_plan
from kaudit.reading.chunk_plan import (
    ChunkSpec,
    boundary_from,
    cut,
    cut_first,
    settle,
    whole_segments,
    with_saved,
)
from kaudit.reading.saved_partition import SavedPartition, SavedPiece, SavedRows, Settings
from kaudit.source.layout import PartitionDirectory, SegmentFile, TextRange
from tests.logs import data
from tests.memory import Memory


def files(*sizes):
    return [
        SegmentFile(f"/d/t-0/{10 * number:020d}.log", f"{10 * number:020d}.log", 10 * number, size, 0)
        for number, size in enumerate(sizes)
    ]


def plan_of(*sizes):
    directory = PartitionDirectory("t", 0, "d", "/d", "/d/t-0", "t-0", files(*sizes))
    return whole_segments(directory, log_start_offset=3, verify=False, latest_timestamp=9)


def ranges(specs):
    return [(spec.segment, spec.start, spec.stop, spec.end, spec.expected_offset) for spec in specs]


def test_a_range_for_each_segment_that_has_bytes():
    first, _, third = files(100, 0, 1)
    assert plan_of(100, 0, 1) == [
        ChunkSpec(0, first, 0, 100, 100, 3, False, 9),
        ChunkSpec(2, third, 0, 1, 1, 3, False, 9),
    ]


@pytest.mark.parametrize(
    ("size", "stops"),
    [(1, [1]), (100, [100]), (150, [150]), (151, [100, 151]), (250, [100, 250]), (251, [100, 200, 251])],
)
def test_a_range_is_cut_into_those_of_about_so_many_bytes(size, stops):
    """The last one may be half as long again: none is very short."""
    (spec,) = plan_of(size)
    assert ranges(cut(spec, 100)) == [
        (0, start, stop, size, None) for start, stop in zip([0, *stops], stops, strict=False)
    ]


def test_where_a_range_begins_is_known_of_its_first_part_only():
    (spec,) = plan_of(1000)
    spec = replace(spec, start=500, expected_offset=7)
    first, rest = cut_first(spec, 300)
    assert rest is not None
    assert ranges([first, rest]) == [(0, 500, 800, 1000, 7), (0, 800, 1000, 1000, None)]
    assert cut_first(spec, 334) == (spec, None)
    assert cut_first(spec, 333)[1] is not None


@pytest.mark.parametrize("fields", ["text", "joined", "saved"])
def test_what_is_not_bytes_of_one_segment_is_not_cut(fields):
    spec, other = plan_of(1000, 1000)
    changed = {
        "text": {"file": replace(spec.file, text=TextRange(0, 1000))},
        "joined": {"joined": [other.file]},
        "saved": {"saved": SavedRows("/state", "d")},
    }[fields]
    spec = replace(spec, **changed)
    assert cut_first(spec, 100) == (spec, None)
    assert spec.bytes_to_read == (0 if fields == "saved" else 1000)


BATCHES = [data(7, 0, number, base_offset=number, payload=b"p" * 30 * number).encode() for number in range(5)]
STARTS = [sum(map(len, BATCHES[:number])) for number in range(5)]
CONTENT = b"".join(BATCHES)
END = len(CONTENT)


def flipped(number):
    """The content with a bit of a batch flipped."""
    changed = bytearray(CONTENT)
    changed[STARTS[number] + len(BATCHES[number]) - 1] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("probe_bytes", [1 << 16, 300, 100])
@pytest.mark.parametrize(
    ("content", "valid"), [(CONTENT, STARTS), (flipped(2), [*STARTS[:2], *STARTS[3:]]), (flipped(4), STARTS[:4])]
)
def test_where_the_next_valid_batch_begins(monkeypatch, probe_bytes, content, valid):
    monkeypatch.setattr(chunk_plan, "_PROBE_BYTES", probe_bytes)
    for position in range(END + 2):
        expected = next((start for start in valid if start >= position), END)
        assert boundary_from(Memory(content), position, END) == (expected if position < END else END), position


@pytest.mark.parametrize(
    ("start", "stop", "expected_offset", "limit", "settled"),
    [
        (0, END, None, None, (0, END)),
        (0, STARTS[2], None, None, (0, STARTS[2])),
        (0, STARTS[2] + 1, None, None, (0, STARTS[3])),
        (1, STARTS[2] - 1, None, None, (STARTS[1], STARTS[2])),
        (STARTS[3] + 1, STARTS[4] - 1, None, None, (STARTS[4], STARTS[4])),  # within one batch
        (STARTS[4] + 1, END, None, None, (END, END)),
        (STARTS[1] + 5, END, 4, None, (STARTS[1] + 5, END)),  # where reading went on, whatever is there
        (STARTS[1] + 5, STARTS[3] + 1, None, STARTS[3], (STARTS[2], STARTS[3])),
        (STARTS[2] + 5, STARTS[3] + 1, None, STARTS[2] + 9, (STARTS[2] + 9, STARTS[2] + 9)),
        (0, STARTS[3], None, STARTS[3] + 1, (0, STARTS[3])),
    ],
)
def test_the_ends_of_a_range_move_to_where_batches_begin(start, stop, expected_offset, limit, settled):
    (spec,) = plan_of(END)
    spec = replace(spec, start=start, stop=stop, expected_offset=expected_offset, limit=limit)
    found = settle(spec, Memory(CONTENT))
    assert (found.start, found.stop) == settled
    assert replace(found, start=start, stop=stop) == spec


PIECES = [
    SavedPiece(0, 0, 100, 0, 10),
    SavedPiece(1, 0, 60, 10, 16),
    SavedPiece(1, 60, 80, 16, 18),
    SavedPiece(3, 0, 300, 30, 60, joined=2),
]


def saved(pieces, resumed=0):
    rows = SavedRows("/state", "d")
    return SavedPartition("/state", Settings("crc"), [], StateUse(), rows, pieces, resumed)


def test_what_is_saved_is_planned_in_its_place_and_what_is_not_behind_it():
    """Of seven segments the first is saved, most of the second, and those from the fourth to the sixth together."""
    plan = plan_of(*[100] * 7)
    found = with_saved(plan, saved(PIECES))
    assert ranges(found) == [
        (0, 0, 100, 100, 0),
        (1, 0, 60, 100, 10),
        (1, 60, 80, 100, 16),
        (1, 80, 100, 100, 18),
        (2, 0, 100, 100, None),
        (3, 0, 300, 300, 30),
        (6, 0, 100, 100, None),
    ]
    rows = SavedRows("/state", "d")
    assert [spec.saved for spec in found] == [rows, rows, rows, None, None, rows, None]
    assert [spec.bytes_to_read for spec in found] == [0, 0, 0, 20, 100, 0, 100]
    together = [file.base_offset for file in found[5].joined]
    assert together == [40, 50]
    assert [len(spec.joined) for spec in found] == [0, 0, 0, 0, 0, 2, 0]


@pytest.mark.parametrize(("resumed", "left"), [(0, 7), (1, 6), (2, 5), (3, 4), (4, 3)])
def test_what_need_not_be_put_together_again_is_left_out(resumed, left):
    plan = plan_of(*[100] * 7)
    found = with_saved(plan, saved(PIECES, resumed))
    every = with_saved(plan, saved(PIECES))
    resumed_places = {(piece.segment, piece.start) for piece in PIECES[:resumed]}
    assert found == [spec for spec in every if (spec.segment, spec.start) not in resumed_places]
    assert len(found) == left


def test_where_nothing_is_saved_the_plan_stays_as_it_is():
    plan = plan_of(100, 50)
    assert with_saved(plan, saved([])) == plan
