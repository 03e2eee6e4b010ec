"""Segments that retention deleted although they had just been written, as lines of brokers' logs say."""

from collections.abc import Iterator
from typing import Final

from kaudit.model.evidence_parts import ShownEvents
from kaudit.model.record_loss import FreshRecordsDeleted, LeaderHistory, SegmentDeletion

_LINES_SHOWN: Final = 5


def fresh_records_deleted(history: LeaderHistory) -> Iterator[FreshRecordsDeleted]:
    """Yield once, of a partition, the segments whose records were older than the topic's retention when they were written.

    Only of a broker that led the partition when the segment began: a new follower writes what is old.
    """
    fresh: dict[int, SegmentDeletion] = {}
    for deletion in history.deletions:
        is_old = deletion.modified_ms - deletion.newest_record_ms > deletion.retention_ms >= 0
        if is_old and _led(history, deletion):
            fresh.setdefault(deletion.base_offset, deletion)
    if fresh:
        yield _of_partition(history, [fresh[base] for base in sorted(fresh)])


def _led(history: LeaderHistory, deletion: SegmentDeletion) -> bool:
    return any(leader.broker == deletion.broker and leader.offset <= deletion.base_offset for leader in history.leaders)


def _of_partition(history: LeaderHistory, deleted: list[SegmentDeletion]) -> FreshRecordsDeleted:
    last = deleted[-1]
    # the log start moves to the segment after each that is deleted
    end = min((start for start in history.log_starts if start > last.base_offset), default=None)
    lines = [deletion.event for deletion in deleted]
    return FreshRecordsDeleted(
        topic=history.topic,
        partition=history.partition,
        first_offset=deleted[0].base_offset,
        end_offset=end,
        segments=len(deleted),
        retention_ms=last.retention_ms,
        newest_record_ms=max(deletion.newest_record_ms for deletion in deleted),
        modified_ms=max(deletion.modified_ms for deletion in deleted),
        shown=ShownEvents(lines[:_LINES_SHOWN], len(lines)),
    )
