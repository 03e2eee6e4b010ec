"""Text of many rows at once, as pieces side by side: bytes that all rows have, or an array with those of each row.

An array fills its rows up with NULs, which are dropped in the end: `console.visible` spells out those of the log.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import cast

import numpy as np
from numpy.typing import NDArray

Piece = bytes | NDArray[np.bytes_]
Mask = NDArray[np.bool_]
_SAMPLE = 1 << 14
_GROUP = 10_000
_POWERS = np.array([10**power for power in range(20)], dtype=np.uint64)


def text_of_rows(length: int, pieces: Sequence[Piece]) -> str:
    """Return the text of all rows, one after the other."""
    pieces = list(_joined(pieces))
    rows = np.empty(length, dtype=[(str(number), _kind(piece)) for number, piece in enumerate(pieces)])
    for number, piece in enumerate(pieces):
        rows[str(number)] = piece
    text = rows.tobytes()
    few = text.count(b"\0", 0, _SAMPLE) * 32 < min(len(text), _SAMPLE)  # it costs a tenth then to look for them alone
    return (text.replace(b"\0", b"") if few else text.translate(None, b"\0")).decode()


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Put bytes that stand side by side together."""
    for constant, some in groupby(pieces, key=lambda piece: isinstance(piece, bytes)):
        run = list(some)
        yield from [b"".join(cast("list[bytes]", run))] if constant else run


def _kind(piece: Piece) -> np.dtype[np.bytes_]:
    return np.dtype(f"S{max(len(piece), 1)}") if isinstance(piece, bytes) else piece.dtype


def texts(items: Iterable[str]) -> NDArray[np.bytes_]:
    """Return a piece that has one of these texts for each row, or a table of which to choose the rows'."""
    return np.array([item.encode() for item in items], dtype=np.bytes_)


def by_value(values: NDArray[np.integer], text: Callable[[int], str]) -> Piece:
    """Return the text of each row's value; `text` is called once for each value there is."""
    if len(values) and (values == values[0]).all():
        return text(int(values[0])).encode()
    distinct, numbers = np.unique(values, return_inverse=True)
    return texts(map(text, distinct.tolist()))[numbers]


def number(values: NDArray[np.int64]) -> list[Piece]:
    """Return whole numbers in decimal."""
    if len(values) and (values == values[0]).all():
        return [str(values[0]).encode()]
    rest = np.abs(values).view(np.uint64)  # also of the least one, whose absolute value int64 does not have
    pieces: list[Piece] = []
    while not pieces or rest.any():
        higher = rest // np.uint64(_GROUP)
        digits = (rest - higher * np.uint64(_GROUP)).view(np.int64)
        piece = _groups()[np.where(higher == 0, digits + _GROUP, digits)]
        if not higher.any():
            piece = piece.astype(f"S{len(str(digits.max(initial=0)))}")
        if pieces:
            piece[rest == 0] = b""
        pieces.append(piece)
        rest = higher
    negative = where(values < 0, [b"-"])
    return [*negative, *reversed(pieces)]


@cache
def _groups() -> NDArray[np.bytes_]:
    """The digits of numbers below 10,000, first with leading zeros and then without."""
    numbers = np.arange(_GROUP)
    digits = np.stack([numbers // 1000, numbers // 100 % 10, numbers // 10 % 10, numbers % 10], axis=1) + ord("0")
    padded = digits.astype(np.uint8).view("S4").ravel()
    return np.concatenate([padded, np.array([text.lstrip(b"0") or b"0" for text in padded.tolist()])])


def digits_of(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lengths of the numbers in decimal."""
    count = np.maximum(np.searchsorted(_POWERS, np.abs(values).view(np.uint64), side="right"), 1)
    return count + (values < 0)


def where(rows: Mask, pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces for all rows that stand in these rows; arrays have only these rows'."""
    if rows.all():
        return list(pieces)
    if not rows.any():
        return []
    placed: list[Piece] = []
    for piece in pieces:
        whole = np.zeros(len(rows), dtype=_kind(piece))
        whole[rows] = piece
        placed.append(whole)
    return placed


def spaces(counts: NDArray[np.int64]) -> Piece:
    """Return this many spaces for each row."""
    if len(counts) and (counts == counts[0]).all():
        return b" " * int(counts[0])
    return texts(" " * count for count in range(int(counts.max(initial=0)) + 1))[counts]


def without(rows: Mask, pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces of all rows that are empty in these rows."""
    if not rows.any():
        return list(pieces)
    return where(~rows, [piece if isinstance(piece, bytes) else piece[~rows] for piece in pieces])
