"""What every row of `kaudit inspect` is made with."""

from collections.abc import Iterable

Row = dict[str, object]
"""One row: JSON-ready values, `row` names its kind (docs/columns.md)."""


def null(value: int | None) -> int | None:
    """Return None for -1, Kafka's mark for a field without a value."""
    return None if value == -1 else value


def fields_of(entry: object, names: Iterable[str], or_null: Iterable[str] = ()) -> Row:
    """Return the attributes of `entry` under their own names; those of `or_null` are None where they are -1."""
    return {name: getattr(entry, name) for name in names} | {name: null(getattr(entry, name)) for name in or_null}
