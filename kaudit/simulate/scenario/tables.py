"""TOML tables to structs and back. Every mistake is reported as one line: the key, and what was expected there."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kaudit.formats.schema_error import describe_misfit, shown


class ScenarioError(ValueError):
    """A scenario that cannot be run: `key` is the field at fault, `expected` what it should have held."""

    def __init__(self, key: str, expected: str) -> None:
        self.key = key
        self.expected = expected
        super().__init__(f"{key}: expected {expected}")


def table_at(value: object, path: str) -> dict[str, Any]:
    """Return a value that has to be a table. Raises ScenarioError."""
    if not isinstance(value, dict):
        raise ScenarioError(path, f"a table, not {shown(value)}")
    return value


def convert(table: object, path: str, schema: Any) -> Any:  # noqa: ANN401 - an instance of the schema
    """Return a table as an instance of `schema`, a struct or a union of them. Raises ScenarioError."""
    content = table_at(table, path)
    try:
        return msgspec.convert(content, schema)
    except msgspec.ValidationError as error:
        key, expected = describe_misfit(error, content, schema)
        raise ScenarioError(f"{path}.{key}" if path and key else path or key, expected) from None


def one_of(value: object, path: str, choices: Iterable[str]) -> str:
    """Return a value that has to be one of `choices`. Raises ScenarioError."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise ScenarioError(path, f"one of {', '.join(known)}, not {shown(value)}")
    return value


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+").fullmatch


def scenario_toml(document: Mapping[str, Any]) -> str:
    """Return TOML that reads back as `document`: values first, then tables, [[arrays of tables]] last."""
    tables = {key: value for key, value in document.items() if isinstance(value, dict)}
    arrays = {key: value for key, value in document.items() if _is_array_of_tables(value)}
    lines = list(_pairs({key: value for key, value in document.items() if key not in tables and key not in arrays}))
    for key, table in tables.items():
        lines += ["", f"[{_key(key)}]", *_pairs(table)]
    for key, array in arrays.items():
        for table in array:
            lines += ["", f"[[{_key(key)}]]", *_pairs(table)]
    return "\n".join(lines) + "\n"


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_value(value)}" for key, value in table.items())


def _key(key: str) -> str:
    return key if _BARE_KEY(key) else _string(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _string(value)
        case datetime():
            return value.isoformat()
        case dict():
            return f"{{ {', '.join(_pairs(value))} }}" if value else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _string(text: str) -> str:
    """Return a basic string: those of JSON are, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
