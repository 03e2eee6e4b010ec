"""From a produce attempt to its answer: request checks, verification, validation, the producer's state machine.

Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, UnifiedLog.append.
"""

from typing import Any, NamedTuple

from kaudit.model.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.replay.attempts import Attempt
from kaudit.replay.coordinator import Coordinator, Request, TopicPartition
from kaudit.replay.errors import KafkaError
from kaudit.replay.partition import Partition
from kaudit.replay.profile import Profile
from kaudit.replay.record_set import RecordSet, Refusal, Topic, WireBatch, check_batch, check_request, split
from kaudit.replay.state import DataBatch, ProducerState
from kaudit.replay.verdict import Outcome

_DEFAULT_API_VERSION = 8
_GENERIC_ERROR_VERSION = 11
"""Produce version from which clients understand TRANSACTION_ABORTABLE."""
_ADDING_VERSION = 12
"""Produce version from which producing adds the partition to the transaction (transaction version 2)."""
_ACKS = (-1, 0, 1)
_CURRENT_MAGIC = 2


class Answered(NamedTuple):
    """The answer's fields without index, its reason, and the producer's state before and after."""

    fields: dict[str, Any]
    why: str
    producer: tuple[int, ProducerState, ProducerState] | None = None


class ProducePath:
    """The way of produce requests through one broker."""

    def __init__(self, profile: Profile, coordinator: Coordinator, *, verifies: bool) -> None:
        self._profile = profile
        self._coordinator = coordinator
        self._verifies = profile.verifies_transactions and verifies

    def produce(self, attempt: Attempt, key: TopicPartition, partition: Partition, topic: Topic, now: int) -> Answered:
        """Answer one produce attempt and let the partition change as it does."""
        acks = attempt.get("acks", -1)
        answered = self._produce(attempt, key, partition, topic, now)
        if acks == 0 and answered.fields["outcome"] != "connection-closed":
            return Answered(
                {"outcome": "no-response"}, f"acks=0, nothing is sent back: {answered.why}", answered.producer
            )
        return answered

    def _produce(self, attempt: Attempt, key: TopicPartition, partition: Partition, topic: Topic, now: int) -> Answered:
        if attempt.get("acks", -1) not in _ACKS:
            return _refused(Refusal(KafkaError.INVALID_REQUIRED_ACKS, f"acks {attempt['acks']}"))
        records = _records(attempt)
        api_version = attempt.get("api_version", _DEFAULT_API_VERSION)
        transactional_id = attempt.get("transactional_id")
        refusal = check_request(records, self._profile, api_version, transactional_id)
        if refusal is not None:
            return _refused(refusal)
        batches = records.batches
        if not batches:
            return Answered(_appended(partition.log_end), "an empty record set")
        if self._verifies and transactional_id is not None:
            refusal = self._verify(
                Request(key, api_version, now, attempt.get("at") is not None), transactional_id, batches, partition
            )
            if refusal is not None:
                return _refused(refusal)
        for batch in batches:
            refusal = check_batch(batch, self._profile, topic, now)
            if refusal is not None:
                return _refused(refusal)
        answered = Answered(_appended(partition.log_end), "")
        for batch in batches:  # more than one only before Produce version 3
            answered = self._append(batch, key, partition, topic, now)
            if answered.fields["outcome"] != "appended":
                break
        return answered

    def _append(self, batch: WireBatch, key: TopicPartition, partition: Partition, topic: Topic, now: int) -> Answered:
        next_offset = partition.log_end + batch.record_count
        answered_offset = partition.log_end
        if batch.producer_id < 0:
            partition.log_end = next_offset
            return Answered(_appended(answered_offset), "a batch without a producer id is not checked")
        timestamp = now if topic.get("message.timestamp.type") == "LogAppendTime" else batch.max_timestamp
        # Before 1.1.0 the delta may contradict the count: offsets are then counted back from the end.
        last_offset = next_offset - 1
        data = DataBatch(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            last_offset - batch.last_offset_delta,
            last_offset,
            timestamp,
            batch.is_transactional,
        )
        before = partition.state_of(batch.producer_id)
        verdict = partition.append(data, next_offset)
        why = verdict.why(batch.producer_id, answered_offset, f"{key[0]}-{key[1]}")
        producer = (batch.producer_id, before, partition.state_of(batch.producer_id))
        if verdict.outcome is Outcome.APPENDED:
            return Answered(_appended(answered_offset), why, producer)
        if verdict.outcome is Outcome.DUPLICATE:
            fields = {"outcome": "duplicate", "error": "NONE", "error_code": 0, "base_offset": verdict.base_offset}
            return Answered(fields, why, producer)
        return Answered(_rejection(verdict.error), why, producer)

    def _verify(
        self, request: Request, transactional_id: str, batches: list[WireBatch], partition: Partition
    ) -> Refusal | None:
        """Ask the coordinator about a transaction this partition does not know to be open (KIP-890)."""
        transactional = [batch for batch in batches if batch.is_transactional and batch.producer_id >= 0]
        if not transactional:
            return None
        if len({(batch.producer_id, batch.producer_epoch) for batch in transactional}) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        batch = transactional[0]
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if partition.has_ongoing_transaction(producer_id, epoch):
            return None
        adds = self._profile.transaction_version2 and request.api_version >= _ADDING_VERSION
        first = DataBatch(producer_id, epoch, batches[0].base_sequence, NO_SEQUENCE, 0, 0, NO_TIMESTAMP, True)
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


def _records(attempt: Attempt) -> RecordSet:
    if "batches" in attempt:
        parts = attempt["batches"]
        if all("records_hex" in part for part in parts):
            return split(b"".join(bytes.fromhex(part["records_hex"]) for part in parts))
        return RecordSet([_described_batch(part) for part in parts], None)
    if "records_hex" in attempt:
        return split(bytes.fromhex(attempt["records_hex"]))
    return RecordSet([_described_batch(attempt)], None)


def _described_batch(attempt: Attempt) -> WireBatch:
    """Make a sound batch of the attempt's fields."""
    timestamp = attempt.get("timestamp")
    return WireBatch(
        attempt.get("producer_id", NO_PRODUCER_ID),
        attempt.get("producer_epoch", NO_PRODUCER_EPOCH),
        attempt.get("base_sequence", NO_SEQUENCE),
        attempt["record_count"],
        attempt["record_count"] - 1,
        0,
        TRANSACTIONAL_FLAG if attempt.get("is_transactional") else 0,
        NO_TIMESTAMP if timestamp is None else timestamp,
        _CURRENT_MAGIC,
        0,
        b"",
    )


def _appended(base_offset: int) -> dict[str, Any]:
    return {"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": base_offset}


def _rejection(error: KafkaError) -> dict[str, Any]:
    return {"outcome": "rejected", "error": error.name, "error_code": int(error)}


def _refused(refusal: Refusal) -> Answered:
    if refusal.error is None:
        return Answered({"outcome": "connection-closed"}, refusal.why)
    return Answered(_rejection(refusal.error), refusal.why)
