"""The transactions that are open at the end of a partition's log, those too that only a producer snapshot still shows.

When brokers appended batches: what the times that they wrote in the same partition show.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from kaudit.broker.producer_state.rules import SHORTEST_EXPIRY_MS, is_expired
from kaudit.broker.releases.profile import Profile
from kaudit.model.audit_clock import AppendTime
from kaudit.model.batch_fields import NO_OFFSET, NO_TIMESTAMP
from kaudit.model.producer_state import AFTER_MARKER, NO_SEGMENT
from kaudit.model.side_files import SnapshotEntry
from kaudit.model.transactions import OpenTransaction
from kaudit.reading.rows import Rows
from kaudit.source.layout import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kaudit.partition.replay import PartitionReplay


def has_broker_times(replay: "PartitionReplay") -> bool:
    """Whether brokers wrote the time of every batch: all have LogAppendTime, or the topic is internal."""
    return replay.counts.broker_timestamps == replay.counts.batches or replay.directory.topic in INTERNAL_TOPICS


def append_times(replay: "PartitionReplay", ended: Rows | None) -> list[AppendTime]:
    """Return those of observed batches whose producer may have been forgotten by then; `ended`: the markers, in offset order."""
    found = {}
    own = has_broker_times(replay)
    offsets = np.empty(0, dtype=np.int64) if ended is None else ended["marker_offset"]
    times = [NO_TIMESTAMP, *([] if ended is None else ended["timestamp"].tolist()), NO_TIMESTAMP]
    newest = max(times)
    seen = [
        (each.batch, each.remembered.last_timestamp)
        for each in replay.transitions.observations
        if each.batch is not None and each.remembered is not None
        if is_expired(each.remembered.last_timestamp, max(newest, each.batch.max_timestamp), SHORTEST_EXPIRY_MS)
    ]
    places = np.searchsorted(offsets, [batch.base_offset for batch, _ in seen]).tolist()
    for (batch, before), place in zip(seen, places, strict=True):
        since, until = (batch.max_timestamp, batch.max_timestamp) if own else (times[place], times[place + 1])
        if is_expired(before, max(since, batch.max_timestamp), SHORTEST_EXPIRY_MS):
            found[batch.base_offset] = AppendTime(batch.base_offset, since, until)
    return list(found.values())


def open_transactions(replay: "PartitionReplay", *, whole: bool) -> list[OpenTransaction]:
    """Return them, in no particular order. `whole`: all segments were read.

    The newest snapshot counts where the log after it is complete and holds no marker of the producer. A transaction that began before
    the log start offset keeps the last stable offset there, one that began in remote storage where it began. Source: UnifiedLog.maybeIncrementFirstUnstableOffset.
    """
    rows = replay.transitions.table.rows
    opened = rows[np.flatnonzero(rows["txn_first_offset"] != NO_OFFSET)]
    found = {int(row["producer_id"]): _of_row(row, replay) for row in opened}
    newest, start = replay.snapshots.newest, replay.directory.start_offset
    if (
        newest is None
        or newest.file.base_offset < start
        or not whole
        or not replay.continuity.is_whole_from(newest.file.base_offset)
    ):
        return list(found.values())  # what is missing may have been a marker
    ended = rows[rows["marker_offset"] != NO_OFFSET]["producer_id"]
    for entry, position in newest.begun_before(start, ended):
        left = found.get(entry.producer_id) or _without_batches(entry, position, newest.file.modified_ms)
        found[entry.producer_id] = replace(
            left,
            first_offset=entry.current_txn_first_offset,
            first_timestamp=NO_TIMESTAMP,
            stable_offset=max(entry.current_txn_first_offset, replay.directory.first_readable_offset),
            snapshot=newest.file.name,
        )
    return list(found.values())


def remembered(transactions: Sequence[OpenTransaction], newest: Profile) -> list[OpenTransaction]:
    """Return those that a broker with these rules, or an older one, has not forgotten with their batches."""
    forgets = newest.forgets_on_log_start_advance
    return [transaction for transaction in transactions if transaction.in_log or not forgets]


def last_stable_offset(transactions: Sequence[OpenTransaction], log_end_offset: int | None) -> int | None:
    """Return where read_committed consumers stop: an upper bound, as the high watermark is unknown."""
    return min((transaction.stable_offset for transaction in transactions), default=log_end_offset)


def _appended_by(replay: "PartitionReplay", row: np.void) -> int:
    """Return a time by which a producer's newest batch was there, as brokers show it, ms, -1 if none does.

    Its own in an internal topic or with LogAppendTime; else that of the first marker after it or of its file, whichever is earlier.
    """
    last = int(row["last_timestamp"])
    if has_broker_times(replay):
        return last
    segment = int(row["last"]["segment"])
    times = [
        replay.spans.followed_ms(int(row["producer_id"])),
        _written_by(replay.directory.segments[segment].modified_ms, last),
    ]
    return min((time for time in times if time != NO_TIMESTAMP), default=NO_TIMESTAMP)


def _written_by(modified_ms: int, timestamp: int) -> int:
    """Return the time by which a file had its last batch, -1 where its modification is not known.

    It is later in many copies, and earlier than a batch only where it was changed: then it says nothing.
    """
    return max(modified_ms, timestamp) if modified_ms > 0 else NO_TIMESTAMP


def _of_row(row: np.void, replay: "PartitionReplay") -> OpenTransaction:
    return OpenTransaction(
        producer_id=int(row["producer_id"]),
        producer_epoch=int(row["epoch"]),
        first_offset=int(row["txn_first_offset"]),
        stable_offset=int(row["txn_first_offset"]),
        first_timestamp=int(row["txn_first_timestamp"]),
        last_timestamp=int(row["last_timestamp"]),
        records=int(row["txn_records"]),
        position=int(row["txn_position"]),
        segment=int(row["txn_segment"]),
        coordinator_epoch=int(row["coordinator_epoch"]),
        began_after_marker=bool(row["flags"] & AFTER_MARKER),
        marker_offset=int(row["marker_offset"]),
        marker_timestamp=int(row["marker_timestamp"]),
        appended_by=_appended_by(replay, row),
    )


def _without_batches(entry: SnapshotEntry, position: int, modified_ms: int) -> OpenTransaction:
    return OpenTransaction(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        first_offset=NO_OFFSET,
        stable_offset=NO_OFFSET,
        first_timestamp=NO_TIMESTAMP,
        last_timestamp=entry.timestamp,
        records=0,
        position=position,
        segment=NO_SEGMENT,
        coordinator_epoch=entry.coordinator_epoch,
        began_after_marker=False,
        marker_offset=NO_OFFSET,
        marker_timestamp=NO_TIMESTAMP,
        appended_by=_written_by(modified_ms, entry.timestamp),
    )
