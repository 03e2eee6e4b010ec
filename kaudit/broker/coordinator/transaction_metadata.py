"""What a transaction coordinator keeps of one transactional id. Source: TransactionMetadata.

Markers are written at once, so the Prepare states normally pass within a request. If a partition rejects its marker, or
none is sent (Switches.end_txn_needs_exact_epoch), the coordinator gives up, and only a restarted one, which finds the
decision in its log, tries again.
"""

from msgspec import Struct, field

from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.model.coordinator import TransactionStatus


class TransactionMetadata(Struct):
    """What a coordinator keeps of one transactional id. Times in ms, None while unknown."""

    producer_id: int
    timeout_ms: int
    epoch: int = NO_PRODUCER_EPOCH
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    state: TransactionStatus = TransactionStatus.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    started_at: int | None = None
    home: TopicPartition | None = None
    """The partition whose attempts it appeared in last."""
    updated_at: int | None = None
    transaction_version: int = 0
    """Of the end that was decided last."""
    markers_sent: bool = False
    """Whether its markers are being written: a transition is pending, which no request may interrupt."""
