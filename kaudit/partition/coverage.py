"""What became of every offset of a partition, as far as its segments and the files beside them show.

How far the log cleaner has been in a partition, and which missing offsets that explains.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.sidefiles.log_facts import LogFacts
from kaudit.model.coverage import Coverage, EndWitness, OffsetClass, OffsetRange
from kaudit.model.damage import DamageKind, MissingCause, MissingOffsets
from kaudit.model.grouping import grouped
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.partition.continuity import Continuity
from kaudit.partition.replay import PartitionReplay
from kaudit.reading.unread_segments import UnreadSegments
from kaudit.source.file_kinds import LOG_START_CHECKPOINT
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


_NO_CHECKPOINT = "no cleaner checkpoint was copied, and no rewritten batch shows that the log cleaner has been here"
_FETCHED = "the log cleaner of this broker has not been here, that of a leader may have been"
_LEFT_OUT = "the text leaves them out"
_NOT_HERE = (
    f"they are not on this disk: {LOG_START_CHECKPOINT} starts the log below its first segment, {{}}"
    "retention went on until the copy was made, or they are lost"
)
_ELSEWHERE = {
    None: "so they are in remote storage, or ",
    False: "and the topic has no remote storage (remote.storage.enable): ",
}
_UNCONFIRMED = f"they are not on this disk, and no record of {REMOTE_LOG} confirms that they are in remote storage"
_Gap = tuple[MissingOffsets, OffsetClass, str]
"""Missing offsets, what became of them, and how that is known."""


def coverage_of(
    replay: PartitionReplay,
    log: LogFacts,
    cleaning: Cleaning | None,
    unread: UnreadSegments,
    witnesses: Sequence[EndWitness],
) -> Coverage:
    """Account for the offsets of a partition that was read; `cleaning` is None where it is not compacted.

    `witnesses` are those of the files beside its segments; what its log directory's checkpoints know is added later.
    """
    directory, begin = replay.directory, replay.continuity.next_offset
    gone = {entry.path for entry in unread.removed}
    bases = [segment.base_offset for segment in directory.segments if segment.path not in gone]
    start = max([directory.log_start_offset or 0, *bases[:1]])
    end = _log_end(replay, start, unread)
    kinds = grouped((placed.first_missing, placed.damage.kind) for placed in log.damages)
    gaps = [(gap, *_class_of(gap, cleaning, kinds.get(gap.first_offset, ()))) for gap in log.missing]
    counted = _counted(replay, start, gaps, _unlisted_compacted(replay, end, cleaning))
    ranges = _ranges(gaps)
    if end is None:
        reason = "the end of the log could not be read"
        ranges.append(replace(_unknown(start if begin is None else begin, None, 0, reason), incomplete=False))
    else:
        rest = end - start - sum(counted.values()) - sum(found.offsets for found in ranges)
        if rest > 0:
            reason = "segments could not be read" if unread else "they are among gaps that are only counted"
            # what could not be read is listed by itself
            ranges.append(replace(_unknown(start, end - 1, rest, reason), incomplete=not unread))
        ranges = [*_after_last_batch(log), *ranges]
    before = directory.offsets_elsewhere
    if before and directory.is_tiered:
        ranges.append(OffsetRange(start - before, start - 1, before, OffsetClass.UNCONFIRMED, _UNCONFIRMED))
    elif before:
        reason = _NOT_HERE.format(_ELSEWHERE[directory.is_tiered])
        ranges.append(_unknown(start - before, start - 1, before, reason))
    if directory.whole_directory or directory.is_fetched:
        counted[OffsetClass.RETENTION] = start - before
    account = Coverage(
        directory.topic,
        directory.partition,
        directory.replica,
        log_start_offset=start - before,
        log_start_source=_start_source(directory, start - before),
        log_end_offset=end,
        witnesses=(),
        offsets={kind.value: number for kind, number in counted.items() if number},
        ranges=(),
        all_accounted=True,
        text_lines=replay.text_lines if replay.text_lines.lines else None,
    )
    return account.with_ranges(ranges).with_witnesses(witnesses, None if log.claimed_end is None else end)


def _counted(
    replay: PartitionReplay, start: int, gaps: Sequence[_Gap], unlisted_compacted: int
) -> dict[OffsetClass, int]:
    """Return how many offsets from the log start on are accounted for, by class."""
    continuity = replay.continuity
    # the first batch may begin below the log start offset, and retention remove a segment after it was read
    below = 0 if continuity.first_offset is None else max(start - continuity.first_offset, 0)
    compacted = sum(gap.count for gap, kind, _ in gaps if kind is OffsetClass.COMPACTED)
    return {
        OffsetClass.DATA: continuity.offsets_present - continuity.marker_offsets - continuity.cleaned_offsets - below,
        OffsetClass.MARKER: continuity.marker_offsets,
        OffsetClass.COMPACTED: continuity.cleaned_offsets + compacted + unlisted_compacted,
    }


def _log_end(replay: PartitionReplay, start: int, unread: UnreadSegments) -> int | None:
    """Return the log end offset; a broker names an empty last segment by it (UnifiedLog.roll)."""
    directory = replay.directory
    if not directory.segments:
        return start
    last = directory.segments[-1]
    if last.fetched is not None:
        return last.fetched.end_offset
    if {entry.path for entry in unread.unreadable} & {last.path, directory.directory}:
        return None
    return max(start if replay.log_end_offset is None else replay.log_end_offset, last.base_offset)


def _start_source(directory: PartitionDirectory, start: int) -> str:
    if directory.is_fetched:
        return "broker"
    return LOG_START_CHECKPOINT if directory.log_start_offset == start else "name of the first segment"


def _class_of(gap: MissingOffsets, cleaning: Cleaning | None, damages: Sequence[DamageKind]) -> tuple[OffsetClass, str]:
    """Return what became of missing offsets, and how that is known; `damages` are those that begin at the first of them."""
    if gap.cause is MissingCause.DAMAGE:
        left_out = DamageKind.LEFT_OUT in damages
        return (OffsetClass.UNKNOWN, _LEFT_OUT) if left_out else (OffsetClass.DAMAGED, _damage(damages))
    if cleaning is None:
        return OffsetClass.MISSING, "no batch covers them"
    if gap.cause is MissingCause.COMPACTION:
        proven = gap.last_offset < cleaning.proven
        return (OffsetClass.COMPACTED, "") if proven else (OffsetClass.UNKNOWN, _NO_CHECKPOINT)
    if gap.fetched_cleaned:
        return OffsetClass.UNKNOWN, _FETCHED
    return OffsetClass.MISSING, "no batch covers them, and the log cleaner has not been here"


def _ranges(gaps: Sequence[_Gap]) -> list[OffsetRange]:
    """Return the offsets that are not accounted for: a range for all gaps in a row of which nothing is known for one reason."""
    ranges: list[OffsetRange] = []
    for (kind, reason), same in groupby(gaps, key=lambda entry: entry[1:]):
        found = [gap for gap, *_ in same]
        if kind is OffsetClass.UNKNOWN:
            offsets = sum(gap.count for gap in found)
            incomplete = reason != _NO_CHECKPOINT
            ranges.append(OffsetRange(found[0].first_offset, found[-1].last_offset, offsets, kind, reason, incomplete))
        elif kind is not OffsetClass.COMPACTED:
            ranges += [OffsetRange(gap.first_offset, gap.last_offset, gap.count, kind, reason) for gap in found]
    return ranges


def _unknown(first: int, last: int | None, offsets: int, reason: str) -> OffsetRange:
    return OffsetRange(first, last, offsets, OffsetClass.UNKNOWN, reason, incomplete=True)


def _unlisted_compacted(replay: PartitionReplay, end: int | None, cleaning: Cleaning | None) -> int:
    """Return how many of the offsets that are counted by segment the log cleaner has removed."""
    if cleaning is None:
        return 0
    ends: list[int | None] = [*(segment.base_offset for segment in replay.directory.segments[1:]), end]
    proven = {
        number
        for number, begin_of_next in enumerate(ends)
        if begin_of_next is not None and begin_of_next <= cleaning.proven
    }
    return sum(offsets for number, offsets in replay.continuity.unlisted_missing.items() if number in proven)


def _damage(kinds: Sequence[DamageKind]) -> str:
    return f"damage ({', '.join(kind.value for kind in dict.fromkeys(kinds))})" if kinds else "damage"


def _after_last_batch(log: LogFacts) -> Iterator[OffsetRange]:
    """Yield what damage after the last valid batch cost; zeros there are a preallocated file's, or were never written."""
    after = [placed.damage.kind for placed in log.after_last_batch if placed.damage.kind is not DamageKind.ZEROS]
    end = log.claimed_end
    if end is None:
        yield _unknown(log.end_offset, None, 0, _LEFT_OUT)
    elif after:
        count = end - log.end_offset
        last = end - 1 if count else None
        yield OffsetRange(log.end_offset, last, count, OffsetClass.DAMAGED, _damage(after))
