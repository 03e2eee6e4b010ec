"""From a produce attempt to its answer: request checks, verification, validation, the producer's state machine.

Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, UnifiedLog.append.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET

from kaudit.model.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.model.sequence import add as add_sequence
from kaudit.replay.answer import Answer, Ruling, TopicPartition, rejected_fields
from kaudit.replay.attempts import Attempt
from kaudit.replay.coordinator import Coordinator, Request
from kaudit.replay.errors import KafkaError
from kaudit.replay.partition import Partition
from kaudit.replay.plain import PlainProduce
from kaudit.replay.profile import Profile
from kaudit.replay.record_set import (
    CURRENT_MAGIC,
    RecordSet,
    Refusal,
    TopicLimits,
    WireBatch,
    check_batch,
    check_request,
    split,
)
from kaudit.replay.state import DataBatch, ProducerState
from kaudit.replay.verdict import Outcome

_DEFAULT_API_VERSION = 8
_GENERIC_ERROR_VERSION = 11
"""Produce version from which clients understand TRANSACTION_ABORTABLE."""
_ADDING_VERSION = 12
"""Produce version from which producing adds the partition to the transaction (transaction version 2)."""
_ACKS = (-1, 0, 1)
_ANSWERED_ACKS = (-1, 1)

# Half of what calling the class costs, for every batch of a file.
_new_data: Callable[[tuple[int, ...]], DataBatch] = partial(tuple.__new__, DataBatch)


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
        index = attempt["index"]
        stamp = now if limits.log_append_time else None
        acks = attempt.get("acks", -1)
        if acks not in _ACKS:
            return _refused(index, Refusal(KafkaError.INVALID_REQUIRED_ACKS, f"acks {acks}"))
        records = _records(attempt)
        refusal = self._check(attempt, records, key, partition, now)
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
            return Answer(index, {"outcome": "no-response"}, why, answer.producer)
        return answer

    def _check(
        self, attempt: Attempt, records: RecordSet, key: TopicPartition, partition: Partition, now: int
    ) -> Refusal | None:
        api_version = attempt.get("api_version", _DEFAULT_API_VERSION)
        transactional_id = attempt.get("transactional_id")
        refusal = check_request(records, self._profile, api_version, transactional_id)
        if refusal is not None or not self._verifies or transactional_id is None:
            return refusal
        request = Request(key, api_version, now, attempt.get("at") is not None)
        return self._verify(request, transactional_id, records.batches, partition)

    def _append_all(
        self, index: int, batches: list[WireBatch], key: TopicPartition, partition: Partition, stamp: int | None
    ) -> Answer:
        """Append one batch after the other: more than one only before Produce version 3, none only there too."""
        answer = Answer(index, _appended(partition.log_end), "an empty record set")
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
            return Answer(index, _appended(offset), "a batch without a producer id is not checked")
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
        return _answer(index, data, key, partition)

    def _verify(
        self, request: Request, transactional_id: str, batches: list[WireBatch], partition: Partition
    ) -> Refusal | None:
        """Ask the coordinator about a transaction this partition does not know to be open (KIP-890)."""
        transactional = [batch for batch in batches if batch.is_transactional and batch.producer_id >= 0]
        if not transactional:
            return None
        if len({(batch.producer_id, batch.producer_epoch) for batch in transactional}) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        producer_id, epoch = transactional[0].producer_id, transactional[0].producer_epoch
        if self._profile.stale_epoch_before_verification and partition.is_fenced(producer_id, epoch):
            known = partition.state_of(producer_id).epoch
            return Refusal(KafkaError.INVALID_PRODUCER_EPOCH, f"epoch {epoch} is below the current one, {known}")
        if partition.has_ongoing_transaction(producer_id, epoch):
            return None
        adds = self._profile.transaction_version2 and request.api_version >= _ADDING_VERSION
        first = (producer_id, epoch, batches[0].base_sequence)
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


def is_sound(plain: PlainProduce, limits: TopicLimits, now: int) -> bool:
    """Tell whether no request check and no validator can refuse a batch, and no transaction is concerned."""
    return (
        plain.records_hex is UNSET
        and not plain.is_transactional
        and plain.record_count > 0
        and plain.base_sequence >= 0
        and plain.producer_id >= 0
        and plain.acks in _ANSWERED_ACKS
        and limits.behind_ms is None
        and (limits.ahead_ms is None or plain.timestamp - now <= limits.ahead_ms)
    )


def append_plain(plain: PlainProduce, key: TopicPartition, partition: Partition, timestamp: int) -> Answer:
    """Append a sound batch as its fields describe it, with the timestamp it gets in the log."""
    sequence, delta = plain.base_sequence, plain.record_count - 1
    last_sequence = sequence + delta
    offset = partition.log_end
    data = _new_data(
        (
            plain.producer_id,
            plain.producer_epoch,
            sequence,
            last_sequence if last_sequence <= MAX_SEQUENCE else add_sequence(sequence, delta),
            offset,
            offset + delta,
            timestamp,
            False,
        )
    )
    return _answer(plain.index, data, key, partition)


def _answer(index: int, batch: DataBatch, key: TopicPartition, partition: Partition) -> Answer:
    """Let the partition decide about a batch, and word the decision."""
    offset = partition.log_end
    after, verdict = partition.append(batch)
    outcome = verdict.outcome
    if outcome is Outcome.APPENDED:
        fields = _appended(offset)
    elif outcome is Outcome.DUPLICATE:
        fields = {"outcome": "duplicate", "error": "NONE", "error_code": 0, "base_offset": verdict.base_offset}
    else:
        fields = rejected_fields(verdict.error)
    if partition.unanswered and outcome is not Outcome.REJECTED:
        first_word = verdict.base_offset in partition.unanswered
        partition.unanswered = frozenset()
        if outcome is Outcome.DUPLICATE and first_word:
            return _answered_late(index, Ruling(verdict, offset, key), after)
    return Answer(index, fields, Ruling(verdict, offset, key), (batch.producer_id, verdict.state, after))


def _answered_late(index: int, ruling: Ruling, after: ProducerState) -> Answer:
    """Answer the retry of a batch sent with acks=0: to whoever asks this is the first word of it, so `appended`.

    Unless something behind it has been answered since: then it is known that the log has it.
    """
    verdict = ruling.verdict
    why = f"{ruling.words}; it was written when it came with acks=0, and this is the first answer to it"
    producer = (verdict.batch.producer_id, verdict.state, after)
    return Answer(index, _appended(verdict.base_offset), why, producer)


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


def _described_batch(attempt: Attempt) -> WireBatch:
    """Make a sound batch of the attempt's fields."""
    timestamp = attempt.get("timestamp")
    count = attempt["record_count"]
    return WireBatch(
        attempt.get("producer_id", NO_PRODUCER_ID),
        attempt.get("producer_epoch", NO_PRODUCER_EPOCH),
        attempt.get("base_sequence", NO_SEQUENCE),
        count,
        count - 1,
        0,
        TRANSACTIONAL_FLAG if attempt.get("is_transactional") else 0,
        NO_TIMESTAMP if timestamp is None else timestamp,
        CURRENT_MAGIC,
        0,
        b"",
    )


def _appended(base_offset: int) -> dict[str, Any]:
    return {"outcome": "appended", "error": "NONE", "error_code": 0, "base_offset": base_offset}


def _refused(index: int, refusal: Refusal) -> Answer:
    if refusal.error is None:
        return Answer(index, {"outcome": "connection-closed"}, refusal.why)
    return Answer(index, rejected_fields(refusal.error), refusal.why)
