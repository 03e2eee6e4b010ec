"""Structs that hold tables, as bytes: msgpack of the structs, the columns of `column_codec` in it, all through zstd.

The bytes hold no types. Structs are decoded as their annotations say, and each of their fields that is a table or an array
must have the dtype that the codec was made with.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, get_origin

import msgspec
import numpy as np
import zstandard
from msgspec import Struct

from kaudit.model.columns import Columns, no_rows
from kaudit.model.limits import CHUNK_ROWS, PACKED_CHUNK_BYTES
from kaudit.reading.column_codec import decode_columns, encode_columns, is_flat

_LEVEL = 3
_Kind = TypeVar("_Kind")


FORMAT = 11
"""Of all that is encoded, and of a state's index: bytes with another number are not read. It stands in front of them.

Raise it when a struct or a row that is stored changes (tests/partition/test_state_schema.py compares them), or when reading the
same bytes of a log gives other rows.
"""
_FORMAT_BYTES = 2


class DamagedBytesError(ValueError):
    """Bytes are not what a codec has encoded."""


class OtherFormatError(DamagedBytesError):
    """Bytes have another format's number."""


class Custom(NamedTuple):
    """How values of a class that is not a struct are stored: as what `encode` returns, which is of type `stored`.

    `decode` makes the value again; it raises a ValueError for what is not one.
    """

    encode: Callable[[Any], object]
    stored: Any
    decode: Callable[[Any], object]


_COUNTER = Custom(dict, dict[int, int], Counter)


class StructCodec(Generic[_Kind]):
    """Encodes values of one type.

    `tables` has the dtype of every field that is Columns or an array, or a list of them, by `Class.field`; for an array of
    shape (n, m) it is `np.dtype((number, (m,)))`. `customs` are classes in it that are not structs.
    """

    def __init__(
        self,
        kind: Any,  # noqa: ANN401 - a type
        tables: Mapping[str, np.dtype[Any]],
        customs: Mapping[Any, Custom] | None = None,
    ) -> None:
        self._kind = kind
        self._tables = tables
        self._customs = {Counter: _COUNTER, **(customs or {})}
        self._numbers = {dtype.base: number for number, dtype in enumerate(tables.values())}
        self._encoder = msgspec.msgpack.Encoder(enc_hook=self._encoded)

    def encode(self, value: _Kind) -> bytes:
        """Return a value as bytes."""
        content = zstandard.ZstdCompressor(level=_LEVEL).compress(self._encoder.encode(value))
        return FORMAT.to_bytes(_FORMAT_BYTES, "big") + content

    def decode(self, data: bytes) -> _Kind:
        """Return the value that was encoded.

        Raises:
            OtherFormatError: the bytes have another format.
            DamagedBytesError: they are something else, or more than a chunk may have.

        """
        number = int.from_bytes(data[:_FORMAT_BYTES], "big")
        if number != FORMAT:
            raise OtherFormatError(f"format {number}, this kaudit reads format {FORMAT}")
        decoder = _Decoder([dtype.base for dtype in self._tables.values()], self._customs)
        try:
            raw = unpacked(data[_FORMAT_BYTES:], PACKED_CHUNK_BYTES)
            value: _Kind = msgspec.msgpack.decode(raw, type=self._kind, dec_hook=decoder.decode)
        except (msgspec.MsgspecError, zstandard.ZstdError, ValueError, MemoryError, RecursionError) as error:
            raise DamagedBytesError(str(error) or type(error).__name__) from None
        for name, array in _arrays(value):
            kind = self._tables.get(name)
            if kind is None or array.dtype != kind.base or (not kind.names and array.shape[1:] != kind.shape):
                raise DamagedBytesError(f"{name} is another table")
        return value

    def _encoded(self, value: object) -> object:
        if isinstance(value, np.integer | np.bool_):
            return value.item()
        if isinstance(value, Columns | np.ndarray):
            number, size = self._numbers[value.dtype], getattr(value, "shape", (len(value),))
            if is_flat(value.dtype):
                return number, size, encode_columns(value)
            return number, size, np.ascontiguousarray(value).tobytes()
        return next(custom for kind, custom in self._customs.items() if isinstance(value, kind)).encode(value)


class _Decoder:
    """Makes the tables of one value, as long as they are no larger together than a chunk may be."""

    def __init__(self, dtypes: Sequence[np.dtype[Any]], customs: Mapping[Any, Custom]) -> None:
        self._dtypes = dtypes
        self._customs = customs
        self._left = PACKED_CHUNK_BYTES

    def decode(self, kind: Any, content: Any) -> object:  # noqa: ANN401 - as msgspec calls it
        """Return the Columns, array or value of a custom class for what is stored of it."""
        origin = get_origin(kind) or kind
        custom = self._customs.get(origin)
        if custom is not None:
            return custom.decode(msgspec.convert(content, custom.stored, dec_hook=self.decode))
        number, shape, encoded = msgspec.convert(content, tuple[int, tuple[int, ...], bytes])
        if (
            not 0 <= number < len(self._dtypes)
            or not 1 <= len(shape) <= 2
            or not all(0 <= each <= CHUNK_ROWS for each in shape)
        ):
            raise ValueError(f"table {number} of shape {shape}")
        dtype, count = self._dtypes[number], math.prod(shape)
        self._left -= count * dtype.itemsize
        if self._left < 0:
            raise ValueError(f"tables of more than {PACKED_CHUNK_BYTES} bytes")
        if origin is Columns:
            if not is_flat(dtype):
                raise ValueError(f"table {number} has no columns")
            return Columns(dtype, count, decode_columns(dtype, count, encoded)) if count else no_rows(dtype)
        if not is_flat(dtype):
            # with memory of its own: some are written to
            return np.frombuffer(encoded, dtype=dtype, count=count).reshape(shape).copy()
        rows = np.empty(count, dtype=dtype)
        for column, values in decode_columns(dtype, count, encoded).items() if count else ():
            rows[column] = values
        return rows


def _arrays(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the tables and arrays in the fields of a struct and of the structs in it, each with its `Class.field`."""
    if isinstance(value, list | tuple | dict):
        entries = [*(value.values() if isinstance(value, dict) else value)]
        if entries and isinstance(entries[0], Struct):  # rows as tuples are many, and hold none
            for entry in entries:
                yield from _arrays(entry)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            held = getattr(value, name)
            for each in held if isinstance(held, list) else (held,):
                if isinstance(each, Columns | np.ndarray):
                    yield f"{type(value).__name__}.{name}", each
                elif isinstance(each, Struct):
                    yield from _arrays(each)
            if isinstance(held, dict):
                yield from _arrays(held)


def unpacked(data: bytes, limit: int) -> bytes:
    """Decompress what zstd compressed at once.

    Raises:
        zstandard.ZstdError: it is something else, or more than `limit` bytes.

    """
    size = zstandard.get_frame_parameters(data).content_size
    if size > limit:  # one that is not stated is greater than any
        raise zstandard.ZstdError(f"it has not stated a size of at most {limit} bytes")
    return zstandard.ZstdDecompressor().decompress(data)
