"""Damages of a log directory, and the places where they are made. Side files stay as they were before the damage."""

import random
from collections.abc import Callable
from typing import NamedTuple

from tests.differential import side_files
from tests.differential.logs import Image
from tests.differential.wire import HEADER

CHUNK_BYTES = 400
"""So many bytes are read at a time where the place is a boundary between two reads."""


class Spot(NamedTuple):
    """A piece of an image: the batch `piece` of the segment `segment`, both counted from 0."""

    segment: int
    piece: int


def _inner(image: Image, segment: int, draw: random.Random) -> Spot | None:
    """A batch that is neither the first nor the last of its segment."""
    pieces = len(image.pieces[segment])
    return Spot(segment, draw.randrange(1, pieces - 1)) if pieces > 2 else None


def _first(image: Image, draw: random.Random) -> Spot | None:
    return _inner(image, 0, draw)


def _middle(image: Image, draw: random.Random) -> Spot | None:
    if len(image.bases) < 3:
        return None
    return _inner(image, draw.randrange(1, len(image.bases) - 1), draw)


def _last(image: Image, draw: random.Random) -> Spot | None:
    return _inner(image, len(image.bases) - 1, draw)


def _segment_start(image: Image, draw: random.Random) -> Spot | None:
    segments = [number for number in range(1, len(image.bases)) if len(image.pieces[number]) > 1]
    return Spot(draw.choice(segments), 0) if segments else None


def _segment_end(image: Image, draw: random.Random) -> Spot | None:
    segments = [number for number in range(len(image.bases) - 1) if len(image.pieces[number]) > 1]
    chosen = draw.choice(segments) if segments else 0
    return Spot(chosen, len(image.pieces[chosen]) - 1) if segments else None


def _log_start(image: Image, draw: random.Random) -> Spot | None:
    return Spot(0, 0) if len(image.pieces[0]) > 1 else None


def _log_end(image: Image, draw: random.Random) -> Spot | None:
    last = len(image.bases) - 1
    return Spot(last, len(image.pieces[last]) - 1) if len(image.pieces[last]) > 1 else None


def _chunk(image: Image, draw: random.Random) -> Spot | None:
    """A batch that begins next after a read of CHUNK_BYTES, or ends the one before."""
    spots = []
    for segment, pieces in enumerate(image.pieces):
        at = 0
        for piece, data in enumerate(pieces):
            if 0 < piece < len(pieces) - 1 and at // CHUNK_BYTES != (at + len(data)) // CHUNK_BYTES:
                spots += [Spot(segment, piece), Spot(segment, min(piece + 1, len(pieces) - 2))]
            at += len(data)
    return draw.choice(spots) if spots else None


PLACES: dict[str, Callable[[Image, random.Random], Spot | None]] = {
    "log start": _log_start,
    "first segment": _first,
    "middle segment": _middle,
    "segment start": _segment_start,
    "segment end": _segment_end,
    "chunk": _chunk,
    "last segment": _last,
    "log end": _log_end,
}
"""Where a batch is damaged; None: this log has no such batch."""

Damage = Callable[[Image, Spot, random.Random], None]


def _hole(image: Image, at: Spot, draw: random.Random) -> None:
    """Bytes cut out of a file: one batch or several."""
    del image.pieces[at.segment][at.piece : at.piece + draw.randrange(1, 3)]


def _tail_lost(image: Image, at: Spot, draw: random.Random) -> None:
    """A segment's bytes from a batch on are gone."""
    del image.pieces[at.segment][at.piece :]


def _head_lost(image: Image, at: Spot, draw: random.Random) -> None:
    del image.pieces[at.segment][: at.piece + 1]


def _tail_torn(image: Image, at: Spot, draw: random.Random) -> None:
    """A segment breaks off inside a batch."""
    pieces = image.pieces[at.segment]
    del pieces[at.piece + 1 :]
    pieces[at.piece] = pieces[at.piece][: 1 + int(draw.random() * (len(pieces[at.piece]) - 1))]


def _log_torn(image: Image, at: Spot, draw: random.Random) -> None:
    """The log breaks off inside a batch: what follows is gone, later segments too."""
    _tail_torn(image, at, draw)
    del image.bases[at.segment + 1 :], image.pieces[at.segment + 1 :]


def _log_end_lost(image: Image, at: Spot, draw: random.Random) -> None:
    """Everything from a batch on is gone, later segments too."""
    _tail_lost(image, at, draw)
    del image.bases[at.segment + 1 :], image.pieces[at.segment + 1 :]


def _repeated(image: Image, at: Spot, draw: random.Random) -> None:
    """A batch lies in the file twice."""
    image.pieces[at.segment].insert(at.piece + 1, image.pieces[at.segment][at.piece])


def _appended_again(image: Image, at: Spot, draw: random.Random) -> None:
    """The batches from one on were appended to their segment a second time."""
    image.pieces[at.segment] += image.pieces[at.segment][at.piece :]


def _swapped(image: Image, at: Spot, draw: random.Random) -> None:
    """A batch and its neighbour lie in each other's place."""
    pieces = image.pieces[at.segment]
    other = at.piece + 1 if at.piece + 1 < len(pieces) else at.piece - 1
    pieces[at.piece], pieces[other] = pieces[other], pieces[at.piece]


