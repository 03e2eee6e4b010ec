"""One partition of one side to rows of identities, in files: the function that is scheduled for every partition."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.replicas.compare import Columns
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.diff.records.places import OFFSET_BITS, places
from kaudit.diff.records.spill import Spill
from kaudit.model.batch_fields import ABORT_MARKER, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.ledger import SideCounts
from kaudit.model.result import PartitionSummary
from kaudit.reading.chunk_plan import OpenSource, whole_segments
from kaudit.reading.chunk_reader import read_serially
from kaudit.reading.content_rows import read_batch
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.producer_grouping import merge
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.layout import PartitionDirectory, Unreadable

IDENTIFIED = np.dtype([("high", "<u8"), ("low", "<u8"), ("key", "<u8"), ("place", "<u8")])
"""A record: its identity, its key's hash, its place. 32 bytes."""
CUT_RECORDS = 1 << 19
"""A place is noted after so many records of a partition: rows between two of them fit into memory."""
_BATCH_BYTES = 1 << 20
"""Bytes of batches that are decoded at once."""
_HELD_ROWS = 1 << 17
_ALL = 2**63 - 2


class RecordTask(Struct, frozen=True):
    """A partition of one side; `number` is its place's, `topic` mixes the pair of topics into identities, `identified` takes the rows."""

    directory: PartitionDirectory
    number: int
    topic: int
    reader: IdentityReader
    read_committed: bool
    identified: Spill
    buckets: int

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.directory.bytes

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


def read_partition(task: RecordTask, options: ScanOptions, open_source: OpenSource) -> ReadPartition:
    """Read one partition; memory is a window, the records of a few batches and _HELD_ROWS rows."""
    directory = task.directory
    start = options.log_start_offset if options.log_start_offset is not None else directory.log_start_offset
    hidden = _Hidden.of(directory, start, open_source) if task.read_committed else _NOTHING_HIDDEN
    reader = ReplicaReader(directory, open_source, verify=options.depth is not Depth.HEADERS, log_start_offset=start)
    rows = _Rows(task, start or 0)
    while True:
        reader.fill()
        batches = reader.take(_ALL)
        data = batches["attributes"] & CONTROL_FLAG == 0
        data &= ~hidden.of_batches(batches)
        for part in _parts({name: column[data] for name, column in batches.items()}):
            rows.add(part, open_source)
        if reader.ended:
            break
    rows.flush()
    return ReadPartition(
        number=task.number,
        first_offset=rows.base,
        summary=_summary(directory, reader, rows.records),
        counts=rows.counts(),
        cuts=rows.cuts,
        starts_late=max(start or 0, directory.start_offset) > 0,
        cleaned=directory.first_dirty_offset is not None
        or options.says_compacted(directory.topic)
        or reader.gaps.compacted,
        damaged=reader.damaged,
        unreadable=reader.unreadable,
        removed=reader.removed,
    )


def _summary(directory: PartitionDirectory, reader: ReplicaReader, records: int) -> PartitionSummary:
    return PartitionSummary(
        topic=directory.topic,
        partition=directory.partition,
        replica=directory.replica,
        log_start_offset=reader.first_offset,
        log_end_offset=reader.end_offset,
        last_stable_offset=None,
        compacted=directory.first_dirty_offset is not None,
        segments=len(directory.segments),
        bytes=directory.bytes,
        batches=reader.batches,
        records=records,
    )


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

    producer_ids: NDArray[Any]
    first_offsets: NDArray[Any]
    marker_offsets: NDArray[Any]
    stable_offset: int

    @classmethod
    def of(cls, directory: PartitionDirectory, start: int | None, open_source: OpenSource) -> "_Hidden":
        """Read the markers of a partition."""
        spans = TransactionSpans()
        plan = whole_segments(directory, log_start_offset=start, verify=False, latest_timestamp=2**63 - 1)
        for rows in read_serially(plan, open_source):
            spans.feed(merge(rows.runs, rows.markers))
        ended = spans.ended()
        aborts = ended[(ended["type"] == ABORT_MARKER) & (ended["first_offset"] >= 0)]
        aborts = aborts[np.lexsort((aborts["first_offset"], aborts["producer_id"]))]
        return cls(aborts["producer_id"], aborts["first_offset"], aborts["marker_offset"], spans.stable_offset)

    def of_batches(self, batches: Columns) -> NDArray[np.bool_]:
        """Return which batches are hidden."""
        offsets, hidden = batches["base_offset"], batches["last_offset"] >= self.stable_offset
        transactional = np.flatnonzero(batches["attributes"] & TRANSACTIONAL_FLAG != 0)
        if not len(transactional) or not len(self.producer_ids):
            return hidden
        # the last aborted transaction of each batch's producer that begins at or before it
        ids = batches["producer_id"][transactional]
        keys = np.rec.fromarrays([self.producer_ids, self.first_offsets], dtype=_BY_PRODUCER)
        wanted = np.rec.fromarrays([ids, offsets[transactional]], dtype=_BY_PRODUCER)
        at = np.searchsorted(keys, wanted, side="right") - 1
        own = (at >= 0) & (self.producer_ids[at] == ids) & (self.marker_offsets[at] > offsets[transactional])
        hidden[transactional] |= own
        return hidden


