"""Records that brokers deleted although they had just been written, or because they had no keys, as lines of their logs say."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kaudit.model.evidence_parts import ShownEvents
from kaudit.model.record_loss import FreshRecordsDeleted, KeylessRecordsRemoved, LeaderHistory, SegmentDeletion

_LINES_SHOWN: Final = 5


def fresh_records_deleted(history: LeaderHistory, latest_ms: int) -> Iterator[FreshRecordsDeleted]:
    """Yield once, of a partition, the segments that retention deleted although they had been written for less time than it is.

    Their records were older when they were written; or the broker's clock was ahead, and even at `latest_ms`, the newest time of a
    file in the input (0: not known), they were not due. Only of a broker that led the partition when the segment began: a new follower writes what is old.
    """
    fresh: dict[int, SegmentDeletion] = {}
    for deletion in history.deletions:
        if (_was_old(deletion) or _is_early(deletion, latest_ms)) and _led(history, deletion):
            fresh.setdefault(deletion.base_offset, deletion)
    if fresh:
        yield _of_partition(history, [fresh[base] for base in sorted(fresh)])


def keyless_records_removed(history: LeaderHistory) -> Iterator[KeylessRecordsRemoved]:
    """Yield once, of a partition, what log cleaners removed because it had no key: each replica cleans its own log, so the most counts."""
    removed = Counter[str]()
    for broker, records, _ in history.keyless:
        removed[broker] += records
    if removed:
        lines = [line for _, _, line in history.keyless]
        shown = ShownEvents(lines[:_LINES_SHOWN], len(lines))
        yield KeylessRecordsRemoved(history.topic, history.partition, max(removed.values()), sorted(removed), shown)


def _was_old(deletion: SegmentDeletion) -> bool:
    return deletion.modified_ms - deletion.newest_record_ms > deletion.retention_ms >= 0


def _is_early(deletion: SegmentDeletion, latest_ms: int) -> bool:
    return deletion.newest_record_ms <= latest_ms < deletion.newest_record_ms + deletion.retention_ms


def _led(history: LeaderHistory, deletion: SegmentDeletion) -> bool:
    if not history.leaders:  # those lines are in state-change.log
        return deletion.broker not in {follower.broker for follower in history.followers}
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
        by_clock=not any(map(_was_old, deleted)),
        shown=ShownEvents(lines[:_LINES_SHOWN], len(lines)),
    )
