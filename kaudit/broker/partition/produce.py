"""From a produce attempt to its answer: request checks, verification, validation, the producer's state machine.

Source: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, UnifiedLog.append.
"""

from collections.abc import Sequence

from kaudit.broker.attempts import BATCH_FIELDS, Produce, SentBatch, TxnOffsetCommit
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.coordinator.transaction_coordinator import TransactionCoordinator
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.fast_path import valid_batch
from kaudit.broker.partition.log_validator import check_batch
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.record_set import RecordSet, Refusal, WireBatch, check_request, split
from kaudit.broker.partition.topic_config import TopicLimits
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.broker.producer_state.verdict import Origin, Outcome
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Response, Ruling, TopicPartition, appended_fields, ok_fields, rejected_fields
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch_fields import NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG

_RECORD_ERRORS_VERSION = 8
_GENERIC_ERROR_VERSION = 11
"""Produce version from which clients understand TRANSACTION_ABORTABLE."""
_ADDING_VERSION = 12
"""Produce version from which producing adds the partition to the transaction (transaction version 2)."""
_GENERIC_ERROR_COMMIT, _ADDING_COMMIT = 4, 5
"""The same of TxnOffsetCommit."""
_ACKS = (-1, 0, 1)
_SILENCE = ("no-response", "nothing is sent back")


