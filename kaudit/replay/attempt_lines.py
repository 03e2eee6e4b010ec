"""Reading attempts: one JSON object a line, checked against the schema in kaudit/broker/attempts.py."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec
from msgspec import inspect

from kaudit.broker.attempts import NO_INDEX, Attempt

OPS = tuple(str(kind.__struct_config__.tag) for kind in get_args(Attempt))
_decode = msgspec.json.Decoder(Attempt).decode
_SHOWN = 60
"""Characters of a wrong value that an error shows."""


class AttemptError(ValueError):
    """A line that is not an attempt: `line` counts from 1, `expected` says what should have been there."""

    def __init__(self, line: int, expected: str) -> None:
        self.line = line
        self.expected = expected
        super().__init__(f"line {line}: expected {expected}")


def parse_attempt(line: bytes, number: int) -> Attempt | None:
    """Return the attempt of one line, None if the line is blank; without an index of its own it gets `number`.

    Raises ValueError, saying what was expected.
    """
    try:
        attempt: Attempt = _decode(line)
    except (ValueError, RecursionError):
        if not line.strip():
            return None
        attempt = _decode_leniently(line)
    if attempt.index == NO_INDEX:
        attempt.index = number
    return attempt


def read_attempts(lines: Iterable[bytes]) -> Iterator[Attempt]:
    """Yield the attempts of a file. Raises AttemptError for the first line that is not one."""
    number = 0
    for line_number, line in enumerate(lines, 1):
        try:
            attempt = parse_attempt(line, number)
        except ValueError as error:
            raise AttemptError(line_number, str(error)) from None
        if attempt is not None:
            number += 1
            yield attempt


def _decode_leniently(line: bytes) -> Attempt:
    """Parse a line with Python's parser, which takes a little more than JSON (NaN) and names columns.

    Raises ValueError, saying what was expected.
    """
    try:
        document = json.loads(line.decode().rstrip())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"one JSON object, {_problem(error)}") from None
    name = _surrogate_in(document)
    if name is not None:
        raise ValueError(f"{name} to be a string without half a surrogate pair")
    try:
        attempt: Attempt = msgspec.convert(document, Attempt)
    except msgspec.ValidationError as error:
        raise ValueError(_expected(str(error), document)) from None
    return attempt


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"which breaks at column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"which is not UTF-8 at byte {error.start}"
    return "which is nested too deep" if isinstance(error, RecursionError) else str(error)


def _surrogate_in(document: object) -> str | None:
    """Return the path of a string that is not Unicode text, None if there is none."""
    remaining: list[tuple[str, object]] = [("", document)]
    while remaining:
        path, value = remaining.pop()
        if isinstance(value, dict):
            remaining += [(f"{path}.{name}".lstrip("."), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            remaining += [(f"{path}[{number}]", inner) for number, inner in enumerate(value)]
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return path
    return None


# -- what the schema expected, as text -----------------------------------------------------------------------------------
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_NAMES = {inspect.BoolType: "true or false", inspect.StrType: "a string"}
_STEP = re.compile(r"(\w+)|\[(\d+)\]")


def _expected(problem: str, document: object) -> str:
    """Return what was expected where msgspec found `problem`."""
    found = _PATH.search(problem)
    path = found[1] if found else ""
    missing = _MISSING.match(problem)
    if not isinstance(document, dict):
        return "a JSON object"
    if path == "op" or (missing and missing[1] == "op"):
        return f"op to be one of {', '.join(OPS)}, not {_shown(document.get('op'))}"
    if missing:
        return f"the field {path}{'.' if path else ''}{missing[1]}"
    value: Any = document
    expected: inspect.Type = _types()[document["op"]]
    for name, number in _STEP.findall(path):
        value = value[name] if name else value[int(number)]
        expected = _inner(expected, name)
    if value is None:
        return f"{path} not to be null"
    return f"{path} to be {_described(expected)}, not {_shown(value)}"


def _types() -> dict[str, inspect.Type]:
    return {str(kind.__struct_config__.tag): inspect.type_info(kind) for kind in get_args(Attempt)}


def _inner(outer: inspect.Type, name: str) -> inspect.Type:
    """Return the type of a field, or of a list's items where `name` is empty; of `X | None`, X."""
    inner: inspect.Type = inspect.AnyType()
    if isinstance(outer, inspect.StructType):
        inner = next((field.type for field in outer.fields if field.encode_name == name), inner)
    elif isinstance(outer, inspect.ListType):
        inner = outer.item_type
    if isinstance(inner, inspect.UnionType):
        return next(kind for kind in inner.types if not isinstance(kind, inspect.NoneType))
    return inner


def _described(expected: inspect.Type) -> str:
    match expected:
        case inspect.IntType(ge=low, le=high):
            return f"an integer from {low} to {high}"
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}"
        case inspect.ListType(item_type=inspect.StructType()):
            return "a list of objects"
        case inspect.ListType():
            return "a list of strings"
    return _NAMES.get(type(expected), "an object")


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
