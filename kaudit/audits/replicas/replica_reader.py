"""One replica of a partition as columns of its valid batches, in offset order, a window at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kaudit.audits.replicas.compare import COLUMNS, Columns, no_rows
from kaudit.audits.replicas.gaps import ReplicaGaps
from kaudit.model.batch import Batches, concatenate, last_offsets
from kaudit.model.damage import DamageKind
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.result import PartitionSummary
from kaudit.reading.batch_order import OrderFilter
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import log_end, placed_batches_from
from kaudit.reading.segment import ByteRange
from kaudit.reading.unread_segments import Failure, UnreadSegments, failure, require_whole
from kaudit.source.layout import PartitionDirectory, Unreadable

MAX_EPOCHS = 10_000
"""Most leader epochs kept of one replica."""
_NO_BOUND = 2**63 - 1


class AuditedReplica(Struct, frozen=True):
    """What an audit found of a log without damage: its offsets `start_offset` to `end_offset` (exclusive), its leader epochs.

    `ranges` of offsets are all that may differ from the other copies, ascending and apart; the rest need not be read again.
    """

    start_offset: int
    end_offset: int
    leader_epochs: Sequence[EpochEntry]
    ranges: Sequence[range]


class ReplicaReader:
    """Reads a replica from front to back, of one that was audited the ranges that may differ.

    `pending` are the rows that were read and not yet taken. Batches wholly below the log start offset are left out. Valid
    after the end: `end_offset`, `leader_epochs`, `gaps`, `damaged` (some bytes are not a valid batch), `ends_damaged`, `unreadable`.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        open_source: OpenSource,
        *,
        verify: bool,
        log_start_offset: int | None,
        audited: AuditedReplica | None = None,
    ) -> None:
        self.directory = directory
        self.pending: Columns = no_rows()
        self.ended = False
        self.batches = 0
        self.records = 0
        self.bytes_read = 0
        self.first_offset: int | None = (
            None if audited is None or audited.start_offset == audited.end_offset else audited.start_offset
        )
        self.damaged = False
        self.ends_damaged = False
        self.gaps = ReplicaGaps(directory.segments)
        self._unread = UnreadSegments(directory.segments)
        self._open = open_source
        self._verify = verify
        self._start = log_start_offset or 0
        self._epochs: list[EpochEntry] = []
        self._next_offset: int | None = None
        self._audited = audited
        self._pieces = self._read() if audited is None else self._read_ranges(audited.ranges)

    def fill(self) -> None:
        """Read until there are pending rows, or the log ends."""
        while not self.ended and not len(self.pending["base_offset"]):
            try:
                self._take(*next(self._pieces))
            except StopIteration:
                self.ended = True

    def take(self, until: int) -> Columns:
        """Return the pending rows that begin at or before offset `until`, and remove them."""
        count = int(np.searchsorted(self.pending["base_offset"], until, side="right"))
        taken = {name: column[:count] for name, column in self.pending.items()}
        self.pending = {name: column[count:] for name, column in self.pending.items()}
        return taken

    @property
    def unreadable(self) -> list[Unreadable]:
        """The parts of the log that could not be read."""
        return self._unread.unreadable

    @property
    def removed(self) -> list[Unreadable]:
        """Segments that retention removed while the log was read."""
        return self._unread.removed

    @property
    def end_offset(self) -> int:
        """Offset after the last valid batch; without one, or with an empty last segment, where that log or segment begins."""
        if self._audited is not None:
            return self._audited.end_offset
        return log_end(self.directory, self._next_offset, self._start)

    @property
    def leader_epochs(self) -> Sequence[EpochEntry]:
        """The leader epochs of the batches (>= 0), ascending: a lower one after a higher is damage, not an epoch."""
        return self._epochs if self._audited is None else self._audited.leader_epochs

    def summary(self, replica: str, log_start_offset: int | None, records: int) -> PartitionSummary:
        """Return what was read, `records` of it, under a name of the replica."""
        return PartitionSummary(
            topic=self.directory.topic,
            partition=self.directory.partition,
            replica=replica,
            log_start_offset=log_start_offset,
            log_end_offset=self.end_offset,
            last_stable_offset=None,
            compacted=self.directory.first_dirty_offset is not None,
            segments=len(self.directory.segments),
            bytes=self.directory.bytes,
            batches=self.batches,
            records=records,
        )

    def _take(self, segment: int, batches: Batches) -> None:
        lasts = last_offsets(batches)
        keep = lasts >= self._start
        if not keep.all():
            batches, lasts = batches[keep], lasts[keep]
        if not len(batches):
            return
        rows = {name: batches[name] for name in COLUMNS if name not in ("last_offset", "segment")}
        rows["last_offset"] = lasts
        rows["segment"] = np.full(len(batches), segment, dtype=np.int32)
        self.pending = rows
        self.batches += len(batches)
        self.records += int(np.maximum(batches["record_count"], 0).sum(dtype=np.int64))
        if self.first_offset is None:
            self.first_offset = int(batches["base_offset"][0])
        self._next_offset = int(lasts[-1]) + 1
        self.gaps.feed(segment, rows)
        self._note_epochs(batches)

    def _note_epochs(self, batches: Batches) -> None:
        epochs = batches["leader_epoch"]
        reached = self._epochs[-1].epoch if self._epochs else -1
        if int(epochs.max()) <= reached:
            return
        highest = np.maximum.accumulate(np.maximum(epochs, reached))
        before = np.concatenate(([reached], highest[:-1]))
        for index in np.flatnonzero(highest > before)[: MAX_EPOCHS - len(self._epochs)].tolist():
            self._epochs.append(EpochEntry(int(epochs[index]), int(batches["base_offset"][index])))

    def _read_ranges(self, ranges: Sequence[range]) -> Iterator[tuple[int, Batches]]:
        for offsets in ranges:
            # the last batch of the range before may reach into this one
            reached = self._next_offset or 0
            if reached <= offsets.start:
                self.gaps.pass_over()
            try:
                for number, batches in placed_batches_from(self.directory, self._open, offsets.start):
                    bases = batches["base_offset"]
                    yield number, batches[(bases >= reached) & (bases < offsets.stop)]
                    if bases[-1] >= offsets.stop:
                        break
            except OSError as error:
                self._unread.add(failure(error.filename or self.directory.directory, error))

    def _read(self) -> Iterator[tuple[int, Batches]]:
        segments = self.directory.segments
        previous: Batches | None = None
        for number, segment in enumerate(segments):
            bounds = (
                segment.base_offset,
                segments[number + 1].base_offset if number + 1 < len(segments) else _NO_BOUND,
            )
            try:
                source = self._open(segment)
            except OSError as error:
                self._unread.add(failure(segment.path, error))
                continue
            order = _Order(bounds, previous)
            self.ends_damaged = False
            try:
                for piece in stream_batches(
                    source,
                    ByteRange(0, segment.size, segment.size),
                    expected_offset=segment.base_offset,
                    verify=self._verify,
                ):
                    if piece.coverage_gaps:
                        reason = "text of kafka-dump-log: replicas are compared by their bytes"
                        self._unread.add(Failure(segment.path, reason))
                        return
                    if piece.damages:
                        self.damaged = True
                        tail = piece.damages[-1]
                        # zeros at the end were preallocated: the log itself is whole
                        self.ends_damaged = not tail.resynchronised and tail.kind is not DamageKind.ZEROS
                    self.bytes_read += len(piece.batches) and int(piece.batches["size"].sum())
                    yield number, order.feed(piece.batches)
                require_whole(segment, source)
                yield number, order.finish()
            except OSError as error:
                self._unread.add(failure(segment.path, error))
            finally:
                source.close()
            self.damaged = self.damaged or order.disordered
            previous = order.last


