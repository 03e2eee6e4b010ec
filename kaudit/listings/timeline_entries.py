"""The entries of one timeline in offset order, each made when it is asked for: as objects, those of a ruined log are memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.model.columns import Columns

Entry = dict[str, Any]
FEW = 64
"""Up to this many entries take less memory than the objects that would make them."""
_AT_A_TIME = 256
"""Entries made together: each column of the rows is looked up once for all of them."""


class RowTuples:
    """Rows as tuples of their fields, made some at a time: to look up every column costs as much as some ten rows."""

    def __init__(self, rows: Columns) -> None:
        self._rows = rows
        self._first = 0
        self._made: list[tuple[Any, ...]] = []

    def tuples(self, wanted: slice) -> list[tuple[Any, ...]]:
        """Return these rows; what is asked for ascends."""
        first, stop = wanted.start, wanted.stop
        if first < stop and stop > self._first + len(self._made):
            self._first = first
            self._made = self._rows[first : max(stop, first + _AT_A_TIME)].tolist()
        return self._made[first - self._first : stop - self._first] if first < stop else []


class EntrySource(Struct, frozen=True):
    """Entries of one kind: what they are made of, and their offsets (shape (n,)), None for those at no offset.

    `make` takes one of the items, of rows the tuple of their fields. Of entries at one offset those of a lower `rank` come first.
    """

    make: Callable[[Any], Entry]
    items: Columns | Sequence[Any]
    offsets: Sequence[int | None] | NDArray[np.int64]
    rank: int

    def made(self) -> list[Entry]:
        """Return all of them."""
        return list(map(self.make, self.items.tolist() if isinstance(self.items, Columns) else self.items))

    def chosen(self, numbers: NDArray[np.int32]) -> "EntrySource":
        """Return those of these numbers."""
        items = self.items[numbers] if isinstance(self.items, Columns) else [self.items[at] for at in numbers.tolist()]
        return replace(self, items=items, offsets=())


class TimelineEntries(Sequence[Mapping[str, object]]):
    """Entries of several sources by offset, then by rank; those at no offset come before all others."""

    def __init__(self, sources: Sequence[EntrySource], *, is_transactional: bool) -> None:
        self._sources = sources
        self.is_transactional = is_transactional
        counts = [len(source.items) for source in sources]
        offsets = np.concatenate([np.empty(0, dtype=np.int64), *(_offsets(source.offsets) for source in sources)])
        ranks = np.repeat(np.array([source.rank for source in sources], dtype=np.int8), counts)
        order = np.lexsort((ranks, offsets))
        self._source = np.repeat(np.arange(len(sources), dtype=np.int8), counts)[order]
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        self._item = (np.arange(len(order)) - starts)[order].astype(np.int32)

    def __reduce__(self) -> tuple[type[list[Entry]], tuple[list[Mapping[str, object]]]]:
        return list, (list(self),)

    def __len__(self) -> int:
        return len(self._item)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, object]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, object]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, object] | Sequence[Mapping[str, object]]:
        if isinstance(index, slice):
            return self._made(np.arange(len(self))[index])
        return self._made(np.arange(len(self))[index : index + 1 or None])[0]

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        for first in range(0, len(self), _AT_A_TIME):
            yield from self[first : first + _AT_A_TIME]

    def _made(self, chosen: NDArray[np.intp]) -> list[Mapping[str, object]]:
        entries: list[Mapping[str, object]] = [{}] * len(chosen)
        of_sources = self._source[chosen]
        for number, source in enumerate(self._sources):
            places = np.flatnonzero(of_sources == number)
            made = source.chosen(self._item[chosen[places]]).made() if len(places) else ()
            for place, entry in zip(places.tolist(), made, strict=True):
                entries[place] = entry
        return entries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def _offsets(offsets: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(offsets, np.ndarray):
        return offsets
    return np.array([-1 if offset is None else offset for offset in offsets], dtype=np.int64)
