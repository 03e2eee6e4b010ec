"""The entries of one timeline in offset order, each made when it is asked for: as objects, those of a ruined log are memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Entry = dict[str, Any]
FEW = 64
"""So many take less as they are than what makes them."""


class Items(Protocol):
    """Things by their number."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Any: ...  # noqa: ANN401 - whatever entries are made of


class EntrySource(Struct, frozen=True):
    """Entries of one kind: what they are made of, and their offsets (shape (n,)), None for those at no offset.

    Of entries at one offset those of a lower `rank` come first.
    """

    make: Callable[[Any], Entry]
    items: Items
    offsets: Sequence[int | None] | NDArray[np.int64]
    rank: int

    def made(self) -> list[Entry]:
        """Return all of them."""
        return [self.make(self.items[number]) for number in range(len(self.items))]


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
            return [self[number] for number in range(*index.indices(len(self)))]
        source = self._sources[self._source.item(index)]
        return source.make(source.items[self._item.item(index)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def _offsets(offsets: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(offsets, np.ndarray):
        return offsets
    return np.array([-1 if offset is None else offset for offset in offsets], dtype=np.int64)
