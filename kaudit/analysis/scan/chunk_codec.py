"""What a chunk is reduced to, as bytes in a column: a table of them may be stored, and come back from anywhere.

Packed by the codec of the engines. Reading back makes rows, counts and damages of kaudit's model, and calls nothing else.
"""

import io
import pickle
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import msgspec
import zstandard

from kaudit import __version__
from kaudit.analysis.scan.chunk_rows import Outcome
from kaudit.analysis.scan.options import UsageError
from kaudit.analysis.scan.shuffle_codec import pack
from kaudit.model.columns import Columns
from kaudit.model.limits import CHUNK_ROWS, PACKED_CHUNK_BYTES

_HELPERS = frozenset(
    (("kaudit.analysis.scan.shuffle_codec", "_to_rows"), ("kaudit.analysis.scan.shuffle_codec", "_to_columns"))
)
_OTHERS = frozenset((
    ("builtins", "frozenset"), ("builtins", "set"), ("numpy", "dtype"), ("numpy", "ndarray"), ("msgspec._core", "rebuild"),
    ("numpy._core.numeric", "_frombuffer"), ("numpy._core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"), ("numpy.core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "scalar"),
))  # fmt: skip
_PACKAGES = (
    "kaudit.model.",
    "kaudit.analysis.",
    "kaudit.source.layout",
    "kaudit.source.snapshots",
    "kaudit.source.kafka.fetched_segment",
)

NOT_OURS = (
    pickle.UnpicklingError, zstandard.ZstdError, EOFError, ValueError, TypeError, AttributeError, ImportError, IndexError,
    KeyError, MemoryError,
)  # fmt: skip


def pack_chunk(outcomes: Sequence[Outcome]) -> bytes:
    """Pack what reading a range gave."""
    return pack((__version__, list(outcomes)))


def unpack_chunk(data: bytes) -> list[Outcome]:
    """Return what was packed.

    Raises:
        UsageError: another version of kaudit packed it, or it is something else.

    """
    try:
        version, outcomes = ModelUnpickler(io.BytesIO(unpacked(data, PACKED_CHUNK_BYTES))).load()
    except NOT_OURS as error:
        raise UsageError(f"the column chunk is none of kaudit {__version__}: {error}") from None
    if version != __version__:
        raise UsageError(f"the column chunk was made by kaudit {version}, this is {__version__}: call runs() again")
    found: list[Outcome] = outcomes
    return found


def unpacked(data: bytes, limit: int) -> bytes:
    """Decompress what zstd compressed at once.

    Raises:
        zstandard.ZstdError: it is something else, or more than `limit` bytes.

    """
    size = zstandard.get_frame_parameters(data).content_size
    if size > limit:  # one that is not stated is greater than any
        raise zstandard.ZstdError(f"it has not stated a size of at most {limit} bytes")
    return zstandard.ZstdDecompressor().decompress(data)


class ModelUnpickler(pickle.Unpickler):  # noqa: S301 - it makes nothing else
    """Makes objects of the model and of numpy, and no others: a pickle could call anything."""

    def find_class(self, module: str, name: str) -> object:
        """Return what is named, if it belongs there."""
        if (module, name) in _HELPERS:
            return _bounded(super().find_class(module, name))
        if (module, name) in _OTHERS:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith(_PACKAGES) else None
        if not (isinstance(found, type) and issubclass(found, msgspec.Struct | tuple | Enum | Columns)):
            raise pickle.UnpicklingError(f"{module}.{name} does not belong there")
        return found


def _bounded(make_rows: Callable[..., Any]) -> Callable[..., Any]:
    """Return `make_rows` for rows that a chunk may have: columns of one number take no bytes, however many rows they claim."""

    def make(description: list[tuple[str, str]], count: int, encoded: bytes) -> object:
        if not 0 <= count <= CHUNK_ROWS:
            raise pickle.UnpicklingError(f"{count} rows of one chunk")
        return make_rows(description, count, encoded)

    return make
