"""Broker versions: parsing, order, and the releases of Apache Kafka since producer ids exist."""

import re
from typing import Self

from msgspec import Struct

_NUMBERS = re.compile(r"\s*v?(\d+(?:\.\d+){1,3})(?![\d])(.*)", re.DOTALL)
_LEGACY_MAJOR = 0
_LEGACY_PARTS = 4  # 0.11.0.3: before 1.0 the first two numbers were the major version


class Version(Struct, frozen=True, order=True):
    """A Kafka release such as 2.0.1 or 0.11.0.3; ordered by its numbers."""

    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `2.0.1`, `0.11.0.3`, `4.2` or `3.9.1-SNAPSHOT`; what follows the numbers is ignored.

        Raises ValueError when the text does not start with at least two dotted numbers.
        """
        match = _NUMBERS.fullmatch(text)
        if match is None:
            raise ValueError(f"not a Kafka version: {text!r}, expected something like 2.8.2")
        numbers = tuple(int(part) for part in match[1].split("."))
        longest = _LEGACY_PARTS if numbers[0] == _LEGACY_MAJOR else _LEGACY_PARTS - 1
        return cls(numbers[:longest])

    @property
    def line(self) -> tuple[int, ...]:
        """The release line its bug fixes belong to: (2, 0) for 2.0.1, (0, 11) for 0.11.0.3."""
        return self.numbers[:2]

    @property
    def names_a_line(self) -> bool:
        """Whether only the line was given, as in `4.2` or `0.11`."""
        return len(self.numbers) < (_LEGACY_PARTS if self.numbers[0] == _LEGACY_MAJOR else _LEGACY_PARTS - 1)

    def includes_fix(self, *fixed_in: "Version") -> bool:
        """Return whether this release has a change that first shipped in the releases `fixed_in`.

        A release has it when its own line got it at or before this release; lines not named have it when they are
        newer than the newest one named.
        """
        numbers = self.numbers
        for first in fixed_in:
            if first.numbers[:2] == numbers[:2]:
                return numbers >= first.numbers
        return numbers >= max(first.numbers for first in fixed_in)

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)


_LINES: tuple[tuple[str, range], ...] = (
    ("0.11.0", range(4)),
    ("1.0", range(3)),
    ("1.1", range(2)),
    ("2.0", range(2)),
    ("2.1", range(2)),
    ("2.2", range(3)),
    ("2.3", range(2)),
    ("2.4", range(2)),
    ("2.5", range(2)),
    ("2.6", range(4)),
    ("2.7", range(3)),
    ("2.8", range(3)),
    ("3.0", range(3)),
    ("3.1", range(3)),
    ("3.2", range(4)),
    ("3.3", range(3)),
    ("3.4", range(2)),
    ("3.5", range(3)),
    ("3.6", range(3)),
    ("3.7", range(3)),
    ("3.8", range(2)),
    ("3.9", range(3)),
    ("4.0", range(3)),
    ("4.1", range(3)),
    ("4.2", range(3)),
    ("4.3", range(2)),
    ("4.4", range(1)),
)

RELEASES: tuple[Version, ...] = tuple(Version.parse(f"{line}.{patch}") for line, patches in _LINES for patch in patches)
