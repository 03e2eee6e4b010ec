"""Payloads that claim to be large batches: they are not what the file is read for."""

import struct

import pytest

from kaudit.formats.log.record_batch import batch_crc_holds
from kaudit.reading import read_window
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec, settle
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import SegmentFile
from tests.formats.encoders import batch, message, record
from tests.memory import Memory

MIB = 1 << 20
CLAIMS = 100
SOUND = 64


class Counted(Memory):
    """Counts the bytes that are read."""

    bytes_read = 0

    def read_into(self, position, buffer):
        count = super().read_into(position, buffer)
        self.bytes_read += count
        return count


def claim(length):
    """The header of a batch of that length, which a payload holds by chance."""
    body = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1)
    return struct.pack(">qiibI", 7, length, 0, 2, 0x12345678) + body


@pytest.fixture
def log():
    """A batch whose CRC fails and whose payload claims a hundred times the next 8 MiB; 16 MiB of sound batches follow."""
    deceiving = bytearray(batch([record(0, value=b"".join(claim(8 * MIB + number) for number in range(CLAIMS)))]))
    deceiving[-1] ^= 1
    sound = batch([record(0, value=bytes(range(256)) * 1024)])
    return bytes(deceiving), sound * SOUND


def read(source):
    size = source.size()
    pieces = list(stream_batches(source, ByteRange(0, size, size), expected_offset=0))
    return sum(len(piece.batches) for piece in pieces), [damage for piece in pieces for damage in piece.damages]


def test_claims_that_lead_nowhere_are_not_read(log):
    deceiving, sound = log
    source = Counted(deceiving + sound)
    count, damages = read(source)
    assert count == SOUND
    assert [(damage.position, damage.end) for damage in damages] == [(0, len(deceiving))]
    assert source.bytes_read < 2 * source.size()


def test_a_cut_inside_such_a_payload_does_not_read_them_either(log):
    deceiving, sound = log
    source = Counted(deceiving + sound)
    spec = ChunkSpec(0, SegmentFile("a", "a", 0, source.size(), 0), 1000, source.size(), source.size(), None, True, 0)
    assert settle(spec, source).start == len(deceiving)
    assert source.bytes_read < MIB


@pytest.mark.parametrize("behind", [b"", bytes(4096), batch([record(0)])])
def test_a_large_batch_behind_damage_is_found(behind):
    large = batch([record(0, value=bytes(range(256)) * (5 * MIB // 256))])
    garbage = b"\xee" * 1000
    count, damages = read(Memory(garbage + large + behind))
    assert count == 1 + behind.startswith(batch([record(0)]))
    assert (damages[0].position, damages[0].end) == (0, len(garbage))


def legacy_claim(length):
    return struct.pack(">qiIbb", 7, length, 0x12345678, 1, 0)


@pytest.fixture
def computed(monkeypatch):
    """How many bytes went into the CRCs of claims, each claim by itself."""
    counted = []
    original = batch_crc_holds

    def counting(buffer, at, size):
        counted.append(size)
        return original(buffer, at, size)

    monkeypatch.setattr(read_window, "batch_crc_holds", counting)
    return counted


@pytest.mark.parametrize("magic", [1, 2])
def test_claims_on_all_that_follows_cost_no_more_than_what_is_there(magic, computed):
    """Three thousand headers, each of which claims the next MiB; a large and a small sound batch stand between them."""
    claims = b"".join((claim if magic == 2 else legacy_claim)(MIB + number) for number in range(1500))
    value = bytes(range(256)) * 64
    large = batch([record(0, value=value)]) if magic == 2 else message(8, 1, value=value)
    small = batch([record(0)], base_offset=9)
    filler = b"\xee" * (2 * MIB)
    source = Counted(claims + large + claims + small + filler)
    count, damages = read(source)
    assert count == 2
    found = len(claims), len(claims) + len(large)
    assert [(damage.position, damage.end) for damage in damages] == [
        (0, found[0]),
        (found[1], found[1] + len(claims)),
        (found[1] + len(claims) + len(small), source.size()),
    ]
    assert sum(computed) < 16 * MIB
    assert source.bytes_read < 8 * source.size()
