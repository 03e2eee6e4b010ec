"""Numbers and lists in the sentences of findings."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return `1 record` or `1,234 records`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """Return `b1`, `b1 and b2` or `b1, b2 and b3`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
