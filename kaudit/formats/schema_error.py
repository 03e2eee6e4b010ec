"""Says for people where and how a document does not fit its msgspec schema: msgspec's own messages name Python types."""

import difflib
import json
import re
from typing import Any

import msgspec
from msgspec import inspect

UNKNOWN_KEY = "no such key"
"""Beginning of the description of a key that should not be there."""
_SHOWN = 60
"""Characters of a wrong value that a message shows."""
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.+?)`")
_PATH = re.compile(r" - at `\$(.*)`$")
_NAMES: dict[type[inspect.Type], str] = {inspect.BoolType: "true or false", inspect.StrType: "a string"}


def describe_misfit(error: msgspec.ValidationError, document: object, schema: Any) -> tuple[str, str]:  # noqa: ANN401 - a type or a union
    """Return the path of the value that does not fit, such as `faults[0].kind`, and what was expected there.

    `schema` is the type that `document` was converted to, `error` what that raised.
    """
    problem = str(error)
    found = _PATH.search(problem)
    path = found[1] if found else ""
    value, expected = _at(path, document, inspect.type_info(schema))
    path = path.removeprefix(".")
    field = _FIELD.match(problem)
    if field is None:
        return path, f"{_described(expected)}, not {shown(value)}"
    name = field[2]
    path = f"{path}.{name}" if path else name
    if field[1] == "missing required":
        return path, f"{_described(_inner(expected, name))}, not nothing"
    known = sorted(_field_types(expected))
    near = difflib.get_close_matches(name, known, 1)
    return path, f"{UNKNOWN_KEY}{f', {near[0]} is one' if near else ''}; known are {', '.join(known)}"


def shown(value: object) -> str:
    """Return a value as messages quote it, at most 60 characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _at(path: str, value: Any, expected: inspect.Type) -> tuple[Any, inspect.Type]:  # noqa: ANN401 - part of a document
    """Follow `path` through a document and its schema."""
    while path:
        expected = _chosen(expected, value)
        if path[0] == "[":
            number, _, path = path[1:].partition("]")
            value, expected = value[int(number)], _inner(expected, "")
        else:
            name = next(name for name in sorted(value, key=len, reverse=True) if path[1:].startswith(name))
            path = path[len(name) + 1 :]
            value, expected = value[name], _inner(expected, name)
    return value, _chosen(expected, value)


def _chosen(expected: inspect.Type, value: object) -> inspect.Type:
    """Return the member of a union that a value is meant to be: by its tag, or the only one besides null."""
    if not isinstance(expected, inspect.UnionType):
        return expected
    kinds = [kind for kind in expected.types if not isinstance(kind, inspect.NoneType)]
    for kind in kinds:
        if isinstance(kind, inspect.StructType) and isinstance(value, dict) and value.get(kind.tag_field) == kind.tag:
            return kind
    return kinds[0] if len(kinds) == 1 else expected


def _field_types(expected: inspect.Type) -> dict[str, inspect.Type]:
    """Return the fields of an object by the names they have in documents, with the tag that distinguishes a union's members."""
    if isinstance(expected, inspect.UnionType):
        kinds = [kind for kind in expected.types if isinstance(kind, inspect.StructType)]
        return {str(kinds[0].tag_field): inspect.LiteralType(tuple(kind.tag for kind in kinds))} if kinds else {}
    if not isinstance(expected, inspect.StructType):
        return {}
    return {field.encode_name: field.type for field in expected.fields}


def _inner(expected: inspect.Type, name: str) -> inspect.Type:
    """Return the type of a field, or of an array's items where `name` is empty."""
    if isinstance(expected, inspect.ListType | inspect.VarTupleType):
        return expected.item_type
    if isinstance(expected, inspect.TupleType):
        return expected.item_types[0]
    return _field_types(expected).get(name, inspect.AnyType())


def _described(expected: inspect.Type) -> str:
    text = _NAMES.get(type(expected), "an object")
    match expected:
        case inspect.IntType(ge=low, le=high):
            text = f"an integer from {low} to {high}"
        case inspect.FloatType(ge=low, le=high):
            text = f"a number from {low:g} to {high:g}"
        case inspect.LiteralType(values=values):
            text = f"one of {', '.join(map(str, values))}"
        case inspect.TupleType(item_types=(item, *_)):
            text = f"[low, high], each {_described(item)}"
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            text = f"a list, each item {_described(item)}"
    return text