def _zeroed(image: Image, at: Spot, draw: random.Random) -> None:
    """A batch's bytes are zeros."""
    image.pieces[at.segment][at.piece] = bytes(len(image.pieces[at.segment][at.piece]))


def _block_zeroed(image: Image, at: Spot, draw: random.Random) -> None:
    """Some bytes of a batch are zeros, as after a block was lost."""
    raw = bytearray(image.pieces[at.segment][at.piece])
    start = int(draw.random() * (len(raw) - 40))
    raw[start : start + 32] = bytes(32)
    image.pieces[at.segment][at.piece] = bytes(raw)


def _garbage(image: Image, at: Spot, draw: random.Random) -> None:
    """Bytes of something else lie before a batch."""
    image.pieces[at.segment].insert(at.piece, draw.randbytes(draw.randrange(1, 90)))


def _flipped(first: int, stop: int | None) -> Damage:
    """Flip one to three bits of the bytes `first`..`stop` of a batch."""

    def flip(image: Image, at: Spot, draw: random.Random) -> None:
        raw = bytearray(image.pieces[at.segment][at.piece])
        end = len(raw) if stop is None else stop
        for _ in range(draw.randrange(1, 4) if end > first else 0):
            bit = first * 8 + int(draw.random() * (end - first) * 8)
            raw[bit // 8] ^= 0x80 >> (bit % 8)
        image.pieces[at.segment][at.piece] = bytes(raw)

    return flip


BATCH_DAMAGES: dict[str, Damage] = {
    "hole": _hole,
    "head of segment lost": _head_lost,
    "tail of segment lost": _tail_lost,
    "tail of segment torn": _tail_torn,
    "end of log lost": _log_end_lost,
    "log torn": _log_torn,
    "batch twice": _repeated,
    "appended again": _appended_again,
    "batches swapped": _swapped,
    "batch zeroed": _zeroed,
    "block zeroed": _block_zeroed,
    "garbage between": _garbage,
    "flips: base offset": _flipped(0, 8),
    "flips: length": _flipped(8, 12),
    "flips: leader epoch": _flipped(12, 16),
    "flips: magic": _flipped(16, 17),
    "flips: CRC": _flipped(17, 21),
    "flips: header": _flipped(21, HEADER.size),
    "flips: records": _flipped(HEADER.size, None),
}


def _segment_of(image: Image, place: str, draw: random.Random) -> int | None:
    last = len(image.bases) - 1
    if last < 2:
        return None
    return {"first segment": 0, "middle segment": draw.randrange(1, last), "last segment": last}[place]


def _segment_lost(image: Image, number: int, draw: random.Random) -> None:
    """A segment's file is gone; its side files are there."""
    del image.bases[number], image.pieces[number]


def _segment_emptied(image: Image, number: int, draw: random.Random) -> None:
    image.pieces[number] = []


def _segment_zeroed(image: Image, number: int, draw: random.Random) -> None:
    image.pieces[number] = [bytes(sum(map(len, image.pieces[number])))]


def _segment_of_other(image: Image, number: int, draw: random.Random) -> None:
    """A segment's file has the bytes of its neighbour."""
    image.pieces[number] = [*image.pieces[number - 1 if number else 1]]


SEGMENT_PLACES = ("first segment", "middle segment", "last segment")
SEGMENT_DAMAGES: dict[str, Callable[[Image, int, random.Random], None]] = {
    "segment lost": _segment_lost,
    "segment emptied": _segment_emptied,
    "segment zeroed": _segment_zeroed,
    "segment of another": _segment_of_other,
}


def _start_beyond_end(image: Image, draw: random.Random) -> None:
    """The checkpoint of log starts says an offset that the log has not reached."""
    end = image.batches[-1][-1].last + 1 if image.batches[-1] else image.bases[-1]
    beyond = end + draw.choice((1, 5, 1000, 2**40))
    image.others[side_files.LOG_START] = side_files.offset_checkpoint(beyond)


LOG_DAMAGES: dict[str, Callable[[Image, random.Random], None]] = {"log start beyond end": _start_beyond_end}

CELLS = [
    *((damage, place) for damage in BATCH_DAMAGES for place in PLACES),
    *((damage, place) for damage in SEGMENT_DAMAGES for place in SEGMENT_PLACES),
    *((damage, "log") for damage in LOG_DAMAGES),
]
"""Every damage with every place."""


class Damaged(NamedTuple):
    """An image after a damage, and where it was made; `number` of the segment, None for the log's checkpoints."""

    image: Image
    number: int | None


def damaged(healthy: Image, damage: str, place: str, seed: int) -> Damaged | None:
    """Return a copy of an image with a damage, None where the log has no such place."""
    image = healthy.copy()
    draw = random.Random(f"{damage} {place} {seed}")
    if damage in LOG_DAMAGES:
        LOG_DAMAGES[damage](image, draw)
        return Damaged(image, None)
    if damage in SEGMENT_DAMAGES:
        number = _segment_of(image, place, draw)
        if number is None:
            return None
        SEGMENT_DAMAGES[damage](image, number, draw)
        return Damaged(image, number)
    at = PLACES[place](image, draw)
    if at is None:
        return None
    BATCH_DAMAGES[damage](image, at, draw)
    return Damaged(image, at.segment)
