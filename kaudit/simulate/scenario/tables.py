"""Tables of TOML to structs. Every mistake is reported as one line: the key, and what was expected there."""

from collections.abc import Iterable
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
