"""Structures of fixed size as Kafka stores them: the fields of a NamedTuple, big-endian, without padding between them.

Each structure is written down once (its types are those of model/dtypes.py); offsets, `struct` formats and numpy dtypes are
derived from it, for parsers and encoders alike.
"""

from struct import Struct, calcsize
from typing import Any, Final, NamedTuple

_CODES: Final = {"int8": "b", "int16": "h", "int32": "i", "uint32": "I", "int64": "q"}


class Field(NamedTuple):
    """One field: `type` as numpy names it; `offset` and `size` are bytes in the structure."""

    name: str
    type: str
    offset: int
    size: int


class WireFormat:
    """The stored form of a NamedTuple: `size` bytes, and where its fields lie in them."""

    def __init__(self, schema: type[tuple[Any, ...]]) -> None:
        self._fields: dict[str, Field] = {}
        self.size = 0
        for name, hint in schema.__annotations__.items():
            kind = hint.__metadata__[0]
            self._fields[name] = Field(name, kind, self.size, calcsize(f">{_CODES[kind]}"))
            self.size += self._fields[name].size

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in the order of their bytes."""
        return tuple(self._fields.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields in the order of their bytes."""
        return tuple(self._fields)

    @property
    def descr(self) -> list[tuple[str, str]]:
        """The structure for np.dtype; not a dtype itself, as numpy is slow to import and few need it."""
        return [(field.name, self.numpy_type(field.name)) for field in self.fields]

    def numpy_type(self, name: str) -> str:
        """Return the type of a stored field for np.dtype."""
        field = self._fields[name]
        return f">{'u' if field.type.startswith('u') else 'i'}{field.size}"

    def offset(self, name: str) -> int:
        """Return the first byte of a field."""
        return self._fields[name].offset

    def end(self, name: str) -> int:
        """Return the byte after a field."""
        return self._fields[name].offset + self._fields[name].size

    def struct(self, *names: str) -> Struct:
        """Return the Struct of these fields (of all if none is named), which must be in the order of their bytes.

        It starts at the first of them and passes over the bytes of fields between them.
        """
        text, at = ">", None
        for name in names or self._fields:
            field = self._fields[name]
            gap = 0 if at is None else field.offset - at
            text += (f"{gap}x" if gap else "") + _CODES[field.type]
            at = field.offset + field.size
        return Struct(text)

    def struct_between(self, first: str, last: str) -> Struct:
        """Return the Struct of the fields from `first` to `last`, both included."""
        names = self.names
        return self.struct(*names[names.index(first) : names.index(last) + 1])