class _Order:
    """Passes batches in ascending order on; where they do not ascend, it sorts them out as a scan does (OrderFilter)."""

    def __init__(self, bounds: tuple[int, int], previous: Batches | None) -> None:
        self.disordered = False
        self.last = previous
        self._bounds = bounds
        self._held: Batches | None = None
        self._filter: OrderFilter | None = None

    def feed(self, batches: Batches) -> Batches:
        """Take more batches in file order, return those whose place is certain."""
        if not len(batches):
            return batches
        if self._filter is None:
            held = batches if self._held is None else concatenate((self._held, batches))
            if self._ascends(held):
                # the last two wait: the next batches show whether they belong here
                self._held = held[-2:]
                return self._passed(held[:-2])
            self._start_filter()
            batches = held
        assert self._filter is not None
        settled, _ = self._filter.feed(batches)
        return self._passed(settled)

    def finish(self) -> Batches:
        """Return the remaining batches at the end of the segment."""
        if self._filter is None:
            held = self._held if self._held is not None else concatenate(())
            self._held = None
            return self._passed(held)
        settled, _ = self._filter.finish()
        return self._passed(settled)

    def _start_filter(self) -> None:
        self.disordered = True
        self._filter = OrderFilter()
        if self.last is not None:
            self._filter.enter_segment(0, _NO_BOUND)
            self._filter.feed(self.last)
            self._filter.finish()
        self._filter.enter_segment(*self._bounds)
        self._held = None

    def _passed(self, batches: Batches) -> Batches:
        if len(batches):
            self.last = batches[-1:]
        return batches

    def _ascends(self, batches: Batches) -> bool:
        bases, lasts = batches["base_offset"], last_offsets(batches)
        after = -1 if self.last is None else int(last_offsets(self.last)[0])
        return (
            int(bases[0]) > after
            and int(bases[0]) >= self._bounds[0]
            and int(lasts[-1]) < self._bounds[1]
            and bool((lasts >= bases).all())
            and bool((bases[1:] > lasts[:-1]).all())
        )
