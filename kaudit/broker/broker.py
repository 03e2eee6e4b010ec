"""A broker, its partitions and its transaction coordinator, answering attempts one by one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from kaudit.broker import attempts
from kaudit.broker.attempts import Attempt, PartitionAttempt
from kaudit.broker.config import BrokerConfig, runs_kraft, unread_names
from kaudit.broker.coordinator.leader_epochs import CoordinatorEpochs
from kaudit.broker.coordinator.requests import EndOfTransaction, RequestContext
from kaudit.broker.coordinator.transaction_coordinator import FIRST_END_TXN_OF_VERSION_2, TransactionCoordinator
from kaudit.broker.coordinator.transaction_metadata import TransactionMetadata
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import SNAPSHOT_SUFFIX, Partition, Tampering
from kaudit.broker.partition.produce import ProduceHandler
from kaudit.broker.partition.topic_config import READ_OF_BROKERS, READ_OF_TOPICS, TopicLimits, topic_config
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.producer_state.producer_state_manager import AbortedTransaction
from kaudit.broker.producer_state.verdict import Outcome
from kaudit.broker.releases.profile import Profile, profile_for
from kaudit.broker.response import Answer, Response, TopicPartition, ok_fields, rejected_fields
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.model.sequence import add as add_sequence

if TYPE_CHECKING:
    from kaudit.broker.recorded_log import RecordedLog

_APPENDED, _DONE = Outcome.APPENDED, KafkaError.NONE
_NO_BROKER = "a broker line first, or --broker-version"


class MissingBrokerError(ValueError):
    """Attempts begin before any line said which broker answers them."""


class Broker:
    """Answers attempts in order. A `broker` line begins a new broker; `profile` overrides its version.

    It begins empty, or with the partition in `recorded`.
    """

    def __init__(self, profile: Profile | None = None, recorded: "RecordedLog | None" = None) -> None:
        self._override = profile
        self._recorded = recorded
        self._profile: Profile | None = None
        self.unread_config: dict[str, str | None] = {}
        """Configuration that no answer depends on, each name with the one that may have been meant."""
        self._handlers: dict[type, Callable[[Any, TopicPartition, Partition, int], Answer]] = {
            attempts.Produce: self._produce,
            attempts.InitProducerId: self._init_producer_id,
            attempts.AddPartitions: self._add_partitions,
            attempts.EndTxn: self._end_txn,
            attempts.TxnOffsetCommit: self._txn_offset_commit,
            attempts.WriteMarker: self._write_marker,
            attempts.DeleteRecords: self._delete_records,
            attempts.Restart: self._restart,
            attempts.LeaderChange: self._leader_change,
            attempts.FollowerRestart: self._follower_restart,
            attempts.Wait: self._wait,
            attempts.ExpireProducers: self._expire_producers,
            attempts.Describe: self._describe,
        }
        if profile is not None:
            self._begin(profile, {})

    @property
    def profile(self) -> Profile:
        """The rules that answer; raises MissingBrokerError before any broker is known."""
        if self._profile is None:
            raise MissingBrokerError(_NO_BROKER)
        return self._profile

    def answer(self, attempt: Attempt) -> Answer:
        """Answer one attempt.

        Raises MissingBrokerError before any broker is known, UnknownVersionError for a broker of unknown version, and
        ValueError, saying what was expected, for configuration that is not a number or records that cannot be read.
        """
        handler = self._handlers.get(type(attempt))
        if handler is None:
            return self._set_up(attempt)
        if self._profile is None:
            raise MissingBrokerError(_NO_BROKER)
        asked: PartitionAttempt = attempt  # type: ignore[assignment]  # those with a handler
        key = (asked.topic, asked.partition)
        partition, now = self._arrive(key, asked.at)
        return handler(asked, key, partition, now)

    def remembered(self, key: TopicPartition) -> Mapping[int, ProducerStateEntry]:
        """Return what a partition remembers of its producer ids."""
        partition = self._partitions.get(key)
        return {} if partition is None else partition.producers.states

    def transaction(self, transactional_id: str) -> TransactionMetadata | None:
        """Return what the coordinator keeps of a transactional id, None if it does not know it."""
        return None if self._profile is None else self._coordinator.transaction(transactional_id)

    # -- set up ------------------------------------------------------------------------------------------------------
    def _set_up(self, attempt: Attempt) -> Answer:
        if isinstance(attempt, attempts.StartBroker):
            profile = self._override or profile_for(attempt.broker_version)
            self._begin(profile, attempt.config)
            self._saw(attempt.at)
            return Response(attempt.index, {"op": "broker"}, f"rules of {profile.version}")
        assert isinstance(attempt, attempts.ConfigureTopic)
        profile = self.profile
        config = {name: str(value) for name, value in attempt.config.items()}
        self._limits[attempt.topic] = TopicLimits.of(topic_config(config, self._configured), profile)
        self.unread_config |= unread_names(config, READ_OF_TOPICS)
        self._saw(attempt.at)
        return Response(attempt.index, {"outcome": "ok"}, "a topic's configuration")

    def _begin(self, profile: Profile, config: dict[str, Any]) -> None:
        self._configured = {name: str(value) for name, value in config.items()}
        self.unread_config |= unread_names(self._configured, READ_OF_BROKERS)
        self._profile = profile = replace(profile, kraft=runs_kraft(self._configured, profile))
        self._config = BrokerConfig.of(self._configured, profile)
        self._limits: dict[str, TopicLimits] = {}
        self._default_limits = TopicLimits.of(topic_config({}, self._configured), profile)
        self._partitions: dict[TopicPartition, Partition] = {}
        self._clocks: dict[TopicPartition, int] = {}
        self._first_seen: int | None = None
        self._next_producer_id = 0
        self._epochs = CoordinatorEpochs(profile)
        self._coordinator = TransactionCoordinator(profile, self._config, self._write_markers, self._allocate)
        self._timeouts = self._coordinator.timeouts
        self._produce_handler = ProduceHandler(profile, self._coordinator, verifies=self._config.verifies)

        if self._recorded is not None:
            self._take_over(self._recorded)

    def _take_over(self, recorded: "RecordedLog") -> None:
        partition = self._create(recorded.key)
        partition.take_over(recorded.batches, recorded.log_start, recorded.log_end)
        self._clocks[recorded.key] = self._first_seen = recorded.now
        if recorded.restarts:
            partition.restart(recorded.now, [], Tampering(), clean=True)
        else:
            partition.forget_idle(recorded.now)

    def _create(self, key: TopicPartition) -> Partition:
        config = self._config
        partition = Partition(self.profile, config.producer_id_expiration_ms, config.producer_id_check_ms)
        self._partitions[key] = partition
        return partition

    def _estimated_now(self, key: TopicPartition) -> int:
        """Return the clock at an attempt without time: that of the partition's attempt before, or of the very first."""
        return self._clocks.get(key, self._first_seen or 0)

    def _arrive(self, key: TopicPartition, at: int | None) -> tuple[Partition, int]:
        """Return the partition an attempt is for and the clock, when what is due by then is done."""
        partition = self._partitions.get(key) or self._create(key)
        if at is None:
            now = self._estimated_now(key)
        else:
            now = at
            if self._epochs.unfinished:
                self._epochs.answered(key, at)
            self._clocks[key] = at
            self._saw(at)
        partition.pass_time(now)
        if now > self._timeouts.get(key, now):
            self._abort_timed_out(key, now)
        return partition, now

    def _saw(self, at: int | None) -> None:
        """Take note of a time: the first one is taken for that of the broker's start."""
        if self._first_seen is None:
            self._first_seen = at

    def _last_run(self, now: int, first_after: int, interval: int) -> int | None:
        """Return when a task of the broker ran last: `first_after` its start, then at `interval`; None if never."""
        restarted_at = self._epochs.restarted_at(now)
        started_at = self._first_seen if restarted_at is None else restarted_at
        if started_at is None or now < started_at + first_after:
            return None
        return now - (now - started_at - first_after) % interval

    def _abort_timed_out(self, key: TopicPartition, now: int) -> None:
        interval = self._config.transaction_check_ms
        self._coordinator.abort_timed_out(key, now, self._last_run(now, interval, interval))

    def _log_start_checkpointed_at(self, now: int) -> int | None:
        return self._last_run(now, self._config.first_checkpoint_ms, self._config.log_start_checkpoint_ms)

    def _allocate(self, granted: int | None) -> int:
        producer_id = self._next_producer_id if granted is None else granted
        self._next_producer_id = max(self._next_producer_id, producer_id + 1)
        return producer_id

    def _produce(self, attempt: attempts.Produce, key: TopicPartition, partition: Partition, now: int) -> Answer:
        if attempt.other_partitions is not None:
            return self._produce_to_several(attempt, attempt.other_partitions)
        limits = self._limits.get(attempt.topic, self._default_limits)
        return self._produce_handler.produce(attempt, key, partition, limits, now)

    def _produce_to_several(self, attempt: attempts.Produce, others: Sequence[attempts.SentElsewhere]) -> Answer:
        """Answer for the attempt's own partition, with the others' answers beside it."""
        sent = [replace(attempt, other_partitions=None)]
        for other in others:
            fields = {**asdict(other), "topic": attempt.topic if other.topic is None else other.topic}
            sent.append(replace(sent[0], **fields))
        refusal = self._produce_handler.refuses_all(sent)
        if refusal is not None:
            if refusal.error is None or attempt.acks == 0:
                return Response(attempt.index, {"outcome": "connection-closed"}, refusal.why)
            answers: list[Answer] = [Response(attempt.index, rejected_fields(refusal.error), refusal.why) for _ in sent]
        else:
            answers = [self.answer(part) for part in sent]
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

    def _txn_offset_commit(
        self, attempt: attempts.TxnOffsetCommit, key: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        return self._produce_handler.commit_offsets(attempt, key, partition, now)

    # -- the coordinator ---------------------------------------------------------------------------------------------
    def _init_producer_id(
        self, attempt: attempts.InitProducerId, key: TopicPartition, _: Partition, now: int
    ) -> Answer:
        result = self._coordinator.init_producer_id(
            RequestContext(key, attempt.api_version, now, attempt.at is not None, attempt.granted_producer_id),
            attempt.transactional_id,
            attempt.timeout_ms,
            (_or_unknown(attempt.producer_id), _or_unknown(attempt.producer_epoch)),
        )
        return Response(attempt.index, result.fields(with_producer=True), result.why)

    def _add_partitions(self, attempt: attempts.AddPartitions, key: TopicPartition, _: Partition, now: int) -> Answer:
        result = self._coordinator.add_partitions(
            RequestContext(key, attempt.api_version, now, attempt.at is not None),
            attempt.transactional_id,
            attempt.producer_id,
            attempt.producer_epoch,
        )
        return Response(attempt.index, result.fields(), result.why)

    def _end_txn(self, attempt: attempts.EndTxn, key: TopicPartition, partition: Partition, now: int) -> Answer:
        bumps = self.profile.transaction_version2 and attempt.api_version >= FIRST_END_TXN_OF_VERSION_2
        producer_id = attempt.producer_id
        before = partition.state_of(producer_id)
        result = self._coordinator.end_transaction(
            RequestContext(key, attempt.api_version, now, attempt.at is not None, attempt.granted_producer_id),
            attempt.transactional_id,
            (producer_id, attempt.producer_epoch),
            commit=attempt.commit,
            transaction_version=TRANSACTION_VERSION_2 if bumps else 0,
        )
        fields = result.fields(with_producer=bumps and result.error is _DONE)
        return Response(attempt.index, fields, result.why, (producer_id, before, partition.state_of(producer_id)))

    def _write_markers(self, ended: EndOfTransaction) -> bool:
        """Write a transaction's markers; return whether every partition accepted its own."""
        coordinator_epoch = self._epochs.at(ended.at, ended.restarted)
        accepted = True
        for key in ended.partitions:
            partition = self._partitions.get(key) or self._create(key)
            verdict = partition.append_marker(
                MarkerBatch(
                    ended.producer_id,
                    ended.marker_epoch,
                    coordinator_epoch,
                    partition.log_end,
                    ended.at,
                    ended.commit,
                    ended.transaction_version,
                )
            )
            accepted = accepted and verdict.outcome is _APPENDED
        return accepted

    def _write_marker(
        self, attempt: attempts.WriteMarker, key: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        producer_id = attempt.producer_id
        marker = MarkerBatch(
            producer_id,
            attempt.producer_epoch,
            attempt.coordinator_epoch,
            partition.log_end,
            now,
            attempt.commit,
            attempt.transaction_version,
        )
        if marker.producer_epoch == NO_PRODUCER_EPOCH:
            why = "a batch of a producer id cannot be built without an epoch (MemoryRecordsBuilder)"
            return Response(attempt.index, rejected_fields(KafkaError.UNKNOWN_SERVER_ERROR), why)
        verdict = partition.append_marker(marker)
        fields = ok_fields() if verdict.outcome is _APPENDED else rejected_fields(verdict.error)
        why = verdict.why(marker.offset, f"{key[0]}-{key[1]}")
        return Response(attempt.index, fields, why, (producer_id, verdict.state, partition.state_of(producer_id)))

    # -- the log and its replicas ------------------------------------------------------------------------------------
    def _delete_records(
        self, attempt: attempts.DeleteRecords, key: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        before, index = attempt.before_offset, attempt.index
        deletes = self._limits.get(key[0], self._default_limits).deletes
        policy = Response(index, rejected_fields(KafkaError.POLICY_VIOLATION), "cleanup.policy does not include delete")
        if not deletes and self.profile.checks_delete_policy_first:
            return policy
        if before > partition.log_end:
            why = f"offset {before} lies beyond the high watermark {partition.log_end}"
            return Response(index, rejected_fields(KafkaError.OFFSET_OUT_OF_RANGE), why)
        before = partition.log_end if before < 0 else before
        partition.delete_records(before, now, self._log_start_checkpointed_at(now))
        if not deletes:
            return policy
        why = f"the log starts at {partition.log_start}"
        if self.profile.forgets_on_log_start_advance:
            why += "; producers whose last data lay below it are forgotten on this version"
        return Response(index, ok_fields(), why)

    def _restart(self, attempt: attempts.Restart, key: TopicPartition, partition: Partition, now: int) -> Answer:
        clean = attempt.clean
        tamper = attempt.tamper or attempts.Tamper()
        tampering = Tampering(
            tamper.truncated_to_offset,
            tamper.corrupted_batch_offset,
            tamper.torn_batch_offset,
            _snapshot_offsets(tamper.deleted),
            _snapshot_offsets(tamper.corrupted),
        )
        partition.come_back_from(self._log_start_checkpointed_at(now), attempt.log_start_offset, clean=clean)
        started_at = attempt.at if attempt.started_at is None else attempt.started_at
        found = [_found(batch, now) for batch in attempt.found_on_disk]
        self._clocks[key] = up = now if started_at is None else max(now, started_at)
        partition.restart(up, found, tampering, clean=clean)
        partition.sweep_since(now, up)
        now = up
        self._epochs.restarted(key, started_at, clean=clean)
        self._coordinator.reload(key, now)
        fields: dict[str, Any] = {"outcome": "ok"}
        if self.profile.describes_producers:
            fields["producers"] = _described(partition)
        kind = "a clean restart" if clean else "an unclean restart"
        return Response(attempt.index, fields, f"{kind}: {len(partition.producers.states)} producers are remembered")

    def _leader_change(
        self, attempt: attempts.LeaderChange, _: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        killed = attempt.how in ("kill9", "unclean")
        if attempt.old_leader is not None:
            partition.leader = attempt.old_leader
        checkpointed_at = self._log_start_checkpointed_at(now)
        partition.change_leader(
            now,
            attempt.new_leader,
            attempt.lost_from_offset,
            old_restarts=killed or attempt.via == "controlled_shutdown",
            old_log_start=partition.log_start_written(checkpointed_at) if killed else partition.log_start,
        )
        fields: dict[str, Any] = {"outcome": "ok"}
        if self.profile.describes_producers:
            fields["producers"] = _described(partition)
        return Response(attempt.index, fields, "the new leader knows what it has replicated")

    def _follower_restart(
        self, attempt: attempts.FollowerRestart, _: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        partition.restart_follower(now, attempt.replica, attempt.log_end_offset)
        return Response(attempt.index, {"outcome": "ok"}, "the next leader keeps the newest batch of every producer")

    def _wait(self, attempt: attempts.Wait, key: TopicPartition, partition: Partition, now: int) -> Answer:
        if attempt.at is None:
            now += attempt.ms
            self._clocks[key] = now
            partition.pass_time(now)
            self._abort_timed_out(key, now)
        return Response(attempt.index, {"outcome": "ok"}, f"{attempt.ms} ms pass")

    def _expire_producers(
        self, attempt: attempts.ExpireProducers, _: TopicPartition, partition: Partition, now: int
    ) -> Answer:
        if attempt.producer_ids is None:
            partition.forget_idle(now)
        else:
            partition.forget(attempt.producer_ids)
        remembered = len(partition.producers.states)
        return Response(attempt.index, {"outcome": "ok"}, f"idle producers are forgotten, {remembered} are remembered")

    def _describe(self, attempt: attempts.Describe, _: TopicPartition, partition: Partition, __: int) -> Answer:
        fields = describe(partition, self.profile, partition.aborted_for_readers())
        if partition.leader is not None:
            fields["leader"] = partition.leader
        return Response(attempt.index, fields, "what the partition's leader knows")


def _or_unknown(value: int | None) -> int:
    return NO_PRODUCER_ID if value is None else value


def describe(partition: Partition, profile: Profile, aborted: Iterable[AbortedTransaction]) -> dict[str, Any]:
    """Return the answer to an attempt that asks for a partition's state; `aborted` are the transactions readers see."""
    fields: dict[str, Any] = {
        "outcome": "ok",
        "high_watermark": partition.log_end,
        "log_start_offset": partition.log_start,
        "last_stable_offset": partition.last_stable_offset,
        "aborted": [{"producer_id": row.producer_id, "first_offset": row.first_offset} for row in aborted],
    }
    if profile.describes_producers:
        fields["producers"] = _described(partition)
    return fields


def _described(partition: Partition) -> list[dict[str, int]]:
    return [
        {
            "producer_id": producer_id,
            "producer_epoch": state.epoch,
            "last_sequence": state.last_sequence,
            "last_timestamp": state.last_timestamp,
            "coordinator_epoch": state.coordinator_epoch,
            "current_txn_start_offset": state.current_txn_first_offset,
        }
        for producer_id, state in sorted(partition.producers.states.items())
    ]


def _snapshot_offsets(names: Sequence[str]) -> frozenset[int]:
    """Return the offsets of producer snapshot files by name; other files do not matter here."""
    stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    return frozenset(int(stem) for stem in stems if stem.isdecimal())


def _found(batch: attempts.FoundBatch, now: int) -> DataBatch | MarkerBatch:
    """Return a batch that lay on the disk; where its time is unknown it is the clock's."""
    timestamp = now if batch.timestamp is None else batch.timestamp
    base_offset = batch.base_offset
    if batch.commit is not None:
        return MarkerBatch(
            batch.producer_id, batch.producer_epoch, batch.coordinator_epoch, base_offset, timestamp, batch.commit
        )
    delta = batch.record_count - 1
    return DataBatch(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        add_sequence(batch.base_sequence, delta),
        base_offset,
        base_offset + delta,
        timestamp,
        batch.is_transactional,
    )
