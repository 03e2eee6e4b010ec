"""What the transaction coordinator's own log, __transaction_state, says about transactions open in a partition."""

import enum
from collections.abc import Mapping

from msgspec import Struct, field

from kaudit.model.json_record import JsonRecord
from kaudit.model.transaction_state import TransactionStatus, TransactionValue

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
    """The newest state of one transactional id, and the record that holds it."""

    transactional_id: str
    value: TransactionValue
    offset: int


class ExpiredTransactionalId(JsonRecord, frozen=True):
    """A transactional id that expired: a record of __transaction_state without a value, at `offset` of `partition`.

    `expired_timestamp` is that record's, ms. `producer_id`, `producer_epoch` and `last_update_timestamp` (ms) are those of
    the id's record before it, None where the log has none any more; `next_producer_id` is the one of the record behind it,
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


class CoordinatorVerdict(Struct, frozen=True):
    """How the coordinator sees one open transaction, and the sentence that says it."""

    standing: TransactionStanding
    reason: str
    entry: CoordinatorEntry | None = None


class CoordinatorView(Struct, frozen=True):
    """Entries by producer id. `complete`: every partition of __transaction_state was there and readable."""

    entries: Mapping[int, CoordinatorEntry] = field(default_factory=dict)
    present: bool = False
    complete: bool = False
    unknown: str = "the partition of __transaction_state that has the answer is not among the inputs"
    """Why the answer is not known where a view that is not complete lacks an entry."""

    def transactional_id(self, producer_id: int) -> str | None:
        """The transactional id behind a producer id, None if not known."""
        entry = self.entries.get(producer_id)
        return entry.transactional_id if entry is not None else None

    def standing(self, producer_id: int, epoch: int, topic: str | None, partition: int | None) -> CoordinatorVerdict:
        """Return how the coordinator sees a transaction of this producer that is open in this partition.

        The definition of a hanging transaction is that of TransactionsCommand (KIP-664): no transactional id for the
        producer id, or its transaction is another one, or it does not list the partition.
        """
        if not self.present:
            return CoordinatorVerdict(TransactionStanding.UNKNOWN, "__transaction_state is not among the inputs")
        entry = self.entries.get(producer_id)
        if entry is None:
            if self.complete:
                return CoordinatorVerdict(
                    TransactionStanding.NOT_ONGOING, "no transactional id in __transaction_state has this producer id"
                )
            return CoordinatorVerdict(TransactionStanding.UNKNOWN, self.unknown)
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
        return CoordinatorVerdict(standing, said, entry)
