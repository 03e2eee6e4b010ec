"""The clock of an audit: the latest time that brokers wrote.

Brokers write the time of end transaction markers (MemoryRecords.withEndTransactionMarker) and of other control batches, of batches
with LogAppendTime (LogValidator refuses it from clients), and of the records of internal topics (GroupMetadataManager and
TransactionStateManager append with their own clock). A client's timestamp (CreateTime) may be anything: nothing follows from it.
The modification of a file is no earlier than what it holds, and later in many copies: a ceiling, and no more.
"""

from collections.abc import Collection

from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.partition.audit import PartitionAudit
from kaudit.source.layout import INTERNAL_TOPICS

_WHOLE_SECOND_MS = 1000
"""Archives keep whole seconds."""


def audit_clock(
    parts: Collection[PartitionAudit], *, coordinator_ms: int, modified_ms: int, quiet_ms: int
) -> AuditClock:
    """Return the clock of partitions that were copied together.

    `coordinator_ms`: the newest record of __transaction_state, -1 without one; `modified_ms`: the newest modification of a file,
    which is the time where no batch has one, 0 where it is not known; `quiet_ms`: for how long nothing has been appended.
    """
    newest = max((part.counts.max_timestamp for part in parts), default=-1)
    internal = (part.counts.max_timestamp for part in parts if part.directory.topic in INTERNAL_TOPICS)
    by_brokers = max([coordinator_ms, *(part.counts.broker_timestamp for part in parts), *internal])
    ceiling = modified_ms + _WHOLE_SECOND_MS
    if modified_ms > 0 and ceiling > by_brokers:  # else it is not known, or was changed
        newest = min(newest, ceiling)
    newest = max(newest, by_brokers)
    if by_brokers >= 0:
        return AuditClock(by_brokers, ClockSource.BROKERS, newest, quiet_ms)
    if newest >= 0:
        return AuditClock(newest, ClockSource.CLIENTS, newest, quiet_ms)
    return AuditClock(modified_ms, ClockSource.FILES, -1, quiet_ms)
