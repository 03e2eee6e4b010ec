"""Rows as one contiguous array per field, so that reading one field of many rows touches only its array.

Where every batch is a run of its own there are as many rows as batches, and writing them out whole costs more than the
rest of a scan. Several tables may share an array, so columns are never written to. A column that is rarely read may be
computed when it is first read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]
"""One row: its fields by name, as Python numbers."""
Column = NDArray[Any] | Callable[[], NDArray[Any]] | int
"""A column of shape (n,); or a function that computes it; or the number that all rows have."""
Indexes = slice | NDArray[Any] | Sequence[int]


class Columns:
    """Rows of a structured dtype, column by column.

    Indexed like a structured array: by name for a column (shape (n,), the field's dtype; shared, not copied), by position
    for one row, by slice (views), mask or index array for some rows.
    """

    __slots__ = ("_columns", "_length", "_part", "dtype")

    def __init__(self, dtype: np.dtype[Any], length: int, columns: Mapping[str, Column]) -> None:
        """Take a column for each field of `dtype`."""
        self.dtype = dtype
        self._length = length
        self._part: slice | None = None
        self._columns: dict[str, Column] = {name: _typed(columns[name], dtype[name]) for name in dtype.names or ()}

    def __reduce__(self) -> tuple[type["Columns"], tuple[Any, ...]]:
        return Columns, (self.dtype, self._length, self._all_held())

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Row]:
        return (self[index] for index in range(self._length))

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: Indexes) -> "Columns": ...
    def __getitem__(self, key: str | int | Indexes) -> "NDArray[Any] | Row | Columns":
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, int):
            return _Row(self, key if key >= 0 else key + self._length)
        if isinstance(key, slice):
            return self._slice(*key.indices(self._length))
        chosen = np.asarray(key, dtype=None if len(key) else np.intp)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)  # once, not once a column
        taken: dict[str, Column] = {
            name: column if isinstance(column, int) else self._column(name).take(chosen)
            for name, column in self._columns.items()
        }
        return _Typed(self.dtype, len(chosen), taken)

    def where(self, rows: NDArray[np.bool_]) -> "Columns":
        """Return the rows of a mask; a column is taken when it is first read, so all columns stay in memory until then."""
        chosen = np.flatnonzero(rows)
        return Columns(self.dtype, len(chosen), {name: partial(self._taken, name, chosen) for name in self._columns})

    def _taken(self, name: str, chosen: NDArray[np.intp]) -> NDArray[Any]:
        return self._column(name).take(chosen)

    def _column(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        if isinstance(column, int):
            return np.full(self._length, column, dtype=self.dtype[name])
        if not isinstance(column, np.ndarray):
            column = self._columns[name] = column().astype(self.dtype[name], copy=False)
        return column if self._part is None else column[self._part]

    def settled(self, dtype: np.dtype[Any] | None = None) -> "Columns":
        """Materialise every column, or those of `dtype` only, and drop unused memory; call before storing rows."""
        kept = self.dtype if dtype is None else dtype
        return Columns(kept, self._length, {name: self._held(name) for name in kept.names or ()})

    def _held(self, name: str) -> NDArray[Any] | int:
        """A column, made, cut to these rows; a number that all rows have stays a number."""
        column = self._columns[name]
        return column if isinstance(column, int) else self._column(name)

    def _all_held(self) -> dict[str, NDArray[Any] | int]:
        return {name: self._held(name) for name in self._columns}

    def _all(self) -> Iterator[tuple[str, NDArray[Any]]]:
        return ((name, self._column(name)) for name in self._columns)

    def _slice(self, first: int, stop: int, step: int) -> "Columns":
        if step != 1:
            return self[np.arange(first, stop, step)]
        before = 0 if self._part is None else int(self._part.start)
        length = max(stop - first, 0)
        return _Typed(self.dtype, length, self._columns, slice(before + first, before + first + length))

    def plus(self, amount: int, *names: str) -> "Columns":
        """Return the same rows with `amount` added to these columns."""
        columns: Mapping[str, Column] = self._columns if self._part is None else self._all_held()
        return Columns(self.dtype, self._length, {**columns, **{name: self[name] + amount for name in names}})

    def replaced(self, name: str, values: NDArray[Any]) -> "Columns":
        """Return the same rows with other values, shape (n,), in this column."""
        columns: Mapping[str, Column] = self._columns if self._part is None else self._all_held()
        return Columns(self.dtype, self._length, {**columns, name: values})

    def rows(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows at these indexes as a structured array, shape of `chosen`."""
        rows = np.empty(len(chosen), dtype=self.dtype)
        for name, column in self._all():
            rows[name] = column.take(chosen)
        return rows

    def item(self, index: int) -> tuple[Any, ...]:
        """Return a row as Python numbers, fields in the dtype's order."""
        return tuple(column.item(index) for _, column in self._all())

    def value(self, name: str, index: int) -> Any:  # noqa: ANN401 - a number of the field's type
        """Return one field of the row at `index` (0 and more) as a Python number."""
        column = self._columns[name]
        if isinstance(column, int):
            return column
        if not isinstance(column, np.ndarray):
            return self._column(name).item(index)
        if self._part is None:
            return column.item(index)
        if index >= self._length:
            raise IndexError(index)
        return column.item(self._part.start + index)

    def tolist(self) -> list[tuple[Any, ...]]:
        """All rows as Python numbers, fields in the dtype's order."""
        return list(zip(*(column.tolist() for _, column in self._all()), strict=True))

    def constant(self, name: str) -> int | None:
        """Return the number that all rows are known to have in this column without looking at them."""
        column = self._columns[name]
        return column if isinstance(column, int) else None


class _Typed(Columns):
    """Rows whose columns have their types already: those of `part`, cut only when they are asked for, for few are."""

    __slots__ = ()

    def __init__(
        self, dtype: np.dtype[Any], length: int, columns: dict[str, Column], part: slice | None = None
    ) -> None:
        self.dtype = dtype
        self._length = length
        self._columns = columns
        self._part = part


class _Row(Mapping[str, Any]):
    """One row, whose fields are looked up only when they are asked for."""

    __slots__ = ("_index", "_rows")

    def __init__(self, rows: Columns, index: int) -> None:
        self._rows = rows
        self._index = index

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a number of the field's type
        return self._rows.value(name, self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.dtype.names or ())

    def __len__(self) -> int:
        return len(self._rows.dtype.names or ())


def no_rows(dtype: np.dtype[Any]) -> Columns:
    """Columns of this dtype without a row."""
    return Columns(dtype, 0, dict.fromkeys(dtype.names or (), 0))


def joined(parts: Sequence[Columns]) -> Columns:
    """All rows of `parts`, which have one dtype, one after the other; there must be at least one part."""
    if len(parts) == 1:
        return parts[0]
    dtype = parts[0].dtype
    return Columns(dtype, sum(map(len, parts)), {name: _joined(parts, name) for name in dtype.names or ()})


def _joined(parts: Sequence[Columns], name: str) -> Column:
    constants = {part.constant(name) for part in parts}
    constant = constants.pop()
    if constant is not None and not constants:
        return constant
    return np.concatenate([part[name] for part in parts])


def _typed(column: Column, dtype: np.dtype[Any]) -> Column:
    return column.astype(dtype, copy=False) if isinstance(column, np.ndarray) else column
