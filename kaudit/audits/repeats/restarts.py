"""Producers that begin where others ended, at the default depth: those whose first batches are the last ones of another.

Which are compared is decided by the CRC of their records; records themselves decide what is reported (sessions.py).
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from kaudit.audits.repeats.producer_batches import NEAR_BYTES, ProducerBatches, Side
from kaudit.audits.repeats.sessions import PREDECESSORS, Handover, Session
from kaudit.model.columns import Columns
from kaudit.model.dtypes import Int16, Int64, dtype_of
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.rows import Rows
from kaudit.source.layout import PartitionDirectory

MAX_RESTARTS = 100
"""Producers of one partition looked into; each reads some of the log again."""
MAX_PRODUCERS = 20_000
"""With more, most are short-lived, and nothing is compared."""


class _Producer(NamedTuple):
    producer_id: Int64
    producer_epoch: Int16


FIRST_BATCH = dtype_of(_Producer, BoundaryBatch)


class Edge(NamedTuple):
    """The first or last batch of a producer id and epoch."""

    producer_id: int
    producer_epoch: int
    batch: BoundaryBatch


class Restart(Struct, frozen=True):
    """A producer's first batch, and the last ones of those that had ended just before it, the latest first."""

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
        for producer_id, epoch, place in zip(ids, epochs, runs["boundary_start"].take(starts).tolist(), strict=True):
            if (producer_id, epoch) in self._first:
                continue
            if len(self._first) == MAX_PRODUCERS:
                self._too_many = True
                self._first.clear()
                return
            self._first[producer_id, epoch] = BoundaryBatch._make(boundary.item(place))

    def restarts(self, table: Rows) -> tuple[list[Restart], int]:
        """Return the producers that begin behind the end of others, and how many more there are.

        `table` are the rows of all producers at the end of the log: those that had ended are there as they ended.
        """
        if len(table) > MAX_PRODUCERS:
            return [], len(table)
        ended = table[table["has_last"] & (table["txn_first_offset"] < 0)]
        ended = ended[np.argsort(ended["last"]["last_offset"], kind="stable")]
        starts = sorted(self._first.items(), key=lambda entry: entry[1].base_offset)
        places = np.searchsorted(ended["last"]["last_offset"], [batch.base_offset for _, batch in starts])
        behind = np.flatnonzero(places > 0)
        found = []
        for number in behind[:MAX_RESTARTS].tolist():
            (producer_id, epoch), batch = starts[number]
            before = ended[max(int(places[number]) - PREDECESSORS, 0) : int(places[number])]
            found.append(Restart(Edge(producer_id, epoch, batch), [_edge(row) for row in before[::-1]]))
        return found, len(behind[MAX_RESTARTS:])


def _edge(row: Any) -> Edge:  # noqa: ANN401 - np.void
    return Edge(int(row["producer_id"]), int(row["epoch"]), BoundaryBatch._make(row["last"].item()))


def handovers(restarts: Sequence[Restart], directory: PartitionDirectory, open_source: OpenSource) -> list[Handover]:
    """Return those that begin with a batch a predecessor ended with, each with these predecessors.

    Batches that three producers or more have begin or end with are what every producer writes, and no evidence.
    """
    reader = ProducerBatches(directory, open_source, (NEAR_BYTES,))
    heads: dict[Edge, Side] = {}
    tails: dict[Edge, Side] = {}
    owners: defaultdict[tuple[int, ...], set[int]] = defaultdict(set)
    try:
        for restart in restarts:
            heads[restart.first] = reader.after(*_place(restart.first))
            tails |= {edge: reader.before(*_place(edge)) for edge in restart.before if edge not in tails}
    except OSError:
        return []  # reported by the audit itself
    for edge, side in (*heads.items(), *tails.items()):
        for key in side.keys:
            owners[key].add(edge.producer_id)
    found = []
    for restart in restarts:
        first = {key for key in heads[restart.first].keys[:NUM_BATCHES_TO_RETAIN] if len(owners[key]) == 2}
        before = [edge for edge in restart.before if first & set(tails[edge].keys[-NUM_BATCHES_TO_RETAIN:])]
        if before:
            session = _session(restart.first, head=heads[restart.first].batches[:NUM_BATCHES_TO_RETAIN])
            found.append(
                Handover(
                    session, [_session(edge, tail=tails[edge].batches[-NUM_BATCHES_TO_RETAIN:]) for edge in before]
                )
            )
    return found


def _place(edge: Edge) -> tuple[BoundaryBatch, int, int]:
    return edge.batch, edge.producer_id, edge.producer_epoch


def _session(edge: Edge, *, head: Sequence[BoundaryBatch] = (), tail: Sequence[BoundaryBatch] = ()) -> Session:
    batches = [*head, *tail]
    first, last = batches[0].base_offset, batches[-1].last_offset
    return Session(edge.producer_id, edge.producer_epoch, first, last, list(head), list(tail))
