"""One partition replica, from its chunks in offset order to everything the checks need to know."""

import copy
from itertools import zip_longest
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.repeats.non_idempotent_repeats import RepeatDetector
from kaudit.audits.repeats.restarts import MAX_BUMPS, RestartTracker
from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.audits.sequences.transition_audit import FetchRun, TransitionAudit
from kaudit.audits.sidefiles.leader_epoch_audit import lineage_of
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.audits.sidefiles.snapshot_states import SnapshotWatch, entries_at
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.model.columns import Columns
from kaudit.model.coverage import NO_LINES
from kaudit.model.damage import MalformedBatch
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import Run
from kaudit.model.result import CoverageGap
from kaudit.model.transactions import EmptyMarker
from kaudit.partition.continuity import MAX_LISTED, Continuity
from kaudit.partition.digests import AuditedBatches
from kaudit.reading.chunk_rows import ChunkRows, Counts
from kaudit.reading.producer_grouping import Merged, merge, with_records
from kaudit.reading.rows import NO_TAILS, TAIL_BATCHES, Rows
from kaudit.reading.run_rows import goes_on
from kaudit.source.kafka.fetched_segment import NO_ABORTS
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory, list_snapshots
from kaudit.source.schemes import open_segment

COORDINATOR_WRITES = frozenset({"__consumer_offsets"})
"""Topics the coordinator appends to with the producers' ids: sequences mean nothing there."""


class RowSink(Protocol):
    """Takes a partition's rows as they are read, for more than the audit itself needs."""

    def add(self, chunk: ChunkRows, merged: Merged, table: ProducerTable) -> None:
        """Take a chunk's rows, chunks in offset order; `table` has the producers seen so far.

        The chunk's markers are all it has, those that compaction emptied too, which `merged` leaves out.
        """

    def clear(self) -> None:
        """Forget all: the partition is read again from its beginning."""


_NOT_SHOWN = frozenset(
    {"first_position", "partial_batches", "present_before_first", "present_before_last", "segment"}
    | {"boundary_start", "boundary_count", "head_count"}
)
_SHOWN_RUN = dtype_of(Run)[[name for name in Run._fields if name not in _NOT_SHOWN]]


class KeptRows(Struct):
    """Rows kept for display: runs (what is shown of them) and markers of chosen producers, chunk by chunk."""

    producer_ids: frozenset[int] | None
    runs: list[Columns] = field(default_factory=list)
    markers: list[Columns] = field(default_factory=list)

    def add(self, chunk: ChunkRows, merged: Merged, table: ProducerTable) -> None:  # noqa: ARG002 - rows name their ids
        """Keep the chosen producers' rows (all of them if none are chosen)."""
        runs, markers = merged.runs, chunk.markers
        if self.producer_ids is not None:
            if not self.producer_ids:
                return
            chosen = np.fromiter(self.producer_ids, dtype=np.int64, count=len(self.producer_ids))
            runs = runs[np.isin(runs["producer_id"], chosen)]
            markers = markers[np.isin(markers["producer_id"], chosen)]
        self.runs.append(runs.settled(_SHOWN_RUN))
        self.markers.append(markers.settled())

    def clear(self) -> None:
        """Drop all rows."""
        self.runs.clear()
        self.markers.clear()


