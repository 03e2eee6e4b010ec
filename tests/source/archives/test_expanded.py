"""A compressed file read at any position gives what it holds, in bounded memory."""

import bz2
import gzip
import lzma
import zlib
from functools import cache
from random import Random
from weakref import WeakSet

import pytest

from kaudit.source.archives import expanded, pieces
from kaudit.source.archives.decoders import after_zstd_frame
from kaudit.source.archives.expanded import BLOCK_BYTES, Expanded
from kaudit.source.archives.forms import Form, form_of
from kaudit.source.archives.pieces import decoder
from kaudit.source.bytes import read_bytes
from tests.memory import Memory
from tests.packed import COMPRESSIONS

FORMS = {"gz": Form.GZIP, "bz2": Form.BZIP2, "xz": Form.XZ, "zst": Form.ZSTD, "lz4": Form.LZ4}


@cache
def content(size: int, seed: int = 1) -> bytes:
    """Bytes that compress somewhat, and differ everywhere."""
    random = Random(seed)
    return b"".join(random.randbytes(24) + b"abcdefgh" for _ in range(size // 32))


def opened(packed: bytes, form: Form) -> Expanded:
    return Expanded(decoder(form, Memory(packed)), len(packed), "x")


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_any_range_in_any_order(monkeypatch, suffix):
    monkeypatch.setattr(expanded, "_RECENT_BLOCKS", 2)
    monkeypatch.setattr(expanded, "_FIRST_SPACING", 1)
    monkeypatch.setattr(expanded, "_COPIES", 4)
    plain = content(11 * BLOCK_BYTES + 999)
    source = opened(COMPRESSIONS[suffix](plain), FORMS[suffix])
    random = Random(7)
    for _ in range(60):
        at, length = random.randrange(len(plain) + 10), random.choice((1, 61, 5000, 2 * BLOCK_BYTES))
        assert read_bytes(source, at, length) == plain[at : at + length]
    assert (source.size(), source.problem) == (len(plain), None)
    assert read_bytes(source, 0, len(plain) + 1) == plain


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_files_packed_one_after_another_are_one(suffix):
    first, second = content(3000, 1), content(4000, 2)
    packed = COMPRESSIONS[suffix](first) + COMPRESSIONS[suffix](second)
    assert read_bytes(opened(packed, FORMS[suffix]), 0, 10_000) == first + second


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_truncated_file_says_so_and_gives_what_it_has(suffix):
    plain = content(8 * BLOCK_BYTES)
    packed = COMPRESSIONS[suffix](plain)
    for left in (0.999, 0.5, 0.001):
        source = opened(packed[: int(len(packed) * left)], FORMS[suffix])
        size = source.size()
        assert source.problem == "it ends in the middle"
        assert read_bytes(source, 0, len(plain)) == plain[:size]
        assert size >= (len(plain) * left - 8 * BLOCK_BYTES * 0.45 if left > 0.1 else 0)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_a_damaged_file_says_so(suffix):
    plain = content(8 * BLOCK_BYTES)
    packed = bytearray(COMPRESSIONS[suffix](plain))
    packed[len(packed) // 2] ^= 0x55
    source = opened(bytes(packed), FORMS[suffix])
    size = source.size()
    assert str(source.problem).startswith("it is damaged (")
    assert read_bytes(source, 0, len(plain))[: size // 2] == plain[: size // 2]


def test_a_damaged_checksum_is_a_damaged_file():
    packed = bytearray(gzip.compress(content(1000)))
    packed[-8] ^= 1
    source = opened(bytes(packed), Form.GZIP)
    source.size()
    assert source.problem == "it is damaged (Error -3 while decompressing data: incorrect data check)"


def test_what_follows_the_last_gzip_member_is_ignored_as_gzip_does():
    plain = content(1000)
    source = opened(gzip.compress(plain) + b"\0" * 700, Form.GZIP)
    assert (source.size(), source.problem) == (len(plain), None)


def test_an_expansion_that_nobody_packs_ends(monkeypatch):
    monkeypatch.setattr(expanded, "ARCHIVE_EXPANDED_BYTES", 8 * BLOCK_BYTES)
    packed = zlib.compress(bytes(100 * BLOCK_BYTES), 9, 31)
    monkeypatch.setattr(expanded, "EXPANSION", 1)
    source = opened(packed, Form.GZIP)
    assert source.size() == 9 * BLOCK_BYTES
    assert source.problem == "it expands to more than 0 GiB, over 1 times its size"


def xz_of(parts: list[bytes]) -> bytes:
    """One stream of several blocks, as `xz -T` makes it."""
    streams = [lzma.compress(part, preset=0) for part in parts]
    sizes = [(int.from_bytes(each[-8:-4], "little") + 1) * 4 for each in streams]  # of the indexes
    blocks = [each[12 : -12 - size] for each, size in zip(streams, sizes, strict=True)]
    records = b"".join(
        each[-12 - size + 2 : -12][: _numbers_end(each[-12 - size + 2 : -12])]
        for each, size in zip(streams, sizes, strict=True)
    )
    index = b"\0" + bytes([len(parts)]) + records
    index += bytes(-len(index) % 4)
    index += zlib.crc32(index).to_bytes(4, "little")
    flags = (len(index) // 4 - 1).to_bytes(4, "little") + streams[0][6:8]
    return streams[0][:12] + b"".join(blocks) + index + zlib.crc32(flags).to_bytes(4, "little") + flags + b"YZ"


def _numbers_end(data: bytes) -> int:
    """Where the two numbers of a record end."""
    ends = [at for at, byte in enumerate(data) if byte < 0x80]
    return ends[1] + 1


def parts_of(plain: bytes) -> list[bytes]:
    return [plain[at : at + 50_001] for at in range(0, len(plain), 50_001)]


SMALL = 1 << 14
DIVIDED = {
    "bz2 of small blocks": (Form.BZIP2, lambda plain: bz2.compress(plain, 1)),
    "bz2 of several streams": (Form.BZIP2, lambda plain: b"".join(bz2.compress(part, 1) for part in parts_of(plain))),
    "xz of several blocks": (Form.XZ, lambda plain: xz_of(parts_of(plain))),
    "xz of several streams": (Form.XZ, lambda plain: b"\0\0\0\0".join(lzma.compress(part, preset=0) for part in parts_of(plain))),
    "zst of several frames": (Form.ZSTD, lambda plain: b"\x50\x2a\x4d\x18\2\0\0\0ab".join(COMPRESSIONS["zst"](part) for part in parts_of(plain))),
    "lz4 of several frames": (Form.LZ4, lambda plain: b"".join(COMPRESSIONS["lz4"](part) for part in parts_of(plain))),
}  # fmt: skip


@pytest.fixture
def nothing_held(monkeypatch):
    """No room to hold anything, and blocks and pieces as small as they are."""
    monkeypatch.setattr(expanded, "BLOCK_BYTES", SMALL)
    monkeypatch.setattr(expanded, "ARCHIVE_HELD_BYTES", 0)
    monkeypatch.setattr(expanded, "_RECENT_BLOCKS", 2)
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    monkeypatch.setattr(pieces, "_WINDOW_BYTES", 4099)


@pytest.mark.parametrize("name", DIVIDED)
def test_what_has_pieces_is_read_from_the_middle_without_being_held(monkeypatch, nothing_held, name):
    monkeypatch.setattr(expanded, "_FREE_BYTES", 60 * 100_000)
    form, compress = DIVIDED[name]
    plain = content(30 * SMALL + 999)
    source = opened(compress(plain), form)
    assert (source.size(), source.problem) == (len(plain), None)
    random = Random(7)
    for _ in range(30):
        at, length = random.randrange(len(plain) + 10), random.choice((1, 61, 5000, 2 * SMALL))
        assert read_bytes(source, at, length) == plain[at : at + length]


@pytest.mark.parametrize("plain", [content(5 * SMALL), bytes(500_000), content(5 * SMALL) + bytes(500_000)])
def test_where_a_frame_of_zstd_ends(plain):
    """A block of 128 KiB of one byte is written as that byte, but for the first of a frame (RFC 8878, RLE_Block)."""
    frame = COMPRESSIONS["zst"](plain)
    assert after_zstd_frame(Memory(frame + frame), len(frame)) == 2 * len(frame)


@pytest.mark.parametrize("name", DIVIDED)
def test_pieces_that_are_cut_off_or_damaged(nothing_held, name):
    form, compress = DIVIDED[name]
    plain = content(40 * SMALL)
    packed = compress(plain)
    cut = opened(packed[: len(packed) * 2 // 3], form)
    size = cut.size()
    assert cut.problem == "it ends in the middle"
    assert read_bytes(cut, 0, len(plain)) == plain[:size]
    assert size > len(plain) // 3
    if form not in {Form.ZSTD, Form.LZ4}:  # whose writers need not add checksums
        damaged = bytearray(packed)
        damaged[len(packed) // 2] ^= 0x55
        source = opened(bytes(damaged), form)
        size = source.size()
        assert str(source.problem).startswith("it is damaged (")
        assert size < len(plain)


@pytest.mark.parametrize("suffix", ["xz", "zst", "lz4"])
def test_what_has_one_piece_is_decoded_again_so_many_times_and_no_more(monkeypatch, nothing_held, suffix):
    monkeypatch.setattr(expanded, "_FREE_BYTES", 0)
    plain = content(9 * SMALL)
    source = opened(COMPRESSIONS[suffix](plain), FORMS[suffix])
    for _ in range(6):  # in order, several times
        read = [read_bytes(source, at, SMALL) for at in range(0, len(plain), SMALL)]
        assert b"".join(read) == plain

    def read_all_over() -> None:
        for at in 40 * (8, 1, 7, 0):
            read_bytes(source, at * SMALL, 9)

    with pytest.raises(OSError, match=r"unpack it, or pack it as \.tar\.gz or \.zip, or in many pieces") as refused:
        read_all_over()
    assert refused.value.filename == "x"


def test_what_is_held_of_all_files_together_is_limited(monkeypatch):
    monkeypatch.setattr(expanded, "ARCHIVE_HELD_BYTES", 6 * BLOCK_BYTES)
    monkeypatch.setattr(expanded, "_all_expanded", WeakSet())
    plain = content(5 * BLOCK_BYTES)
    files = [opened(COMPRESSIONS[suffix](plain), FORMS[suffix]) for suffix in ("xz", "zst", "lz4")]
    assert [file.size() for file in files] == [len(plain)] * 3
    assert sum(file._held_bytes for file in files) <= 6 * BLOCK_BYTES
    assert all(read_bytes(file, 0, len(plain)) == plain for file in files)


def test_forms_are_told_by_their_first_bytes():
    assert [form_of(compress(b"x")) for compress in COMPRESSIONS.values()] == [FORMS[name] for name in COMPRESSIONS]
    assert form_of(b"7z\xbc\xaf\x27\x1c") is Form.SEVEN_ZIP
    for no_archive in (
        b"",
        b"PK",
        b"BZhx",
        bytes(512),
        b"1234567 " * 64,
        (b"\0" * 7 + b"\1" + b"\0\0\0\x39" + b"\0" * 4 + b"\2") * 40,
    ):
        assert form_of(no_archive) is None
