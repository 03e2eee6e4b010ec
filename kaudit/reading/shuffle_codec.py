"""What tasks of one run, on the same kaudit, send one another beside the rows of ranges: any value, its rows as narrow columns."""

import io
import pickle
from functools import cache, lru_cache
from typing import Any

import numpy as np
import zstandard

from kaudit.model.columns import Columns, no_rows
from kaudit.reading.column_codec import decode_columns, encode_columns, is_flat
from kaudit.reading.rows import Rows

_LEVEL = 3


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
        if isinstance(value, np.ndarray) and value.dtype.names and value.ndim == 1 and is_flat(value.dtype):
            return _to_rows, (description(value.dtype), len(value), encode_columns(value))
        if isinstance(value, Columns):
            return _to_columns, (description(value.dtype), len(value), encode_columns(value))
        return NotImplemented


@cache
def description(dtype: np.dtype[Any]) -> str:
    """Return a dtype of numbers as one text, "name:<i8 name:<u4": as a list of tuples it would be many small objects."""
    return " ".join(f"{name}:{dtype[name].str}" for name in dtype.names or ())


@lru_cache(maxsize=64)
def _dtype(described: str) -> np.dtype[Any]:
    fields = [name_and_type.split(":") for name_and_type in described.split()]
    dtype = np.dtype([(name, number) for name, number in fields])
    if not is_flat(dtype):
        raise ValueError(f"rows of numbers have no fields {described}")
    return dtype


def _to_columns(described: str, count: int, encoded: bytes) -> Columns:
    dtype = _dtype(described)
    return Columns(dtype, count, decode_columns(dtype, count, encoded)) if count else no_rows(dtype)


def _to_rows(described: str, count: int, encoded: bytes) -> Rows:
    dtype = _dtype(described)
    rows = np.empty(count, dtype=dtype)
    if count:
        for name, column in decode_columns(dtype, count, encoded).items():
            rows[name] = column
    return rows
