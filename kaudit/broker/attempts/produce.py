"""Produce: request checks, verification, validation, the producer's state machine, for each partition of the request.

Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, UnifiedLog.append.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict, replace

from kaudit.broker.attempts.produce_request import Produce, SentElsewhere, record_set, valid_batch
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.config import TopicLimits
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.coordinator.verification import TransactionVerifier
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.log_validator import check_batches
from kaudit.broker.partition.record_set import RecordSet, Refusal, WireBatch, check_request, refused
from kaudit.broker.partition.replica import Replica
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Response, Ruling, TopicPartition, appended_fields, rejected_fields
from kaudit.formats.java_hash import topic_partition_hash
from kaudit.model.batch_fields import NO_TIMESTAMP

_RECORD_ERRORS_VERSION = 8
_GENERIC_ERROR_VERSION = 11
"""Produce version from which clients understand TRANSACTION_ABORTABLE."""
_ALL = -1
_ACKS = (_ALL, 0, 1)
_SILENCE = ("no-response", "nothing is sent back")


class ProduceHandler:
    """Handles the produce requests of one broker."""

    def __init__(self, profile: Profile, verifier: TransactionVerifier) -> None:
        self._profile = profile
        self.verifier = verifier
        self._remembers_refused = profile.refused_batch_is_remembered

    def produce(
        self, attempt: Produce, key: TopicPartition, partition: Replica, limits: TopicLimits, now: int
    ) -> Answer:
        """Answer one produce attempt and let the partition change as it does.

        `now` is the broker's clock in ms. Raises ValueError, saying what was expected, for a batch that is neither
        described by its fields nor given as hexadecimal digits.
        """
        batch = valid_batch(attempt, limits, now, partition.log_end)
        if batch is None:
            return self._check_and_append(attempt, key, partition, limits, now)
        if batch.is_transactional:
            transactional_id, api_version = attempt.transactional_id, attempt.api_version
            if transactional_id is None:
                return self._check_and_append(attempt, key, partition, limits, now)
            producer_id, epoch = batch.producer_id, batch.producer_epoch
            if self.verifier.asks_coordinator(api_version) and not partition.has_ongoing_transaction(
                producer_id, epoch
            ):
                request = RequestContext(key, api_version, now, attempt.at is not None)
                first = (producer_id, epoch, batch.base_sequence)
                refusal = self.verifier.verify(request, transactional_id, first, partition, self._versions(api_version))
                if refusal is not None:
                    return refused(attempt.index, refusal)
        ruling = _decide(attempt.index, batch, key, partition)
        return _timed_out(ruling, partition) if self._remembers_refused and attempt.acks == _ALL else ruling

    def answer(
        self, attempt: Produce, broker: BrokerState, key: TopicPartition, partition: Replica, now: int
    ) -> Answer:
        """Answer one attempt; raises ValueError as `produce` does."""
        if attempt.other_partitions is not None:
            return self._answer_several(attempt, broker, attempt.other_partitions)
        return self.produce(attempt, key, partition, broker.limits[attempt.topic], now)

    def _answer_several(self, attempt: Produce, broker: BrokerState, others: Sequence[SentElsewhere]) -> Answer:
        """Answer for the attempt's own partition, with the others' answers beside it."""
        sent = [replace(attempt, other_partitions=None)]
        for other in others:
            fields = {**asdict(other), "topic": attempt.topic if other.topic is None else other.topic}
            sent.append(replace(sent[0], **fields))
        refusal = self.refuses_all(sent)
        if refusal is not None:
            if refusal.error is None or attempt.acks == 0:
                return Response(attempt.index, {"outcome": "connection-closed"}, refusal.why)
            answers: list[Answer] = [Response(attempt.index, rejected_fields(refusal.error), refusal.why) for _ in sent]
        else:
            arrived = [broker.arrive((part.topic, part.partition), part.at) for part in sent]
            handler = self._verifying_once(sent, [partition for partition, _ in arrived])
            answers = [
                handler.produce(part, (part.topic, part.partition), partition, broker.limits[part.topic], now)
                for part, (partition, now) in zip(sent, arrived, strict=True)
            ]
        own = answers[0]
        for answer in answers:
            if answer.fields["outcome"] == "connection-closed":
                return Response(attempt.index, answer.fields, answer.why, own.producer)
        if attempt.acks == 0:
            return own
        elsewhere = [
            {"topic": part.topic, "partition": part.partition, **answer.fields}
            for part, answer in zip(sent[1:], answers[1:], strict=True)
        ]
        return Response(attempt.index, {**own.fields, "other_partitions": elsewhere}, own.why, own.producer)

    def _verifying_once(self, sent: Sequence[Produce], partitions: Sequence[Replica]) -> "ProduceHandler":
        """Return the handler of a request to several `partitions`: until 3.8.0 it verifies all with the epoch of one.

        Source: ReplicaManager.appendRecords of 3.6 and 3.7, notYetVerifiedEntriesPerPartition.head.
        """
        if self._profile.one_epoch_per_request:
            return self
        unverified = {}
        for part, partition in zip(sent, partitions, strict=True):
            records = record_set(part)
            if check_request(records, self._profile, part.api_version, part.transactional_id) is not None:
                continue
            for batch in self._asked_about(part, records)[:1]:
                if not partition.has_ongoing_transaction(batch.producer_id, batch.producer_epoch):
                    unverified[part.topic, part.partition] = batch.producer_epoch
        if len(set(unverified.values())) < 2:
            return self
        epoch = unverified[min(unverified, key=_order_in_scala_map)]
        return ProduceHandler(self._profile, self.verifier.of_epoch(epoch))

    def _asked_about(self, attempt: Produce, records: RecordSet) -> list[WireBatch]:
        """Return the batches that the coordinator is asked about."""
        if attempt.transactional_id is None or not self.verifier.asks_coordinator(attempt.api_version):
            return []
        return [batch for batch in records.batches if batch.is_transactional and batch.producer_id >= 0]

    def _refuses_producers(self, transactional: Iterable[WireBatch]) -> Refusal | None:
        """Return why the batches of one request may not be of these producers."""
        of_epoch = self._profile.one_epoch_per_request
        if len({(batch.producer_id, of_epoch and batch.producer_epoch) for batch in transactional}) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        return None

    def _check_and_append(
        self, attempt: Produce, key: TopicPartition, partition: Replica, limits: TopicLimits, now: int
    ) -> Answer:
        """Answer an attempt check by check, in a broker's order."""
        index, acks = attempt.index, attempt.acks
        records = record_set(attempt)
        refusal = self._check_request(attempt, records, key, partition, now)
        if refusal is None and acks == _ALL and limits.lacks_replicas is not None:
            refusal = Refusal(KafkaError.NOT_ENOUGH_REPLICAS, limits.lacks_replicas)
        refusal = refusal or check_batches(records.batches, self._profile, limits, now)
        if refusal is not None:
            reports = attempt.api_version >= _RECORD_ERRORS_VERSION or not self._profile.cannot_report_records_before_v8
            if refusal.of_records and not reports:
                refusal = Refusal(KafkaError.UNKNOWN_SERVER_ERROR, f"{refusal.why}, which the response cannot report")
            answer = refused(index, refusal)
        else:
            stamp = now if limits.log_append_time else None
            answer = self._append_all(index, records.batches, key, partition, stamp)
        if acks == 0:
            closes = answer.fields["outcome"] in ("connection-closed", "rejected")
            outcome, what = ("connection-closed", "a rejection closes the connection") if closes else _SILENCE
            return Response(index, {"outcome": outcome}, f"acks=0, {what}: {answer.why}", answer.producer)
        if acks == _ALL and self._remembers_refused and isinstance(answer, Ruling):
            return _timed_out(answer, partition)
        return answer

    def _check_request(
        self, attempt: Produce, records: RecordSet, key: TopicPartition, partition: Replica, now: int
    ) -> Refusal | None:
        refusal = check_request(records, self._profile, attempt.api_version, attempt.transactional_id)
        acks = None if attempt.acks in _ACKS else Refusal(KafkaError.INVALID_REQUIRED_ACKS, f"acks {attempt.acks}")
        if not self._profile.verifies_before_acks:
            refusal = refusal or acks
        return refusal or self._verify(attempt, records, key, partition, now) or acks

    def _verify(
        self, attempt: Produce, records: RecordSet, key: TopicPartition, partition: Replica, now: int
    ) -> Refusal | None:
        transactional_id, api_version = attempt.transactional_id, attempt.api_version
        transactional = self._asked_about(attempt, records)
        if transactional_id is None or not transactional:
            return None
        refusal = self._refuses_producers(transactional)
        if refusal is not None:
            return refusal
        first = (transactional[0].producer_id, transactional[0].producer_epoch, records.batches[0].base_sequence)
        request = RequestContext(key, api_version, now, attempt.at is not None)
        return self.verifier.verify(request, transactional_id, first, partition, self._versions(api_version))

    def refuses_all(self, attempts: Sequence[Produce]) -> Refusal | None:
        """Return why nothing of a request to several partitions is looked at, None where each is answered by itself.

        `attempts` are its partitions, one each. Raises ValueError, saying what was expected, as `produce` does.
        """
        transactional: list[WireBatch] = []
        looked_at = True
        for attempt in attempts:
            records = record_set(attempt)
            refusal = check_request(records, self._profile, attempt.api_version, attempt.transactional_id)
            if refusal is not None:
                if refusal.error in (None, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
                    return refusal
                if looked_at and records.first_is_unreadable:
                    return refusal
            # The first batches are looked at until one is transactional (RequestUtils.flag).
            looked_at = looked_at and not (records.batches and records.batches[0].is_transactional)
            if refusal is not None:
                continue  # refused by itself, it reaches no log (KafkaApis.handleProduceRequest, invalidRequestResponses)
            transactional += self._asked_about(attempt, records)
        return self._refuses_producers(transactional)

    def _append_all(
        self, index: int, batches: list[WireBatch], key: TopicPartition, partition: Replica, stamp: int | None
    ) -> Answer:
        """Append one batch after the other: more than one only before Produce version 3, none only there too.

        The answer names the offset of the first (LogAppendInfo.firstOffset).
        """
        first: Answer | None = None
        for batch in batches:
            answer = self._append(index, batch, key, partition, stamp)
            if answer.fields["outcome"] != "appended":
                return answer
            first = first or answer
        return first or Response(index, appended_fields(partition.log_end), "an empty record set")

    def _append(
        self, index: int, batch: WireBatch, key: TopicPartition, partition: Replica, stamp: int | None
    ) -> Answer:
        """Append one batch; `stamp` is the time a LogAppendTime topic gives it."""
        offset = partition.log_end
        next_offset = offset + batch.record_count
        if batch.producer_id < 0:
            partition.log_end = next_offset
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
            _written_timestamp(batch) if stamp is None else stamp,
            batch.is_transactional,
        )
        return _decide(index, data, key, partition)

    def _versions(self, api_version: int) -> tuple[bool, bool]:
        understands = self._profile.abortable_error and api_version >= _GENERIC_ERROR_VERSION
        return self.verifier.produce_adds(api_version), understands


