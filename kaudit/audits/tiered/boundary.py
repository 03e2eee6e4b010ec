"""What remote storage holds of a partition beside what its disks hold: by leader epochs, as brokers look records up (RemoteLogManager)."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.remote_segments import (
    MOST_SHOWN,
    HoleCause,
    NotCopied,
    OrphanedSegments,
    OrphanKind,
    OverlappingSegments,
    RemoteHole,
    RemoteLog,
    RemoteLogFault,
    RemoteSegment,
    RemoteState,
    SegmentSummary,
    UnfinishedCopies,
    summaries,
)

Range = tuple[int, int]
"""First and last offset, both inclusive."""


NOTHING: Range = (0, -1)
MAX_OFFSET = (1 << 63) - 1
MOST_HOLES = 100
"""Holes reported of one partition; the account of its offsets counts all."""


class LocalLog(Struct, frozen=True, dict=True):
    """One replica's log as it is read: from `start_offset` to `end_offset` (exclusive); it is empty where they are equal.

    From `disk_offset` on it is on the disk: before that it is read from remote storage, if that is among the inputs. `log_start_offset` is that of the whole log, None where no checkpoint says. `lineage` are the rows of leader-epoch-checkpoint, none
    where it was not read. `is_stopped`: its files are of one time, as the broker had been shut down. `only_records`: no marker of a
    transaction is known in it.
    """

    replica: str
    log_start_offset: int | None
    start_offset: int
    disk_offset: int
    end_offset: int
    lineage: Sequence[EpochEntry] = ()
    is_stopped: bool = False
    only_records: bool = False

    @functools.cached_property
    def epoch_ranges(self) -> Mapping[int, Range]:
        """The offsets of each leader epoch of its lineage; those of the first begin at 0, those of the last never end."""
        rows = self.lineage
        ends = [*(row.start_offset - 1 for row in rows[1:]), MAX_OFFSET]
        starts = [0, *(row.start_offset for row in rows[1:])]
        return {row.epoch: (start, end) for row, start, end in zip(rows, starts, ends, strict=False)}

    @property
    def newest_epoch(self) -> int:
        """Its newest leader epoch, -1 where none is known."""
        return self.lineage[-1].epoch if self.lineage else -1

    def range_of(self, epoch: int) -> Range:
        """Return the offsets of a leader epoch; below the first known one any older epoch may have them, without any all epochs all."""
        first = self.lineage[0] if self.lineage else None
        older = (
            NOTHING
            if first is not None and epoch > first.epoch
            else (0, MAX_OFFSET if first is None else first.start_offset - 1)
        )
        return self.epoch_ranges.get(epoch, older)


class Tiers(Struct, frozen=True):
    """What one replica's log has on its disk and in remote storage.

    `remote_ranges` are the offsets in readable segments of its lineage, ascending and disjoint. `log_start_offset` is that of the
    whole log: what the checkpoint says, else the first of these. `retained_from` lies above it where retention is deleting segments
    and the checkpoint is older. `holes` are the offsets below the log on the disk that are in no readable segment.
    """

    log_start_offset: int
    retained_from: int
    remote_ranges: Sequence[Range]
    holes: Sequence[Range]

    def remote_offsets(self, first: int, stop: int) -> int:
        """Return how many offsets from `first` to `stop` (exclusive) are in readable segments."""
        return sum(max(min(last, stop - 1) - max(begin, first) + 1, 0) for begin, last in self.remote_ranges)


def looked_up(log: RemoteLog, local: LocalLog) -> list[tuple[Range, RemoteSegment]]:
    """Return the offsets that brokers find in remote storage, ascending and disjoint, each range with the segment that they read.

    Source: RemoteLogManager.read, RemoteLogMetadataCache.remoteLogSegmentMetadata. Where the leader epoch of an offset is not known, the
    newest one that a segment has there is taken.
    """
    segments = {segment.segment_id: segment for segment in log.segments}
    found: list[tuple[Range, RemoteSegment]] = []
    for epoch in sorted(log.lookup, reverse=True):
        low, high = local.range_of(epoch)
        if found:
            high = min(high, found[-1][0][0] - 1)
        ends = [*(start - 1 for start, _ in log.lookup[epoch][1:]), MAX_OFFSET]
        for (start, segment_id), end in reversed([*zip(log.lookup[epoch], ends, strict=True)]):
            segment = segments[segment_id]
            own = next(last for other, _, last in segment.epoch_ranges if other == epoch)
            first, last = max(start, low), min(own, end, high)
            if first <= last:
                found.append(((first, last), segment))
    return found[::-1]


def tiers_of(log: RemoteLog, local: LocalLog) -> Tiers:
    """Return what one replica has in each place."""
    ranges = list(joined(part for part, _ in looked_up(log, local)))
    stated = local.log_start_offset
    first = ranges[0][0] if ranges else local.start_offset
    start = min(first, local.start_offset) if stated is None else stated
    holes = list(without((start, local.start_offset - 1), ranges))
    retained = start
    if holes and holes[0][0] == start and not local.is_stopped and _all_deleted(log, holes[0], local):
        # a broker raises the log start, then deletes, and writes the checkpoint a minute later
        retained = holes.pop(0)[1] + 1
    return Tiers(start, retained, ranges, holes)


def findings_of(log: RemoteLog, locals_: Sequence[LocalLog], *, complete: bool) -> Iterator[RemoteLogFault]:
    """Yield what is wrong with the remote log of a partition, as its replica with the newest leader epoch has it.

    `locals_` are the replicas of this topic id, the one meant first. `complete`: the records about all segments were read.
    """
    local, *others = locals_
    tiers = tiers_of(log, local)
    holes = _Holes(log, local, others, tiers, complete)
    for hole in tiers.holes[:MOST_HOLES]:
        yield from holes.of(hole)
    newest = max((last for _, last in tiers.remote_ranges), default=-1)
    here = max(tiers.retained_from, local.disk_offset), min(newest, local.end_offset - 1)
    skipped = list(without(here, tiers.remote_ranges))
    if skipped and complete:
        offsets = sum(last - first + 1 for first, last in skipped)
        yield NotCopied(skipped[0][0], skipped[-1][1], offsets, skipped[:MOST_SHOWN], newest)
    yield from _unfinished(log)
    yield from _orphans(log, local, tiers)
    yield from _overlaps(log.readable, local)


def by_newest_epoch(locals_: Iterable[LocalLog]) -> list[LocalLog]:
    """Return the replicas with that of the newest leader epoch first, the furthest of these: it was the leader last, or in sync with it."""
    return sorted(locals_, key=lambda each: (-each.newest_epoch, -each.end_offset))


def parts_in_lineage(segment: RemoteSegment, local: LocalLog) -> list[Range]:
    """Return the offsets of a segment that consumers are given: those that the log has under the same leader epoch.

    Without a known lineage they are all of it.
    """
    found: list[Range] = []
    for epoch, begin, end in segment.epoch_ranges:
        low, high = local.range_of(epoch)
        first, last = max(begin, low, segment.start_offset), min(end, high, segment.end_offset)
        if first <= last:
            found.append((first, last))
    return found


def joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield ascending ranges without overlaps, those that meet as one."""
    current: Range | None = None
    for first, last in sorted(ranges):
        if current is None or first > current[1] + 1:
            if current is not None:
                yield current
            current = first, last
        else:
            current = current[0], max(current[1], last)
    if current is not None:
        yield current


