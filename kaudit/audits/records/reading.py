"""One partition to rows of identities, in files: the function that is scheduled for every partition."""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import OFFSET_BITS, places
from kaudit.audits.records.sequences import NO_SEQUENCES, RepeatedSequences, SequenceWatch
from kaudit.audits.records.spill import Spill
from kaudit.audits.records.stored import PART, StoredBatches, part_of, stored_rows
from kaudit.audits.replicas.compare import Columns
from kaudit.audits.replicas.replica_reader import AuditedReplica, ReplicaReader
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.formats.log.record_spans import BatchBytes
from kaudit.model.batch_fields import ABORT_MARKER, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.ledger import SideCounts
from kaudit.model.result import PartitionSummary
from kaudit.reading.chunk_plan import OpenSource, whole_segments
from kaudit.reading.chunk_reader import read_serially
from kaudit.reading.content_rows import bytes_of_batches
from kaudit.reading.failed_reads import FailedReads
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.producer_grouping import merge
from kaudit.source.layout import PartitionDirectory, Unreadable

IDENTIFIED = np.dtype([("high", "<u8"), ("low", "<u8"), ("key", "<u8"), ("place", "<u8")])
"""A record: its identity, its key's hash, its place. 32 bytes."""
CUT_RECORDS = 1 << 19
"""A place is noted after so many records of a partition: rows between two of them fit into memory."""
_BATCH_BYTES = 1 << 20
"""Bytes of batches that are decoded at once."""
_HELD_ROWS = 1 << 17
_NEAR = 4096
"""Offsets between two ranges that are read rather than passed over."""
_ALL = 2**63 - 2


class ReadAgain(Struct, frozen=True):
    """A partition that was read before: where its places count from, the offsets to read, int64 rows of (first, after the last), and about how many bytes these are."""

    base: int
    ranges: NDArray[Any]
    bytes: int

    def to_read(self) -> list[range]:
        """Return the ranges, those near to one another as one."""
        starts, ends = self.ranges[:, 0], self.ranges[:, 1]
        apart = np.append(True, starts[1:] > ends[:-1] + _NEAR)[: len(starts)]
        lasts = ends[np.append(apart[1:], True)[: len(ends)]]
        return [range(*each) for each in zip(starts[apart].tolist(), lasts.tolist(), strict=True)]


