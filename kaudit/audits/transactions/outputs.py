"""What transactions wrote: the markers of all partitions by producer, and the records before them, read again."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.formats.errors import WireError
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, CONTROL_FLAG, NO_OFFSET
from kaudit.model.exactly_once import EndOfTransaction, OutputRange
from kaudit.model.internal_topics import GROUPS
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import NO_KEY, decodable_records, key_of, read_batch, records_of
from kaudit.reading.log_tail import placed_batches_from
from kaudit.reading.record_content import content_of
from kaudit.reading.rows import Rows
from kaudit.source.layout import PartitionDirectory

TOLERANCE_MS = 5000
"""The markers of a transaction are written together: each leader takes the time from its own clock."""
_LEAST_IN_TURN = 7
"""Pairs of commits with one transaction between them that are no chance."""
_MOST_BYTES = 16 << 20
"""Bytes of the outputs of one transaction that are read again."""


class WrittenContent(Struct, frozen=True):
    """The records of transactions: 64 bits of the content of each, and of the key of each that has one, sorted and distinct.

    `keyed`: whether every record has a key.
    """

    contents: NDArray[np.int64]
    keys: NDArray[np.int64]
    keyed: bool


class TransactionOutputs:
    """The markers of partitions by producer id and time, of each partition those of one replica."""

    def __init__(self, markers: Iterable[Markers]) -> None:
        best: dict[tuple[str, int], Markers] = {}
        for own in markers:
            key = own.directory.topic, own.directory.partition
            known = best.get(key)
            if known is None or known.rows["marker_offset"][-1] < own.rows["marker_offset"][-1]:
                best[key] = own
        self.places = [best[key].directory for key in sorted(best)]
        parts = [best[key].rows for key in sorted(best)]
        rows: Rows = np.concatenate(parts) if parts else np.empty(0, dtype=ENDED_TRANSACTION)
        numbers = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        order = np.lexsort((rows["timestamp"], rows["producer_id"]))
        self.rows: Rows = rows[order]
        self.place: NDArray[np.int32] = numbers[order]
        """The number of each row's partition among `places`."""
        self._inputs: NDArray[np.bool_] = np.array(
            [directory.topic == GROUPS for directory in self.places], dtype=np.bool_
        )

    def between(self, first: EndOfTransaction, last: EndOfTransaction, kind: int) -> NDArray[np.intp]:
        """Return the rows of the outputs of a producer's transactions from one to another, that ended by markers of this kind.

        A producer's transactions follow one another, so what lies nearer to the one before, or after, is that one's.
        """
        own = self._of(first.producer_id)
        times = self.rows["timestamp"][own]
        ends = times[self.is_input(own)]
        before, after = ends[ends < first.ended_ms], ends[ends > last.ended_ms]
        low = first.ended_ms - TOLERANCE_MS
        high = last.ended_ms + TOLERANCE_MS
        if len(before):
            low = max(low, (int(before[-1]) + first.ended_ms) // 2)
        if len(after):
            high = min(high, (int(after[0]) + last.ended_ms) // 2)
        chosen = (times >= low) & (times <= high) & (self.rows["type"][own] == kind)
        chosen &= self.is_output(own)
        if first == last:
            chosen &= self.rows["producer_epoch"][own] == first.producer_epoch
        return own.compress(chosen)

    def is_input(self, rows: slice | NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether the markers end commits of groups."""
        return self._inputs[self.place[rows]]

    def is_output(self, rows: slice | NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether the markers end records of applications."""
        has_begun: NDArray[np.bool_] = self.rows["first_offset"][rows] != NO_OFFSET
        return has_begun & ~self.is_input(rows)

    def ranges(self, rows: NDArray[np.intp]) -> list[OutputRange]:
        """Return what transactions wrote, by partition."""
        found = []
        for place in np.unique(self.place[rows]).tolist():
            own = self.rows[rows[self.place[rows] == place]]
            directory = self.places[place]
            found.append(
                OutputRange(
                    directory.topic,
                    directory.partition,
                    int(own["first_offset"].min()),
                    int(own["marker_offset"].max()),
                    int(own["records"].sum()),
                )
            )
        return found

    def committed(self, first: EndOfTransaction, last: EndOfTransaction) -> list[OutputRange]:
        """Return what committed transactions of a producer wrote, from one to another."""
        return self.ranges(self.between(first, last, COMMIT_MARKER))

    def content(
        self, end: EndOfTransaction, open_source: OpenSource, *, aborted: bool = False
    ) -> WrittenContent | None:
        """Read the records of one transaction again; None where there are none, too many, or some cannot be decoded.

        Raises:
            OSError: a segment cannot be read.

        """
        rows = self.between(end, end, ABORT_MARKER if aborted else COMMIT_MARKER)
        contents: list[NDArray[np.int64]] = []
        keys: list[NDArray[np.int64]] = []
        for row in rows.tolist():
            found = _records(self.places[int(self.place[row])], self.rows[row], open_source)
            if found is None:
                return None
            contents.append(found[0])
            keys.append(found[1])
        if not contents or not sum(map(len, contents)):
            return None
        every = np.concatenate(keys)
        return WrittenContent(np.unique(np.concatenate(contents)), np.unique(every[every != NO_KEY]), bool(every.all()))

    def ends_without_inputs(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the producer ids whose transactions have no commits of groups, with the times at which these were committed (ms).

        Of several partitions those of the one that most of them wrote to.
        """
        for producer_id in np.unique(self.rows["producer_id"]).tolist():
            own = self._of(producer_id)
            if not self.is_input(own).any():
                committed = own[self.rows["type"][own] == COMMIT_MARKER]
                place = np.bincount(self.place[committed], minlength=1).argmax()
                yield producer_id, self.rows["timestamp"][committed[self.place[committed] == place]]

    def without_inputs(self, producer_id: int, since_ms: int) -> tuple[int, NDArray[np.intp]]:
        """Return how many committed transactions of a producer commit offsets, and the rows of outputs of those that do not.

        Only of those between two that do, from `since_ms` on: since then the log of the group has no gap. Each epoch is looked at by
        itself: from transaction version 2 on (KIP-890) it is one transaction. Of several in one, those that have no marker of a
        group near theirs do not, if as many such markers are missing: else times do not tell which is which, and none is returned.
        """
        own = self._of(producer_id)
        own = own[(self.rows["type"][own] == COMMIT_MARKER) & (self.rows["timestamp"][own] >= since_ms)]
        with_inputs = self.rows["timestamp"][own[self.is_input(own)]]
        if not len(with_inputs):
            return 0, own[:0]
        times = self.rows["timestamp"][own]
        own = own[(times >= with_inputs.min()) & (times <= with_inputs.max())]
        found = [np.empty(0, dtype=np.intp)]
        committing = 0
        for epoch in np.unique(self.rows["producer_epoch"][own]).tolist():
            rows = own[self.rows["producer_epoch"][own] == epoch]
            ends = self.rows["timestamp"][rows[self.is_input(rows)]]
            outputs = rows[self.is_output(rows)]
            committing += len(ends)
            if len(outputs):
                most = outputs[self.place[outputs] == np.bincount(self.place[outputs]).argmax()]
                written = self.rows["timestamp"][most]
                near = np.searchsorted((written[1:] + written[:-1]) // 2, ends, side="right")
                alone = np.setdiff1d(np.arange(len(most)), near)
                if len(alone) == len(most) - len(ends):
                    found.append(most[alone])
        return committing, np.concatenate(found)

    def later_commits(self, producer_ids: Collection[int], after_ms: int, most: int) -> list[EndOfTransaction]:
        """Return the first committed transactions of these producers with commits of groups that end after a time (ms)."""
        rows = np.concatenate([np.empty(0, dtype=np.intp), *map(self._of, sorted(producer_ids))])
        rows = rows[self.is_input(rows) & (self.rows["type"][rows] == COMMIT_MARKER)]
        rows = rows[self.rows["timestamp"][rows] > after_ms]
        return list(map(self.end_of, rows[np.argsort(self.rows["timestamp"][rows], kind="stable")][:most].tolist()))

    def end_of(self, row: int) -> EndOfTransaction:
        """Return the transaction that a marker ends; its `marker_offset` is that of the marker in its own partition."""
        names = ("producer_id", "producer_epoch", "timestamp", "marker_offset")
        producer_id, epoch, timestamp, offset = (int(self.rows[row][name]) for name in names)
        return EndOfTransaction(producer_id, epoch, timestamp, offset)

    def some(self, producer_id: int, after_ms: int, before_ms: int, most: int) -> list[EndOfTransaction]:
        """Return some committed transactions of a producer in a time (ms), spread over it."""
        rows = self._of(producer_id)
        times = self.rows["timestamp"][rows]
        rows = rows[(self.rows["type"][rows] == COMMIT_MARKER) & (times >= after_ms) & (times <= before_ms)]
        spread = np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.intp)
        return list(map(self.end_of, rows[spread].tolist()))

    def _of(self, producer_id: int) -> NDArray[np.intp]:
        bounds = np.searchsorted(self.rows["producer_id"], [producer_id, producer_id + 1])
        return np.arange(*bounds)


def _records(
    directory: PartitionDirectory, row: Rows, open_source: OpenSource
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return content and key of each record of one transaction in one partition."""
    first, marker, producer_id = (int(row[name]) for name in ("first_offset", "marker_offset", "producer_id"))
    contents: list[int] = []
    keys: list[int] = []
    room = _MOST_BYTES
    for segment, batches in placed_batches_from(directory, open_source, first):
        own = batches[
            (batches["producer_id"] == producer_id)
            & (batches["base_offset"] < marker)
            & (batches["attributes"] & CONTROL_FLAG == 0)
        ]
        room -= int(own["size"].sum())
        if room < 0:
            return None
        with closing(open_source(directory.segments[segment])) as source:
            for position, size in zip(own["position"].tolist(), own["size"].tolist(), strict=True):
                try:
                    for record in records_of(read_batch(source, position, size)):
                        contents.append(content_of(record))
                        keys.append(key_of(record))
                except (WireError, ValueError):
                    return None
        if int(batches["base_offset"][-1]) >= marker:
            break
    columns = np.array([contents, keys], dtype=np.uint64).view(np.int64)
    return columns[0], columns[1]


def keys_read(directory: PartitionDirectory, first: int, end: int, open_source: OpenSource) -> NDArray[np.int64]:
    """Return the distinct keys of data from one offset to another, of so many bytes at most; of what can be decoded.

    Raises:
        OSError: a segment cannot be read.

    """
    keys: set[int] = set()
    room = _MOST_BYTES
    for segment, batches in placed_batches_from(directory, open_source, first):
        own = batches[(batches["base_offset"] < end) & (batches["attributes"] & CONTROL_FLAG == 0)]
        room -= int(own["size"].sum())
        if room < 0:
            break
        with closing(open_source(directory.segments[segment])) as source:
            keys.update(map(key_of, decodable_records(source, own)))
        if int(batches["base_offset"][-1]) >= end:
            break
    return np.array(sorted(keys - {NO_KEY}), dtype=np.uint64).view(np.int64)


def alternate(commits: Sequence[int], ends: NDArray[np.int64]) -> bool:
    """Whether one transaction ends between any two of these times (ms, ascending), but for one in ten: some are repeated.

    An application that commits its offsets before or after each transaction does so; other programs do by chance now and then.
    Markers are written soon after a client is told that its transaction is committed, so that they may follow its next commit.
    """
    times = np.array(commits, dtype=np.int64)
    if len(times) <= _LEAST_IN_TURN:
        return False
    steps = np.diff(times)
    shifts = (0, int(np.median(steps)) // 2)
    alone = [np.count_nonzero(np.diff(np.searchsorted(ends - shift, times, side="right")) == 1) for shift in shifts]
    return int(max(alone)) * 10 >= len(steps) * 9
