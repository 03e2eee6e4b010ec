"""A compressed file read at any position gives what it holds, in bounded memory."""

import gzip
import zlib
from random import Random
from weakref import WeakSet

import pytest

from kaudit.source.archives import expanded
from kaudit.source.archives.decoders import decoder, read_bytes
from kaudit.source.archives.expanded import BLOCK_BYTES, Expanded
from kaudit.source.archives.forms import Form, form_of
from tests.memory import Memory
from tests.packed import COMPRESSIONS

FORMS = {"gz": Form.GZIP, "bz2": Form.BZIP2, "xz": Form.XZ, "zst": Form.ZSTD, "lz4": Form.LZ4}


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
@pytest.mark.parametrize("left", [0.999, 0.5, 0.001])
def test_a_truncated_file_says_so_and_gives_what_it_has(suffix, left):
    plain = content(8 * BLOCK_BYTES)
    packed = COMPRESSIONS[suffix](plain)
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


def test_what_is_held_of_all_files_together_is_limited(monkeypatch):
    monkeypatch.setattr(expanded, "ARCHIVE_HELD_BYTES", 6 * BLOCK_BYTES)
    monkeypatch.setattr(expanded, "_all_expanded", WeakSet())
    plain = content(5 * BLOCK_BYTES)
    first = opened(COMPRESSIONS["xz"](plain), Form.XZ)
    second = opened(COMPRESSIONS["zst"](plain), Form.ZSTD)
    assert first.size() == len(plain)
    with pytest.raises(OSError, match=r"pack it as \.tar, \.tar\.gz or \.zip"):
        second.size()
    assert opened(COMPRESSIONS["gz"](plain), Form.GZIP).size() == len(plain)


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
