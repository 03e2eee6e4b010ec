"""Decompression from front to back: each library's bytes, in steps of any size, whole, cut off and damaged."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import lz4.frame
import pytest
import zstandard

from kaudit.source.archives import decoders
from kaudit.source.archives.decoders import (
    DEFLATE_WINDOW,
    Inflater,
    SourceReader,
    StreamDecoder,
    ZstdDecoder,
    frame_end,
)
from kaudit.source.archives.forms import Form
from kaudit.source.bytes import ByteSource
from tests.memory import Memory

PLAIN = Random(3).randbytes(3000) + bytes(100_000) + Random(4).randbytes(500)


def raw_deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def frame_with_checksum(data):
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


KINDS: dict[str, tuple[Callable[[bytes], bytes], Callable[[ByteSource], Any]]] = {
    "gzip": (gzip.compress, Inflater),
    "deflate": (raw_deflate, lambda source: Inflater(source, DEFLATE_WINDOW)),
    "bzip2": (bz2.compress, lambda source: StreamDecoder(source, Form.BZIP2)),
    "xz": (lzma.compress, lambda source: StreamDecoder(source, Form.XZ)),
    "lz4": (lz4.frame.compress, lambda source: StreamDecoder(source, Form.LZ4)),
    "lz4 with checksums": (
        lambda data: lz4.frame.compress(data, content_checksum=True),
        lambda source: StreamDecoder(source, Form.LZ4),
    ),
    "zstd": (zstandard.ZstdCompressor().compress, ZstdDecoder),
    "zstd with checksums": (frame_with_checksum, ZstdDecoder),
}


def read_all(decoder, step=7919):
    content = b""
    while part := decoder.read(step):
        assert len(part) <= step
        content += part
        if len(part) < step:
            break
    assert decoder.read(step) == decoder.read(0) == b""
    return content


@pytest.mark.parametrize("input_bytes", [1, 2, 100, 1 << 16])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_one_after_another_and_cut_off(monkeypatch, kind, input_bytes):
    monkeypatch.setattr(decoders, "_INPUT_BYTES", input_bytes)
    compress, begin = KINDS[kind]
    packed = compress(PLAIN[:2000]) if input_bytes < 100 else compress(PLAIN)
    plain = PLAIN[:2000] if input_bytes < 100 else PLAIN
    for data, expected in ((packed, plain), (packed + compress(b"x"), plain + b"x"), (compress(b""), b"")):
        if kind == "deflate" and data != packed and expected:
            continue
        decoder = begin(Memory(data))
        assert (read_all(decoder), decoder.problem) == (expected, None)
    for cut in (len(packed) - 1, len(packed) // 2, 1):
        decoder = begin(Memory(packed[:cut]))
        content = read_all(decoder)
        assert (plain.startswith(content), decoder.problem) == (True, "it ends in the middle")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "deflate"])
def test_as_many_bytes_as_are_asked_for_are_returned(kind):
    compress, begin = KINDS[kind]
    decoder = begin(Memory(compress(PLAIN) + compress(PLAIN)))
    for wanted in (0, 1, 2999, 5, 60_000, 90_000):
        assert len(decoder.read(wanted)) == wanted
    assert len(decoder.read(1 << 20)) == 2 * len(PLAIN) - 153_005


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("gzip", "Error -3 while decompressing data: "),
        ("bzip2", "Invalid data stream"),
        ("xz", "Corrupt input data"),
        ("lz4 with checksums", "LZ4F_"),
        ("zstd with checksums", ""),
    ],
)
def test_a_damaged_file_says_why(kind, reason):
    compress, begin = KINDS[kind]
    packed = bytearray(compress(PLAIN))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    decoder = begin(Memory(bytes(packed)))
    read_all(decoder)
    assert str(decoder.problem).startswith("it is damaged (")
    assert reason in str(decoder.problem)


def test_gzip_ignores_what_follows_and_deflate_has_one_member():
    for tail in (b"\0" * 9, b"\x1f\x8b", b"\x1f\x8b\x07", b"x"):
        decoder = Inflater(Memory(gzip.compress(b"abc") + tail))
        assert (read_all(decoder), decoder.problem) == (b"abc", None)
    decoder = Inflater(Memory(raw_deflate(b"abc") + raw_deflate(b"def")), DEFLATE_WINDOW)
    assert (read_all(decoder), decoder.problem) == (b"abc", None)
    assert decoder.consumed == len(raw_deflate(b"abc"))


@pytest.mark.parametrize("at", [0, 1, 5000, 100_000])
def test_a_copy_continues_by_itself(at):
    decoder = Inflater(Memory(gzip.compress(PLAIN, 1)))
    decoder.read(at)
    copy = decoder.copy()
    assert (read_all(decoder), read_all(copy)) == (PLAIN[at:], PLAIN[at:])


@pytest.mark.parametrize("kind", ["bzip2", "xz", "lz4"])
def test_zeros_between_streams_and_after_them(monkeypatch, kind):
    compress, begin = KINDS[kind]
    for input_bytes in (3, 1 << 16):
        monkeypatch.setattr(decoders, "_INPUT_BYTES", input_bytes)
        decoder = begin(Memory(compress(b"abc") + bytes(8) + compress(b"de") + bytes(20)))
        assert (read_all(decoder), decoder.problem) == (b"abcde", None)


def test_frames_that_are_skipped():
    skipped = b"\x5f\x2a\x4d\x18\3\0\0\0abc"
    packed = KINDS["zstd"][0](b"abc")
    for data in (skipped + packed, packed + skipped, packed + skipped + packed):
        decoder = ZstdDecoder(Memory(data))
        assert (read_all(decoder), decoder.problem) == (b"abc" * data.count(packed), None)
    decoder = ZstdDecoder(Memory(packed + skipped[:-1]))
    assert (read_all(decoder), decoder.problem) == (b"abc", "it ends in the middle")
    for nibble, expected in ((0x50, 11), (0x5F, 11), (0x4F, None), (0x60, None)):
        source = Memory(b"abc" + bytes([nibble]) + skipped[1:])
        assert frame_end(lambda *_: None, source, 3) == (3 + expected if expected else None)


def test_a_source_is_a_file_for_pythons_modules():
    file = SourceReader(Memory(b"0123456789"))
    assert (file.readable(), file.seekable(), file.tell()) == (True, True, 0)
    assert (file.read(3), file.tell(), file.read(100), file.tell(), file.read(1)) == (b"012", 3, b"3456789", 10, b"")
    assert [file.seek(*to) for to in ((2,), (3, io.SEEK_CUR), (-4, io.SEEK_END), (20,), (0, 0))] == [2, 5, 6, 20, 0]
    for to in ((-1,), (-11, io.SEEK_END)):
        with pytest.raises(ValueError, match="before the first byte"):
            file.seek(*to)
