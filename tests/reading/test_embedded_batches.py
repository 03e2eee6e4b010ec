"""Batches inside the values, keys and headers of a damaged batch are data while a sound batch follows it."""

import gzip
import struct
from dataclasses import replace
from functools import partial
from random import Random

import crc32c
import lz4.frame
import pytest
import zstandard

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.reading.segment import WINDOW_BYTES
from kaudit.scanning.options import ScanOptions
from tests.logs import Batch, data, sealed_records, varint

HEADER = 61
"""Bytes before a batch's first record."""
LENGTH, LEADER_EPOCH = 8, 12
"""Where fields of the header begin: they have four bytes each."""
PLACES = ("key", "value", "header")
CODECS = {
    "none": (0, bytes),
    "stored": (1, partial(gzip.compress, compresslevel=0)),
    "gzip": (1, gzip.compress),
    "lz4": (3, lz4.frame.compress),
    "zstd": (4, zstandard.ZstdCompressor().compress),
}
"""Number and function of each; `stored` compresses nothing, so that its bytes hold batches as they are."""


def carrying(batch, payload, place, codec="none"):
    """The batch with this payload in each of its records, compressed."""
    records = []
    for index in range(batch.count):
        key = payload if place == "key" else b"k"
        value = payload if place == "value" else b"v"
        headers = varint(1) + varint(1) + b"h" + varint(len(payload)) + payload if place == "header" else varint(0)
        body = b"\0" + varint(0) + varint(index) + varint(len(key)) + key + varint(len(value)) + value + headers
        records.append(varint(len(body)) + body)
    number, compress = CODECS[codec]
    compressed = compress(b"".join(records))
    sealed = sealed_records(replace(batch, attributes=batch.attributes | number), [compressed])
    # what counts the records is covered by the CRC
    tail = sealed[21:57] + struct.pack(">i", batch.count) + compressed
    return sealed[:17] + struct.pack(">I", crc32c.crc32c(tail)) + tail


def log_of(directory, random, place, codec="none"):
    """Five batches, the third of which carries batches; return the segment and where the third begins and ends."""
    embedded = b"".join(
        data(random.choice([1, 9]), 0, random.randrange(50), random.randrange(1, 4)).at(random.randrange(100)).encode()
        for _ in range(random.randrange(1, 5))
    )
    offsets = (0, 3, 6, 9, 12)
    batches = [data(1, 0, offset, 3).at(offset) for offset in offsets]
    encoded = [
        carrying(batch, embedded, place, codec) if batch.base_offset == 6 else batch.encode() for batch in batches
    ]
    partition = directory / "t-0"
    partition.mkdir()
    segment = partition / f"{0:020d}.log"
    segment.write_bytes(b"".join(encoded))
    start = len(encoded[0]) + len(encoded[1])
    return segment, start, start + len(encoded[2])


def reported(segment, **options):
    result = scan(ScanOptions([str(segment.parent)], jobs=1, **options), SilentProgress())
    return [(each.code, each.position, each.offset, each.last_offset) for each in result.findings]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(40))
def test_the_damage_named_is_the_damage_made(tmp_path, place, seed):
    random = Random(f"{place} {seed}")
    segment, start, end = log_of(tmp_path, random, place)
    assert reported(segment) == []
    content = bytearray(segment.read_bytes())
    for _ in range(random.randrange(1, 4)):
        # what a header says of its offsets is among the damage: the header is not believed then
        bit = random.randrange((start + HEADER) * 8, end * 8)
        content[bit // 8] ^= 1 << bit % 8
    segment.write_bytes(content)
    for chunk_bytes in (None, random.randrange(70, 500)):
        assert reported(segment, chunk_bytes=chunk_bytes) == [("KA001", start, 6, 8)]


def flip(content, bits):
    for bit in bits:
        content[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(8))
def test_a_wrong_length_is_one_damage_too(tmp_path, place, codec, seed):
    random = Random(f"length {place} {codec} {seed}")
    segment, start, end = log_of(tmp_path, random, place, codec)
    content = bytearray(segment.read_bytes())
    flip(content, random.sample(range((start + LENGTH) * 8, (start + LENGTH + 4) * 8), random.randrange(1, 4)))
    segment.write_bytes(content)
    for chunk_bytes in (None, random.randrange(70, 500)):
        assert reported(segment, chunk_bytes=chunk_bytes) == [("KA003", start, 6, 8)]
    segment.write_bytes(content[:end])
    ((code, position, *_),) = reported(segment)  # nothing follows: its own CRC shows where it ends
    assert (code, position) == ("KA003", start)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(16))
