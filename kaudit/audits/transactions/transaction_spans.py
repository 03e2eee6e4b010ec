"""Transactions of one partition as the log shows them: where each began and what ended it.

Fed with runs and markers chunk by chunk: a run ends at every marker with records of its producer id, so a transaction
begins with the first transactional run after a marker.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, NO_OFFSET, NO_TIMESTAMP
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Int8, Int16, Int32, Int64
from kaudit.reading.producer_grouping import Merged, group, merge
from kaudit.reading.rows import Rows, pick


class EndedTransaction(NamedTuple):
    """A marker with records, and the transaction it ended."""

    producer_id: Int64
    producer_epoch: Int16
    coordinator_epoch: Int32
    type: Int8
    first_offset: Int64
    """-1: no data before the marker."""
    marker_offset: Int64
    stable_offset: Int64
    """First offset of the oldest other transaction that is open at an abort marker, -1 without one."""
    timestamp: Int64
    position: Int64
    segment: Int32
    records: Int64
    """Of its transactional batches."""
    begun_timestamp: Int64
    """The least timestamp of these, ms, -1 without any: clients write it, as a rule."""


ENDED_TRANSACTION = dtype_of(EndedTransaction)
OPEN_TRANSACTION = np.dtype(
    [(name, np.int64) for name in ("producer_id", "offset", "followed_ms", "records", "begun_timestamp")]
)
"""Where it began, the time of the first marker after its newest batch, -1 without one, and the rest as in EndedTransaction."""
_MOST_PARTS = 256
"""Parts that rows are kept in: of a log that is watched every look makes one."""
_NEVER = np.iinfo(np.int64).max
MAX_ABORTS = 1_000_000
"""Abort markers kept of one partition (74 MB); with more, no marker is kept and none compared."""
MAX_COMMITS = 200_000
"""Commit markers kept of one partition; with more, outcomes are not compared with their coordinator's decisions."""


