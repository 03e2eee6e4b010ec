"""numpy dtypes of the rows that NamedTuples and Structs declare (model/schema.py), rows of defaults, and load and store.

A field that is another row or None becomes two columns, `has_NAME` and `NAME`; one that is a tuple of at most n rows
becomes `NAME_count` and `NAME`, of which the first `NAME_count` entries count.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from inspect import Parameter, signature
from itertools import starmap
from operator import attrgetter
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from kaudit.model.schema import AtMost

_Row = TypeVar("_Row")


class _Field(NamedTuple):
    """One field. `row` is the class of the row or rows it holds, None for a number; `at_most` 0 unless several."""

    name: str
    dtype: np.dtype[Any]
    row: type[tuple[Any, ...]] | None
    at_most: int
    default: object

    def columns(self) -> list[tuple[Any, ...]]:
        """Return the fields of the dtype that hold this one."""
        if self.row is None:
            return [(self.name, self.dtype)]
        if self.at_most:
            return [(f"{self.name}_count", np.dtype(np.int8)), (self.name, self.dtype, (self.at_most,))]
        return [(f"has_{self.name}", np.dtype(np.bool_)), (self.name, self.dtype)]


@cache
def dtype_of(*schemas: type) -> np.dtype[Any]:
    """Return the dtype of rows with the fields of all these classes, in their order."""
    return np.dtype([column for schema in schemas for field in _fields(schema) for column in field.columns()])


def default_rows(*schemas: type) -> NDArray[Any]:
    """Return an array of one row, its fields as the classes say; those without a default are 0."""
    rows: NDArray[Any] = np.zeros(1, dtype=dtype_of(*schemas))
    for schema in schemas:
        for field in _fields(schema):
            if field.row is None:
                rows[field.name] = field.default
    return rows


def load(schema: Callable[..., _Row], rows: NDArray[Any]) -> list[_Row]:
    """Return the fields of `schema` from rows of a dtype that has them, as Python numbers and rows."""
    return list(starmap(schema, zip(*(_loaded(field, rows) for field in _fields(schema)), strict=True)))


def store(rows: NDArray[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    """Write values, of one class of which `rows` has the fields, to these places, each given once."""
    at = np.asarray(places, dtype=np.intp)
    schema: Callable[..., Any] = type(values[0])
    for field in _fields(schema):
        column = list(map(attrgetter(field.name), values))
        if field.row is None:
            rows[field.name][at] = column
        elif field.at_most:
            counts = np.array([len(entries) for entries in column], dtype=np.intp)
            rows[f"{field.name}_count"][at] = counts
            index = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            held = [entry for entries in column for entry in entries]
            rows[field.name][np.repeat(at, counts), index] = np.array(held, dtype=field.dtype)
        else:
            given = np.array([value is not None for value in column], dtype=np.bool_)
            rows[f"has_{field.name}"][at] = given
            rows[field.name][at[given]] = np.array([value for value in column if value is not None], dtype=field.dtype)


def _loaded(field: _Field, rows: NDArray[Any]) -> list[Any]:
    values: list[Any] = rows[field.name].tolist()
    if field.row is None:
        return values
    made = partial(tuple.__new__, field.row)
    if field.at_most:
        counts = rows[f"{field.name}_count"].tolist()
        return [tuple(map(made, some[:count])) for some, count in zip(values, counts, strict=True)]
    given = rows[f"has_{field.name}"].tolist()
    return [made(value) if has else None for value, has in zip(values, given, strict=True)]


@cache
def _fields(schema: Callable[..., Any]) -> tuple[_Field, ...]:
    defaults = {name: parameter.default for name, parameter in signature(schema).parameters.items()}
    return tuple(
        _field(name, hint, 0 if defaults[name] is Parameter.empty else defaults[name])
        for name, hint in schema.__annotations__.items()
    )


def _field(name: str, hint: Any, default: object) -> _Field:  # noqa: ANN401 - a type
    if get_origin(hint) is UnionType:
        row = get_args(hint)[0]
        return _Field(name, dtype_of(row), row, 0, default)
    about = hint.__metadata__[0]
    if isinstance(about, AtMost):
        row = get_args(hint.__origin__)[0]
        return _Field(name, dtype_of(row), row, about.length, default)
    return _Field(name, np.dtype(about), None, 0, default)
