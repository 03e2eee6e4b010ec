"""The clock of an audit: the latest time that batches show to have come.

Brokers write the times of end markers (`MemoryRecords.withEndTransactionMarker` in KafkaApis), of batches with LogAppendTime, and of
the records of internal topics. A client's timestamp (CreateTime) may be anything: alone it shows nothing. It is taken where it
lies at most a minute after a time that is shown otherwise, or as far as another producer's timestamps reach too.
"""

from collections.abc import Collection, Sequence

from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_rows import Counts
from kaudit.source.layout import INTERNAL_TOPICS

_NEAR_MS = 60_000
"""A batch is appended, and its file written, within about this of its timestamp where the client's clock is right."""


def audit_clock(parts: Collection[PartitionAudit], coordinator_ms: int, modified_ms: int) -> AuditClock:
    """Return the clock of partitions copied together.

    `coordinator_ms`: newest record of __transaction_state, -1 without one; `modified_ms`: newest modification of a file, the
    time where no batch has a timestamp. Copying files without their times makes them newer than the log: a file counts only
    where it was written within a minute of its partition's newest timestamp.
    """
    counts = Counts()
    for part in parts:
        counts.add(part.counts)
    newest = max(counts.max_timestamp, coordinator_ms)
    if newest < 0:
        return AuditClock(modified_ms, ClockSource.NEWEST_FILE)
    internal = [part.counts.max_timestamp for part in parts if part.directory.topic in INTERNAL_TOPICS]
    shown = {
        ClockSource.BROKERS: max(counts.broker_timestamp, coordinator_ms, *internal),
        ClockSource.FILES: max(map(_written_with_newest, parts), default=-1),
        ClockSource.CLIENTS: counts.newest_of_clients[1][0] if len(counts.newest_of_clients) > 1 else -1,
    }
    source = max(shown, key=lambda each: shown[each])
    proven = shown[source]
    if proven < 0:
        return AuditClock(newest, ClockSource.ONE_CLIENT, newest)
    near = _at_most([part.counts.max_timestamp for part in parts], proven + _NEAR_MS)
    return AuditClock(max(proven, near), source, newest)


def _written_with_newest(part: PartitionAudit) -> int:
    """The partition's newest timestamp where its last file was written within a minute of it, -1 where not."""
    newest, segments = part.counts.max_timestamp, part.directory.segments
    if newest < 0 or not segments or abs(segments[-1].modified_ms - newest) > _NEAR_MS:
        return -1
    return min(newest, segments[-1].modified_ms)


def _at_most(times: Sequence[int], limit: int) -> int:
    return max((time for time in times if time <= limit), default=-1)
