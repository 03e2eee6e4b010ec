"""Bytes a little wrong: what disks, copies and strangers make of a good file. Repeatable from a seed."""

from collections.abc import Callable, Sequence
from random import Random

NUMBERS = (0, 1, 2, 5, -1, -2, 127, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63))
BEYOND = (*NUMBERS, 2**63, 2**64, -(2**63) - 1, 10**30, -(10**30))
"""Numbers at the ends of their types, and beyond."""
ODD: tuple[object, ...] = (None, True, False, -0.0, 1.5, 1e400, "", "text", "7", [], [1], {}, {"a": 1}, *BEYOND)
"""Values of every type of JSON."""
_HOSTILE_TEXTS = ("a\0b\x1b[31m", "\ud800", "]]>", "x" * 5000)
_INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
_LENGTHS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE)
_MAX_CHANGES = 6
_MAX_PIECE = 64


def mutated(random: Random, seeds: Sequence[bytes]) -> bytes:
    """Bytes of one seed, changed at a few places; one time in sixteen bytes of no seed at all."""
    if random.randrange(16) == 0:
        return random.randbytes(random.randrange(400))
    data = bytearray(random.choice(seeds))
    for _ in range(random.randrange(1, _MAX_CHANGES)):
        random.choice(_CHANGES)(random, data, seeds)
    return bytes(data)


def changed_document(random: Random, document: object) -> None:
    """Put another value in a few places of a JSON document, of another type or a text that no terminal should see."""
    for _ in range(random.randrange(1, 4)):
        place = document
        while isinstance(place, dict | list) and place:
            key = random.choice([*place] if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key] and random.randrange(5):
                place = place[key]
                continue
            place[key] = random.choice((*ODD, *_HOSTILE_TEXTS))
            break


def _at(random: Random, data: bytearray) -> int:
    """A position, in half the cases among the first bytes: headers decide what the rest means."""
    return random.randrange(min(len(data), 80) if random.randrange(2) else len(data)) if data else 0


def _flip(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    if data:
        data[_at(random, data)] ^= 1 << random.randrange(8)


def _set(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    if data:
        data[_at(random, data)] = random.choice(_INTERESTING)


def _set_length(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = _at(random, data)
    number = random.choice((*_LENGTHS, len(data), len(data) - at, random.getrandbits(32)))
    data[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, random.choice(("big", "little")))


def _cut(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    del data[_at(random, data) :]


def _remove(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = _at(random, data)
    del data[at : at + random.randrange(1, _MAX_PIECE)]


def _insert(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = _at(random, data)
    data[at:at] = random.randbytes(random.randrange(1, _MAX_PIECE))


def _hole(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = _at(random, data)
    end = min(len(data), at + random.choice((1, 8, _MAX_PIECE, 512)))
    data[at:end] = bytes(end - at)


def _double(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    at = _at(random, data)
    data[at:at] = data[at : at + random.randrange(1, 4 * _MAX_PIECE)]


def _splice(random: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    at, start = _at(random, data), random.randrange(len(other) + 1)
    data[at:] = other[start:]


def _digit(random: Random, data: bytearray, _seeds: Sequence[bytes]) -> None:
    """Text lives on its digits and signs."""
    places = [index for index, byte in enumerate(data[:2000]) if byte in b'0123456789-:{}[]" \n']
    if places:
        at = random.choice(places)
        data[at : at + 1] = random.choice(
            (b"-", b"9" * 19, b"9223372036854775808", b"\n", b" ", b"\x00", b"{", b"\xff")
        )


_Change = Callable[[Random, bytearray, Sequence[bytes]], None]
_CHANGES: tuple[_Change, ...] = (
    _flip,
    _set,
    _set_length,
    _cut,
    _remove,
    _insert,
    _hole,
    _double,
    _splice,
    _digit,
)
