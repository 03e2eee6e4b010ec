"""What tasks of one run, on the same kaudit, send one another: any struct, its tables as narrow columns.

msgpack of the structs, compressed by zstd. The bytes hold no classes: whoever unpacks says which type it expects. Lists come back
for whatever is annotated as a sequence.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, TypeVar, cast, get_origin

import msgspec
import numpy as np
import zstandard

from kaudit.model.columns import Columns, no_rows
from kaudit.reading.column_codec import decode_columns, encode_columns, is_flat

_LEVEL = 3
_PLAIN, _ESCAPED = b"\0", b"\1"
"""The first byte: whether texts have escapes. Names of files need not be Unicode, and msgpack's texts must be."""
_NO_TEXT, _ESCAPE = re.compile("[\0\ud800-\udfff]"), re.compile("\0(....)")
_Kind = TypeVar("_Kind")


def pack(value: object) -> bytes:
    """Encode a struct, or a list, tuple or mapping of such."""
    try:
        raw = _PLAIN + _ENCODER.encode(value)
    except UnicodeEncodeError:
        builtins = msgspec.to_builtins(value, enc_hook=_encoded, builtin_types=(bytes,))
        raw = _ESCAPED + _ENCODER.encode(_each_text(builtins, partial(_NO_TEXT.sub, _escape)))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(raw)


def unpack(data: bytes, kind: type[_Kind]) -> _Kind:
    """Decode what `pack` encoded of a value of type `kind`.

    Raises:
        ValueError: it is something else, or damaged.

    """
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        raw = memoryview(reader.read(-1))
    if raw[:1] == _PLAIN:
        value: _Kind = _decoder(cast("Any", kind)).decode(raw[1:])
        return value
    builtins = _each_text(msgspec.msgpack.decode(raw[1:]), partial(_ESCAPE.sub, _unescape))
    return msgspec.convert(builtins, kind, dec_hook=_decoded)


@cache
def _decoder(kind: Any) -> Any:  # noqa: ANN401 - msgspec's decoder of any type
    return msgspec.msgpack.Decoder(kind, dec_hook=_decoded)


def _encoded(value: object) -> object:
    if isinstance(value, Columns):
        return description(value.dtype), (len(value),), encode_columns(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and is_flat(value.dtype):
            return description(value.dtype), value.shape, encode_columns(value)
        return repr(np.lib.format.dtype_to_descr(value.dtype)), value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"tasks send no {type(value).__name__}")


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encoded)


def _decoded(kind: Any, content: Any) -> object:  # noqa: ANN401 - as msgspec calls it
    origin = get_origin(kind) or kind
    if origin is Counter:
        return Counter(content)
    if origin is Columns:
        described, (count,), encoded = content
        dtype = _flat_dtype(described)
        return Columns(dtype, count, decode_columns(dtype, count, encoded)) if count else no_rows(dtype)
    if origin is np.ndarray:
        return _array(*content)
    return content  # of a field that may be any value of JSON


def _escape(found: re.Match[str]) -> str:
    return f"\0{ord(found[0]):04x}"


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - a tree of builtins
    """Return lists and dicts with all their texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_each_text(key, change): _each_text(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_each_text(entry, change) for entry in value)
    return value


def _array(described: str, shape: tuple[int, ...], encoded: bytes) -> np.ndarray[Any, Any]:
    if described[:1] in "'[(":  # no table of numbers
        dtype = np.lib.format.descr_to_dtype(ast.literal_eval(described))
        return np.frombuffer(encoded, dtype=dtype).reshape(shape).copy()
    dtype = _flat_dtype(described)
    rows = np.empty(shape, dtype=dtype)
    for name, column in decode_columns(dtype, len(rows), encoded).items() if len(rows) else ():
        rows[name] = column
    return rows


@cache
def description(dtype: np.dtype[Any]) -> str:
    """Return a dtype of numbers as one text, "name:<i8 name:<u4": as a list of tuples it would be many small objects."""
    return " ".join(f"{name}:{dtype[name].str}" for name in dtype.names or ())


@lru_cache(maxsize=64)
def _flat_dtype(described: str) -> np.dtype[Any]:
    fields = [name_and_type.split(":") for name_and_type in described.split()]
    dtype = np.dtype([(name, number) for name, number in fields])
    if not is_flat(dtype):
        raise ValueError(f"rows of numbers have no fields {described}")
    return dtype