class RecordTask(Struct, frozen=True):
    """A partition that is read; `number` is its place's, `topic` is mixed into identities: equal records differ where it does.

    `identified` takes the rows of records. `placed`: it is noted where batches lie, and in a place's last bit which records
    consumers with read_committed are not given, not which values are null.
    """

    directory: PartitionDirectory
    number: int
    topic: int
    reader: IdentityReader
    read_committed: bool
    identified: Spill
    buckets: int
    placed: bool = False
    again: ReadAgain | None = None

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.directory.bytes if self.again is None else self.again.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The one directory that is read."""
        return [self.directory]


class ReadPartition(Struct, frozen=True):
    """What was read of a partition: where its offsets begin, its counts, and a place after every CUT_RECORDS records.

    `starts_late`: records before the first one have been removed. `cleaned`: the log cleaner has been here.
    """

    number: int
    first_offset: int
    summary: PartitionSummary
    counts: SideCounts
    cuts: Sequence[int]
    starts_late: bool
    cleaned: bool
    damaged: bool
    unreadable: Sequence[Unreadable]
    removed: Sequence[Unreadable]
    hidden: NDArray[Any] | None = None
    """Of a partition with transactions, as `hidden_transactions` has them, where batches are placed; so are the next two."""
    parts: NDArray[Any] = np.empty(0, dtype=PART)
    """Rows of PART, in the order of the log."""
    sequences: RepeatedSequences = NO_SEQUENCES


class ReadOptions(Protocol):
    """The options of a scan that are of use here."""

    @property
    def verifies(self) -> bool:
        """Whether CRCs are checked."""

    def says_compacted(self, topic: str) -> bool:
        """Return whether the user says that the topic is compacted."""


def read_partition(task: RecordTask, options: ReadOptions, open_source: OpenSource) -> ReadPartition:
    """Read one partition; memory is a window, the records of a few batches and _HELD_ROWS rows."""
    records = PartitionRecords(task, options, open_source)
    held: list[NDArray[Any]] = []
    for rows, _ in records.parts():
        held.append(rows)
        if sum(map(len, held)) >= _HELD_ROWS:
            _write(task, held)
            held = []
    _write(task, held)
    return records.read()


def _write(task: RecordTask, held: Sequence[NDArray[Any]]) -> None:
    rows = np.concatenate([*held, np.empty(0, dtype=IDENTIFIED)])
    shift, bits = np.uint64(64 - task.buckets), task.buckets
    numbers = (rows["high"] >> shift).astype(np.int64) if bits else np.zeros(len(rows), dtype=np.int64)
    task.identified.append(numbers, rows)


class PartitionRecords:
    """The records of a partition that consumers see, in the order of the log: all, or those to be read again."""

    def __init__(self, task: RecordTask, options: ReadOptions, open_source: OpenSource) -> None:
        directory, again = task.directory, task.again
        start = directory.log_start_offset
        self._task, self._options, self._open = task, options, FailedReads(open_source)
        self._start = start or 0
        # what is read again is of records that consumers see alone
        hides = task.read_committed and again is None
        self._hidden = _Hidden.of(directory, start, open_source) if hides else _NOTHING_HIDDEN
        self._reader = ReplicaReader(
            directory,
            open_source,
            verify=options.verifies,
            log_start_offset=start,
            audited=None if again is None else AuditedReplica(0, _ALL, (), again.to_read()),
        )
        self._again = None if again is None else again.ranges
        self._base = None if again is None else again.base
        self._cuts: list[int] = []
        self._hides: NDArray[Any] | None = None
        self._placed: list[tuple[int, ...]] = []
        self._sequences = SequenceWatch()
        self._records = self._undecoded = self._whole = self._appended = self._too_far = 0

    def parts(self) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Yield rows of IDENTIFIED and the timestamps of these (ms), of a few batches each."""
        while True:
            self._reader.fill()
            batches = self._reader.take(_ALL)
            data = batches["attributes"] & CONTROL_FLAG == 0
            data &= ~self._hidden.of_batches(batches)
            for part in _parts({name: column[data] for name, column in batches.items()}):
                yield self._rows(self._identified(part))
            if self._reader.ended:
                return

    def read(self) -> ReadPartition:
        """Return what was read, after all parts."""
        directory, reader, parts = self._task.directory, self._reader, np.array(self._placed, dtype=PART)
        return ReadPartition(
            number=self._task.number,
            first_offset=self._base or 0,
            summary=reader.summary(directory.replica, reader.first_offset, self._records),
            counts=SideCounts(self._records, self._undecoded, self._whole, self._appended, self._too_far),
            cuts=self._cuts,
            starts_late=max(self._start, directory.start_offset) > 0,
            cleaned=_was_cleaned(directory) or self._options.says_compacted(directory.topic) or reader.gaps.compacted,
            damaged=reader.damaged,
            unreadable=[*reader.unreadable, *self._open.unreadable],
            removed=reader.removed,
            hidden=self._hides,
            parts=parts,
            sequences=self._sequences.found(StoredBatches(directory, parts, self._open).parts),
        )

    def _identified(self, batches: Columns) -> IdentityColumns:
        """Return the records of batches of data that lie in one segment."""
        numbers, data = np.empty(0, dtype=np.intp), BatchBytes.of([])
        segment = self._task.directory.segments[int(batches["segment"][0])]
        with suppress(OSError), closing(self._open(segment)) as source:  # noted by FailedReads
            numbers, data = bytes_of_batches(source, batches["position"], batches["size"])
        self._undecoded += len(batches["size"]) - len(numbers)
        found, undecoded = self._task.reader.columns(data)
        self._undecoded += len(undecoded)
        appended = batches["attributes"] & LOG_APPEND_TIME_FLAG != 0
        self._appended += int(np.maximum(batches["record_count"][appended], 0).sum(dtype=np.int64))
        if self._task.placed:
            self._placed.append(part_of(batches))
            self._sequences.feed(stored_rows(batches))
            found = found._replace(null_values=self._is_hidden(batches)[numbers][found.batches])
        return found

    def _is_hidden(self, batches: Columns) -> NDArray[np.bool_]:
        """Return which batches are of transactions that were aborted or are open."""
        transactional: NDArray[np.bool_] = batches["attributes"] & TRANSACTIONAL_FLAG != 0
        if self._hides is None and transactional.any():
            self._hides = hidden_transactions(_transactions(self._task.directory, self._start, self._open))
        if self._hides is not None:
            transactional &= in_hidden(self._hides, batches["producer_id"], batches["base_offset"]) >= 0
        return transactional

    def _rows(self, found: IdentityColumns) -> tuple[NDArray[Any], NDArray[np.int64]]:
        seen = found.offsets >= self._start
        if self._base is None and seen.any():
            # of a message set of magic 0 or 1 the batch has the last offset only
            self._base = int(found.offsets[seen].min())
        offsets = found.offsets - (self._base or 0)
        if self._again is not None:
            at = np.searchsorted(self._again[:, 0], found.offsets, side="right") - 1
            seen &= (at >= 0) & (found.offsets < self._again[at, 1])
        kept = seen & (offsets >= 0) & (offsets < 1 << OFFSET_BITS)
        self._too_far += int(np.count_nonzero(seen & ~kept))
        rows = np.empty(int(np.count_nonzero(kept)), dtype=IDENTIFIED)
        rows["high"] = found.identities[kept, 0] ^ np.uint64(self._task.topic)
        rows["low"] = found.identities[kept, 1]
        rows["key"] = found.keys[kept]
        rows["place"] = places(self._task.number, offsets[kept], found.null_values[kept])
        self._whole += int(np.count_nonzero(found.whole[kept]))
        before, self._records = self._records, self._records + len(rows)
        first = -before % CUT_RECORDS
        self._cuts += rows["place"][first::CUT_RECORDS].tolist()
        return rows, found.timestamps[kept]


