"""From a produce attempt to its answer: request checks, verification, validation, the producer's state machine.

Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, UnifiedLog.append.
"""

from msgspec import UNSET, Struct

from kaudit.broker.attempts.attempt import Attempt, check_attempt
from kaudit.broker.attempts.fast_path import PlainProduce
from kaudit.broker.coordinator.transaction_coordinator import Coordinator, Request
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.fast_path import valid_batch
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.record_set import (
    RecordSet,
    Refusal,
    TopicLimits,
    WireBatch,
    check_batch,
    check_request,
    split,
)
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.broker.producer_state.verdict import Outcome
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Response, Ruling, TopicPartition, appended_fields, rejected_fields
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG

_DEFAULT_API_VERSION = 8
_GENERIC_ERROR_VERSION = 11
"""Produce version from which clients understand TRANSACTION_ABORTABLE."""
_ADDING_VERSION = 12
"""Produce version from which producing adds the partition to the transaction (transaction version 2)."""
_ACKS = (-1, 0, 1)
_REJECTED = Outcome.REJECTED


class _Sent(Struct, frozen=True, gc=False):
    """A produce request as far as it is not records."""

    index: int
    acks: int
    api_version: int
    transactional_id: str | None
    knows_now: bool


class ProducePath:
    """The way of produce requests through one broker."""

    def __init__(self, profile: Profile, coordinator: Coordinator, *, verifies: bool) -> None:
        self._profile = profile
        self._coordinator = coordinator
        self._verifies = profile.verifies_transactions and verifies

    def produce(
        self, attempt: Attempt, key: TopicPartition, partition: Partition, limits: TopicLimits, now: int
    ) -> Answer:
        """Answer one produce attempt and let the partition change as it does."""
        sent = _Sent(
            attempt["index"],
            attempt.get("acks", -1),
            attempt.get("api_version", _DEFAULT_API_VERSION),
            attempt.get("transactional_id"),
            attempt.get("at") is not None,
        )
        return self._produce(sent, _records(attempt), key, partition, limits, now)

    def produce_plain(
        self, plain: PlainProduce, key: TopicPartition, partition: Partition, limits: TopicLimits, now: int
    ) -> Answer:
        """Do the same for a produce attempt read as plain: at once, where nothing can be said against its batch."""
        batch, owner = valid_batch(plain, limits, now, partition.log_end), plain.transactional_id
        if batch is None or (batch.is_transactional and owner is None):
            sent = _Sent(plain.index, plain.acks, plain.api_version, owner, plain.at is not None)
            return self._produce(sent, _plain_records(plain), key, partition, limits, now)
        if batch.is_transactional and owner is not None and self._asks(plain.api_version):
            producer_id, epoch = batch.producer_id, batch.producer_epoch
            if not partition.has_ongoing_transaction(producer_id, epoch):
                request = Request(key, plain.api_version, now, plain.at is not None)
                refusal = self._verify(request, owner, (producer_id, epoch, batch.base_sequence), partition)
                if refusal is not None:
                    return _refused(plain.index, refusal)
        return _decide(plain.index, batch, key, partition)

    def _produce(
        self,
        sent: _Sent,
        records: RecordSet,
        key: TopicPartition,
        partition: Partition,
        limits: TopicLimits,
        now: int,
    ) -> Answer:
        index, acks = sent.index, sent.acks
        stamp = now if limits.log_append_time else None
        if acks not in _ACKS:
            return _refused(index, Refusal(KafkaError.INVALID_REQUIRED_ACKS, f"acks {acks}"))
        refusal = self._check(sent, records, key, partition, now)
        if refusal is None:
            for batch in records.batches:
                refusal = check_batch(batch, self._profile, limits, now)
                if refusal is not None:
                    break
        unanswered = partition.unanswered
        if refusal is not None:
            answer = _refused(index, refusal)
        else:
            answer = self._append_all(index, records.batches, key, partition, stamp)
        if acks == 0 and answer.fields["outcome"] != "connection-closed":
            written = {answer.fields["base_offset"]} if answer.fields["outcome"] == "appended" else set()
            partition.unanswered = unanswered | written
            why = f"acks=0, nothing is sent back: {answer.why}"
            return Response(index, {"outcome": "no-response"}, why, answer.producer)
        return answer

    def _check(
        self, sent: _Sent, records: RecordSet, key: TopicPartition, partition: Partition, now: int
    ) -> Refusal | None:
        refusal = check_request(records, self._profile, sent.api_version, sent.transactional_id)
        if refusal is not None or sent.transactional_id is None or not self._asks(sent.api_version):
            return refusal
        transactional = [batch for batch in records.batches if batch.is_transactional and batch.producer_id >= 0]
        if not transactional:
            return None
        if len({(batch.producer_id, batch.producer_epoch) for batch in transactional}) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        first = (transactional[0].producer_id, transactional[0].producer_epoch, records.batches[0].base_sequence)
        request = Request(key, sent.api_version, now, sent.knows_now)
        return self._verify(request, sent.transactional_id, first, partition)

    def _append_all(
        self, index: int, batches: list[WireBatch], key: TopicPartition, partition: Partition, stamp: int | None
    ) -> Answer:
        """Append one batch after the other: more than one only before Produce version 3, none only there too."""
        answer: Answer = Response(index, appended_fields(partition.log_end), "an empty record set")
        for batch in batches:
            answer = self._append(index, batch, key, partition, stamp)
            if answer.fields["outcome"] != "appended":
                break
        return answer

    def _append(
        self, index: int, batch: WireBatch, key: TopicPartition, partition: Partition, stamp: int | None
    ) -> Answer:
        """Append one batch; `stamp` is the time a LogAppendTime topic gives it."""
        offset = partition.log_end
        next_offset = offset + batch.record_count
        if batch.producer_id < 0:
            partition.log_end = next_offset
            partition.unanswered = frozenset()
            return Response(index, appended_fields(offset), "a batch without a producer id is not checked")
        last_offset = next_offset - 1
        data = DataBatch(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            # Before 1.1.0 the delta may contradict the count: offsets are then counted back from the end.
            last_offset - batch.last_offset_delta,
            last_offset,
            batch.max_timestamp if stamp is None else stamp,
            batch.is_transactional,
        )
        return _decide(index, data, key, partition)

    def _asks(self, api_version: int) -> bool:
        """Tell whether the coordinator is asked about transactions; by version 2's clients it is, whatever is configured."""
        return self._verifies or self._adds(api_version)

    def _adds(self, api_version: int) -> bool:
        return self._profile.transaction_version2 and api_version >= _ADDING_VERSION

    def _verify(
        self, request: Request, transactional_id: str, first: tuple[int, int, int], partition: Partition
    ) -> Refusal | None:
        """Ask the coordinator about a transaction this partition does not know to be open (KIP-890).

        `first` is the producer id and epoch of a transactional batch, and the first sequence of the request.
        """
        producer_id, epoch, _ = first
        if self._profile.stale_epoch_before_verification and partition.is_fenced(producer_id, epoch):
            known = partition.state_of(producer_id).epoch
            return Refusal(KafkaError.INVALID_PRODUCER_EPOCH, f"epoch {epoch} is below the current one, {known}")
        if partition.has_ongoing_transaction(producer_id, epoch):
            return None
        adds = self._adds(request.api_version)
        partition.start_verification(first, request.now, 2 if adds else 0)
        if adds:
            granted = self._coordinator.add_partitions(request, transactional_id, producer_id, epoch)
            error, why = granted.error, granted.why
            if error is KafkaError.PRODUCER_FENCED:
                error = KafkaError.INVALID_PRODUCER_EPOCH  # what producers expect here
        else:
            error, why = self._coordinator.verify(transactional_id, producer_id, epoch, request.partition)
            understood = self._profile.abortable_error and request.api_version >= _GENERIC_ERROR_VERSION
            if error is KafkaError.TRANSACTION_ABORTABLE and not understood:
                error = KafkaError.INVALID_TXN_STATE
        return None if error is KafkaError.NONE else Refusal(error, why)