class ProduceHandler:
    """Handles the produce requests of one broker."""

    def __init__(self, profile: Profile, coordinator: TransactionCoordinator, *, verifies: bool) -> None:
        self._profile = profile
        self._coordinator = coordinator
        self._verifies = profile.verifies_transactions and verifies
        self._remembers_refused = profile.refused_batch_is_remembered

    def produce(
        self, attempt: Produce, key: TopicPartition, partition: Partition, limits: TopicLimits, now: int
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
            if self.asks_coordinator(api_version) and not partition.has_ongoing_transaction(producer_id, epoch):
                request = RequestContext(key, api_version, now, attempt.at is not None)
                first = (producer_id, epoch, batch.base_sequence)
                refusal = self._verify(request, transactional_id, first, partition, self._versions(api_version))
                if refusal is not None:
                    return _refused(attempt.index, refusal)
        ruling = _decide(attempt.index, batch, key, partition)
        return _timed_out(ruling, partition) if self._remembers_refused and attempt.acks == -1 else ruling

    def _check_and_append(
        self, attempt: Produce, key: TopicPartition, partition: Partition, limits: TopicLimits, now: int
    ) -> Answer:
        """Answer an attempt check by check, in a broker's order."""
        index, acks = attempt.index, attempt.acks
        records = _records(attempt)
        refusal = self._check_request(attempt, records, key, partition, now)
        if refusal is None:
            checked = (check_batch(batch, self._profile, limits, now) for batch in records.batches)
            refusal = next((refusal for refusal in checked if refusal is not None), None)
        if refusal is not None:
            reports = attempt.api_version >= _RECORD_ERRORS_VERSION or not self._profile.cannot_report_records_before_v8
            if refusal.of_records and not reports:
                refusal = Refusal(KafkaError.UNKNOWN_SERVER_ERROR, f"{refusal.why}, which the response cannot report")
            answer = _refused(index, refusal)
        else:
            stamp = now if limits.log_append_time else None
            answer = self._append_all(index, records.batches, key, partition, stamp)
        if acks == 0:
            closes = answer.fields["outcome"] in ("connection-closed", "rejected")
            outcome, what = ("connection-closed", "a rejection closes the connection") if closes else _SILENCE
            return Response(index, {"outcome": outcome}, f"acks=0, {what}: {answer.why}", answer.producer)
        if acks == -1 and self._remembers_refused and isinstance(answer, Ruling):
            return _timed_out(answer, partition)
        return answer

    def _check_request(
        self, attempt: Produce, records: RecordSet, key: TopicPartition, partition: Partition, now: int
    ) -> Refusal | None:
        transactional_id, api_version = attempt.transactional_id, attempt.api_version
        if attempt.acks not in _ACKS:
            return Refusal(KafkaError.INVALID_REQUIRED_ACKS, f"acks {attempt.acks}")
        refusal = check_request(records, self._profile, api_version, transactional_id)
        if refusal is not None or transactional_id is None or not self.asks_coordinator(api_version):
            return refusal
        transactional = [batch for batch in records.batches if batch.is_transactional and batch.producer_id >= 0]
        if not transactional:
            return None
        if len({(batch.producer_id, batch.producer_epoch) for batch in transactional}) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        first = (transactional[0].producer_id, transactional[0].producer_epoch, records.batches[0].base_sequence)
        request = RequestContext(key, api_version, now, attempt.at is not None)
        return self._verify(request, transactional_id, first, partition, self._versions(api_version))

    def refuses_all(self, attempts: Sequence[Produce]) -> Refusal | None:
        """Return why nothing of a request to several partitions is looked at, None where each is answered by itself.

        `attempts` are its partitions, one each. Raises ValueError, saying what was expected, as `produce` does.
        """
        producers = set()
        looked_at = True
        for attempt in attempts:
            records = _records(attempt)
            refusal = check_request(records, self._profile, attempt.api_version, attempt.transactional_id)
            if refusal is not None:
                if refusal.error in (None, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
                    return refusal
                if looked_at and records.first_is_unreadable:
                    return refusal
            # The first batches are looked at until one is transactional (RequestUtils.flag).
            looked_at = looked_at and not (records.batches and records.batches[0].is_transactional)
            if attempt.transactional_id is not None and self.asks_coordinator(attempt.api_version):
                sent = (batch for batch in records.batches if batch.is_transactional and batch.producer_id >= 0)
                producers |= {(batch.producer_id, batch.producer_epoch) for batch in sent}
        if len(producers) > 1:
            return Refusal(KafkaError.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        return None

    def commit_offsets(self, attempt: TxnOffsetCommit, key: TopicPartition, partition: Partition, now: int) -> Answer:
        """Answer TxnOffsetCommit: the group coordinator appends the offsets. Source: GroupMetadataManager.storeOffsets."""
        producer_id, epoch, version = attempt.producer_id, attempt.producer_epoch, attempt.api_version
        adds = self._profile.transaction_version2 and version >= _ADDING_COMMIT
        if self._profile.verifies_coordinator_appends and (self._verifies or adds):
            request = RequestContext(key, version, now, attempt.at is not None)
            understands = self._profile.abortable_error and version >= _GENERIC_ERROR_COMMIT
            first = (producer_id, epoch, NO_SEQUENCE)
            refusal = self._verify(request, attempt.transactional_id, first, partition, (adds, understands))
            if refusal is not None:
                if refusal.error is KafkaError.NOT_ENOUGH_REPLICAS:
                    refusal = Refusal(KafkaError.COORDINATOR_NOT_AVAILABLE, refusal.why)
                return _refused(attempt.index, refusal)
        offset, last = partition.log_end, attempt.record_count - 1
        # Every such batch has the sequences 0 to last: nobody checks them.
        batch = DataBatch(producer_id, epoch, 0, last, offset, offset + last, now, is_transactional=True)
        after, verdict = partition.append(batch, Origin.COORDINATOR)
        fields = ok_fields() if verdict.outcome is Outcome.APPENDED else rejected_fields(verdict.error)
        why = verdict.why(offset, f"{key[0]}-{key[1]}")
        return Response(attempt.index, fields, why, (producer_id, verdict.state, after))

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

    def asks_coordinator(self, api_version: int) -> bool:
        """Return whether the coordinator is asked about transactions: for transaction version 2, whatever is configured."""
        return self._verifies or self._adds(api_version)

    def _versions(self, api_version: int) -> tuple[bool, bool]:
        understands = self._profile.abortable_error and api_version >= _GENERIC_ERROR_VERSION
        return self._adds(api_version), understands

    def _adds(self, api_version: int) -> bool:
        return self._profile.transaction_version2 and api_version >= _ADDING_VERSION

    def _verify(
        self,
        request: RequestContext,
        transactional_id: str,
        first: tuple[int, int, int],
        partition: Partition,
        versions: tuple[bool, bool],
    ) -> Refusal | None:
        """Ask the coordinator about a transaction this partition does not know to be open (KIP-890).

        `first` is the producer id and epoch of a transactional batch, and the first sequence of the request; `versions`:
        whether the request adds the partition to the transaction, and knows TRANSACTION_ABORTABLE.
        """
        producer_id, epoch, _ = first
        if self._profile.stale_epoch_before_verification and partition.is_fenced(producer_id, epoch):
            known = partition.state_of(producer_id).epoch
            return Refusal(KafkaError.INVALID_PRODUCER_EPOCH, f"epoch {epoch} is below the current one, {known}")
        if partition.has_ongoing_transaction(producer_id, epoch):
            return None
        adds, understood = versions
        partition.start_verification(first, request.now, 2 if adds else 0)
        if adds:
            granted = self._coordinator.add_partitions(request, transactional_id, producer_id, epoch)
            error, why = granted.error, granted.why
            if error is KafkaError.PRODUCER_FENCED:
                error = KafkaError.INVALID_PRODUCER_EPOCH  # what producers expect here
        else:
            error, why = self._coordinator.verify(transactional_id, producer_id, epoch, request.partition)
            if error is KafkaError.TRANSACTION_ABORTABLE and not understood:
                error = KafkaError.INVALID_TXN_STATE
        return None if error is KafkaError.NONE else Refusal(error, why)


def _written_timestamp(batch: WireBatch) -> int:
    """Return the time a batch gets in the log: that of its latest record. Without records it has none.

    Its producer then counts as idle since 1970. Source: LogValidator.assignOffsetsNonCompressed; see
    Switches.rejects_empty_batch.
    """
    return batch.max_timestamp if batch.record_count else NO_TIMESTAMP


def _decide(index: int, batch: DataBatch, key: TopicPartition, partition: Partition) -> Ruling:
    """Let the partition decide about a batch."""
    offset = partition.log_end
    after, verdict = partition.append(batch)
    return Ruling(index, verdict, offset, key, after)


def _timed_out(ruling: Ruling, partition: Partition) -> Answer:
    """Answer the retry of a batch that is remembered but was never written: no replica will ever have it."""
    batch, outcome = ruling.verdict.batch, ruling.verdict.outcome
    if outcome is not Outcome.DUPLICATE or isinstance(batch, MarkerBatch) or not partition.never_replicates(batch):
        return ruling
    why = f"{ruling.why}; it waits for an offset that was never written"
    return Response(ruling.attempt, rejected_fields(KafkaError.REQUEST_TIMED_OUT), why, ruling.producer)


def _records(attempt: Produce) -> RecordSet:
    """Return the record set an attempt sends; raises ValueError, saying what was expected."""
    if attempt.records_hex is not None:
        return split(_from_hex(attempt.records_hex, "records_hex"))
    if attempt.batches is None:
        return RecordSet([_described(attempt, "")], None)
    sent = [
        None if batch.records_hex is None else _from_hex(batch.records_hex, f"batches[{number}].records_hex")
        for number, batch in enumerate(attempt.batches)
    ]
    if None not in sent:
        return split(b"".join(data for data in sent if data is not None))
    return RecordSet([_described(batch, f"batches[{number}].") for number, batch in enumerate(attempt.batches)], None)


def _from_hex(digits: str, name: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ValueError(f"{name} to be hexadecimal digits, two a byte") from None


def _described(batch: Produce | SentBatch, prefix: str) -> WireBatch:
    """Return a valid batch of the fields an attempt states; raises ValueError with the name of a missing one."""
    fields = [getattr(batch, name) for name in BATCH_FIELDS]
    for name, value in zip(BATCH_FIELDS, fields, strict=True):
        if value is None:
            raise ValueError(f"the field {prefix}{name}, or {prefix}records_hex")
    producer_id, producer_epoch, base_sequence, record_count = fields
    return WireBatch(
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
        record_count - 1,
        0,
        TRANSACTIONAL_FLAG if batch.is_transactional else 0,
        NO_TIMESTAMP if batch.timestamp is None else batch.timestamp,
        CURRENT_MAGIC,
        0,
        b"",
    )


def _refused(index: int, refusal: Refusal) -> Answer:
    if refusal.error is None:
        return Response(index, {"outcome": "connection-closed"}, refusal.why)
    return Response(index, rejected_fields(refusal.error), refusal.why)
