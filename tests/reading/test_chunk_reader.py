"""A chunk of a segment to rows: which batches are its own, what is damaged among them, and what each says where that is asked for."""

import pytest

from kaudit.model.result import CoverageGap
from kaudit.reading import batch_stream, chunk_reader, segment
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import read_chunk, read_parts, read_serially
from kaudit.source.bytes import LocalFile
from kaudit.source.layout import SegmentFile, TextRange
from kaudit.source.text import SegmentText
from tests.logs import Log, data
from tests.memory import Memory
from tests.reading.test_dump_text import line

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


def batches_of(rows):
    """The first offset of each batch: a run has its first and last five."""
    return sorted(rows.boundary_batches["base_offset"].tolist())


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
    found = list(read_parts(spec_of(content), Memory(content), cuts))
    assert [
        (
            batches_of(rows),
            rows.start // size,
            rows.stop // size,
            [damage.position // size for damage in rows.damages],
        )
        for rows in found
    ] == parts
    assert [rows.read_to for rows in found] == [rows.stop for rows in found]


def serially(contents, cuts=()):
    """Read segments one after the other; of each part its segment, the offsets of its batches, its bytes and its damages."""
    specs = []
    for number, (base, content) in enumerate(contents.items()):
        file = SegmentFile(f"/d/t-0/{base:020d}.log", f"{base:020d}.log", base, len(content), 0)
        specs.append(ChunkSpec(number, file, 0, len(content), len(content), None, True, LATEST))
    found = read_serially(specs, lambda file: Memory(contents[file.base_offset]), cuts)
    return [
        (
            rows.segment,
            batches_of(rows),
            (rows.start, rows.read_to, rows.stop),
            [damage.position for damage in rows.damages],
        )
        for rows in found
    ]


def test_a_pair_that_was_exchanged_is_put_in_order_and_its_damage_belongs_to_the_part_where_it_lies():
    """Batches of two records; in the file 4 lies before 2, and is what does not follow."""
    batches = log_of(*[2] * 6).batches
    size = len(batches[0].encode())
    content = b"".join(batches[number].encode() for number in (0, 2, 1, 3, 4, 5))
    assert serially({0: content}) == [(0, [0, 2, 4, 6, 8, 10], (0, 6 * size, 6 * size), [size])]
    assert serially({0: content}, [4, 8]) == [
        (0, [0, 2], (0, size, size), []),
        (0, [4, 6], (size, 4 * size, 4 * size), [size]),
        (0, [8, 10], (4 * size, 6 * size, 6 * size), []),
    ]
    assert serially({0: content}, [2]) == [
        (0, [0], (0, 2 * size, 2 * size), [size]),
        (0, [2, 4, 6, 8, 10], (2 * size, 6 * size, 6 * size), []),
    ]


@pytest.mark.parametrize(
    ("cut", "parts"),
    [
        (0, [[0, 2, 4, 6, 8, 10]]),
        (1, [[0], [2, 4, 6, 8, 10]]),
        (6, [[0, 2, 4], [6, 8, 10]]),
        (7, [[0, 2, 4, 6], [8, 10]]),
        (8, [[0, 2, 4, 6], [8, 10]]),
        (9, [[0, 2, 4, 6, 8], [10]]),
        (10, [[0, 2, 4, 6, 8], [10]]),
        (11, [[0, 2, 4, 6, 8, 10]]),
    ],
)
def test_a_segment_is_cut_among_the_batches_that_wait_for_its_end_too(cut, parts):
    """The place of the last two is known when the segment has ended."""
    assert [offsets for _, offsets, _, _ in serially({0: log_of(*[2] * 6).encode()}, [cut])] == parts


def test_a_batch_that_its_segment_cannot_hold_is_damage_of_the_segment():
    """The last of the first segment has an offset of the next one; cuts go on in the next segment."""
    batches = log_of(*[2] * 6).batches
    size = len(batches[0].encode())
    first = b"".join(batches[number].encode() for number in (0, 1, 4))
    second = b"".join(batches[number].encode() for number in (3, 4, 5))
    assert serially({0: first, 6: second}, [2, 8]) == [
        (0, [0], (0, size, size), []),
        (0, [2], (size, 3 * size, 3 * size), [2 * size]),
        (1, [6], (0, size, size), []),
        (1, [8, 10], (size, 3 * size, 3 * size), []),
    ]


@pytest.mark.parametrize("limit", ["CHUNK_BYTES", "CHUNK_BATCHES"])
def test_a_segment_read_in_order_is_given_in_parts_of_bounded_size(monkeypatch, limit):
    """Pieces are of four batches here; the place of the last two is only known when the next have come."""
    batches = log_of(*[1] * 12).batches
    size = len(batches[0].encode())
    content = b"".join(batch.encode() for batch in batches)
    original = batch_stream.stream_batches

    def in_pieces(source, where, **more):
        for start in range(0, 12 * size, 4 * size):
            yield from original(
                source, segment.ByteRange(start, start + 4 * size, where.end), **more | {"expected_offset": None}
            )

    monkeypatch.setattr(chunk_reader, "stream_batches", in_pieces)
    monkeypatch.setattr(chunk_reader, limit, 8 * size if limit == "CHUNK_BYTES" else 6)
    assert serially({0: content}) == [
        (0, [0, 1, 2, 3, 4, 5], (0, 8 * size, 8 * size), []),
        (0, [6, 7, 8, 9, 10, 11], (8 * size, 12 * size, 12 * size), []),
    ]


@pytest.mark.parametrize("cuts", [(), (20,), (77, 79)])
def test_each_part_of_a_text_says_what_the_text_leaves_out(tmp_path, cuts):
    """Batches of two records, of which the last cut's lie among those that are held back until the segment ends."""
    path = tmp_path / "dump.txt"
    path.write_text("".join(line(number) for number in range(40)))
    source = LocalFile(path)
    text = TextRange(0, source.size())
    file = SegmentFile(str(path), f"{0:020d}.log", 0, text.end, 0, text)
    spec = ChunkSpec(0, file, 0, text.end, text.end, None, True, LATEST)
    found = list(read_serially([spec], lambda _: SegmentText(source, text), cuts))
    ends = {(): [79], (20,): [19, 79], (77, 79): [77, 79]}[cuts]
    assert [rows.last_offset for rows in found] == ends
    assert [rows.coverage_gaps for rows in found] == [frozenset({CoverageGap.RECORDS})] * len(ends)


@pytest.mark.parametrize(("growing", "says"), [(0, [False, False]), (1, [False, True])])
def test_only_the_last_segment_may_still_be_growing(growing, says):
    """A segment was planned to half of a batch, and is longer by now: of the last one a broker was writing the rest."""
    batches = [batch.encode() for batch in log_of(*[2] * 5).batches]
    contents = {0: b"".join(batches[:2]), 4: b"".join(batches[2:4])}
    sizes = {base: len(content) for base, content in contents.items()}
    contents[4 * growing] += batches[4]
    sizes[4 * growing] += 40
    files = [SegmentFile(f"/d/{base:020d}.log", f"{base:020d}.log", base, size, 0) for base, size in sizes.items()]
    plan = [ChunkSpec(number, file, 0, file.size, file.size, None, True, LATEST) for number, file in enumerate(files)]
    found = list(read_serially(plan, lambda file: Memory(contents[file.base_offset])))
    assert [rows.still_growing for rows in found] == says


def test_what_any_piece_of_a_segment_says_holds_for_all_of_it(monkeypatch):
    """That it may still be growing, what a text leaves out, which aborted transactions a broker listed."""
    content = log_of(*[1] * 12).encode()
    size = len(content) // 12
    original = batch_stream.stream_batches

    def in_pieces(source, where, **more):
        for number in range(3):
            start = 4 * size * number
            for piece in original(source, segment.ByteRange(start, start + 4 * size, where.end), **more):
                piece.damages, piece.still_growing = [], number == 1
                piece.listed_aborts = frozenset({(7, number)})
                piece.coverage_gaps = frozenset({list(CoverageGap)[number]})
                yield piece

    monkeypatch.setattr(chunk_reader, "stream_batches", in_pieces)
    (rows,) = read_serially([spec_of(content)], lambda _: Memory(content))
    assert rows.still_growing
    assert rows.listed_aborts == {(7, 0), (7, 1), (7, 2)}
    assert rows.coverage_gaps == set(list(CoverageGap)[:3])


@pytest.mark.parametrize(
    ("damage", "most", "batches"),
    [
        *((False, most, 4) for most in (1, 3, 4)),
        *((False, most, 8) for most in (5, 8)),
        *((False, most, 12) for most in (9, 99)),
        # the second piece has one batch less; where the first is enough the damage behind it is the chunk's
        *((True, most, 5) for most in (1, 3, 4)),
        *((True, most, 8) for most in (5, 7)),
        *((True, most, 12) for most in (8, 99)),
    ],
)
def test_a_chunk_of_so_many_batches_ends_with_the_piece_that_has_the_last_of_them(monkeypatch, damage, most, batches):
    """Pieces are of four batches here; what is damaged behind a piece still belongs to the chunk, up to the next valid batch."""
    log = log_of(*[1] * 12)
    size = len(log.batches[0].encode())
    content = flipped(log.encode(), 5 * size) if damage else log.encode()
    original = batch_stream.stream_batches

    def in_pieces(source, where, **more):
        for start in range(where.start, where.stop, 4 * size):
            stop = min(start + 4 * size, where.stop)
            yield from original(source, segment.ByteRange(start, stop, where.end), **more | {"expected_offset": None})

    monkeypatch.setattr(chunk_reader, "stream_batches", in_pieces)
    rows = read_chunk(spec_of(content), Memory(content), most)
    assert (rows.start, rows.read_to, rows.stop) == (0, batches * size, batches * size)
    assert rows.counts.batches == batches - damage
    assert [found.position for found in rows.damages] == [4 * size] * damage
