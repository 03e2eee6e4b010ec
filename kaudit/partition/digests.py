"""Digests of a partition's audited batches, kept up to date as the rows of its ranges are put together."""

import copy

from msgspec import Struct, field

from kaudit.model.digests import PartitionDigest
from kaudit.reading.digest_leaves import Leaves, RangeLeaves
from kaudit.reading.digest_tree import WholeLog, hexadecimal
from kaudit.reading.log_tail import log_end
from kaudit.source.layout import PartitionDirectory


class AuditedBatches(Struct):
    """Takes what digests need of ranges in order."""

    batches: int = 0
    _leaves: Leaves = field(default_factory=Leaves)
    _whole: WholeLog = field(default_factory=WholeLog)

    def add(self, part: RangeLeaves) -> None:
        """Take the next range's."""
        self.batches += part.batches
        for leaf in self._leaves.feed(part):
            self._whole.add(leaf)

    def at_end(self) -> WholeLog:
        """Return all digests if the log ends here; this may be given more of a log that grows."""
        whole = copy.deepcopy(self._whole)
        for leaf in self._leaves.rest():
            whole.add(leaf)
        return whole


class AuditedLog(Struct, frozen=True):
    """The part of a partition's log that was read.

    `next_offset` is that after its last batch, None without one; `begins_at` where its batches begin if what lay before them was
    removed while it was read, None if nothing was. `compacted` and `damaged` as in PartitionDigest.
    """

    directory: PartitionDirectory
    next_offset: int | None
    begins_at: int | None
    compacted: bool
    damaged: bool


def partition_digest(log: AuditedLog, audited: AuditedBatches | None, most_ranges: int) -> PartitionDigest:
    """Name the batches that were audited, in at most `most_ranges` ranges of their offsets; none were where `audited` is None."""
    directory = log.directory
    log_start = directory.log_start_offset or 0
    end = log_end(directory, log.next_offset, log_start)
    first = directory.segments[0].base_offset if directory.segments else end
    start = min(max(log_start, first, log.begins_at or 0), end)
    whole = (audited or AuditedBatches()).at_end()
    return PartitionDigest(
        topic=directory.topic,
        partition=directory.partition,
        replica=directory.replica,
        start_offset=start,
        end_offset=end,
        batches=0 if audited is None else audited.batches,
        digest=hexadecimal(whole.digest()),
        ranges=whole.narrowed(most_ranges).ranges(start, end),
        compacted=log.compacted,
        damaged=log.damaged,
    )
