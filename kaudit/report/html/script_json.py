"""JSON that may stand in a script element of a page, whatever text of a log is in it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from kaudit.report.console import visible

_T = TypeVar("_T")


def json_for_script(value: object) -> str:
    """Return JSON that may stand in a script element: no `<`, `>` or `&`, all text made visible."""
    text = json.dumps(made_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def made_visible(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return plain values with everything spelled out that a reader would not see in them, lone surrogates too."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Struct):
        return {name: made_visible(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {visible(str(name)): made_visible(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [made_visible(item) for item in value]
    return value


def json_size(value: object) -> int:
    """Return the bytes a value takes in the page, a comma with it."""
    return len(json_for_script(value).encode()) + 1


def within(rows: Iterable[_T], most_bytes: int) -> list[_T]:
    """Return the first rows, as many as take at most `most_bytes` bytes in the page."""
    kept: list[_T] = []
    for row in rows:
        most_bytes -= json_size(row)
        if most_bytes < 0:
            break
        kept.append(row)
    return kept