_BY_PRODUCER = np.dtype([("producer_id", np.int64), ("offset", np.int64)])
_NOBODY = np.empty(0, dtype=np.int64)
_NOTHING_HIDDEN = _Hidden(_NOBODY, _NOBODY, _NOBODY, 2**63 - 1)


class _Rows:
    """Makes rows of the batches of a partition, and writes them under the first bits of their identities."""

    def __init__(self, task: RecordTask, start: int) -> None:
        self.base = 0
        self.cuts: list[int] = []
        self._task = task
        self._start = start
        self._begun = False
        self._held: list[NDArray[Any]] = []
        self.records = self._undecoded = self._whole = self._appended = self._too_far = 0
        self._shift = np.uint64(64 - task.buckets)

    def add(self, batches: Columns, open_source: OpenSource) -> None:
        """Take batches of data that lie in one segment."""
        if not self._begun:
            self.base, self._begun = max(int(batches["base_offset"][0]), self._start), True
        whole: list[memoryview] = []
        segment = self._task.directory.segments[int(batches["segment"][0])]
        with closing(open_source(segment)) as source:
            for position, size in zip(batches["position"].tolist(), batches["size"].tolist(), strict=True):
                try:
                    whole.append(read_batch(source, position, size))
                except (OSError, ValueError):
                    self._undecoded += 1
        found, undecoded = self._task.reader.columns(whole)
        self._undecoded += len(undecoded)
        self._take(found)
        appended = batches["attributes"] & LOG_APPEND_TIME_FLAG != 0
        self._appended += int(np.maximum(batches["record_count"][appended], 0).sum(dtype=np.int64))

    def _take(self, found: IdentityColumns) -> None:
        offsets = found.offsets - self.base
        seen = offsets >= self._start - self.base
        kept = seen & (offsets < 1 << OFFSET_BITS)
        self._too_far += int(np.count_nonzero(seen & ~kept))
        rows = np.empty(int(np.count_nonzero(kept)), dtype=IDENTIFIED)
        rows["high"] = found.identities[kept, 0] ^ np.uint64(self._task.topic)
        rows["low"] = found.identities[kept, 1]
        rows["key"] = found.keys[kept]
        rows["place"] = places(self._task.number, offsets[kept], found.null_values[kept])
        self._whole += int(np.count_nonzero(found.whole[kept]))
        before, self.records = self.records, self.records + len(rows)
        first = -before % CUT_RECORDS
        self.cuts += rows["place"][first::CUT_RECORDS].tolist()
        self._held.append(rows)
        if sum(map(len, self._held)) >= _HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            rows = np.concatenate(self._held)
            bits = self._task.buckets
            numbers = (rows["high"] >> self._shift).astype(np.int64) if bits else np.zeros(len(rows), dtype=np.int64)
            self._task.identified.append(numbers, rows)
            self._held = []

    def counts(self) -> SideCounts:
        """Return what was counted."""
        return SideCounts(self.records, self._undecoded, self._whole, self._appended, self._too_far)
