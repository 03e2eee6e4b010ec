"""Frames of LZ4 and ZSTD built part by part: RFC 8878, and the LZ4 frame format. Which take the short way, and which limits hold."""

import struct
from itertools import product

import lz4.frame
import pytest
import zstandard
from xxhash import xxh64_intdigest

from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.formats.log import compressed_frames
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.model.limits import COMPRESSED_FRAMES
from tests.formats import encoders

LIMIT = 1 << 20
TEXT = b"".join(b"%d,the quick brown fox;" % number for number in range(4000))
RAW, RLE, RESERVED = 0, 1, 3
LARGEST_BLOCK = 1 << 17


def block(kind, size, content, *, last=True):
    return (last | kind << 1 | size << 3).to_bytes(3, "little") + content


def raw(content, *, last=True):
    return block(RAW, len(content), content, last=last)


def frame(*blocks, descriptor=0, window=b"\x50", fields=b"", end=b""):
    """A frame; `fields` are dictionary id and content size, `end` the checksum."""
    return (
        b"\x28\xb5\x2f\xfd"
        + bytes([descriptor])
        + (b"" if descriptor & 0x20 else window)
        + fields
        + b"".join(blocks)
        + end
    )


def zstd(data, limit=LIMIT):
    return decompress(Codec.ZSTD, 2, data, limit)


CONTENT = bytes(range(200)) * 2
HASH = struct.pack("<I", xxh64_intdigest(CONTENT) & 0xFFFFFFFF)


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(("dictionary", "id_bytes"), [(0, 0), (1, 1), (2, 2), (3, 4)])
@pytest.mark.parametrize(
    ("size_flag", "single", "size"),
    [
        (0, False, b""),
        (1, False, struct.pack("<H", len(CONTENT) - 256)),
        (1, True, struct.pack("<H", len(CONTENT) - 256)),
        (2, False, struct.pack("<I", len(CONTENT))),
        (2, True, struct.pack("<I", len(CONTENT))),
        (3, False, struct.pack("<Q", len(CONTENT))),
        (3, True, struct.pack("<Q", len(CONTENT))),
    ],
)
def test_zstd_frame_headers_of_every_form(size_flag, single, size, dictionary, id_bytes, checksum):
    descriptor = size_flag << 6 | single << 5 | checksum << 2 | dictionary
    parts = raw(CONTENT[:150], last=False), raw(CONTENT[150:])
    made = frame(*parts, descriptor=descriptor, fields=bytes(id_bytes) + size, end=HASH if checksum else b"")
    assert zstd(made) == CONTENT
    assert zstd(made + made, 2 * len(CONTENT)) == 2 * CONTENT
    with pytest.raises(LimitExceededError):
        zstd(made, len(CONTENT) - 1)
    for cut in range(1, len(made)):
        with pytest.raises(WireError) as caught:
            zstd(made[:cut])
        assert (caught.value.reason, caught.value.position) == (Reason.TRUNCATED, cut)


def test_a_zstd_frame_that_declares_its_size_in_one_byte():
    made = frame(raw(b"hello"), descriptor=0x20, fields=b"\x05")
    assert zstd(made, 5) == b"hello"
    assert zstd(frame(raw(b""), descriptor=0x20, fields=b"\x00"), 0) == b""


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        ([raw(b"")], b""),
        ([block(RLE, 0, b"x")], b""),
        ([block(RLE, 7, b"x")], b"xxxxxxx"),
        ([block(RLE, LARGEST_BLOCK, b"x")], b"x" * LARGEST_BLOCK),
        ([block(RLE, 3, b"x", last=False), raw(b"yz", last=False), block(RLE, 1, b"w")], b"xxxyzw"),
        ([raw(b"a" * LARGEST_BLOCK)], b"a" * LARGEST_BLOCK),
    ],
)
def test_zstd_blocks_that_are_not_compressed(blocks, content):
    made = frame(*blocks)
    assert zstd(made, len(content)) == content
    if content:
        with pytest.raises(LimitExceededError):
            zstd(made, len(content) - 1)


@pytest.mark.parametrize("wrong", [block(RESERVED, 1, b"x"), block(RAW, LARGEST_BLOCK + 1, bytes(LARGEST_BLOCK + 1))])
def test_zstd_blocks_that_no_encoder_writes(wrong):
    with pytest.raises(WireError) as caught:
        zstd(frame(raw(b"ab", last=False), wrong))
    assert (caught.value.reason, caught.value.position) == (Reason.DECOMPRESSION, 6 + 5)


@pytest.mark.parametrize("nibble", [0, 0xF])
@pytest.mark.parametrize("size", [0, 5])
def test_skippable_frames_of_zstd_give_nothing(nibble, size):
    skippable = struct.pack("<II", 0x184D2A50 | nibble, size) + bytes(size)
    assert zstd(skippable + frame(raw(b"hello")) + skippable) == b"hello"
    assert zstd(skippable) == b""
    for cut in range(1, len(skippable)):
        with pytest.raises(WireError) as caught:
            zstd(frame(raw(b"hello")) + skippable[:cut])
        assert caught.value.reason is Reason.TRUNCATED


def test_what_is_no_zstd_frame_is_named_with_its_place():
    with pytest.raises(WireError) as caught:
        zstd(frame(raw(b"hello")) + b"\x60\x2a\x4d\x18" + bytes(8))
    assert (caught.value.reason, caught.value.position) == (Reason.DECOMPRESSION, len(frame(raw(b"hello"))))


