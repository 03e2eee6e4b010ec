"""The state of the transaction coordinator: records of __transaction_state, and the answers they give.

Source: Kafka's TransactionState, TransactionMetadata, TransactionLogValue.json.
"""

import enum
from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct, field

from kaudit.model.json_record import JsonRecord

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


_PREPARED = frozenset({TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT})


class TransactionStanding(enum.Enum):
    """What the coordinator will do with a transaction that is open in a partition."""

    ONGOING = "ongoing"
    DECIDED = "decided"
    """Prepared to commit or abort: the marker is on its way."""
    NOT_ONGOING = "not-ongoing"
    """No coordinator will ever end it."""
    UNKNOWN = "unknown"


class CoordinatorEntry(Struct, frozen=True):
    """The newest state of one transactional id, and the record that holds it; `log_dirs` are those whose copies do."""

    transactional_id: str
    value: TransactionValue
    offset: int
    log_dirs: frozenset[str] = frozenset()


class ExpiredTransactionalId(JsonRecord, frozen=True):
    """A transactional id that expired: a record of __transaction_state without a value, at `offset` of `partition`.

    `expired_timestamp` is that record's, ms. `producer_id`, `producer_epoch` and `last_update_timestamp` (ms) are those of
    the id's record before it, None where the log has none any more; `next_producer_id` is the one of the record after it,
    None where the id has not come back.
    """

    transactional_id: str
    producer_id: int | None
    producer_epoch: int | None
    last_update_timestamp: int | None
    expired_timestamp: int
    partition: int
    offset: int
    next_producer_id: int | None = None


class CoordinatorAnswer(Struct, frozen=True):
    """How the coordinator sees one open transaction, and the sentence that says it."""

    standing: TransactionStanding
    reason: str
    entry: CoordinatorEntry | None = None


class CommitDecision(Struct, frozen=True):
    """A record PrepareCommit of a producer id: its epoch, which transaction version 2 has raised already, and what it includes.

    `decided_ms` is the coordinator's time, `offset` the record's in __transaction_state.
    """

    producer_epoch: int
    partitions: tuple[TopicPartitions, ...]
    decided_ms: int
    offset: int

    def includes(self, topic: str | None, partition: int | None) -> bool:
        """Whether the transaction wrote to this partition."""
        return any(known.topic == topic and partition in known.partitions for known in self.partitions)


class MemberState(Struct, frozen=True):
    """What the records of one member's transactional ids show: times in ms, -1 for none.

    `committed_ms` and `started_ms` are of the newest commit and start. `commits` are those in the log, `highest` the greatest number
    at the end of its ids: with more commits than ids it recycles them.
    """

    committed_ms: int = -1
    started_ms: int = -1
    commits: int = 0
    highest: int = -1


class ApplicationState(Struct):
    """The members of an application, by the ids of each; `sends_offsets`: a transaction of one of them had committed offsets."""

    members: dict[str, MemberState] = field(default_factory=dict)
    sends_offsets: bool = False


class CoordinatorView(Struct, frozen=True):
    """Entries by producer id. `complete`: every partition of __transaction_state was there and readable.

    `applications` are those of the producer ids asked for, `commits` the last few that were decided for these.
    `begun` has the time of the first record (ms) of each partition whose log still has the first it ever held.
    """

    entries: Mapping[int, CoordinatorEntry] = field(default_factory=dict)
    present: bool = False
    complete: bool = False
    unknown: str = "the partition of __transaction_state that has the answer is not among the inputs"
    """Why the answer is not known where an incomplete view lacks an entry."""
    newest_ms: int = -1
    """The newest time of a record, which the coordinator wrote; -1 without one."""
    names: Mapping[int, str] = field(default_factory=dict)
    """The transactional ids of producer ids asked for, also of those that they have moved on from."""
    applications: Mapping[str, ApplicationState] = field(default_factory=dict)
    connect_groups: Sequence[str] = ()
    """Groups of Connect whose leaders write in transactions."""
    commits: Mapping[int, Sequence[CommitDecision]] = field(default_factory=dict)
    begun: Mapping[int, int] = field(default_factory=dict)

    def transactional_id(self, producer_id: int) -> str | None:
        """The transactional id of a producer id, None if not known."""
        entry = self.entries.get(producer_id)
        return entry.transactional_id if entry is not None else self.names.get(producer_id)

    def standing(self, producer_id: int, epoch: int, topic: str | None, partition: int | None) -> CoordinatorAnswer:
        """Return how the coordinator sees a transaction of this producer that is open in this partition.

        The definition of a hanging transaction is that of TransactionsCommand (KIP-664): no transactional id for the
        producer id, or its transaction is another one, or it does not list the partition.
        """
        if not self.present:
            return CoordinatorAnswer(TransactionStanding.UNKNOWN, "__transaction_state is not among the inputs")
        entry = self.entries.get(producer_id)
        if entry is None:
            if self.complete:
                return CoordinatorAnswer(
                    TransactionStanding.NOT_ONGOING, "no transactional id in __transaction_state has this producer id"
                )
            return CoordinatorAnswer(TransactionStanding.UNKNOWN, self.unknown)
        value, name = entry.value, entry.transactional_id
        said = f"__transaction_state has {name!r} at {value.status_name}, epoch {value.producer_epoch}"
        listed = any(known.topic == topic and partition in known.partitions for known in (value.partitions or ()))
        standing = TransactionStanding.NOT_ONGOING
        if value.status is TransactionStatus.ONGOING and value.producer_epoch == epoch:
            if listed:
                standing = TransactionStanding.ONGOING
            else:
                said += f", and its transaction does not include {topic}-{partition}"
        elif value.status in _PREPARED and listed and value.producer_epoch in (epoch, epoch + 1):
            standing = TransactionStanding.DECIDED
        return CoordinatorAnswer(standing, said, entry)


class Committed(Struct, frozen=True):
    """A group's committed offset; `leader_epoch` is of the last record that it had consumed, -1 where that is not known."""

    group: str
    offset: int
    leader_epoch: int


class LogBounds(Struct, frozen=True):
    """The least start and the greatest end (exclusive) of the copies of a topic partition, and the topic's id where a copy names it."""

    start_offset: int
    end_offset: int
    topic_id: str | None = None


class CommittedBeyondLogEnd(Struct, frozen=True, tag=True):
    """A group has consumed more than a partition's log holds, which ends at `log_end_offset` (exclusive).

    `log_leader_epoch`: the highest leader epoch in the log, where it shows that the records were lost; else None: the log may lag.
    """

    committed: Committed
    log_end_offset: int
    log_leader_epoch: int | None