class PartitionReplay:
    """Takes a partition's chunks in offset order. A chunk that is refused asks for the partition to be read serially."""

    audited: AuditedBatches | None = None
    """The digests of the batches, where chunks have what they need."""

    def __init__(self, directory: PartitionDirectory, fetch_run: FetchRun, kept: RowSink | None = None) -> None:
        self.directory = directory
        self.continuity = Continuity(directory.segments, directory.log_start_offset)
        self.transitions = TransitionAudit(fetch_run, sequences_count=directory.topic not in COORDINATOR_WRITES)
        self.spans = TransactionSpans()
        self.empty_marker: EmptyMarker | None = None
        self.snapshots = SnapshotWatch(list_snapshots(directory))
        self.continued_from: str | None = None
        """The snapshot that says what producers did before the first segment, if that lies elsewhere; empty without a valid one."""
        self.repeats = RepeatDetector()
        self.starts = RestartTracker()
        self.decoded = False
        self.malformed: list[MalformedBatch] = []
        self.more_malformed = 0
        self.counts = Counts()
        self.kept = kept
        self.still_growing = False
        self.coverage_gaps: frozenset[CoverageGap] = frozenset()
        self.text_lines = NO_LINES
        self.listed_aborts = NO_ABORTS
        self.batch_starts: list[Rows] = []
        self.tails = [NO_TAILS]
        self.read_to = (0, 0)
        """The segment of the last valid batch, and the position after it."""

    def feed(self, chunk: ChunkRows) -> bool:
        """Take the next chunk; False if it does not fit what came before and nothing of it was taken."""
        if not self.continuity.accepts(chunk):
            return False
        self.continue_producers()
        if chunk.first_offset is not None:
            self.snapshots.compare_until(chunk.first_offset, self.transitions)
        chunk.count_from(self.continuity.present_before(chunk))
        self.continuity.feed(chunk)
        self.coverage_gaps |= chunk.coverage_gaps
        self.text_lines = self.text_lines.and_also(chunk.text_lines)
        self.listed_aborts |= chunk.listed_aborts
        if chunk.last_batch is not None:
            self.read_to = (chunk.segment + chunk.joined, chunk.last_batch.end)
        if len(chunk.batch_starts) and not self.directory.is_fetched:  # brokers send no indexes
            self.batch_starts.append(chunk.batch_starts)
        self.counts.add(chunk.counts)
        if chunk.leaves is not None:
            self.audited = self.audited or AuditedBatches()
            self.audited.add(chunk.leaves)
        if self.continuity.damages or (self.continuity.missing and not self.compacted):
            self.transitions.holes_are_normal = False
        self.transitions.one_leader_epoch = not self.continuity.leader_epoch_changed
        merged = merge(chunk.runs, with_records(chunk.markers))
        self._feed_producers(chunk, merged)
        # brokers write internal topics, and retry nothing; a text holds no bytes to compare
        if self.directory.topic not in INTERNAL_TOPICS and not chunk.coverage_gaps:
            self.repeats.feed(chunk)
            self.starts.feed(chunk.runs, chunk.boundary_batches)
            if sum(map(len, self.tails)) < MAX_BUMPS * TAIL_BATCHES:
                self.tails.append(chunk.tails)
            self.decoded = self.decoded or chunk.decoded
        room = max(MAX_LISTED - len(self.malformed), 0)
        self.malformed += chunk.malformed[:room]
        self.more_malformed += chunk.more_malformed + len(chunk.malformed[room:])
        self.spans.feed(merged)
        self._count_empty(chunk.markers)
        self.still_growing = self.still_growing or chunk.still_growing
        if self.kept is not None:
            self.kept.add(chunk, merged, self.transitions.table)
        return True

    def continue_producers(self) -> None:
        """Go on from the producer snapshot at the first segment, where what lies before that is in remote storage."""
        directory = self.directory
        if self.continued_from is not None or not directory.offsets_elsewhere:
            return
        files, start = SideFileReader(open_segment), directory.segments[0].base_offset
        entries = entries_at(directory, start, files)
        self.continued_from = "" if entries is None else f"{start:020d}.snapshot"
        if entries is None:
            return
        begins_at = self.continuity.first_offset
        self.transitions.table.continue_from(
            entries, start if begins_at is None else begins_at, lineage_of(directory, files)
        )
        if begins_at is None:  # a saved replay has these
            self.spans.continue_from(entries)

    def grow(self, directory: PartitionDirectory, fetch_run: FetchRun) -> None:
        """Take the partition as it is now, to be fed more of it; segments that were fed keep their numbers.

        Raises:
            OSError: the snapshots cannot be listed.

        """
        self.directory = directory
        self.continuity.segments = directory.segments
        self.transitions.fetch_run = fetch_run
        self.still_growing = False
        end = self.log_end_offset
        # of the snapshots before the end those were compared; a broker writes one where a segment begins
        self.snapshots.files = tuple(
            file for file in list_snapshots(directory) if end is None or file.base_offset >= end
        )

    def _feed_producers(self, chunk: ChunkRows, merged: Merged) -> None:
        """Take the producers' rows; segments that were read together may have a snapshot at the beginning of each."""
        cuts = self.snapshots.inside(chunk) if chunk.joined else []
        for part, offset in zip_longest(merged.below(cuts), cuts):
            self.transitions.feed(part, chunk.boundary_batches)
            if offset is not None:
                self.snapshots.compare_until(offset, self.transitions)
        if chunk.joined:  # a run ends where a segment does, and is counted once
            going_on = goes_on(chunk.runs, chunk.boundary_batches, chunk.markers)
            at = np.searchsorted(cuts, chunk.runs["first_offset"], side="right")
            self.transitions.runs -= int(np.count_nonzero(going_on & (at[1:] == at[:-1])))

    def skip(self) -> None:
        """A chunk could not be read: what follows has nothing to go on from."""
        self.continuity.skip()
        self.audited = None

    def _count_empty(self, markers: Columns) -> None:
        empty = markers[markers["record_count"] == 0]
        if not len(empty):
            return
        first = empty[int(np.argmin(empty["offset"]))]
        known = self.empty_marker or EmptyMarker(
            int(first["offset"]),
            int(first["producer_id"]),
            int(first["producer_epoch"]),
            int(first["segment"]),
            int(first["position"]),
            0,
        )
        self.empty_marker = replace(known, count=known.count + len(empty))

    def at_end(self) -> "PartitionReplay":
        """Return what there is to report if the log ends here; this replay may be fed more of a log that grows.

        What a PartitionAudit keeps of it stays as it is when this one is fed again.
        """
        ended = copy.copy(self)
        ended.continuity, ended.transitions = copy.copy(self.continuity), copy.copy(self.transitions)
        ended.snapshots = copy.copy(self.snapshots)
        ended.counts, ended.malformed = copy.copy(self.counts), list(self.malformed)
        ended.batch_starts = list(self.batch_starts)
        ended.continuity.damages = list(self.continuity.damages)
        ended.continuity.missing = list(self.continuity.missing)
        ended.continuity.unlisted_missing = dict(self.continuity.unlisted_missing)
        ended.transitions.observations = list(self.transitions.observations)
        ended.snapshots.suspects = list(self.snapshots.suspects)
        ended.continuity.finish()
        ended.transitions.finish()
        end = self.log_end_offset
        if end is None:  # no batch is left: the log ends where it starts, or where its last segment begins
            end = max([self.directory.start_offset, *(each.base_offset for each in self.directory.segments)])
        ended.snapshots.finish(end, ended.transitions)
        return ended

    @property
    def log_end_offset(self) -> int | None:
        """Offset after the last valid batch, None for a log without one."""
        return self.continuity.next_offset

    @property
    def compacted(self) -> bool:
        """Whether compaction has worked here: the cleaner's checkpoint says that it read offsets, or it left its traces."""
        counts = self.counts
        traces = counts.partial_batches or counts.empty_batches or counts.delete_horizons
        # a text that counts no records shows no traces: a hole in it may be compaction's
        unseen = CoverageGap.COUNTS in self.coverage_gaps and self.continuity.missing
        first_dirty = self.directory.first_dirty_offset
        cleaned = first_dirty is not None and (first_dirty > 0 or self.directory.is_fetched)
        return cleaned or bool(traces or unseen)
