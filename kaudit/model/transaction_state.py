"""What the transaction coordinator remembers of each transactional id: the records of __transaction_state.

Source: Kafka's TransactionState, TransactionMetadata, TransactionLogValue.json.
"""

from enum import IntEnum

from msgspec import Struct

MAX_TRANSACTION_TIMEOUT_MS = 15 * 60_000
"""transaction.max.timeout.ms by default: no transaction may stay open longer."""


class TransactionStatus(IntEnum):
    """The coordinator's state of a transactional id. UNKNOWN stands for ids no release has written so far."""

    UNKNOWN = -1
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The state as Kafka prints it: PrepareCommit."""
        return self.name.title().replace("_", "")


class TopicPartitions(Struct, frozen=True):
    """Partitions of one topic that take part in a transaction, in the order written."""

    topic: str
    partitions: tuple[int, ...]


class TransactionValue(Struct, frozen=True):
    """What one record says about its transactional id; sentinels (-1) stay as written.

    `status_id` is the status as stored, -128..127; times are ms since 1970. `partitions` is None when stored as null,
    as in states without a transaction. The four optional fields are None when their tag is absent (always in version
    0), and `unknown_tags` keeps (tag, raw bytes) of any other.
    """

    version: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus
    status_id: int
    partitions: tuple[TopicPartitions, ...] | None
    last_update_timestamp: int
    start_timestamp: int
    previous_producer_id: int | None = None
    next_producer_id: int | None = None
    client_transaction_version: int | None = None
    next_producer_epoch: int | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()

    @property
    def status_name(self) -> str:
        """The state as Kafka prints it."""
        return self.status.label


class TransactionRecord(Struct, frozen=True):
    """One record: `value` is None for a tombstone, which says that the transactional id expired."""

    transactional_id: str
    value: TransactionValue | None
