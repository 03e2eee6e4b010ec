"""The conditions that rows of `kaudit inspect` must meet."""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.inspect.rows import Row
from kaudit.model.batch import Batches, first_timestamps, last_offsets

AROUND_BATCHES = 5
"""Batches shown on each side of the one that holds the offset asked for."""
_ALWAYS = frozenset({"damage"})


class RowFilter(Struct, frozen=True):
    """Conditions that all must hold; an empty set or None is no condition. Offsets are inclusive, times ms.

    A row without a field that is asked about is left out, except damage, which may hide what is looked for.
    """

    producer_ids: frozenset[int] = frozenset()
    producer_epochs: frozenset[int] = frozenset()
    leader_epochs: frozenset[int] = frozenset()
    first_offset: int | None = None
    last_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def active(self) -> bool:
        """Whether anything was asked for."""
        return self != RowFilter()

    def of_batches_only(self) -> "RowFilter":
        """The conditions that batches can be tested for where records name producers of their own (internal topics)."""
        return replace(self, producer_ids=frozenset(), producer_epochs=frozenset(), since_ms=None, until_ms=None)

    def mask(self, batches: Batches) -> NDArray[np.bool_]:
        """Return for each batch whether it may match; its times and offsets are ranges."""
        wanted = np.ones(len(batches), dtype=np.bool_)
        for chosen, name in self._ids():
            if chosen:
                wanted &= np.isin(batches[name], np.fromiter(chosen, np.int64, len(chosen)))
        if self.first_offset is not None:
            wanted &= last_offsets(batches) >= self.first_offset
        if self.last_offset is not None:
            wanted &= batches["base_offset"] <= self.last_offset
        if self.since_ms is not None:
            wanted &= batches["max_timestamp"] >= self.since_ms
        if self.until_ms is not None:
            earliest = first_timestamps(batches)
            wanted &= (earliest <= self.until_ms) & (earliest >= 0)
        return wanted

    def accepts(self, row: Row) -> bool:
        """Whether a finished row is one of those asked for."""
        return row["row"] in _ALWAYS or (
            self._accepts_ids(row) and self._accepts_offsets(row) and self._accepts_times(row)
        )

    def _accepts_ids(self, row: Row) -> bool:
        return all(not chosen or row.get(name) in chosen for chosen, name in self._ids())

    def _accepts_offsets(self, row: Row) -> bool:
        if self.first_offset is None and self.last_offset is None:
            return True
        first, last = _range(row, "base_offset", "offset", "first_offset", "last_offset")
        return (
            first is not None
            and last is not None
            and (self.first_offset is None or last >= self.first_offset)
            and (self.last_offset is None or first <= self.last_offset)
        )

    def _accepts_times(self, row: Row) -> bool:
        if self.since_ms is None and self.until_ms is None:
            return True
        time = row.get("max_timestamp", row.get("timestamp"))
        return (
            isinstance(time, int)
            and (self.since_ms is None or time >= self.since_ms)
            # a batch's row has only its last time: the mask has compared its first
            and (self.until_ms is None or time <= self.until_ms or row["row"] == "batch")
        )

    def _ids(self) -> tuple[tuple[frozenset[int], str], ...]:
        return (
            (self.producer_ids, "producer_id"),
            (self.producer_epochs, "producer_epoch"),
            (self.leader_epochs, "leader_epoch"),
        )


def _range(row: Row, *names: str) -> tuple[int | None, int | None]:
    values = [value for name in names if isinstance(value := row.get(name), int)]
    return (values[0], values[-1]) if values else (None, None)


def around(rows: Iterable[Row], offset: int) -> Iterator[Row]:
    """Yield the batch that holds `offset` (or the first beyond it) with its neighbours, and damage among them."""
    before: deque[Row] = deque(maxlen=AROUND_BATCHES)
    after: int | None = None
    for row in rows:
        if after is None:
            last = row.get("last_offset")
            if row["row"] == "batch" and isinstance(last, int) and last >= offset:
                yield from before
                yield row
                after = AROUND_BATCHES
            else:
                before.append(row)
            continue
        if after == 0:
            return
        yield row
        after -= 1
    if after is None:
        yield from before
