"""What a state stores: whoever changes a stored struct or row raises the format's number, so that older states are not misread."""

from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import inspect

from kaudit.partition.range_saver import _CODEC as CHECKPOINT
from kaudit.reading.chunk_codec import _CODEC as CHUNK
from kaudit.reading.state_files import PartitionIndex
from kaudit.reading.struct_codec import FORMAT

SCHEMA = Path(__file__).parent / "state_schema.txt"


def described(kind: inspect.Type, found: dict[str, str]) -> str:
    """Return a type as text; the classes it is made of are added to `found`, each with its fields."""
    if isinstance(kind, inspect.StructType | inspect.NamedTupleType):
        name = kind.cls.__name__
        if name not in found:
            found[name] = ""
            found[name] = ", ".join(f"{field.name}: {described(field.type, found)}" for field in kind.fields)
        return name
    if isinstance(kind, inspect.EnumType):
        return f"{kind.cls.__name__}({', '.join(_stored(member) for member in kind.cls)})"
    if isinstance(kind, inspect.UnionType):
        return " | ".join(described(each, found) for each in kind.types)
    if isinstance(kind, inspect.DictType):
        return f"{{{described(kind.key_type, found)}: {described(kind.value_type, found)}}}"
    if isinstance(kind, inspect.TupleType):
        return f"({', '.join(described(each, found) for each in kind.item_types)})"
    if isinstance(kind, inspect.CollectionType):
        return f"[{described(kind.item_type, found)}]"
    if isinstance(kind, inspect.CustomType):
        return getattr(kind.cls, "__name__", str(kind.cls))
    return type(kind).__name__.removesuffix("Type").lower()


def _stored(member: Enum) -> str:
    """Return a member's value; the name of one whose value is a text for people: no state has any."""
    return member.name if len(str(member.value)) > 40 else str(member.value)


def schema() -> str:
    found: dict[str, str] = {}
    kinds: list[Any] = [CHUNK._kind, CHECKPOINT._kind, PartitionIndex]
    for kind in inspect.multi_type_info(kinds):
        described(kind, found)
    tables = {
        name: " ".join(f"{field} {kind[0]}" for field, kind in (dtype.fields or {}).items()) or str(dtype)
        for name, dtype in CHECKPOINT._tables.items()
    }
    lines = [f"{name}: {text}" for group in (found, tables) for name, text in sorted(group.items())]
    return "\n".join([f"format {FORMAT}", *lines]) + "\n"


def test_the_stored_structs_and_rows_are_those_of_the_format():
    """Where this fails: raise FORMAT in kaudit/reading/struct_codec.py, and write `schema()` to the file."""
    assert schema() == SCHEMA.read_text()
