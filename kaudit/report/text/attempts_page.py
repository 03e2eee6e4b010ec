"""The ops of the attempts format as text: docs/attempts.md, from the schema in kaudit/broker/attempts/.

Written by `python -m kaudit.report.text.attempts_page docs/attempts.md`.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
from msgspec.inspect import (
    BoolType,
    IntType,
    ListType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)

from kaudit.broker import attempts
from kaudit.broker.attempts import Attempt
from kaudit.report.text.generated_section import write_section

PAGE_BEGIN = "<!-- ops: written by python -m kaudit.report.text.attempts_page docs/attempts.md -->"
PAGE_END = "<!-- end of ops -->"
_COMMON = frozenset({"index", "topic", "partition", "at"})
_NAMES: dict[type[Type], str] = {IntType: "integer", StrType: "string", BoolType: "true or false", NoneType: "null"}
_PARTS = ("SentBatch", "SentElsewhere", "FoundBatch", "Tamper")
"""Structs that are values of fields, in the order of the page."""


def ops() -> str:
    """Return a section per op, and one per object that fields hold, in Markdown."""
    kinds = [*get_args(Attempt), *(getattr(attempts, name) for name in _PARTS)]
    meanings = _field_docs({kind.__module__ for kind in kinds})
    return "\n\n".join("\n".join(_section(kind, meanings)) for kind in kinds)


def _section(kind: type[msgspec.Struct], meanings: dict[tuple[str, str], str]) -> Iterator[str]:
    info = type_info(kind)
    assert isinstance(info, StructType)
    yield f"### {info.tag or kind.__name__}"
    yield (kind.__doc__ or "").strip()
    fields = [field for field in info.fields if info.tag is None or field.name not in _COMMON]
    if info.tag == "broker":
        fields = [field for field in info.fields if field.name != "index"]
    if not fields:
        return
    yield ""
    yield "| field | value | default | meaning |"
    yield "|---|---|---|---|"
    for field in fields:
        default = "required" if field.required else _default(field.default)
        yield f"| `{field.name}` | {_value(field.type)} | {default} | {meanings.get((kind.__name__, field.name), '')} |"


def _field_docs(modules: set[str]) -> dict[tuple[str, str], str]:
    """Return what the strings after the fields of these modules' classes say, by class and field."""
    found: dict[tuple[str, str], str] = {}
    for node in (node for name in modules for node in ast.parse(inspect.getsource(sys.modules[name])).body):
        if isinstance(node, ast.ClassDef):
            for field, following in zip(node.body, node.body[1:], strict=False):
                words = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and words:
                    found[node.name, field.target.id] = " ".join(str(following.value.value).split())  # type: ignore[attr-defined]
    return found


def _default(value: object) -> str:
    if value is msgspec.NODEFAULT:
        return "empty"  # a list or object of its own for every line
    return {"None": "absent", "True": "true", "False": "false"}.get(str(value), str(value))


def _value(kind: Type) -> str:
    match kind:
        case UnionType(types=kinds):
            return " or ".join(text for text in map(_value, kinds) if text != "null")
        case LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case ListType(item_type=item):
            return f"list of {_value(item)}"
        case StructType(cls=cls):
            return f"[{cls.__name__}](#{cls.__name__.lower()})"
    return _NAMES.get(type(kind), "object")


def write_page(page: Path) -> None:
    """Put the sections into a page, between the two comments that mark their place."""
    write_section(page, PAGE_BEGIN, PAGE_END, ops())


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
