"""What engines send from process to process: any row objects of the pipeline as compact bytes.

Structured arrays and Columns go as columns of differences, each as narrow as its values allow, then through zstd: a run of one
batch takes about half of the 61 bytes of that batch's header, where the plain record takes 200.
"""

import io
import pickle
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from kaudit.analysis.scan.rows import Rows
from kaudit.model.columns import Columns

_LEVEL = 3


def pack(value: object) -> bytes:
    """Encode rows, outcomes or a partition's audit."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(value)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(buffer.getvalue())


def unpack(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Decode what `pack` encoded, in a process of the same run: never bytes from anywhere else."""
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        raw = reader.read(-1)
    return pickle.loads(raw)  # noqa: S301 - bytes of our own tasks


class _Pickler(pickle.Pickler):
    """Pickles rows and Columns as narrow columns."""

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - pickle's protocol
        if isinstance(value, np.ndarray) and value.dtype.names and value.ndim == 1 and _is_flat(value.dtype):
            columns = b"".join(_encode(np.ascontiguousarray(value[name])) for name in value.dtype.names)
            return _to_rows, (value.dtype.descr, len(value), columns)
        if isinstance(value, Columns):
            columns = b"".join(_encode(value[name]) for name in value.dtype.names or ())
            return _to_columns, (value.dtype.descr, len(value), columns)
        return NotImplemented


def _is_flat(dtype: np.dtype[Any]) -> bool:
    return all(dtype[name].kind in "iub" for name in dtype.names or ())


def _to_columns(description: list[tuple[str, str]], count: int, encoded: bytes) -> Columns:
    dtype = np.dtype(description)
    columns: dict[str, NDArray[Any]] = {}
    position = 0
    for name in dtype.names or ():
        columns[name], position = _decode(encoded, position, count, dtype[name])
    return Columns(dtype, count, columns)


def _to_rows(description: list[tuple[str, str]], count: int, encoded: bytes) -> Rows:
    columns = _to_columns(description, count, encoded)
    rows = np.empty(count, dtype=columns.dtype)
    for name in columns.dtype.names or ():
        rows[name] = columns[name]
    return rows


def _encode(column: NDArray[Any]) -> bytes:
    """One byte of width, then the differences: zigzag, in so many bytes each (0: all are the first, which follows)."""
    values = column.astype(np.int64) if column.dtype.kind != "u" else column.astype(np.uint64).view(np.int64)
    if not len(values):
        return b"\x00"
    steps = np.empty_like(values)
    steps[0] = values[0]
    np.subtract(values[1:], values[:-1], out=steps[1:])  # wraps, and wraps back
    first = steps[:1].tobytes()
    zigzag = ((steps[1:] << 1) ^ (steps[1:] >> 63)).view(np.uint64)
    highest = int(zigzag.max()) if len(zigzag) else 0
    if highest == 0:
        return b"\x00" + first
    width = next(size for size in (1, 2, 4, 8) if highest < 1 << (8 * size))
    return bytes((width,)) + first + zigzag.astype(f"<u{width}").tobytes()


def _decode(columns: bytes, position: int, count: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """Return the column encoded at `position`, and where the next one begins."""
    width = columns[position]
    position += 1
    if not count:
        return np.empty(0, dtype=dtype), position
    steps = np.zeros(count, dtype=np.int64)
    steps[0] = np.frombuffer(columns, dtype=np.int64, count=1, offset=position)[0]
    position += 8
    if width:
        zigzag = np.frombuffer(columns, dtype=f"<u{width}", count=count - 1, offset=position).astype(np.uint64)
        steps[1:] = (zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64)
        position += width * (count - 1)
    return np.cumsum(steps).astype(dtype), position
