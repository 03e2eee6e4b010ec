"""What engines send from process to process: any row objects of the pipeline as compact bytes.

Structured arrays and Columns go as columns of differences, each in as few bytes as its values allow, then through zstd. Rows of
producers are sorted by producer id: offsets, positions and times, which ascend with the log, jump there from row to row, so
the order of the log is sent once and these columns in that order. What boundary batches say of a run is not sent again.
"""

import io
import pickle
from functools import cache, lru_cache
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kaudit.model.columns import Column, Columns, no_rows
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.rows import RUN, Rows
from kaudit.reading.run_rows import columns_of_boundaries

_LEVEL = 3
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
_OF_RUN = ("producer_id", "producer_epoch", "is_transactional", "batches", "records", "bytes", "partial_batches")
_SENT_RUN = np.dtype([*((name, RUN[name]) for name in _OF_RUN), ("earlier", np.int64), ("later", np.int64)])
"""A run without what its boundary batches say: `earlier` and `later` than their times are its least and greatest, in ms."""


def pack(value: object) -> bytes:
    """Encode rows, outcomes or a partition's audit."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(value)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(buffer.getbuffer())


def unpack(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Decode what `pack` encoded, in a process of the same run: never bytes from anywhere else."""
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        raw = reader.read(-1)
    return pickle.loads(raw)  # noqa: S301 - bytes of our own tasks


class _Pickler(pickle.Pickler):
    """Pickles rows and Columns as narrow columns."""

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - pickle's protocol
        if isinstance(value, np.ndarray) and value.dtype.names and value.ndim == 1 and _is_flat(value.dtype):
            return _to_rows, (description(value.dtype), len(value), _encode_table(value))
        if isinstance(value, Columns):
            return _to_columns, (description(value.dtype), len(value), _encode_table(value))
        if isinstance(value, ChunkRows):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            return _to_chunk_rows, tuple((fields | {"runs": _sent_runs(value)}).values())
        return NotImplemented


@cache
def _is_flat(dtype: np.dtype[Any]) -> bool:
    return all(dtype[name].kind in "iub" for name in dtype.names or ())


@cache
def description(dtype: np.dtype[Any]) -> str:
    """Return a dtype of numbers as one text, "name:<i8 name:<u4": as a list of tuples it would be many small objects."""
    return " ".join(f"{name}:{dtype[name].str}" for name in dtype.names or ())


@lru_cache(maxsize=64)
def _dtype(described: str) -> np.dtype[Any]:
    fields = [name_and_type.split(":") for name_and_type in described.split()]
    dtype = np.dtype([(name, number) for name, number in fields])
    if not _is_flat(dtype):
        raise ValueError(f"rows of numbers have no fields {described}")
    return dtype


def _sent_runs(rows: ChunkRows) -> Columns:
    runs, boundary = rows.runs, rows.boundary_batches
    known = columns_of_boundaries(boundary, runs["batches"])
    columns: dict[str, Column] = {name: runs[name] for name in _OF_RUN}
    columns["earlier"] = boundary["max_timestamp"].take(known["boundary_start"]) - runs["min_timestamp"]
    columns["later"] = runs["max_timestamp"] - known["last_max_timestamp"]
    return Columns(_SENT_RUN, len(runs), columns)


def _to_chunk_rows(*fields: Any) -> ChunkRows:  # noqa: ANN401 - as they were sent
    rows = ChunkRows(*fields)
    sent = rows.runs
    known = columns_of_boundaries(rows.boundary_batches, sent["batches"])
    columns: dict[str, Column] = {name: sent[name] for name in _OF_RUN}
    first = rows.boundary_batches["max_timestamp"].take(known["boundary_start"])
    columns["min_timestamp"] = first - sent["earlier"]
    columns["max_timestamp"] = known["last_max_timestamp"] + sent["later"]
    rows.runs = Columns(RUN, len(sent), columns | known)
    return rows


def _encode_table(table: Columns | Rows) -> bytes:
    """Encode the columns one after the other, behind the order of the log if the rows are in another one."""
    names = table.dtype.names or ()
    if not len(table):
        return bytes(1 + len(names))  # no order, and of each column a tag
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


class _Decoder:
    """Reads the columns of a table that `_encode_table` encoded."""

    def __init__(self, encoded: bytes, count: int) -> None:
        self._encoded, self._count, self._at = encoded, count, 1
        self._steps: list[NDArray[np.int64] | None] = []
        self._places: NDArray[np.int64] | None = None
        if encoded[0]:
            self._places = self.column(np.dtype(np.int64))
            self._steps.clear()

    def column(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the next column."""
        tag = self._encoded[self._at]
        self._at += 1
        if tag & _AS_IT_IS:
            column: NDArray[Any] = np.frombuffer(self._take(self._count * dtype.itemsize), dtype=dtype)
            self._steps.append(None)
        else:
            like = self._steps[self._take(1)[0]] if tag & _LIKE_ANOTHER else None
            first = np.frombuffer(self._take(8), dtype=np.int64)
            rest = self._differences(tag & _WIDTH) if like is None else like
            self._steps.append(rest)
            column = np.cumsum(np.concatenate((first, rest))).astype(dtype)
        return column.take(self._places) if tag & _LOG_ORDER and self._places is not None else column

    def _differences(self, width: int) -> NDArray[np.int64]:
        zigzag = np.zeros((self._count - 1, 8), dtype=np.uint8)
        if width:
            planes = np.frombuffer(self._take(width * (self._count - 1)), dtype=np.uint8)
            zigzag[:, :width] = planes.reshape(width, -1).T
        values = zigzag.view("<u8").reshape(-1)
        return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._encoded[self._at - size : self._at]


def _to_columns(described: str, count: int, encoded: bytes) -> Columns:
    dtype = _dtype(described)
    return Columns(dtype, count, _decoded(dtype, count, encoded)) if count else no_rows(dtype)


def _to_rows(described: str, count: int, encoded: bytes) -> Rows:
    dtype = _dtype(described)
    rows = np.empty(count, dtype=dtype)
    if count:
        for name, column in _decoded(dtype, count, encoded).items():
            rows[name] = column
    return rows


def _decoded(dtype: np.dtype[Any], count: int, encoded: bytes) -> dict[str, NDArray[Any]]:
    decoder = _Decoder(encoded, count)
    return {name: decoder.column(dtype[name]) for name in dtype.names or ()}
