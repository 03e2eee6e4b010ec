"""What an idempotent producer does when its sequences break: the decisions of two generations of the Java client, and others'."""

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_append_info import MAX_EPOCH
from kaudit.simulate.producer.client_switches import (
    BUMP_EPOCH,
    FRANZ_GO,
    LIBRDKAFKA,
    RESET_PRODUCER_ID,
    ClientSwitches,
)
from kaudit.simulate.producer.transaction_manager import TransactionManager
from kaudit.simulate.producer_batch import ProducerBatch

RETRIABLE = frozenset(
    {
        KafkaError.CORRUPT_MESSAGE,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NOT_LEADER_OR_FOLLOWER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors whose exceptions are RetriableException."""


def _expects_later(manager: TransactionManager, batch: ProducerBatch) -> bool:
    """Return whether the batch is merely early: one before it is still to be sent again."""
    sequences = manager.of(batch.partition)
    return not manager.is_unresolved(batch.partition) and (
        batch.sequence_was_reset or not sequences.follows_acknowledged(batch.base_sequence)
    )


class ResetProducerId:
    """Clients before KIP-360 (2.4 and older): a new producer id, whatever is under way is dropped.

    Source: TransactionManager.canRetry, Sender.failBatch and shouldResetProducerStateAfterResolvingSequences of 2.0.
    """

    def __init__(self, manager: TransactionManager, client: ClientSwitches) -> None:
        self._manager = manager
        self._client = client

    def can_retry(self, error: KafkaError, batch: ProducerBatch, log_start_offset: int) -> bool:
        """Retry what is early, and what was forgotten with the head of the log - from 0, with the same id and epoch."""
        tracks = self._client.tracks_in_flight
        if error in RETRIABLE or (error is KafkaError.DUPLICATE_SEQUENCE_NUMBER and not tracks):
            return True
        manager = self._manager
        if not tracks or batch.producer_id != manager.producer[0]:
            return False
        if error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return _expects_later(manager, batch)
        if error is KafkaError.UNKNOWN_PRODUCER_ID:
            sequences = manager.of(batch.partition)
            if batch.sequence_was_reset:
                return True
            if sequences.last_acknowledged_offset < log_start_offset:
                sequences.start_again(manager.producer)
                return True
        return False

    def failed(self, error: KafkaError, batch: ProducerBatch, *, adjust: bool) -> None:
        """Give the producer id back after an error that means loss; else close the gap in the sequence."""
        manager = self._manager
        mine = (batch.producer_id, batch.epoch) == manager.producer
        breaks = error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER or (
            error is KafkaError.UNKNOWN_PRODUCER_ID and self._client.tracks_in_flight  # not known before
        )
        if breaks and not manager.transactional and mine:
            manager.reset_producer_id()
            return
        if not mine or batch.partition not in manager.partitions:
            return
        sequences = manager.of(batch.partition)
        sequences.untrack(batch)
        if adjust:
            sequences.close_gap(batch)

    def resolve(self) -> bool:
        """Give the producer id back if a drained partition has a hole; a transaction fails as soon as a batch may be one."""
        manager = self._manager
        if not self._client.tracks_in_flight and manager.transactional:
            manager.unresolved.clear()
        if manager.transactional:
            return bool(manager.unresolved)
        for partition in list(manager.unresolved):
            sequences = manager.of(partition)
            if sequences.in_flight:
                continue
            if sequences.follows_acknowledged(sequences.next_sequence):
                del manager.unresolved[partition]
            else:
                manager.reset_producer_id()
                break
        return False

    def renew(self, *, in_flight: bool) -> None:
        """Nothing more: a producer without id asks for one before it sends."""

    def keeps(self, batch: ProducerBatch) -> bool:
        """Drop batches of another producer id."""
        return not batch.has_sequence or (batch.producer_id, batch.epoch) == self._manager.producer


class BumpEpoch:
    """Clients since KIP-360 (2.5): the same producer id, the next epoch, everything under way again from 0.

    Source: TransactionManager.canRetry, handleFailedBatch, maybeResolveSequences, bumpIdempotentProducerEpoch.
    """

    def __init__(self, manager: TransactionManager, client: ClientSwitches) -> None:  # noqa: ARG002 - the other generation looks at it
        self._manager = manager

    def can_retry(self, error: KafkaError, batch: ProducerBatch, log_start_offset: int) -> bool:
        """Retry nearly everything about sequences, in a new epoch where there is a gap."""
        manager = self._manager
        sequences = manager.of(batch.partition)
        if error is KafkaError.UNKNOWN_PRODUCER_ID:
            if batch.sequence_was_reset:
                return True
            if not manager.transactional:
                manager.request_bump(batch.partition)
                return True
            if sequences.last_acknowledged_offset < log_start_offset:
                sequences.start_again(manager.producer)
                return True
        elif error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if _expects_later(manager, batch):
                return True
            if not manager.transactional:
                follows_unresolved = manager.unresolved.get(batch.partition) == batch.base_sequence
                if not manager.is_unresolved(batch.partition) or follows_unresolved:
                    manager.request_bump(batch.partition)
                return True
        return error in RETRIABLE

    def failed(self, error: KafkaError, batch: ProducerBatch, *, adjust: bool) -> None:
        """Go on in a new epoch if the batch cannot be in the log, so that no sequence is missing."""
        manager = self._manager
        sequences = manager.of(batch.partition)
        sequences.untrack(batch)
        if (batch.producer_id, batch.epoch) != manager.producer:
            return
        if manager.transactional:
            if adjust and sequences.producer == (batch.producer_id, batch.epoch):
                sequences.close_gap(batch)
        elif error is KafkaError.UNKNOWN_PRODUCER_ID:
            sequences.start_again(sequences.producer)
        elif adjust or error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
            manager.request_bump(batch.partition)

    def resolve(self) -> bool:
        """Ask for a new epoch where a drained partition has a hole; return whether a transaction has one."""
        manager = self._manager
        transaction_has_hole = False
        for partition in list(manager.unresolved):
            sequences = manager.of(partition)
            if sequences.in_flight:
                continue
            if not sequences.follows_acknowledged(sequences.next_sequence):
                if manager.transactional:
                    transaction_has_hole = True
                else:
                    manager.request_bump(partition)
            del manager.unresolved[partition]
        return transaction_has_hole

    def renew(self, *, in_flight: bool) -> None:  # noqa: ARG002 - librdkafka waits for what is in flight
        """Raise the epoch by one, or give the producer id back where epochs are used up."""
        manager = self._manager
        if manager.transactional or not manager.bumps or not manager.has_producer_id:
            return
        producer_id, epoch = manager.producer
        if epoch >= MAX_EPOCH:
            manager.reset_producer_id()
        else:
            manager.producer = (producer_id, epoch + 1)
            manager.first_sequence = 0
            for partition in manager.bumps:
                manager.of(partition).start_again(manager.producer)
                manager.unresolved.pop(partition, None)
        manager.bumps.clear()

    def keeps(self, batch: ProducerBatch) -> bool:  # noqa: ARG002 - the other generation looks at it
        """Keep every batch: those of an old epoch go on under it until the partition is drained."""
        return True


class Librdkafka(BumpEpoch):
    """A gap without a failed batch is fatal; after a failed batch the epoch rises as soon as all requests are answered.

    Source: rdkafka_request.c, rd_kafka_handle_idempotent_Produce_error.
    """

    def can_retry(self, error: KafkaError, batch: ProducerBatch, log_start_offset: int) -> bool:  # noqa: ARG002 - as the others
        """Retry in the next epoch what cannot have been written."""
        manager = self._manager
        following = manager.of(batch.partition).last_acknowledged + 1
        if error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
            again = batch.base_sequence > following
        elif error is KafkaError.UNKNOWN_PRODUCER_ID:
            again = batch.base_sequence == following and batch.attempts == 0
        else:
            return error in RETRIABLE
        if manager.transactional:
            return False
        if again:
            manager.request_bump(batch.partition)
        else:
            manager.failed = True
        return again

    def renew(self, *, in_flight: bool) -> None:
        """Raise the epoch when all requests are answered, and send nothing until then."""
        manager = self._manager
        manager.draining = bool(manager.bumps) and in_flight and not manager.transactional
        if not manager.draining:
            super().renew(in_flight=in_flight)


_LOST_ITS_PLACE = frozenset(
    {
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


class FranzGo(BumpEpoch):
    """Every error about sequences raises the epoch, unless a transaction can be aborted instead.

    Source: sink.go, handleReqRespBatch; stopOnDataLoss is off, as by default.
    """

    def can_retry(self, error: KafkaError, batch: ProducerBatch, log_start_offset: int) -> bool:
        """Retry in the next epoch; within a transaction only what the broker forgot with the head of the log."""
        manager = self._manager
        if error not in _LOST_ITS_PLACE:
            return error in RETRIABLE and error is not KafkaError.CORRUPT_MESSAGE
        acknowledged = manager.of(batch.partition).last_acknowledged_offset
        if manager.transactional and not 0 <= acknowledged < log_start_offset:
            return False
        manager.request_bump(batch.partition)
        return True


Recovery = ResetProducerId | BumpEpoch
"""The rules of one client; `adjust` of `failed`: the batch was refused, so it is not in the log."""
RECOVERIES: dict[str, type[ResetProducerId] | type[BumpEpoch]] = {
    RESET_PRODUCER_ID: ResetProducerId,
    BUMP_EPOCH: BumpEpoch,
    LIBRDKAFKA: Librdkafka,
    FRANZ_GO: FranzGo,
}