def _decide(index: int, batch: DataBatch, key: TopicPartition, partition: Partition) -> Answer:
    """Let the partition decide about a batch."""
    offset = partition.log_end
    after, verdict = partition.append(batch)
    if partition.unanswered and verdict.outcome is not _REJECTED:
        first_word = verdict.base_offset in partition.unanswered
        partition.unanswered = frozenset()
        if verdict.outcome is Outcome.DUPLICATE and first_word:
            return _answered_late(Ruling(index, verdict, offset, key, after))
    return Ruling(index, verdict, offset, key, after)


def _answered_late(ruling: Ruling) -> Answer:
    """Answer the retry of a batch sent with acks=0: to whoever asks this is the first word of it, so `appended`.

    Unless something behind it has been answered since: then it is known that the log has it.
    """
    why = f"{ruling.why}; it was written when it came with acks=0, and this is the first answer to it"
    return Response(ruling.attempt, appended_fields(ruling.verdict.base_offset), why, ruling.producer)


def _records(attempt: Attempt) -> RecordSet:
    sent = attempt.get("records_hex")
    if sent is not None:
        return split(bytes.fromhex(sent))
    if "batches" not in attempt:
        return RecordSet([_described_batch(attempt)], None)
    parts = attempt["batches"]
    if all("records_hex" in part for part in parts):
        return split(b"".join(bytes.fromhex(part["records_hex"]) for part in parts))
    return RecordSet([_described_batch(part) for part in parts], None)


def _plain_records(plain: PlainProduce) -> RecordSet:
    if plain.records_hex is not UNSET:
        try:
            data = bytes.fromhex(plain.records_hex)
        except ValueError:
            check_attempt(plain.as_attempt())  # it has the words
            raise
        return split(data)
    identity = (plain.producer_id, plain.producer_epoch, plain.base_sequence)
    return RecordSet([_described(identity, plain.record_count, plain.timestamp, plain.is_transactional)], None)


def _described_batch(attempt: Attempt) -> WireBatch:
    """Make a sound batch of the attempt's fields."""
    identity = (
        attempt.get("producer_id", NO_PRODUCER_ID),
        attempt.get("producer_epoch", NO_PRODUCER_EPOCH),
        attempt.get("base_sequence", NO_SEQUENCE),
    )
    transactional = bool(attempt.get("is_transactional"))
    return _described(identity, attempt["record_count"], attempt.get("timestamp"), transactional)


def _described(
    identity: tuple[int, int, int],
    count: int,
    timestamp: int | None,
    transactional: bool,  # noqa: FBT001 - a field of the batch
) -> WireBatch:
    return WireBatch(
        *identity,
        count,
        count - 1,
        0,
        TRANSACTIONAL_FLAG if transactional else 0,
        NO_TIMESTAMP if timestamp is None else timestamp,
        CURRENT_MAGIC,
        0,
        b"",
    )


def _refused(index: int, refusal: Refusal) -> Answer:
    if refusal.error is None:
        return Response(index, {"outcome": "connection-closed"}, refusal.why)
    return Response(index, rejected_fields(refusal.error), refusal.why)
