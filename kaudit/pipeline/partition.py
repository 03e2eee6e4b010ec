"""One partition replica, from its chunks in offset order to everything the checks need to know."""

from dataclasses import dataclass, field

import numpy as np

from kaudit.model.batch import NO_OFFSET
from kaudit.model.malformed import MalformedBatch
from kaudit.pipeline.continuity import MAX_LISTED, Continuity
from kaudit.pipeline.joints import FetchRun, JointReplay
from kaudit.pipeline.rows import ChunkRows, Counts, Rows
from kaudit.pipeline.transactions import TransactionSpans
from kaudit.source.layout import PartitionDirectory

COORDINATOR_WRITES = frozenset({"__consumer_offsets"})
"""Topics the coordinator appends to with the producers' ids: sequences mean nothing there."""


@dataclass(slots=True)
class KeptRows:
    """Rows kept for display: runs, their edges and markers of chosen producers, chunk by chunk."""

    producer_ids: frozenset[int] | None
    runs: list[Rows] = field(default_factory=list)
    markers: list[Rows] = field(default_factory=list)

    def add(self, runs: Rows, markers: Rows) -> None:
        """Keep the chosen producers' rows (all of them if none are chosen)."""
        if self.producer_ids is not None:
            chosen = np.fromiter(self.producer_ids, dtype=np.int64, count=len(self.producer_ids))
            runs = runs[np.isin(runs["producer_id"], chosen)]
            markers = markers[np.isin(markers["producer_id"], chosen)]
        self.runs.append(runs)
        self.markers.append(markers)


class PartitionReplay:
    """Takes a partition's chunks in offset order. A chunk that is refused asks for the partition to be read serially."""

    def __init__(self, directory: PartitionDirectory, fetch_run: FetchRun, kept: KeptRows | None = None) -> None:
        self.directory = directory
        self.continuity = Continuity(directory.segments, directory.log_start_offset)
        self.joints = JointReplay(fetch_run, sequences_count=directory.topic not in COORDINATOR_WRITES)
        self.spans = TransactionSpans()
        self.malformed: list[MalformedBatch] = []
        self.more_malformed = 0
        self.counts = Counts()
        self.kept = kept
        self.still_growing = False

    def feed(self, chunk: ChunkRows) -> bool:
        """Take the next chunk; False if it does not fit what came before and nothing of it was taken."""
        if not self.continuity.accepts(chunk):
            return False
        present = self.continuity.present_before(chunk)
        chunk.runs["present_before_first"] += present
        chunk.runs["present_before_last"] += present
        chunk.edges["present_before"] += present
        chunk.markers["present_before"] += present
        self.continuity.feed(chunk)
        self.counts.add(chunk.counts)
        if self.continuity.damages or (self.continuity.missing and not self.compacted):
            self.joints.holes_are_normal = False
        self.joints.feed(chunk.runs, chunk.edges, chunk.markers)
        room = max(MAX_LISTED - len(self.malformed), 0)
        self.malformed += chunk.malformed[:room]
        self.more_malformed += chunk.more_malformed + len(chunk.malformed[room:])
        self.spans.feed(chunk.runs, chunk.markers)
        self.still_growing = self.still_growing or chunk.still_growing
        if self.kept is not None:
            self.kept.add(chunk.runs, chunk.markers)
        return True

    def finish(self) -> None:
        """The log has ended."""
        self.continuity.finish()
        self.joints.finish()

    @property
    def log_end_offset(self) -> int | None:
        """Offset after the last sound batch, None for a log without one."""
        return self.continuity.next_offset

    @property
    def last_stable_offset(self) -> int | None:
        """First offset of the oldest open transaction, else the log end: an upper bound, the high watermark is unknown."""
        opened = self.joints.table.rows["txn_first_offset"]
        opened = opened[opened != NO_OFFSET]
        return int(opened.min()) if len(opened) else self.log_end_offset

    @property
    def compacted(self) -> bool:
        """Whether compaction has worked here: the cleaner's checkpoint lists it, or it left its traces."""
        counts = self.counts
        traces = counts.partial_batches or counts.empty_batches or counts.delete_horizons
        return self.directory.first_dirty_offset is not None or bool(traces)