def _was_cleaned(directory: PartitionDirectory) -> bool:
    """Return whether the cleaner's checkpoint says that it read offsets; a broker's answer says only that it may have."""
    first_dirty = directory.first_dirty_offset
    return first_dirty is not None and (first_dirty > 0 or directory.is_fetched)


def _parts(rows: Columns) -> Iterator[Columns]:
    """Cut rows of batches into parts of one segment and about _BATCH_BYTES each."""
    if not len(rows["size"]):
        return
    ends = np.cumsum(rows["size"].astype(np.int64))
    piece = ends // _BATCH_BYTES
    cuts = np.flatnonzero((piece[1:] != piece[:-1]) | (rows["segment"][1:] != rows["segment"][:-1])) + 1
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(ends)], strict=True):
        yield {name: column[first:last] for name, column in rows.items()}


class _Hidden(Struct, frozen=True):
    """What a read_committed consumer is not given: the batches of aborted transactions, and all from the last stable offset on."""

    aborted: NDArray[Any]
    """As `hidden_transactions` has them."""
    stable_offset: int

    @classmethod
    def of(cls, directory: PartitionDirectory, start: int | None, open_source: OpenSource) -> "_Hidden":
        """Read the markers of a partition."""
        spans = _transactions(directory, start, open_source)
        found = hidden_transactions(spans)
        return cls(found[found["marker_offset"] != STILL_OPEN], spans.stable_offset)

    def of_batches(self, batches: Columns) -> NDArray[np.bool_]:
        """Return which batches are hidden."""
        offsets, hidden = batches["base_offset"], batches["last_offset"] >= self.stable_offset
        transactional = np.flatnonzero(batches["attributes"] & TRANSACTIONAL_FLAG != 0)
        if len(transactional) and len(self.aborted):
            found = in_hidden(self.aborted, batches["producer_id"][transactional], offsets[transactional])
            hidden[transactional] |= found >= 0
        return hidden


HIDDEN = np.dtype([("producer_id", "<i8"), ("first_offset", "<i8"), ("marker_offset", "<i8")])
"""A transaction that consumers with read_committed are not given: where it begins, and its marker, STILL_OPEN without one."""
STILL_OPEN = 2**63 - 1


def _transactions(directory: PartitionDirectory, start: int | None, open_source: OpenSource) -> TransactionSpans:
    spans = TransactionSpans()
    plan = whole_segments(directory, log_start_offset=start, verify=False, latest_timestamp=2**63 - 1)
    for rows in read_serially(plan, open_source):
        spans.feed(merge(rows.runs, rows.markers))
    return spans


def hidden_transactions(spans: TransactionSpans) -> NDArray[Any]:
    """Return the transactions that were aborted or are open as HIDDEN, by producer id and offset."""
    ended, still_open = spans.ended(), spans.open_transactions
    aborts = ended[(ended["type"] == ABORT_MARKER) & (ended["first_offset"] >= 0)]
    found = np.empty(len(aborts) + len(still_open), dtype=HIDDEN)
    found["producer_id"] = np.concatenate([aborts["producer_id"], still_open["producer_id"]])
    found["first_offset"] = np.concatenate([aborts["first_offset"], still_open["offset"]])
    found["marker_offset"] = np.append(aborts["marker_offset"], np.full(len(still_open), STILL_OPEN))
    return found[np.lexsort((found["first_offset"], found["producer_id"]))]


def in_hidden(hidden: NDArray[Any], producer_ids: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.intp]:
    """Return in which of these transactions each transactional record lies, -1 in none; shape (n,)."""
    wanted = np.rec.fromarrays([producer_ids, offsets], dtype=_BY_PRODUCER)
    keys = np.rec.fromarrays([hidden["producer_id"], hidden["first_offset"]], dtype=_BY_PRODUCER)
    # the last one of each record's producer that begins at or before it
    at = np.searchsorted(keys, wanted, side="right") - 1
    if not len(hidden):
        return at
    own = (at >= 0) & (hidden["producer_id"][at] == producer_ids) & (hidden["marker_offset"][at] > offsets)
    return np.where(own, at, -1)


_BY_PRODUCER = np.dtype([("producer_id", np.int64), ("offset", np.int64)])
_NOTHING_HIDDEN = _Hidden(np.empty(0, dtype=HIDDEN), 2**63 - 1)
