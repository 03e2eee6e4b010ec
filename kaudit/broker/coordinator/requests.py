"""Requests to the transaction coordinator, its answers, and the transactions it decides to end."""

from typing import Any

from msgspec import Struct

from kaudit.broker.coordinator.transaction_metadata import COMPLETE, PREPARED, TransactionMetadata
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.response import TopicPartition, ok_fields, rejected_fields
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

DONE = KafkaError.NONE


class RequestContext(Struct, frozen=True, gc=False):
    """The context of a request to the coordinator.

    The partition whose attempts it belongs to, its version, the broker's clock in ms, and the producer id the allocator
    is known to have given, if any.
    """

    partition: TopicPartition
    api_version: int
    now: int
    knows_now: bool
    """Whether the attempt says what `now` is."""
    granted_producer_id: int | None = None


class CoordinatorResult(Struct, frozen=True, gc=False):
    """An answer with the producer id and epoch to continue with; both -1 when rejected."""

    error: KafkaError
    producer_id: int
    producer_epoch: int
    why: str

    def fields(self, *, with_producer: bool = False) -> dict[str, Any]:
        """Return the fields of an answer's JSON object."""
        fields = ok_fields() if self.error is KafkaError.NONE else rejected_fields(self.error)
        if with_producer:
            fields["producer_id"], fields["producer_epoch"] = self.producer_id, self.producer_epoch
        return fields


class EndOfTransaction(Struct, frozen=True, gc=False):
    """A transaction the coordinator decided to end: which markers to write where."""

    transactional_id: str
    producer_id: int
    marker_epoch: int
    commit: bool
    transaction_version: int
    at: int
    partitions: tuple[TopicPartition, ...]
    restarted: TopicPartition | None = None
    """The partition whose broker's restart makes the coordinator send them again, None at the first time."""


def rejected(error: KafkaError, why: str) -> CoordinatorResult:
    """Return an answer with an error."""
    return CoordinatorResult(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, why)


def check_owner(
    transaction: TransactionMetadata | None, producer_id: int, transactional_id: str
) -> CoordinatorResult | None:
    """Return a refusal unless the transactional id belongs to the producer id."""
    if transaction is None or transaction.producer_id != producer_id:
        owner = "nobody" if transaction is None else f"producer id {transaction.producer_id}"
        return rejected(
            KafkaError.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {transactional_id!r} belongs to {owner}, not to producer id {producer_id}",
        )
    return None


def busy(transaction: TransactionMetadata) -> CoordinatorResult:
    """Refuse a request while a transition of the transaction is pending."""
    return rejected(
        KafkaError.CONCURRENT_TRANSACTIONS,
        f"the transaction is {transaction.state.label}, "
        + (
            "a partition refused its marker or was never sent one"
            if transaction.state in PREPARED
            else "its next state could not be written"
        ),
    )


def cannot_write(transaction: TransactionMetadata, of_client: int, of_cluster: int) -> CoordinatorResult | None:
    """Return why the transaction's next state cannot be written, by the transaction versions of client and cluster.

    With transaction.version 0 the log's values have no field for that of the client (TransactionLog.valueToBytes). The
    transition then stays pending: only a restart ends it.
    """
    if of_client < TRANSACTION_VERSION_2 or of_cluster > 0:
        return None
    transaction.transition_pending = True
    return rejected(
        KafkaError.UNSUPPORTED_VERSION, "transaction.version is 0: the coordinator cannot write a state of version 2"
    )


def ended_before(transaction: TransactionMetadata, *, commit: bool) -> CoordinatorResult:
    """Answer EndTxn where no transaction is open: a repeated end succeeds, the other one does not."""
    if COMPLETE.get(transaction.state) is commit:
        return CoordinatorResult(DONE, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, "it had ended that way already")
    if PREPARED.get(transaction.state) is commit:
        return busy(transaction)
    return rejected(KafkaError.INVALID_TXN_STATE, f"the transaction is {transaction.state.label}")


def retried_end(transaction: TransactionMetadata, *, commit: bool) -> CoordinatorResult:
    """Answer an EndTxn that repeats the one that completed the transaction (transaction version 2)."""
    if COMPLETE[transaction.state] is not commit:
        return rejected(KafkaError.INVALID_TXN_STATE, f"the transaction is {transaction.state.label}")
    return CoordinatorResult(DONE, transaction.producer_id, transaction.epoch, "a retry: it had ended that way already")
