"""Rows of numbers as bytes: columns of differences, each in as few bytes as its values allow.

Rows of producers are sorted by producer id: offsets, positions and times, which ascend with the log, jump there from row to
row, so the order of the log is stored once and these columns in that order.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.model.columns import Columns
from kaudit.reading.rows import Rows

_LOG_ORDER = 0x10
"""Of a column's tag: its differences are those in the order of the log. The low bits are the bytes of a difference."""
_AS_IT_IS = 0x20
"""The column's own bytes: no difference is narrower."""
_LIKE_ANOTHER = 0x40
"""The differences are those of the column whose number follows."""
_WIDTH = 0x0F
_OFFSETS = ("base_offset", "first_offset", "offset")
"""The column whose order is that of the log."""
_ASCENDING = frozenset(
    (
        "base_offset",
        "last_offset",
        "first_offset",
        "offset",
        "position",
        "first_position",
        "present_before",
        "present_before_first",
        "present_before_last",
        "max_timestamp",
        "min_timestamp",
        "last_max_timestamp",
        "timestamp",
        "segment",
    )
)
"""Columns whose values mostly ascend with the offsets."""


def is_flat(dtype: np.dtype[Any]) -> bool:
    """Return whether rows of this dtype are numbers, and so can be encoded."""
    return bool(dtype.names) and all(dtype[name].kind in "iub" for name in dtype.names or ())


def encode_columns(table: Columns | Rows) -> bytes:
    """Encode the columns one after the other; the order of the log comes first if the rows are in another one."""
    names = table.dtype.names or ()
    if not len(table):
        return b""
    by = next((name for name in _OFFSETS if name in names), None)
    order, parts = None, [b"\x00"]
    if by is not None and not (table[by][1:] >= table[by][:-1]).all():
        order = np.argsort(table[by], kind="stable")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        parts = [b"\x01", _encode(places, {}, 0, 0)]
    known: dict[bytes, int] = {}
    for number, name in enumerate(names):
        column = np.ascontiguousarray(table[name])
        in_log_order = order is not None and name in _ASCENDING
        tag = _LOG_ORDER if in_log_order else 0
        parts.append(_encode(column.take(order) if order is not None and in_log_order else column, known, number, tag))
    return b"".join(parts)


def _encode(column: NDArray[Any], known: dict[bytes, int], number: int, tag: int) -> bytes:
    """One byte that says how, the first value, then the differences: zigzag, all lowest bytes first (none: all are the first).

    `known`: the differences of the columns before, and their numbers.
    """
    values = column.astype(np.int64) if column.dtype.kind != "u" else column.astype(np.uint64).view(np.int64)
    steps = np.empty_like(values)
    steps[0] = values[0]
    np.subtract(values[1:], values[:-1], out=steps[1:])  # wraps, and wraps back
    first = steps[:1].tobytes()
    zigzag = ((steps[1:] << 1) ^ (steps[1:] >> 63)).view(np.uint64)
    highest = int(zigzag.max()) if len(zigzag) else 0
    width = (highest.bit_length() + 7) // 8
    if not width:
        return bytes((tag,)) + first
    if width > column.dtype.itemsize:
        return bytes((tag | _AS_IT_IS,)) + column.tobytes()
    differences = bytes((tag, width)) + zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()
    like = known.setdefault(differences, number)
    if like != number:
        return bytes((tag | _LIKE_ANOTHER, like)) + first
    return bytes((tag | width,)) + first + differences[2:]


def decode_columns(dtype: np.dtype[Any], count: int, encoded: bytes) -> Mapping[str, NDArray[Any]]:
    """Return the columns of `count` rows, which must be at least one, that `encode_columns` encoded.

    Raises:
        ValueError: they are not `count` rows of that dtype.

    """
    decoder = _Decoder(encoded, count)
    columns = {name: decoder.column(dtype[name]) for name in dtype.names or ()}
    decoder.require_end()
    return columns


class _Decoder:
    """Reads the columns of a table one after the other."""

    def __init__(self, encoded: bytes, count: int) -> None:
        self._encoded, self._count, self._at = encoded, count, 0
        self._steps: list[NDArray[np.int64] | None] = []
        self._places: NDArray[np.int64] | None = None
        if self._take(1)[0]:
            places = self.column(np.dtype(np.int64))
            if not ((places >= 0) & (places < count)).all():
                raise ValueError("rows in an order of other rows")
            self._places = places
            self._steps.clear()

    def column(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the next column."""
        tag = self._take(1)[0]
        if tag & _AS_IT_IS:
            column: NDArray[Any] = np.frombuffer(self._take(self._count * dtype.itemsize), dtype=dtype)
            self._steps.append(None)
        else:
            like = self._like(self._take(1)[0]) if tag & _LIKE_ANOTHER else None
            first = np.frombuffer(self._take(8), dtype=np.int64)
            rest = self._differences(tag & _WIDTH) if like is None else like
            self._steps.append(rest)
            column = np.cumsum(np.concatenate((first, rest))).astype(dtype)
        return column.take(self._places) if tag & _LOG_ORDER and self._places is not None else column

    def require_end(self) -> None:
        """Raise a ValueError if bytes are left."""
        if self._at != len(self._encoded):
            raise ValueError(f"{len(self._encoded) - self._at} bytes after the last column")

    def _like(self, number: int) -> NDArray[np.int64] | None:
        if number >= len(self._steps) or self._steps[number] is None:
            raise ValueError(f"a column like column {number}, which has no differences")
        return self._steps[number]

    def _differences(self, width: int) -> NDArray[np.int64]:
        if width > 8:
            raise ValueError(f"differences of {width} bytes")
        planes = np.frombuffer(self._take(width * (self._count - 1)), dtype=np.uint8)
        zigzag = np.zeros((self._count - 1, 8), dtype=np.uint8)
        if width:
            zigzag[:, :width] = planes.reshape(width, -1).T
        values = zigzag.view("<u8").reshape(-1)
        return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)

    def _take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._encoded):
            raise ValueError("a column ends early")
        return self._encoded[self._at - size : self._at]
