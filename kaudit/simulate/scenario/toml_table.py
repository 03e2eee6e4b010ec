"""One table of a scenario's TOML: fields are taken out with their types and bounds checked."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from kaudit.simulate.scenario.model import IntRange

DAY_MS = 24 * 3_600_000
_T = TypeVar("_T")


class ScenarioError(ValueError):
    """A scenario that cannot be run: `key` is the field at fault, `expected` what it should have held."""

    def __init__(self, key: str, expected: str) -> None:
        self.key = key
        self.expected = expected
        super().__init__(f"{key}: expected {expected}")


class TomlTable:
    """One table of the TOML; `path` is its full name. Fields that are left in the end are mistakes."""

    def __init__(self, content: object, path: str) -> None:
        if not isinstance(content, dict):
            raise ScenarioError(path, f"a table, not {shown(content)}")
        self._content: dict[str, Any] = dict(content)
        self._known: list[str] = []
        self.path = path

    def key(self, name: str) -> str:
        """Return the full key of a field, as people would write it."""
        quoted = f'"{name}"' if "." in name else name
        return f"{self.path}.{quoted}" if self.path else quoted

    def fail(self, name: str, expected: str) -> NoReturn:
        """Raise for a field."""
        raise ScenarioError(self.key(name), expected)

    def has(self, name: str) -> bool:
        """Whether a field is there."""
        self._known.append(name)
        return name in self._content

    def take(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - whatever TOML holds
        """Take a field out."""
        self._known.append(name)
        return self._content.pop(name, default)

    def integer(self, name: str, default: int | None, low: int = 0, high: int = DAY_MS) -> int:
        """Take a whole number within bounds; required when `default` is None."""
        value = self.take(name, default)
        if type(value) is not int or not low <= value <= high:
            self.fail(name, f"a whole number from {low} to {high}, not {shown(value)}")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Take true or false."""
        value = self.take(name, default)
        if type(value) is not bool:
            self.fail(name, f"true or false, not {shown(value)}")
        return value

    def text(self, name: str, default: str | None) -> str:
        """Take a string that is not empty."""
        value = self.take(name, default)
        if type(value) is not str or not value:
            self.fail(name, f"a text, not {shown(value)}")
        return value

    def one_of(self, name: str, choices: Mapping[str, _T], default: str | None) -> _T:
        """Take one of several names."""
        value = self.take(name, default)
        if type(value) is not str or value not in choices:
            self.fail(name, f"one of {', '.join(choices)}, not {shown(value)}")
        return choices[value]

    def int_range(self, name: str, default: tuple[int, int], high: int = DAY_MS) -> IntRange:
        """Take a pair [low, high], or one number for both."""
        value = self.take(name, list(default))
        pair = [value, value] if type(value) is int else value
        whole = type(pair) is list and len(pair) == 2 and all(type(item) is int for item in pair)
        if not whole or not 0 <= pair[0] <= pair[1] <= high:
            self.fail(name, f"[low, high], whole numbers from 0 to {high}, not {shown(value)}")
        return IntRange(pair[0], pair[1])

    def timestamp(self, name: str, default: int) -> int:
        """Take a date with time and zone, as ms since 1970."""
        if not self.has(name):
            return default
        value = self.take(name)
        if type(value) is not datetime or value.tzinfo is None:
            self.fail(name, f"a date with time and zone like 2026-01-31T08:00:00Z, not {shown(value)}")
        return int(value.timestamp() * 1000)

    def rate(self, name: str) -> float:
        """Take a share from 0 to 1."""
        value = self.take(name, 0)
        if type(value) not in (int, float) or not 0 <= value <= 1:
            self.fail(name, f"a number from 0 to 1, not {shown(value)}")
        return float(value)

    def tables(self, name: str) -> list["TomlTable"]:
        """Take an array of tables."""
        value = self.take(name, [])
        if type(value) is not list:
            self.fail(name, f"tables, [[{name}]], not {shown(value)}")
        return [TomlTable(item, f"{self.key(name)}[{number}]") for number, item in enumerate(value)]

    def table(self, name: str) -> "TomlTable":
        """Take a table, an empty one if there is none."""
        return TomlTable(self.take(name, {}), self.key(name))

    def strings(self, name: str) -> dict[str, str]:
        """Take a table of configuration: Kafka's names and values, which become strings."""
        inner = self.table(name)
        found: dict[str, str] = {}
        for key, value in inner._content.items():  # noqa: SLF001 - of this class
            if isinstance(value, bool):
                found[key] = "true" if value else "false"
            elif isinstance(value, int | str):
                found[key] = str(value)
            else:
                inner.fail(key, f"a number, text, true or false, not {shown(value)}")
        return found

    def partition(self, name: str) -> tuple[str, int] | None:
        """Take a partition, `topic-0`."""
        if not self.has(name):
            return None
        value = self.text(name, None)
        topic, _, number = value.rpartition("-")
        if not topic or not number.isdecimal():
            self.fail(name, f"a partition like orders-0, not {shown(value)}")
        return topic, int(number)

    def check_all_taken(self) -> None:
        """Raise for an unknown field."""
        for name in self._content:
            near = [known for known in self._known if known.replace("_", "") == name.replace("_", "").replace("-", "")]
            self.fail(
                name,
                f"no such key{f', {near[0]} is one' if near else ''}; known are {', '.join(sorted(set(self._known)))}",
            )


def shown(value: object) -> str:
    """Return a value as messages quote it, at most 60 characters."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