def _order_in_scala_map(key: TopicPartition) -> tuple[int, int]:
    """Return what Scala 2.13's mutable.HashMap orders up to eleven partitions by: bucket, then hash.

    `toMap` keeps that order up to four (Map4); an order of five or more is not recorded.
    """
    code = topic_partition_hash(*key)
    mixed = code ^ ((code & 0xFFFFFFFF) >> 16)
    return mixed & 15, mixed


def _written_timestamp(batch: WireBatch) -> int:
    """Return the time a batch gets in the log: that of its latest record. Without records it has none.

    Its producer then counts as idle since 1970. Source: LogValidator.assignOffsetsNonCompressed; see
    Switches.rejects_empty_batch.
    """
    return batch.max_timestamp if batch.record_count else NO_TIMESTAMP


def _decide(index: int, batch: DataBatch, key: TopicPartition, partition: Replica) -> Ruling:
    """Let the partition decide about a batch."""
    offset = partition.log_end
    after, result = partition.append(batch)
    return Ruling(index, result, offset, key, after)


def _timed_out(ruling: Ruling, partition: Replica) -> Answer:
    """Answer the retry of a batch that is remembered but was never written: no replica will ever have it."""
    batch, outcome = ruling.result.batch, ruling.result.outcome
    if outcome is not Outcome.DUPLICATE or isinstance(batch, MarkerBatch) or not partition.never_replicates(batch):
        return ruling
    why = f"{ruling.why}; it waits for an offset that was never written"
    return Response(ruling.attempt, rejected_fields(KafkaError.REQUEST_TIMED_OUT), why, ruling.producer)
