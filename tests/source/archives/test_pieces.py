"""Where compressed files can be read from: against the formats' specifications, and against bytes that their libraries write."""

import bz2
import lzma
import re
import zlib
from itertools import product
from random import Random
from typing import Any

import lz4.frame
import pytest

from kaudit.source.archives import pieces
from kaudit.source.archives.decoders import StreamDecoder, after_zstd_frame
from kaudit.source.archives.forms import Form
from kaudit.source.archives.pieces import PieceDecoder
from kaudit.source.bytes import read_bytes
from tests.memory import Memory

RANDOM = Random(5).randbytes(3000)
BLOCK, END = 0x314159265359, 0x177245385090


class Given:
    """Decodes what it was given, at most so many bytes at a time; `problem` where it ends."""

    def __init__(self, data, problem=None):
        self.problem = None
        self._data, self._problem = data, problem

    def read(self, wanted):
        part, self._data = self._data[:wanted], self._data[wanted:]
        self.problem = self._problem if len(part) < wanted else None
        return part


@pytest.mark.parametrize("step", range(1, 12))
def test_pieces_are_decoded_one_after_the_other(step):
    openers = [lambda part=part: Given(part) for part in (b"abc", b"", b"defgh", b"i")]
    source = PieceDecoder(iter(openers))
    read = b""
    while part := source.read(step):
        assert len(part) == min(step, 9 - len(read))
        read += part
    assert (read, source.problem) == (b"abcdefghi", None)
    assert source.begun == list(zip((0, 3, 3, 8), openers, strict=True))
    assert source.read(0) == b""


def test_what_comes_after_a_piece_that_cannot_be_decoded_is_not_read():
    source = PieceDecoder(iter([lambda: Given(b"ab", "it is damaged"), lambda: Given(b"cd")]))
    assert (source.read(5), source.problem, len(source.begun)) == (b"ab", "it is damaged", 1)
    assert source.read(5) == b""


@pytest.mark.parametrize(("first", "rest"), [(b"", b"abc"), (b"ab", b""), (b"abc", b"defg")])
def test_bytes_in_front_of_a_file(first, rest):
    joined, whole = pieces._Joined(first, Memory(rest)), first + rest
    assert joined.size() == len(whole)
    for at, size in product(range(len(whole) + 2), range(len(whole) + 3)):
        assert read_bytes(joined, at, size) == whole[at : at + size]


# -- frames


def zstd_frame(*, flags=0, fields=b"", blocks=((1, 0, b"abc"),), checksum=b""):
    """RFC 8878, 3.1.1; `blocks`: whether it is the last, its type, its bytes."""
    single = flags & 0x20
    content = b"".join(
        ((last | kind << 1 | len(data) << 3).to_bytes(3, "little")) + data for last, kind, data in blocks
    )
    return b"\x28\xb5\x2f\xfd" + bytes([flags]) + (b"" if single else b"\x50") + fields + content + checksum


ZSTD_FRAMES = [
    zstd_frame(),
    zstd_frame(blocks=((0, 0, b"abc"), (0, 2, bytes(200)), (1, 0, b""))),
    zstd_frame(flags=0x04, checksum=b"\1\2\3\4"),
    zstd_frame(flags=0x20, fields=b"\x03"),
    zstd_frame(flags=0x40, fields=b"\0\1"),
    zstd_frame(flags=0x80, fields=b"\0\0\0\1"),
    zstd_frame(flags=0xC0, fields=bytes(8)),
    zstd_frame(flags=0xC3 | 0x04, fields=b"\1\2\3\4" + bytes(8), checksum=bytes(4)),
    # a block of one byte that is repeated: its size is not the file's
    b"\x28\xb5\x2f\xfd\x00\x50" + (0 | 1 << 1 | 5000 << 3).to_bytes(3, "little") + b"x" + (1 | 0 << 1 | 2 << 3).to_bytes(3, "little") + b"ab",
]  # fmt: skip


@pytest.mark.parametrize("frame", ZSTD_FRAMES)
@pytest.mark.parametrize("lead", [b"", b"abc"])
def test_where_a_frame_of_zstd_ends_by_its_blocks(frame, lead):
    assert after_zstd_frame(Memory(lead + frame), len(lead)) == len(lead + frame)
    assert after_zstd_frame(Memory(lead + frame + b"\xff" * 30), len(lead)) == len(lead + frame)
    for cut in range(len(frame)):
        assert after_zstd_frame(Memory(lead + frame[:cut]), len(lead)) in {None, len(lead + frame)}
    assert after_zstd_frame(Memory(lead + frame[:6]), len(lead)) is None


