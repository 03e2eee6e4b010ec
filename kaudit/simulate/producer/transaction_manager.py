"""Sequences of an idempotent producer, partition by partition. Source: TxnPartitionMap, TxnPartitionEntry."""

from bisect import insort

from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kaudit.model.sequence import add as add_sequence
from kaudit.simulate.producer_batch import ProducerBatch

NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
_NOTHING_ACKNOWLEDGED = -1


class TxnPartitionEntry:
    """One partition's place in the sequence: under which producer id and epoch, what comes next, what is under way."""

    __slots__ = ("in_flight", "last_acknowledged", "last_acknowledged_offset", "next_sequence", "producer")

    def __init__(self, producer: tuple[int, int], first_sequence: int = 0) -> None:
        self.producer = producer
        self.next_sequence = first_sequence
        self.last_acknowledged = first_sequence + _NOTHING_ACKNOWLEDGED
        self.last_acknowledged_offset = -1
        self.in_flight: list[ProducerBatch] = []
        """Batches with a sequence that are not finished, in order of their sequences."""

    def follows_acknowledged(self, sequence: int) -> bool:
        """Return whether `sequence` is the one after the last acknowledged. Source: isNextSequence."""
        return sequence - self.last_acknowledged == 1

    @property
    def first_in_flight(self) -> int:
        """First sequence under way, -1 when none is. Source: firstInFlightSequence."""
        return self.in_flight[0].base_sequence if self.in_flight else NO_SEQUENCE

    def take(self, batch: ProducerBatch, *, transactional: bool) -> None:
        """Give a batch the next sequence. Source: RecordAccumulator.drainBatchesForOneNode."""
        batch.set_producer_state(*self.producer, self.next_sequence, transactional=transactional)
        self.next_sequence = add_sequence(self.next_sequence, batch.record_count)
        self.track(batch)

    def track(self, batch: ProducerBatch) -> None:
        """Take note that a batch with a sequence is under way. Source: addInFlightBatch."""
        insort(self.in_flight, batch, key=lambda other: other.base_sequence)

    def untrack(self, batch: ProducerBatch) -> None:
        """Forget a batch that is finished. Source: removeInFlightBatch."""
        self.in_flight = [other for other in self.in_flight if other is not batch]

    def acknowledged(self, batch: ProducerBatch) -> None:
        """Take note of an acknowledged batch. Source: handleCompletedBatch."""
        self.last_acknowledged = max(self.last_acknowledged, batch.last_sequence)
        self.last_acknowledged_offset = max(
            self.last_acknowledged_offset, -1 if batch.offset < 0 else batch.offset + batch.record_count - 1
        )
        self.untrack(batch)

    def start_again(self, producer: tuple[int, int]) -> None:
        """Begin at 0 under `producer`, batches under way first. Source: startSequencesAtBeginning."""
        self.producer = producer
        self.next_sequence = 0
        for batch in self.in_flight:
            batch.reset_producer_state(*producer, self.next_sequence)
            self.next_sequence = add_sequence(self.next_sequence, batch.record_count)
        self.last_acknowledged = _NOTHING_ACKNOWLEDGED

    def close_gap(self, failed: ProducerBatch) -> None:
        """Lower the sequences of the batches after one that will never be written. Source: adjustSequencesDueToFailedBatch."""
        self.next_sequence -= failed.record_count
        for batch in self.in_flight:
            if batch.base_sequence >= failed.base_sequence:
                batch.reset_producer_state(
                    batch.producer_id, batch.epoch, max(batch.base_sequence - failed.record_count, 0)
                )