def without(whole: Range, ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield what of a range is in none of ascending, disjoint ones."""
    first, last = whole
    for low, high in ranges:
        if low > last:
            break
        if low > first:
            yield first, low - 1
        first = max(first, high + 1)
    if first <= last:
        yield first, last


def _deleted(segment: RemoteSegment) -> bool:
    """Whether it had been copied, and was deleted: a copy that failed is deleted too (from 4.0 on)."""
    return segment.copied_timestamp is not None and segment.state in (
        RemoteState.DELETE_STARTED,
        RemoteState.DELETE_FINISHED,
    )


def _all_deleted(log: RemoteLog, hole: Range, local: LocalLog) -> bool:
    deleted = (part for each in log.segments if _deleted(each) for part in parts_in_lineage(each, local))
    return not list(without(hole, joined(deleted)))


class _Holes(Struct, frozen=True, dict=True):
    log: RemoteLog
    local: LocalLog
    others: Sequence[LocalLog]
    tiers: Tiers
    complete: bool

    @functools.cached_property
    def _parts(self) -> list[tuple[Range, RemoteSegment]]:
        """What segments have of the log's lineage."""
        return [(part, each) for each in self.log.segments for part in parts_in_lineage(each, self.local)]

    def of(self, hole: Range) -> Iterator[RemoteHole]:
        """Yield a hole, cut where its cause changes."""
        around = [(part, each) for part, each in self._parts if part[0] <= hole[1] and part[1] >= hole[0]]
        deleted = list(joined(part for part, each in around if _deleted(each)))
        pieces = [(low, high, False) for low, high in without(hole, deleted)]
        pieces += [(max(low, hole[0]), min(high, hole[1]), True) for low, high in deleted]
        for low, high, is_deleted in sorted(pieces):
            own = {
                each.segment_id: each
                for part, each in around
                if part[0] <= high and part[1] >= low and _deleted(each) is is_deleted
            }
            yield self._piece((low, high), list(own.values()), deleted=is_deleted)

    def _piece(self, hole: Range, own: Sequence[RemoteSegment], *, deleted: bool) -> RemoteHole:
        low, high = hole
        begun = HoleCause.REPLACED if any(each.is_readable for each in own) else HoleCause.UNFINISHED
        cause = HoleCause.DELETED if deleted else begun if own else HoleCause.NEVER_COPIED
        start = self.local.start_offset
        # what was copied last may be missing in a copy of __remote_log_metadata that is older than that of the log
        is_certain = self.complete and (deleted or high < start - 1 or self.local.is_stopped)
        elsewhere = [each.replica for each in self.others if each.start_offset <= low and each.end_offset > high]
        before = max((last for _, last in self.tiers.remote_ranges if last < low), default=None)
        return RemoteHole(
            low, high, cause, is_certain, elsewhere, before, start, self.local.only_records, len(own), summaries(own)
        )


def _unfinished(log: RemoteLog) -> Iterator[UnfinishedCopies]:
    """A broker copies one segment of a partition after another: what was begun before another one is not being copied any more."""
    found = [segment for segment in log.segments[:-1] if segment.state is RemoteState.COPY_STARTED]
    if found:
        covered = list(joined((each.start_offset, each.end_offset) for each in log.readable))
        alone = [segment for segment in found if list(without((segment.start_offset, segment.end_offset), covered))]
        yield UnfinishedCopies(
            found[0].start_offset,
            max(segment.end_offset for segment in found),
            len(found),
            sum(segment.size for segment in found),
            len(alone),
            summaries(found),
        )


def _orphans(log: RemoteLog, local: LocalLog, tiers: Tiers) -> Iterator[OrphanedSegments]:
    """Segments that nobody is given records of, and nobody deletes, as far as the records go."""
    found: list[tuple[OrphanKind, RemoteSegment]] = []
    is_local_start = tiers.log_start_offset == local.disk_offset < local.end_offset and any(
        first < local.disk_offset <= last + 1 for first, last in tiers.remote_ranges
    )
    for segment in log.readable:
        if local.lineage and all(epoch > local.newest_epoch for epoch, _ in segment.leader_epochs):
            continue  # the log is older than the segment
        if not parts_in_lineage(segment, local):
            found.append((OrphanKind.OTHER_LINEAGE, segment))
        elif segment.end_offset < tiers.log_start_offset:
            found.append((OrphanKind.AT_LOCAL_START if is_local_start else OrphanKind.BELOW_LOG_START, segment))
    found += [
        (OrphanKind.DELETE_UNFINISHED, segment)
        for segment in log.segments
        if segment.state is RemoteState.DELETE_STARTED and segment.event_timestamp < log.newest_timestamp
    ]
    yield from orphans_of(found)


def orphans_of(found: Iterable[tuple[OrphanKind, RemoteSegment]]) -> Iterator[OrphanedSegments]:
    """Yield the segments of each kind together."""
    for kind, same in groupby(sorted(found, key=lambda each: each[0].value), key=lambda each: each[0]):
        own = [segment for _, segment in same]
        yield OrphanedSegments(
            kind,
            min(segment.start_offset for segment in own),
            max(segment.end_offset for segment in own),
            len(own),
            sum(segment.size for segment in own),
            summaries(own),
        )


def _overlaps(readable: Sequence[RemoteSegment], local: LocalLog) -> Iterator[OverlappingSegments]:
    """What the log's lineage has in two segments: a new leader copies from the segment on that holds the next offset to copy."""
    parts = sorted(
        (*part, number) for number, segment in enumerate(readable) for part in parts_in_lineage(segment, local)
    )
    pairs: list[tuple[Range, RemoteSegment, RemoteSegment]] = []
    furthest: tuple[int, int] = (-1, -1)
    for first, last, number in parts:
        if first <= furthest[0]:
            pairs.append(((first, min(last, furthest[0])), readable[furthest[1]], readable[number]))
        furthest = max(furthest, (last, number))
    if pairs:
        ranges = list(joined(both for both, *_ in pairs))
        own = [segment for _, one, other in pairs for segment in (one, other)]
        shown: list[SegmentSummary] = summaries(list({segment.segment_id: segment for segment in own}.values()))
        offsets = sum(last - first + 1 for first, last in ranges)
        yield OverlappingSegments(ranges[0][0], ranges[-1][1], offsets, len(pairs), shown)