@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.GZIP])
def test_a_thousand_and_some_frames_are_allowed(codec):
    one = encoders.COMPRESS[codec](b"a")
    assert decompress(codec, 2, one * COMPRESSED_FRAMES, LIMIT) == b"a" * COMPRESSED_FRAMES
    with pytest.raises(LimitExceededError):
        decompress(codec, 2, one * (COMPRESSED_FRAMES + 1), LIMIT)


def test_a_size_that_is_declared_is_held_against_the_limit_first():
    made = bytearray(encoders.zstd(TEXT))
    made[5:9] = b"\xff\xff\xff\x7f"
    with pytest.raises(LimitExceededError):
        zstd(made, len(TEXT))


def never(*_):
    raise AssertionError("the long way")


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("content", [TEXT[:900], TEXT, bytes(LARGEST_BLOCK)])
def test_zstd_frames_of_one_compressed_block_take_the_short_way(monkeypatch, content, checksum):
    made = encoders.zstd(content, write_content_size=False, write_checksum=checksum)
    monkeypatch.setattr(compressed_frames, "_frame", never)
    decoded = zstandard.ZstdDecompressor().decompressobj().decompress(made)
    if len(content) <= 16 * len(made):
        assert zstd(made, LARGEST_BLOCK) == decoded == content
    with pytest.raises(AssertionError):
        zstd(made, LARGEST_BLOCK - 1)


FORMS = [
    {"block_linked": linked, "block_checksum": checked, "content_checksum": summed, "block_size": size}
    for linked, checked, summed, size in product(
        (False, True), (False, True), (False, True), (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB)
    )
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("content", [TEXT[:900], bytes(1 << 16), bytes(range(256))], ids=["text", "zeros", "stored"])
def test_lz4_frames_of_one_block_take_the_short_way(monkeypatch, form, content):
    made = lz4.frame.compress(content, store_size=False, **form)
    monkeypatch.setattr(compressed_frames, "_in_pieces", never)
    # the library makes small frames of smaller blocks than it is asked for
    plain, compressed = made[4:6] in (b"\x40\x40", b"\x60\x40"), made[10] < 0x80
    for magic, limit, short in (
        (2, 1 << 22, compressed or not plain),
        (1, 1 << 22, compressed and plain),
        (2, (1 << 22) - 1, compressed and plain),
        (2, 1 << 16, compressed and plain),
        (2, (1 << 16) - 1, False),
    ):
        if short:
            assert decompress(Codec.LZ4, magic, made, limit) == content
        else:
            with pytest.raises(AssertionError):
                decompress(Codec.LZ4, magic, made, limit)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_limit_of_lz4_frames_is_exact(form):
    for content in (bytes(1 << 16), TEXT):
        made = lz4.frame.compress(content, store_size=False, **form)
        assert decompress(Codec.LZ4, 2, made, len(content)) == content
        with pytest.raises(LimitExceededError):
            decompress(Codec.LZ4, 2, made, len(content) - 1)


@pytest.mark.parametrize("sized", [False, True])
def test_an_lz4_frame_that_lacks_bytes_or_has_too_many(sized):
    made = lz4.frame.compress(TEXT, store_size=sized, content_checksum=True)
    assert decompress(Codec.LZ4, 2, made, LIMIT) == TEXT
    for cut in (*range(17), 100, len(made) - 5, len(made) - 1):
        with pytest.raises(WireError) as caught:
            decompress(Codec.LZ4, 2, made[:cut], LIMIT)
        assert (caught.value.reason, caught.value.position) == (Reason.TRUNCATED, cut)
    for behind in (b"\0", b"\0" * 4, made):
        with pytest.raises(WireError) as caught:
            decompress(Codec.LZ4, 2, made + behind, LIMIT)
        assert (caught.value.reason, caught.value.position) == (Reason.TRAILING, len(made))


def test_a_window_of_128_mib_is_the_largest():
    """zstd-jni refuses larger ones: 2^(10 + exponent), and eighths of it (RFC 8878, 3.1.1.1.2)."""
    content = bytes(range(100))
    for limit in (LIMIT, 99):
        made = [frame(raw(content), window=bytes([17 << 3 | eighths])) for eighths in (0, 1)]
        if limit == LIMIT:
            assert zstd(made[0], limit) == content
        else:
            with pytest.raises(LimitExceededError):
                zstd(made[0], limit)
        with pytest.raises(WireError) as caught:
            zstd(made[1], limit)
        assert caught.value.reason is Reason.DECOMPRESSION


XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"", 0),
        (XERIAL + struct.pack(">i", 0), 20),
        (XERIAL[:15], 15),
        (XERIAL + b"\0\0\0", 16),
        (XERIAL + struct.pack(">i", 5) + b"abcd", 16),
    ],
)
def test_frames_of_snappy_that_are_empty_or_cut_off(data, position):
    """snappy-java's SnappyInputStream: a header of 16 bytes, then blocks, each after its size."""
    with pytest.raises(WireError) as caught:
        decompress(Codec.SNAPPY, 2, data, LIMIT)
    assert (caught.value.reason, caught.value.position) == (Reason.TRUNCATED, position)


def test_frames_of_snappy_one_after_another_repeat_the_header():
    one, two = (encoders.COMPRESS[Codec.SNAPPY](content) for content in (TEXT, b"end"))
    assert decompress(Codec.SNAPPY, 2, one + two, LIMIT) == TEXT + b"end"
    assert decompress(Codec.SNAPPY, 2, one + two, len(TEXT) + 3) == TEXT + b"end"
    for limit in (len(TEXT) + 2, len(TEXT), 0):
        with pytest.raises(LimitExceededError):
            decompress(Codec.SNAPPY, 2, one + two, limit)
    assert decompress(Codec.SNAPPY, 2, XERIAL, LIMIT) == b""
