"""What a chunk is reduced to, as bytes in a column: a table of them may be stored, and come back from anywhere.

Packed by the codec of the engines. Reading back makes rows, counts and damages of kaudit's model, and calls nothing else.
"""

import io
import pickle
import pickletools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import msgspec
import zstandard

from kaudit import __version__
from kaudit.errors import UsageError
from kaudit.model.columns import Columns
from kaudit.model.limits import CHUNK_ROWS, PACKED_CHUNK_BYTES
from kaudit.reading.chunk_rows import Outcome
from kaudit.reading.shuffle_codec import pack

_HELPERS = frozenset((("kaudit.reading.shuffle_codec", "_to_rows"), ("kaudit.reading.shuffle_codec", "_to_columns")))
_OTHERS = frozenset((
    ("kaudit.reading.shuffle_codec", "_to_chunk_rows"),
    ("builtins", "frozenset"), ("builtins", "set"), ("numpy", "dtype"), ("numpy", "ndarray"), ("msgspec._core", "rebuild"),
    ("numpy._core.numeric", "_frombuffer"), ("numpy._core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"), ("numpy.core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "scalar"),
))  # fmt: skip
_PACKAGES = (
    "kaudit.model.",
    "kaudit.audits.",
    "kaudit.reading.",
    "kaudit.partition.",
    "kaudit.source.layout",
    "kaudit.source.snapshots",
    "kaudit.source.kafka.fetched_segment",
)
_COUNTED = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
"""How many bytes say how long an argument is."""
_NUMBERED = frozenset(("BINPUT", "LONG_BINPUT"))
"""Opcodes that kaudit's pickles have none of: the room that loading makes is as large as the number in them says."""
_ARGUMENTS = {
    ord(opcode.code): (
        0 if opcode.arg is None else max(opcode.arg.n, 0),
        _COUNTED.get(opcode.arg.n, 0) if opcode.arg else 0,
    )
    for opcode in pickletools.opcodes
    if opcode.name not in _NUMBERED and (opcode.arg is None or opcode.arg.n != pickletools.UP_TO_NEWLINE)
}
"""Of the opcodes that there may be: how long their argument is, or else how many bytes in front of it say so."""
_STOP = ord(pickle.STOP)


def pack_chunk(outcomes: Sequence[Outcome]) -> bytes:
    """Pack what reading a range gave."""
    return pack((__version__, list(outcomes)))


def unpack_chunk(data: bytes) -> list[Outcome]:
    """Return what was packed.

    Raises:
        UsageError: another version of kaudit packed it, or it is something else.

    """
    try:
        version, outcomes = load_model(data)
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises whatever its bytes lead to
        raise UsageError(f"the column chunk is none of kaudit {__version__}: {error}") from None
    if not isinstance(version, str) or not isinstance(outcomes, list):
        raise UsageError(f"the column chunk is none of kaudit {__version__}")
    if version != __version__:
        raise UsageError(f"the column chunk was made by kaudit {version}, this is {__version__}: call runs() again")
    if not all(isinstance(outcome, Outcome) for outcome in outcomes):
        raise UsageError(f"the column chunk is none of kaudit {__version__}: it holds more than chunks")
    return outcomes


def unpacked(data: bytes, limit: int) -> bytes:
    """Decompress what zstd compressed at once.

    Raises:
        zstandard.ZstdError: it is something else, or more than `limit` bytes.

    """
    size = zstandard.get_frame_parameters(data).content_size
    if size > limit:  # one that is not stated is greater than any
        raise zstandard.ZstdError(f"it has not stated a size of at most {limit} bytes")
    return zstandard.ZstdDecompressor().decompress(data)


def _check_opcodes(raw: bytes) -> None:
    """Check that all arguments are there, and that nothing states a number that memory is made for.

    What `pickletools.genops` does, which takes longer than loading: it reads and decodes every argument.
    """
    at, end, opcode = 0, len(raw), None
    while opcode != _STOP:
        if at >= end:
            raise pickle.UnpicklingError("its end is missing")
        opcode = raw[at]
        if opcode not in _ARGUMENTS:
            raise pickle.UnpicklingError(f"opcode {opcode} at byte {at}")
        length, counted = _ARGUMENTS[opcode]
        at += 1 + counted + length
        if counted:
            at += int.from_bytes(raw[at - counted : at], "little")


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


def load_model(data: bytes, unpickler: type[ModelUnpickler] = ModelUnpickler) -> Any:  # noqa: ANN401 - whatever was packed
    """Return what `pack` encoded, if it is of the model. What is damaged raises whatever its bytes lead to."""
    raw = unpacked(data, PACKED_CHUNK_BYTES)
    _check_opcodes(raw)
    return unpickler(io.BytesIO(raw)).load()


def _bounded(make_rows: Callable[..., Any]) -> Callable[..., Any]:
    """Return `make_rows` for rows that a chunk may have: columns of one number take no bytes, however many rows they claim."""

    def make(described: str, count: int, encoded: bytes) -> object:
        if not 0 <= count <= CHUNK_ROWS:
            raise pickle.UnpicklingError(f"{count} rows of one chunk")
        return make_rows(described, count, encoded)

    return make
