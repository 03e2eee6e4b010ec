"""Structures of fixed size as Kafka lays them out: fields of big-endian integers without padding between them.

Each structure is written down once, as a Schema; offsets, `struct` formats and numpy dtypes are derived from it, for those
who read it and for those who write it.
"""

import struct
from typing import Final, NamedTuple

_CODES: Final = {"i1": "b", "i2": "h", "i4": "i", "u4": "I", "i8": "q"}


class Field(NamedTuple):
    """One field: `type` is numpy's (i1, i2, i4, u4, i8); `offset` and `size` are bytes in the structure."""

    name: str
    type: str
    offset: int
    size: int


class Schema:
    """A structure of fixed size, made from (name, type) pairs in the order of its bytes; types as in Field."""

    def __init__(self, *fields: tuple[str, str]) -> None:
        offset = 0
        self._fields: dict[str, Field] = {}
        for name, kind in fields:
            field = Field(name, kind, offset, int(kind[1]))
            self._fields[name] = field
            offset += field.size
        self.size = offset
        """Bytes of the whole structure."""
        self.descr: list[tuple[str, str]] = [(name, f">{kind}") for name, kind in fields]
        """The structure as it is stored, for np.dtype: not one itself, as numpy is slow to import and few need it."""
        self.native_descr: list[tuple[str, str]] = [(name, f"={kind}") for name, kind in fields]
        """The same fields as this machine's integers, packed, for np.dtype."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in the order of their bytes."""
        return tuple(self._fields.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields in the order of their bytes."""
        return tuple(self._fields)

    def offset(self, name: str) -> int:
        """Return the first byte of a field."""
        return self._fields[name].offset

    def end(self, name: str) -> int:
        """Return the byte after a field."""
        return self._fields[name].offset + self._fields[name].size

    def struct(self, *names: str) -> struct.Struct:
        """Return the Struct of these fields (of all if none is named), which must be in the order of their bytes.

        It starts at the first of them and passes over the bytes of fields between them.
        """
        text, at = ">", None
        for name in names or self._fields:
            field = self._fields[name]
            gap = 0 if at is None else field.offset - at
            text += (f"{gap}x" if gap else "") + _CODES[field.type]
            at = field.offset + field.size
        return struct.Struct(text)

    def slice(self, first: str, last: str) -> tuple[str, ...]:
        """Return the names of the fields from `first` to `last`, both included."""
        names = self.names
        return names[names.index(first) : names.index(last) + 1]
