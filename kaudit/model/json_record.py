"""Structs with a JSON form, for reports and programs, and the form of times in it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct

from kaudit import __version__

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC; with its zone each text costs twice as much


def document_head(schema: str) -> dict[str, object]:
    """Return the fields that every document has: its schema, and what wrote it."""
    return {"schema": schema, "tool": {"name": "kaudit", "version": __version__}}


def rfc3339(milliseconds: int) -> str | None:
    """Return the time as `2026-11-21T03:04:05.678Z`, or None where no calendar reaches it."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return f"{time.isoformat(timespec='milliseconds')}Z"


_LEAVES = frozenset({int, str, bool, float, type(None)})


class JsonRecord(Struct, frozen=True):
    """A record whose JSON form has its fields in their order, under their names or what `rename` calls them."""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        names = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        return {key: json_value(getattr(self, name)) for key, name in names}


def json_value(value: object) -> object:
    """Return the JSON form of a field's value: enums by their values, sequences as lists, records by `to_dict`."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    # exact types first: to ask for an abstract one costs more than all the rest
    if kind is not list and kind is not tuple:
        if isinstance(value, JsonRecord):
            return value.to_dict()
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, (dict, Mapping)):
            return {key: item if type(item) in _LEAVES else json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, Sequence)) and not isinstance(value, str):
        return [item if type(item) in _LEAVES else json_value(item) for item in value]
    return value
