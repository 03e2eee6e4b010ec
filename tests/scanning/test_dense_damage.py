"""Damage between any two batches: what is sound and what is not is what was written, and each byte is searched a few times at most."""

import random

import pytest

from kaudit.formats.log import resync
from kaudit.model.damage import DamageKind
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.segment import ByteRange
from tests.logs import data
from tests.memory import Memory

BATCHES = 600


def encoded(number):
    return data(7, 0, number, base_offset=number, payload=b"").encode()


def garbage(rng):
    # 3 is no magic, wherever in it a header is looked for
    return bytes([3]) * rng.randint(17, 60), DamageKind.UNPARSABLE


def zeros(rng):
    return bytes(rng.randint(20, 60)), DamageKind.ZEROS


def corrupt(_):
    batch = bytearray(encoded(99_999))
    batch[-1] ^= 1
    return bytes(batch), DamageKind.CRC_MISMATCH


def overlong(_):
    batch = bytearray(encoded(99_999))
    batch[11] += len(batch)  # leads to the end of the batch behind it
    return bytes(batch), DamageKind.UNPARSABLE


def either(rng):
    return rng.choice((garbage, zeros, corrupt))(rng)


@pytest.fixture
def searched(monkeypatch):
    """How many bytes were searched for headers."""
    counted = []
    original = resync.candidates

    def counting(buffer, *arguments):
        counted.append(len(buffer))
        return original(buffer, *arguments)

    monkeypatch.setattr(resync, "candidates", counting)
    return counted


@pytest.mark.parametrize("window_bytes", [1 << 10, 4 << 20])
@pytest.mark.parametrize("kind", [garbage, zeros, corrupt, overlong, either])
def test_every_batch_is_found_and_every_damage(kind, window_bytes, searched):
    rng = random.Random(11)
    content, positions, damages = bytearray(), [], []
    for number in range(BATCHES):
        positions.append(len(content))
        content += encoded(number)
        piece, damage = kind(rng)
        damages.append((len(content), len(content) + len(piece), damage))
        content += piece
    positions.append(len(content))
    content += encoded(BATCHES)
    where = ByteRange(0, len(content), len(content))
    pieces = list(stream_batches(Memory(bytes(content)), where, expected_offset=0, window_bytes=window_bytes))
    assert [position for piece in pieces for position in piece.batches["position"].tolist()] == positions
    found = sorted((damage for piece in pieces for damage in piece.damages), key=lambda damage: damage.position)
    assert [(damage.position, damage.end, damage.kind) for damage in found] == damages
    assert sum(searched) < 4 * len(content)


@pytest.mark.parametrize("broken", [{0}, {63}, {64}, {63, 64, 128}, {0, 1, 127, 299}, set(range(60, 140)), {299}])
def test_of_many_batches_those_whose_bytes_changed_are_left_out(broken):
    batches = [bytearray(encoded(number)) for number in range(300)]
    for number in broken:
        batches[number][-1] ^= 1
    content = b"".join(batches)
    where = ByteRange(0, len(content), len(content))
    pieces = list(stream_batches(Memory(content), where, expected_offset=0))
    whole = [offset for piece in pieces for offset in piece.batches["base_offset"].tolist()]
    assert whole == [number for number in range(300) if number not in broken]
    damaged = sorted((damage.position, damage.kind) for piece in pieces for damage in piece.damages)
    starts = [sum(map(len, batches[:number])) for number in sorted(broken)]
    assert damaged == [(start, DamageKind.CRC_MISMATCH) for start in starts]