LZ4_FRAMES = [
    lz4.frame.compress(
        data,
        block_linked=linked,
        block_checksum=block_checksum,
        content_checksum=checksum,
        store_size=sized,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
    )
    for data, linked, block_checksum, checksum, sized in product(
        (b"", b"abc", RANDOM, RANDOM + bytes(200_000)), (False, True), (False, True), (False, True), (False, True)
    )
]


def with_dictionary(frame):
    """The same frame with a dictionary's id after the size of its content: LZ4 Frame Format, Frame Descriptor."""
    end = 6 + (8 if frame[4] & 8 else 0)
    return frame[:4] + bytes([frame[4] | 1]) + frame[5:end] + b"\1\2\3\4" + frame[end:]


@pytest.mark.parametrize("frame", [*LZ4_FRAMES, *map(with_dictionary, LZ4_FRAMES)])
def test_where_a_frame_of_lz4_ends(frame):
    for lead in (b"", b"abc"):
        assert pieces._after_lz4_frame(Memory(lead + frame + b"\xff" * 30), len(lead)) == len(lead + frame)
    for cut in {*range(24), len(frame) // 2, len(frame) - 1} - {len(frame)}:
        if cut < len(frame):
            assert pieces._after_lz4_frame(Memory(frame[:cut]), 0) in {None, len(frame)}
    assert pieces._after_lz4_frame(Memory(b"\x05" + frame[1:]), 0) is None


def skipped(size, nibble=0):
    return bytes([0x50 | nibble]) + b"\x2a\x4d\x18" + size.to_bytes(4, "little") + bytes(size)


@pytest.mark.parametrize(
    ("parts", "least", "expected"),
    [
        ([1], 1, [0]),
        ([1, 1], 1, [0, 1]),
        ([1, skipped(0), 1, skipped(9, 15), 1], 1, [0, 1, 2, 3, 4]),
        # several small ones together
        ([1, 1, 1], 2, [0, 2]),
        ([1, 1, 1, 1], 2, [0, 2]),
        ([1, 1], 1 << 20, [0]),
        # all that is left from one on whose end is not known
        ([1, b"no frame", 1], 1, [0, 1]),
        ([1, skipped(9)[:12]], 1, [0, 1]),
        ([], 1, []),
    ],
)
def test_frames_are_read_from_their_beginnings(monkeypatch, parts, least, expected):
    frame = LZ4_FRAMES[0]
    data = [frame if part == 1 else part for part in parts]
    starts = [sum(map(len, data[:at])) for at in range(len(data) + 1)]
    monkeypatch.setattr(pieces, "_LEAST_BYTES", least if least == 1 else least * len(frame))
    source = Memory(b"".join(data))
    openers: list[Any] = list(pieces._frames(pieces._after_lz4_frame, Given, source))
    found = [opener.args for opener in openers]
    begins = [starts[at] for at in expected]
    assert found == [(Given, source, first, end) for first, end in zip(begins, [*begins[1:], starts[-1]], strict=False)]


def test_a_part_is_decoded_by_itself():
    made = pieces._part(lambda source: Given(read_bytes(source, 0, 100)), Memory(b"0123456789"), 3, 7)
    assert made.read(100) == b"3456"


# -- xz


def index_numbers(stream):
    """The numbers of a stream's index (.xz file format, 4): blocks, then the sizes of each, packed without padding and unpacked."""
    size = (int.from_bytes(stream[-8:-4], "little") + 1) * 4
    found, value, shift = [], 0, 0
    for byte in stream[-12 - size + 1 : -12 - 4]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def xz_stream(parts):
    streams = [lzma.compress(part, preset=0) for part in parts]
    numbers = [index_numbers(each)[1:3] for each in streams]
    blocks = [each[12 : 12 - (-unpadded // 4) * 4] for each, (unpadded, _) in zip(streams, numbers, strict=True)]
    records = b"".join(packed_number(number) for pair in numbers for number in pair)
    index = b"\0" + packed_number(len(parts)) + records
    index += bytes(-len(index) % 4)
    index += zlib.crc32(index).to_bytes(4, "little")
    flags = (len(index) // 4 - 1).to_bytes(4, "little") + streams[0][6:8]
    return streams[0][:12] + b"".join(blocks) + index + zlib.crc32(flags).to_bytes(4, "little") + flags + b"YZ"


def packed_number(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


PARTS = [RANDOM[:700], b"x" * 5000, RANDOM[:701], RANDOM[:2000], RANDOM[:1]]


def xz_openers(data) -> list[Any]:
    return list(pieces._xz_pieces(Memory(data)))


def decoded(openers, step=333):
    found = []
    for opener in openers:
        one, content = opener(), b""
        while part := one.read(step):
            content += part
        found.append((content, one.problem))
    return found


@pytest.mark.parametrize("step", [1, 333, 1 << 20])
def test_blocks_of_xz_are_read_by_themselves(monkeypatch, step):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    stream = xz_stream(PARTS)
    assert lzma.decompress(stream) == b"".join(PARTS)
    assert decoded(xz_openers(stream), step) == [(part, None) for part in PARTS]
    assert decoded(xz_openers(stream), step)[-1:] == decoded(xz_openers(stream)[-1:], step)


@pytest.mark.parametrize("zeros", [0, 4, 8, 1024])
def test_streams_of_xz_and_the_zeros_between_them(monkeypatch, zeros):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    data = bytes(zeros).join([xz_stream(PARTS[:2]), xz_stream(PARTS[2:3]), xz_stream(PARTS[3:])]) + bytes(zeros)
    assert decoded(xz_openers(data)) == [(part, None) for part in PARTS]


@pytest.mark.parametrize(
    ("least", "sizes"), [(1, [1, 1, 1, 1, 1]), (700, [1, 2, 1, 1]), (1500, [3, 1, 1]), (1 << 20, [5])]
)
def test_small_blocks_of_xz_are_read_together(monkeypatch, least, sizes):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", least)
    found = pieces._xz_blocks(Memory(xz_stream(PARTS)))
    at, expected = 0, []
    for size in sizes:
        expected.append(sum(map(len, PARTS[at : at + size])))
        at += size
    assert [block.content for block in found] == expected
    assert [block.start for block in found][1:] == [block.start + block.size for block in found][:-1]
    assert found[0].start == 12
    assert {block.header for block in found} == {xz_stream(PARTS)[:12]}


@pytest.mark.parametrize("damage", ["cut", "header", "index", "count", "footer", "size", "sizes", "before", "begin"])
def test_a_stream_of_xz_whose_index_is_not_as_it_should_be_is_read_from_its_beginning(monkeypatch, damage):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    stream = bytearray(xz_stream(PARTS))
    index = len(stream) - 12 - (int.from_bytes(stream[-8:-4], "little") + 1) * 4
    match damage:
        case "cut":
            del stream[-1]
        case "header":
            stream[0] ^= 1
        case "index":
            stream[index] = 1
        case "count":
            stream[index + 1] = 100
        case "footer":
            stream[-1] ^= 1
        case "size":
            stream[-8] = 0
        case "sizes":
            stream[index + 2 : index + 4] = b"\xff\x7f"
        case "begin":
            del stream[:4]
        case "before":
            stream[:0] = b"1234"
    source = Memory(bytes(stream))
    assert pieces._xz_blocks(source) == []
    (opener,) = xz_openers(bytes(stream))
    assert opener.args == (source, Form.XZ) or opener.args[1] is Form.XZ


def test_the_shortest_streams_of_xz():
    """.xz file format, 2.1: a header, an index of no blocks in eight bytes, a footer."""
    empty = lzma.compress(b"")
    assert len(empty) == 32
    assert pieces._xz_stream(Memory(empty), 32) == (0, [])
    assert pieces._xz_stream(Memory(b"1234" + empty), 36) == (4, [])
    assert pieces._xz_blocks(Memory(empty * 3)) == []
    assert [len(xz_openers(xz_stream(PARTS[:count]))) for count in (1, 2, 3)] == [1, 1, 1]


def test_two_blocks_of_xz_are_two_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    for count in (1, 2, 3):
        openers = xz_openers(xz_stream(PARTS[:count]))
        assert [opener.func for opener in openers] == ([pieces._XzDecoder] * count if count > 1 else [StreamDecoder])


def test_of_one_block_xz_is_read_as_a_stream():
    for data in (lzma.compress(RANDOM), lzma.compress(b""), b"", b"\0" * 8, b"YZ"):
        (opener,) = xz_openers(data)
        assert opener.args[1] is Form.XZ


def test_a_block_of_xz_that_is_damaged_or_cut_off_says_so(monkeypatch):
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    stream = xz_stream(PARTS[:3])
    first = pieces._xz_blocks(Memory(stream))[0]
    for at in (first.start + first.size // 2, first.start + first.size - 1):
        damaged = bytearray(stream)
        damaged[at] ^= 0x55
        (_, problem), *others = decoded(xz_openers(bytes(damaged)))
        assert str(problem).startswith("it is damaged (")
        assert others == [(part, None) for part in PARTS[1:3]]


@pytest.mark.parametrize(
    ("data", "numbers"), [(b"", []), (b"\0\x7f", [0, 127]), (b"\x80\1\5", [128, 5]), (b"\xff\xff\3\x80", [65535])]
)
def test_numbers_of_an_index(data, numbers):
    assert pieces._numbers(data) == numbers


# -- bzip2


def marks_by_bits(data):
    """All magics at any bit, by a search in the text of the bits."""
    bits = "".join(f"{byte:08b}" for byte in data)
    found = [(place.start(), magic) for magic in (BLOCK, END) for place in re.finditer(f"(?={magic:048b})", bits)]
    return [*sorted(found), (8 * len(data), 0)]


def shifted(magic, shift, lead=b"", tail=b""):
    """A magic that begins at a bit of a byte."""
    return lead + (magic << (8 - shift)).to_bytes(7, "big")[: 7 if shift else 6] + tail


@pytest.mark.parametrize("window", [1, 5, 6, 7, 8, 13, 4099])
def test_magics_of_bzip2_are_found_at_any_bit_and_across_windows(monkeypatch, window):
    monkeypatch.setattr(pieces, "_WINDOW_BYTES", window)
    texts = [
        shifted(magic, shift, lead, tail)
        for magic in (BLOCK, END)
        for shift in range(8)
        for lead in (b"", b"\1", b"abcd")
        for tail in (b"", b"\xff")
    ]
    for text in [*texts, b"".join(texts[:40]), b"", b"\x31", b"\0" * 30, bz2.compress(RANDOM[:300] + bytes(3000), 1)]:
        assert list(pieces._marks(Memory(text))) == marks_by_bits(text)


def bzip2_blocks(plain, **options):
    data = bz2.compress(plain, **options)
    return data, list(pieces._bzip2_pieces(Memory(data)))


LARGE = Random(6).randbytes(250_000)


def test_blocks_of_bzip2_are_read_by_themselves():
    data, openers = bzip2_blocks(LARGE, compresslevel=1)
    assert len(openers) == sum(magic == BLOCK for _, magic in marks_by_bits(data)) == 3
    read = decoded(openers, 1 << 20)
    assert b"".join(content for content, _ in read) == LARGE
    assert {problem for _, problem in read} == {None}
    assert decoded(openers[1:2], 1 << 20) == read[1:2]


def test_a_block_of_bzip2_with_another_checksum_is_damaged_and_one_without_an_end_is_cut_off():
    data, _ = bzip2_blocks(LARGE, compresslevel=1)
    marks = marks_by_bits(data)
    bits = int.from_bytes(data, "big")
    damaged = (bits ^ 1 << (8 * len(data) - marks[1][0] - 60)).to_bytes(len(data), "big")
    problems = [problem for _, problem in decoded(list(pieces._bzip2_pieces(Memory(damaged))), 1 << 20)]
    assert [str(problem).startswith("it is damaged") for problem in problems] == [False, True, False]
    cut = data[: marks[2][0] // 8 + 1000]
    assert [problem for _, problem in decoded(list(pieces._bzip2_pieces(Memory(cut))), 1 << 20)] == [
        None,
        None,
        "it ends in the middle",
    ]


@pytest.mark.parametrize(("less", "problem"), [(0, None), (1, "it ends in the middle")])
def test_a_block_of_bzip2_that_is_larger_than_any_is_not_read_to_its_end(monkeypatch, less, problem):
    data, _ = bzip2_blocks(LARGE, compresslevel=1)
    marks = marks_by_bits(data)
    size = marks[1][0] - marks[0][0]
    monkeypatch.setattr(pieces, "_MOST_BLOCK_BYTES", -(-size // 8) - less)
    ((_, found),) = decoded(list(pieces._bzip2_pieces(Memory(data)))[:1], 1 << 20)
    assert found == problem


@pytest.mark.parametrize("plain", [b"", None])
def test_a_file_of_bzip2_without_blocks_is_read_from_its_beginning(plain):
    data = b"BZh9" + bytes(9) if plain is None else bz2.compress(plain)
    openers: list[Any] = list(pieces._bzip2_pieces(Memory(data)))
    (opener,) = openers
    assert opener.args[1] is Form.BZIP2
    assert opener.func is StreamDecoder
