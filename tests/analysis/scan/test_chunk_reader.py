"""A chunk of a segment to rows: which batches are its own, what is damaged among them, and what each says where that is asked for."""

import pytest

from kaudit.analysis.scan.chunk_plan import ChunkSpec
from kaudit.analysis.scan.chunk_reader import read_chunk, read_parts
from kaudit.source.layout import SegmentFile
from tests.logs import Log, data
from tests.memory import Memory

NAME = f"{0:020d}.log"
LATEST = 1 << 62


def log_of(*counts):
    """Batches of one producer with so many records each; each has the same size for the same count."""
    log, sequence = Log(), 0
    for count in counts:
        log.append(data(7, 0, sequence, count))
        sequence += count
    return log


def spec_of(content, **more):
    file = SegmentFile(f"/d/t-0/{NAME}", NAME, 0, len(content), 0)
    fields = {"start": 0, "stop": len(content), "log_start_offset": None, **more}
    return ChunkSpec(0, file, end=len(content), verify=True, latest_timestamp=LATEST, **fields)


@pytest.mark.parametrize(
    ("log_start_offset", "batches", "records"),
    [
        (None, [0, 3, 4], [0, 1, 2, 3, 4, 5]),
        (0, [0, 3, 4], [0, 1, 2, 3, 4, 5]),
        (2, [0, 3, 4], [0, 1, 2, 3, 4, 5]),  # a batch that has one record at it is read whole
        (3, [3, 4], [3, 4, 5]),
        (4, [4], [4, 5]),
        (6, [], []),
    ],
)
def test_of_what_is_below_the_log_start_offset_there_are_no_contents(log_start_offset, batches, records):
    content = log_of(3, 1, 2).encode()
    for decode, expected in ((False, batches), (True, records)):
        spec = spec_of(content, log_start_offset=log_start_offset, contents=True, decode=decode)
        rows = read_chunk(spec, Memory(content))
        assert rows.contents is not None
        assert (rows.contents["offset"].tolist(), rows.undecoded, rows.decoded) == (expected, 0, decode)


def test_contents_are_only_there_where_they_are_asked_for():
    content = log_of(3, 1, 2).encode()
    rows = read_chunk(spec_of(content), Memory(content))
    assert (rows.contents, rows.undecoded, rows.decoded) == (None, 0, False)


def flipped(content, *positions):
    """The content with a bit of the last byte before each of these positions flipped."""
    changed = bytearray(content)
    for position in positions:
        changed[position - 1] ^= 1
    return bytes(changed)


def test_damage_is_reported_with_the_offset_that_is_expected_at_its_place():
    log = log_of(*[2] * 6)
    size = len(log.batches[0].encode())
    content = flipped(log.encode(), size, 4 * size)
    rows = read_chunk(spec_of(content), Memory(content))
    assert [(damage.position, damage.end) for damage in rows.damages] == [(0, size), (3 * size, 4 * size)]
    assert rows.expected_offsets == [None, 6]
    assert (rows.counts.batches, rows.counts.records, rows.counts.bytes) == (4, 8, 4 * size)
    assert (rows.first_offset, rows.first_position, rows.last_offset, rows.last_position) == (2, size, 11, 5 * size)
    assert (rows.segment, rows.start, rows.read_to, rows.stop) == (0, 0, 6 * size, 6 * size)


@pytest.mark.parametrize(
    ("cuts", "parts"),
    [
        # of each part: offsets of its batches, where its bytes begin and end, by number of batch; its damages
        ((), [([0, 4, 6, 8], 0, 6, [1, 5])]),
        ((0, 99), [([0, 4, 6, 8], 0, 6, [1, 5])]),
        ((6,), [([0, 4], 0, 3, [1]), ([6, 8], 3, 6, [5])]),
        ((5,), [([0, 4], 0, 3, [1]), ([6, 8], 3, 6, [5])]),
        ((4,), [([0], 0, 2, [1]), ([4, 6, 8], 2, 6, [5])]),
        ((1, 4, 5, 6, 8), [([0], 0, 2, [1]), ([4], 2, 3, []), ([6], 3, 4, []), ([8], 4, 6, [5])]),
    ],
)
def test_a_chunk_in_parts_that_end_where_batches_of_later_offsets_begin(cuts, parts):
    """The second and the last of six batches are damaged; each part's bytes reach to the next one's first batch."""
    log = log_of(*[2] * 6)
    size = len(log.batches[0].encode())
    content = flipped(log.encode(), 2 * size, 6 * size)
    found = list(read_parts(spec_of(content, contents=True), Memory(content), cuts))
    assert [
        (
            [] if rows.contents is None else rows.contents["offset"].tolist(),
            rows.start // size,
            rows.stop // size,
            [damage.position // size for damage in rows.damages],
        )
        for rows in found
    ] == parts
    assert [rows.read_to for rows in found] == [rows.stop for rows in found]