class TransactionSpans(Struct):
    """Follows the transactions of a partition."""

    _open: Rows = field(default_factory=lambda: np.empty(0, dtype=OPEN_TRANSACTION))
    _ended: list[Rows] = field(default_factory=list)
    _aborts: int = 0
    _commits: int = 0

    def feed(self, merged: Merged) -> None:
        """Take a chunk's runs and its markers that have records, chunks in offset order."""
        spans = _spans(merged, self._open)
        if spans is None:
            return
        self._open = spans.still_open
        is_abort = spans.markers["type"] == ABORT_MARKER
        aborts = int(np.count_nonzero(is_abort))
        self._aborts += aborts
        self._commits += len(is_abort) - aborts
        if not self.has_all_aborts:
            self._ended.clear()
        elif self.has_all_commits:
            self._keep(spans, np.arange(len(is_abort)))
        else:
            self._ended = [pick(rows, rows["type"] == ABORT_MARKER) for rows in self._ended]
            self._keep(spans, np.flatnonzero(is_abort))

    def continue_from(self, entries: Rows) -> None:
        """Begin with the transactions that are open in a producer snapshot; how many records they had before is not known."""
        opened = entries[entries["current_txn_first_offset"] != NO_OFFSET]
        self._open = np.zeros(len(opened), dtype=OPEN_TRANSACTION)
        self._open["offset"] = opened["current_txn_first_offset"]
        self._open["producer_id"] = opened["producer_id"]
        self._open["followed_ms"] = self._open["begun_timestamp"] = NO_TIMESTAMP
        self._open.sort(order="producer_id")

    def followed_ms(self, producer_id: int) -> int:
        """Return the time of the first marker after the newest batch of a producer's open transaction, ms, -1 without one."""
        own = self._open[self._open["producer_id"] == producer_id]
        return int(own["followed_ms"][0]) if len(own) else NO_TIMESTAMP

    @property
    def open_transactions(self) -> Rows:
        """The transactions that are still open, as OPEN_TRANSACTION."""
        return self._open

    @property
    def stable_offset(self) -> int:
        """Where the first transaction that is still open begins: read_committed consumers get nothing from there on; 2^63-1 without one."""
        return int(self._open["offset"].min()) if len(self._open) else _NEVER

    def _keep(self, spans: "_Spans", chosen: NDArray[np.intp]) -> None:
        markers = spans.markers if len(chosen) == len(spans.markers) else spans.markers[chosen]
        rows = np.empty(len(chosen), dtype=ENDED_TRANSACTION)
        for name in ("producer_id", "producer_epoch", "coordinator_epoch", "type", "timestamp", "position", "segment"):
            rows[name] = markers[name]
        rows["marker_offset"] = markers["offset"]
        for name in _BEGUN:
            rows[name] = spans.begun[name].take(chosen)
        rows["stable_offset"] = NO_OFFSET
        aborted = np.flatnonzero(markers["type"] == ABORT_MARKER)
        if len(aborted):
            rows["stable_offset"][aborted] = _oldest_open(*spans.all(), markers["offset"].take(aborted))
        self._ended.append(rows)
        if len(self._ended) > _MOST_PARTS:
            self._ended = [np.concatenate(self._ended)]

    @property
    def has_all_aborts(self) -> bool:
        """Whether every abort marker was kept."""
        return self._aborts <= MAX_ABORTS

    @property
    def has_all_commits(self) -> bool:
        """Whether every commit marker was kept."""
        return self._commits <= MAX_COMMITS

    def outcomes(self, producer_ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> list[str | None]:
        """Return what became of the transactions that hold these offsets: committed, aborted, open; None for an id of -1."""
        aborts = self.ended()
        aborts = pick(aborts, aborts["type"] == ABORT_MARKER)
        aborts = pick(aborts, np.lexsort((aborts["marker_offset"], aborts["producer_id"])))
        result: list[str | None] = [None if producer_id < 0 else "committed" for producer_id in producer_ids.tolist()]
        for index in np.flatnonzero(producer_ids >= 0).tolist():
            own = slice(*np.searchsorted(aborts["producer_id"], [producer_ids[index], producer_ids[index] + 1]))
            at = own.start + int(np.searchsorted(aborts["marker_offset"][own], offsets[index]))
            if at < own.stop and NO_OFFSET != aborts["first_offset"][at] <= offsets[index]:
                result[index] = "aborted"
            at = int(np.searchsorted(self._open["producer_id"], producer_ids[index]))
            known = at < len(self._open) and self._open["producer_id"][at] == producer_ids[index]
            if known and offsets[index] >= self._open["offset"][at]:
                result[index] = "open"
        return result

    def ended(self) -> Rows:
        """All markers kept, by offset; commits only if all of them were kept."""
        rows = np.concatenate(self._ended) if self._ended else np.empty(0, dtype=ENDED_TRANSACTION)
        return pick(rows, group(rows["marker_offset"].copy()).order)


_Begun = dict[str, NDArray[np.int64]]
"""The columns that say of transactions where they began."""
_BEGUN = ("first_offset", "records", "begun_timestamp")
_CONTINUED = ("offset", "records", "begun_timestamp")
"""The same in OPEN_TRANSACTION."""


class _Spans(Struct, frozen=True):
    """A chunk's markers with the offset where the transaction each ends began (-1: none), and what is open after it."""

    markers: Columns
    begun: "_Begun"
    still_open: Rows

    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First offset and marker offset of every transaction; the latter beyond all offsets for an open one."""
        has_begun = self.begun["first_offset"] != NO_OFFSET
        first = np.concatenate((self.begun["first_offset"].compress(has_begun), self.still_open["offset"]))
        ends = self.markers["offset"].compress(has_begun)
        return first, np.concatenate((ends, np.full(len(self.still_open), _NEVER)))


def _spans(merged: Merged, waiting: Rows) -> _Spans | None:
    """Find where the transactions of a chunk begin and end; `waiting` are those open before it, by producer id."""
    kind = merged.markers["type"]
    ends = (kind == ABORT_MARKER) | (kind == COMMIT_MARKER)
    if not ends.all():
        merged = merge(merged.runs, merged.markers[ends])
    # also a batch outside of transactions is the newest of a producer whose transaction is open
    if not len(merged.markers) and not len(waiting) and not merged.runs["is_transactional"].any():
        return None
    # of each marker: the first transactional run after the marker before it
    stops = merged.runs_before_markers
    begun = _begun(merged, merged.first_transactional(merged.before_markers(stops, merged.run_starts)), stops)
    at_end = _begun(merged, merged.opening_runs, merged.run_stops)
    elsewhere = _continue_open(merged, waiting, begun, at_end) if len(waiting) else waiting
    opened = np.flatnonzero(at_end["first_offset"] != NO_OFFSET)
    still_open = np.empty(len(opened), dtype=OPEN_TRANSACTION)
    still_open["producer_id"] = merged.producer_ids.take(opened)
    for name, known in zip(_CONTINUED, _BEGUN, strict=True):
        still_open[name] = at_end[known].take(opened)
    newest = merged.runs["last_offset"].take(merged.last_run.take(opened))
    still_open["followed_ms"] = NO_TIMESTAMP
    if len(elsewhere):
        still_open = np.concatenate((still_open, elsewhere))
        newest = np.concatenate((newest, elsewhere["offset"]))
    alone = np.flatnonzero(still_open["followed_ms"] == NO_TIMESTAMP)
    still_open["followed_ms"][alone] = _first_after(merged.markers, newest.take(alone))
    if len(elsewhere):
        still_open = pick(still_open, np.argsort(still_open["producer_id"], kind="stable"))
    return _Spans(merged.markers, begun, still_open)


def _first_after(markers: Columns, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time of the first of these markers after each offset, -1 without one."""
    if not len(markers) or not len(offsets):
        return np.full(len(offsets), NO_TIMESTAMP, dtype=np.int64)
    order = group(markers["offset"]).order
    times = np.append(markers["timestamp"].take(order), NO_TIMESTAMP)
    return times.take(np.searchsorted(markers["offset"].take(order), offsets))


def _continue_open(merged: Merged, waiting: Rows, begun: _Begun, at_end: _Begun) -> Rows:
    """Write where transactions that were open already began: each goes on to its producer id's first marker or the end.

    `begun` has an entry for each marker, `at_end` one for each producer id. Returns those of other producer ids.
    """
    at = np.minimum(np.searchsorted(waiting["producer_id"].copy(), merged.producer_ids), len(waiting) - 1)
    known = waiting["producer_id"].take(at) == merged.producer_ids
    ended, held = np.flatnonzero(known & merged.has_marker), np.flatnonzero(known & ~merged.has_marker)
    for rows, places, groups in ((begun, merged.marker_starts.take(ended), ended), (at_end, held, held)):
        before = waiting.take(at.take(groups))
        goes_on = rows["first_offset"][places] != NO_OFFSET
        least = np.minimum(before["begun_timestamp"], rows["begun_timestamp"][places])
        rows["begun_timestamp"][places] = np.where(goes_on, least, before["begun_timestamp"])
        rows["records"][places] += before["records"]
        rows["first_offset"][places] = before["offset"]
    elsewhere = np.ones(len(waiting), dtype=np.bool_)
    elsewhere[at.compress(known)] = False
    return pick(waiting, elsewhere)


def _begun(merged: Merged, runs: NDArray[np.intp], stops: NDArray[np.intp]) -> _Begun:
    """Return of transactions that begin with these runs, and go on below their stops, where and when they began, and their records.

    -1 and no records for a run number that is not below its stop.
    """
    transactional = merged.runs["is_transactional"]
    first = np.append(merged.runs["first_offset"], NO_OFFSET)
    times = np.append(np.where(transactional, merged.runs["min_timestamp"], _NEVER), _NEVER)
    before = np.zeros(len(first), dtype=np.int64)
    np.cumsum(np.where(transactional, merged.runs["records"], 0), out=before[1:])
    has, runs = runs < stops, np.minimum(runs, len(first) - 1)
    least = np.minimum.reduceat(times, np.column_stack((runs, stops)).ravel())[::2] if len(runs) else times[:0]
    return {
        "first_offset": np.where(has, first.take(runs), NO_OFFSET),
        "records": np.where(has, before.take(stops) - before.take(runs), 0),
        "begun_timestamp": np.where(has, least, NO_TIMESTAMP),
    }


def _oldest_open(first: NDArray[np.int64], end: NDArray[np.int64], markers: NDArray[np.int64]) -> NDArray[np.int64]:
    """First offset of the oldest transaction open at each marker other than the one it ends, -1 without one."""
    order = group(first).order
    first, reach = first.take(order), np.maximum.accumulate(end.take(order)) if len(order) else end
    # the first transaction in offset order that ends after the marker is the oldest one still open there
    at = np.searchsorted(reach, markers, side="right")
    found = at < len(first)
    result = np.full(len(markers), NO_OFFSET, dtype=np.int64)
    candidates = first.take(at.compress(found))
    result[found] = np.where(candidates < markers.compress(found), candidates, NO_OFFSET)
    return result