def test_damage_anywhere_that_the_crc_or_the_framing_covers_is_one_damage(tmp_path, place, codec, seed):
    random = Random(f"any {place} {codec} {seed}")
    segment, start, end = log_of(tmp_path, random, place, codec)
    content = bytearray(segment.read_bytes())
    # no CRC covers the base offset and the leader epoch
    covered = [*range(LENGTH, LEADER_EPOCH), *range(LEADER_EPOCH + 4, end - start)]
    if seed % 2:
        covered = covered[:-1][:49]  # the header
    for byte in random.sample(covered, random.randrange(1, 4)):
        flip(content, [(start + byte) * 8 + random.randrange(8)])
    segment.write_bytes(content)
    for chunk_bytes in (None, random.randrange(70, 500)):
        ((code, *found),) = reported(segment, chunk_bytes=chunk_bytes)
        assert code in {"KA001", "KA003"}
        assert found[:2] == [start, 6]  # up to where, a header says that may be damaged there


def test_a_wrong_length_of_a_batch_of_many_small_records_is_proven(tmp_path):
    before, after = data(1, 0, 0, 3).encode(), data(1, 0, 40_003, 3).at(40_003).encode()
    embedded = data(7, 0, 0, 2).at(4).encode()
    many = bytearray(carrying(data(1, 0, 3, 40_000).at(3), embedded, "value"))
    many[LENGTH + 2] ^= 0x40
    partition = tmp_path / "t-0"
    partition.mkdir()
    segment = partition / f"{0:020d}.log"
    segment.write_bytes(before + many + after)
    assert reported(segment) == [("KA003", len(before), 3, 40_002)]


def test_a_batch_larger_than_the_window_is_as_long_as_it_says(tmp_path):
    embedded = data(7, 0, 0, 2).at(4).encode() + data(7, 0, 0, 2).at(50).encode()
    before, after = data(1, 0, 0, 3).encode(), data(1, 0, 4, 3).at(4).encode()
    large = carrying(data(1, 0, 3, 1).at(3), embedded * (WINDOW_BYTES // len(embedded) + 1), "value")
    content = bytearray(before + large + after)
    content[len(before) + len(large) - 3] ^= 4
    partition = tmp_path / "t-0"
    partition.mkdir()
    segment = partition / f"{0:020d}.log"
    segment.write_bytes(content)
    for chunk_bytes in (None, 1 << 20):
        assert reported(segment, chunk_bytes=chunk_bytes) == [("KA001", len(before), 3, 3)]


@pytest.mark.parametrize("place", ["key", "value"])  # a header's value is last in its batch: nothing follows it there
def test_a_batch_at_the_end_of_the_file_is_as_long_as_it_says(tmp_path, place):
    segment, start, end = log_of(tmp_path, Random(place), place)
    content = bytearray(segment.read_bytes()[:end])
    content[-1] ^= 1
    segment.write_bytes(content)
    (found,) = reported(segment)
    assert found[:2] == ("KA001", start)


def test_a_length_that_leads_past_a_sound_batch_is_wrong(tmp_path):
    """All batches are of one size: the length of the second plus one batch leads to the fourth."""
    batches = [Batch(base_offset=offset, payload=b"x" * 19 + bytes([65 + offset])).encode() for offset in range(5)]
    partition = tmp_path / "t-0"
    partition.mkdir()
    segment = partition / f"{0:020d}.log"
    size = len(batches[0])
    content = bytearray(b"".join(batches))
    struct.pack_into(">i", content, size + 8, 2 * size - 12)
    segment.write_bytes(content)
    assert [(code, position) for code, position, *_ in reported(segment)] == [("KA003", size)]
