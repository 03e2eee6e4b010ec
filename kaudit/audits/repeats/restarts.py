"""Producers that begin after others ended, or with a new epoch: those whose first records may be there before.

A client that raises its epoch renumbers its batches in flight from 0 and sends them again: their headers change, their
records do not (Kafka's ProducerBatch.resetProducerState). If they had been appended, the tail of the old epoch stands again
at the head of the new one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import NO_SEGMENT
from kaudit.model.schema import Int16, Int64
from kaudit.reading.rows import Rows

PREDECESSORS = 8
"""Producers that ended most recently before one began, with which it is compared."""
MAX_RESTARTS = 100
"""Producers of one partition looked into; each reads some of the log again."""
MAX_PRODUCERS = 20_000
"""With more producers than this, most are short-lived, and nothing is compared."""


class _Producer(NamedTuple):
    producer_id: Int64
    producer_epoch: Int16


FIRST_BATCH = dtype_of(_Producer, BoundaryBatch)


class Edge(NamedTuple):
    """The first or last batch of a producer id and epoch."""

    producer_id: int
    producer_epoch: int
    batch: BoundaryBatch

    @property
    def producer(self) -> tuple[int, int]:
        """The producer id and epoch."""
        return self.producer_id, self.producer_epoch


class Restart(Struct, frozen=True):
    """A producer's first batch, and the last ones of its own last epoch, and of those that had ended just before it, the latest first."""

    first: Edge
    before: Sequence[Edge]


class RestartTracker:
    """Takes a partition's runs, chunks in offset order."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], BoundaryBatch] = {}
        self._too_many = False

    def saved(self) -> tuple[Rows, bool]:
        """Return all it knows: the first batches as rows, as objects take ten times as long to load."""
        first = [(*producer, *batch) for producer, batch in self._first.items()]
        return np.array(first, dtype=FIRST_BATCH), self._too_many

    @classmethod
    def of(cls, first: Rows, too_many: bool) -> "RestartTracker":  # noqa: FBT001 - as it was saved
        """Return a tracker that knows what was saved."""
        if first.dtype != FIRST_BATCH:
            raise ValueError("no first batches of producers")
        tracker = cls()
        tracker._first = {(producer_id, epoch): BoundaryBatch(*batch) for producer_id, epoch, *batch in first.tolist()}
        tracker._too_many = too_many
        return tracker

    def feed(self, runs: Columns, boundary: Columns) -> None:
        """Take a chunk's runs and their boundary batches."""
        if self._too_many:
            return
        starts = np.flatnonzero((runs["first_sequence"] == 0) & ~runs["is_transactional"])
        ids, epochs = runs["producer_id"].take(starts).tolist(), runs["producer_epoch"].take(starts).tolist()
        places: dict[tuple[int, int], int] = {}
        for producer_id, epoch, place in zip(ids, epochs, runs["boundary_start"].take(starts).tolist(), strict=True):
            if (producer_id, epoch) not in self._first:
                places.setdefault((producer_id, epoch), place)
        if len(self._first) + len(places) > MAX_PRODUCERS:
            self._too_many = True
            self._first.clear()
            return
        batches = boundary.rows(np.fromiter(places.values(), np.intp, len(places))).tolist()
        self._first.update(zip(places, map(BoundaryBatch._make, batches), strict=True))

    def restarts(self, table: Rows, most: int = MAX_RESTARTS) -> tuple[list[Restart], int]:
        """Return the producers that begin after the end of others, `most` of them, and how many more there are.

        `table` are the rows of all producers at the end of the log: those that had ended are there as they ended.
        """
        if len(table) > MAX_PRODUCERS:
            return [], len(table)
        here = table["has_last"] & (table["last"]["segment"] != NO_SEGMENT)
        ended = table[here & (table["txn_first_offset"] < 0)]
        ended = ended[np.argsort(ended["last"]["last_offset"], kind="stable")]
        starts = sorted(self._first.items(), key=lambda entry: entry[1].base_offset)
        places = np.searchsorted(ended["last"]["last_offset"], [batch.base_offset for _, batch in starts])
        later = np.flatnonzero(places > 0)
        found = []
        for number in later[:most].tolist():
            (producer_id, epoch), batch = starts[number]
            before = ended[max(int(places[number]) - PREDECESSORS, 0) : int(places[number])]
            found.append(Restart(Edge(producer_id, epoch, batch), [_edge(row) for row in before[::-1]]))
        return found, len(later[most:])


def _edge(row: Any) -> Edge:  # noqa: ANN401 - np.void
    return Edge(int(row["producer_id"]), int(row["epoch"]), BoundaryBatch._make(row["last"].item()))


MAX_BUMPS = 100
"""Bumps of one partition looked into; each reads some of the log again."""


def with_bumps(restarts: Sequence[Restart], observations: Iterable[Observation]) -> tuple[list[Restart], int]:
    """Return the restarts, those of producers that raised their epoch themselves with their last epoch, and how many bumps there are no room for."""
    every = {restart.first.producer: restart for restart in restarts}
    bumps = [found for found in observations if found.kind is ObservationKind.CLIENT_BUMP and not found.explained]
    for bump in bumps[:MAX_BUMPS]:
        state, batch = bump.remembered, bump.batch
        if state is not None and state.last is not None and state.last.segment != NO_SEGMENT and batch is not None:
            first = Edge(bump.producer_id, bump.producer_epoch, batch)
            restart = every.get(first.producer, Restart(first, ()))
            last = Edge(bump.producer_id, state.epoch, state.last)
            every[first.producer] = replace(restart, before=[last, *restart.before])
    found = sorted(every.values(), key=lambda restart: restart.first.batch.base_offset)
    return found, max(len(bumps) - MAX_BUMPS, 0)