class TransactionManager:
    """What an idempotent producer knows of its id, its epoch and its sequences. Source: TransactionManager."""

    def __init__(self, *, transactional: bool, first_sequence: int, bump_restarts_idle_partitions: bool) -> None:
        """`first_sequence`: where the partitions of its first producer id and epoch begin."""
        self.transactional = transactional
        self.first_sequence = first_sequence
        self._bump_restarts_idle_partitions = bump_restarts_idle_partitions
        self.producer = NO_PRODUCER
        self.partitions: dict[TopicPartition, TxnPartitionEntry] = {}
        self.unresolved: dict[TopicPartition, int] = {}
        """Partitions where a batch was given up after it was sent: the sequence after the last such one."""
        self.bumps: dict[TopicPartition, None] = {}
        """Partitions that asked for a new epoch."""
        self.partitions_in_transaction: dict[TopicPartition, None] = {}
        self.failed = False
        self.draining = False
        """Whether nothing is sent until all requests are answered."""

    @property
    def has_producer_id(self) -> bool:
        """Whether a producer id was granted and not given back."""
        return self.producer != NO_PRODUCER

    def of(self, partition: TopicPartition) -> TxnPartitionEntry:
        """Return a partition's sequences, new ones if it has none."""
        found = self.partitions.get(partition)
        if found is None:
            found = self.partitions[partition] = TxnPartitionEntry(self.producer, self.first_sequence)
        return found

    # -- draining ----------------------------------------------------------------------------------------------------
    def must_wait(self, first: ProducerBatch) -> bool:
        """Return whether the partition's first batch may not be sent. Source: shouldStopDrainBatchesForPartition."""
        if (
            self.failed
            or self.draining
            or (self.transactional and first.partition not in self.partitions_in_transaction)
        ):
            return True
        if not self.has_producer_id:
            return True
        sequences = self.of(first.partition)
        if not first.has_sequence:
            if sequences.in_flight and sequences.producer != self.producer:
                return True
            return first.partition in self.unresolved
        # A batch that is sent again waits until it is the first of those under way.
        return sequences.first_in_flight not in (NO_SEQUENCE, first.base_sequence)

    def assign(self, batch: ProducerBatch) -> None:
        """Give a batch its sequence when it leaves the queue, unless it has one: then it may have been written."""
        if batch.has_sequence:
            return
        sequences = self.of(batch.partition)
        if sequences.producer != self.producer and not sequences.in_flight:
            if self._bump_restarts_idle_partitions:
                sequences.start_again(self.producer)
            else:
                sequences.producer = self.producer
        sequences.take(batch, transactional=self.transactional)

    # -- outcomes ----------------------------------------------------------------------------------------------------
    def is_unresolved(self, partition: TopicPartition) -> bool:
        """Return whether a batch of the partition was given up and nobody knows yet whether it was written."""
        return partition in self.unresolved

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Take note that a batch was given up after it had been sent. Source: markSequenceUnresolved."""
        following = batch.last_sequence + 1
        self.unresolved[batch.partition] = max(self.unresolved.get(batch.partition, following), following)

    def completed(self, batch: ProducerBatch) -> None:
        """Take note of an acknowledged batch."""
        if batch.has_sequence:
            sequences = self.of(batch.partition)
            if sequences.producer == (batch.producer_id, batch.epoch):
                sequences.acknowledged(batch)
            else:
                sequences.untrack(batch)
            if not (self._bump_restarts_idle_partitions or sequences.in_flight or batch.epoch == self.producer[1]):
                sequences.start_again(self.producer)

    def request_bump(self, partition: TopicPartition) -> None:
        """Ask for a new epoch, in which the partition's batches start at 0. Source: requestIdempotentEpochBump."""
        self.bumps[partition] = None

    def reset_producer_id(self) -> None:
        """Give the producer id back, and all sequences with it. Source: resetProducerId of 2.0."""
        self.producer = NO_PRODUCER
        self.first_sequence = 0
        self.partitions.clear()
        self.unresolved.clear()

    def adopt(self, producer: tuple[int, int]) -> None:
        """Take another epoch or producer id from the coordinator, all sequences from 0. Source: resetSequenceNumbers."""
        self.producer = producer
        self.first_sequence = 0
        self.partitions.clear()
        self.unresolved.clear()
