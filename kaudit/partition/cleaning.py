"""How far the log cleaner has been in a partition, and which missing offsets that explains."""

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.partition.continuity import Continuity
from kaudit.source.layout import PartitionDirectory


class Cleaning(Struct, frozen=True):
    """Offsets (exclusive ends) that bound what a log cleaner can have removed from a compacted partition.

    It takes nothing from the first dirty offset on, which its checkpoint names and which is never in the active segment
    (LogCleanerManager.cleanableOffsets); None: the copy does not say. `proven`: it has been at all offsets below, by that
    checkpoint, by batches that it rewrote (it cleans a log from its start: Cleaner.doClean), or as the user says. `rewritten`: below
    the last batch that a cleaner rewrote, this broker's or that of a leader.
    """

    end: int | None
    proven: int
    rewritten: int

    def explained(self, missing: Sequence[MissingOffsets]) -> list[MissingOffsets]:
        """Return the missing offsets with COMPACTION as the cause of those that the cleaner can have removed."""
        return [self._explained(gap) for gap in missing]

    def _explained(self, gap: MissingOffsets) -> MissingOffsets:
        if gap.cause is MissingCause.DAMAGE:
            return gap
        if self.end is None or gap.last_offset < self.end:
            return replace(gap, cause=MissingCause.COMPACTION)
        return replace(gap, fetched_cleaned=gap.last_offset < self.rewritten)


def cleaning_of(directory: PartitionDirectory, continuity: Continuity, *, stated: bool, unseen: bool) -> Cleaning:
    """Return how far the cleaner of a compacted partition has been.

    `stated`: the user says that the topic is compacted; `unseen`: the text in place of the log shows too little to tell.
    """
    cleaned_to = continuity.cleaned_to
    rewritten = cleaned_to + 1
    if stated or unseen:
        return Cleaning(None, (continuity.next_offset or 0) if stated else rewritten, rewritten)
    bases = [segment.base_offset for segment in directory.segments]
    active = bases[-1] if bases and directory.whole_directory and not directory.is_fetched else None
    if (directory.has_checkpoints or directory.first_dirty_offset is not None) and not directory.is_fetched:
        cleaned = _first_dirty(directory, continuity.next_offset, active)
        return Cleaning(cleaned, cleaned, rewritten)
    # the cleaner takes a segment whole, and never the active one
    after = bisect_right(bases, cleaned_to)
    return Cleaning(active, bases[after] if cleaned_to >= 0 and after < len(bases) else rewritten, rewritten)


def _first_dirty(directory: PartitionDirectory, log_end: int | None, active: int | None) -> int:
    """Return up to where the checkpoint lets the cleaner have been: one beyond the log's end is reset (cleanableOffsets)."""
    first_dirty = directory.first_dirty_offset or 0
    if directory.is_captured or log_end is None:
        return first_dirty
    if first_dirty > log_end:
        return 0
    return first_dirty if active is None else min(first_dirty, active)
