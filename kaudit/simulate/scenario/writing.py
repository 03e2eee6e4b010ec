"""A scenario's document as TOML: what `tomllib` reads, written again. Comments are not kept."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

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
