"""A broker that answers attempts one by one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from kaudit.broker.attempts import (
    Attempt,
    PartitionAttempt,
    configuration,
    coordinator_requests,
    delete_records,
    describe,
    leader_change,
    produce,
    produce_request,
    restart,
    time_passes,
    txn_offset_commit,
    write_marker,
)
from kaudit.broker.attempts.base import NOT_STATED
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.config import READ_OF_BROKERS, READ_OF_TOPICS, unread_names
from kaudit.broker.coordinator.transaction_metadata import TransactionMetadata
from kaudit.broker.partition.partition import Partition
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry
from kaudit.broker.releases.profile import Profile, profile_for
from kaudit.broker.releases.request_versions import versions_in
from kaudit.broker.response import Answer, Response, TopicPartition

if TYPE_CHECKING:
    from kaudit.broker.recorded_log import RecordedLog

_ANY = 2**15 - 1
"""The last version that a request can state."""
_NO_BROKER = "a broker line first, or --broker-version"

AnswerAttempt = Callable[[Any, BrokerState, TopicPartition, Partition, int], Answer]
"""Answers an attempt of one kind on a partition, at a time by the broker's clock in ms."""
_USUAL_PRODUCE = 8


class _Requests(NamedTuple):
    """How attempts of one kind are answered, and the versions of their request; events have none."""

    answer: AnswerAttempt
    usual: int = NOT_STATED
    """The version that is taken where a line says none."""
    first: int = 0
    last: int = 0


_ANSWERS: dict[type, AnswerAttempt] = {
    coordinator_requests.InitProducerId: coordinator_requests.answer_init_producer_id,
    coordinator_requests.AddPartitions: coordinator_requests.answer_add_partitions,
    coordinator_requests.EndTxn: coordinator_requests.answer_end_txn,
    txn_offset_commit.TxnOffsetCommit: txn_offset_commit.answer,
    write_marker.WriteMarker: write_marker.answer,
    delete_records.DeleteRecords: delete_records.answer,
    restart.Restart: restart.answer,
    leader_change.LeaderChange: leader_change.answer,
    leader_change.FollowerRestart: leader_change.answer_follower_restart,
    time_passes.Wait: time_passes.answer_wait,
    time_passes.ExpireProducers: time_passes.answer_expire_producers,
    describe.Describe: describe.answer,
}
_REQUESTS: dict[type, str] = {
    produce_request.Produce: "produce",
    coordinator_requests.InitProducerId: "init_producer_id",
    coordinator_requests.AddPartitions: "add_partitions",
    coordinator_requests.EndTxn: "end_txn",
    txn_offset_commit.TxnOffsetCommit: "txn_offset_commit",
    write_marker.WriteMarker: "write_marker",
}
"""Attempts whose request has a version: the column of RequestVersions."""


class MissingBrokerError(ValueError):
    """Attempts begin before any line said which broker answers them."""


class Broker:
    """Answers attempts in order. A `broker` line begins a new broker; `profile` overrides its version.

    It begins empty, or with the partition in `recorded`.
    """

    def __init__(self, profile: Profile | None = None, recorded: "RecordedLog | None" = None) -> None:
        self._override = profile
        self._recorded = recorded
        self._state: BrokerState | None = None
        self._answers = {kind: _Requests(answer) for kind, answer in _ANSWERS.items()}
        self.unread_config: dict[str, str | None] = {}
        """Configuration that no answer depends on, each name with the one that may have been meant."""
        if profile is not None:
            self._begin(profile, {}, any_version=False)

    def _begin(self, profile: Profile, config: dict[str, str], *, any_version: bool) -> BrokerState:
        self.unread_config |= unread_names(config, READ_OF_BROKERS)
        self._state = state = BrokerState(profile, config, self._recorded)
        produces = produce.ProduceHandler(state.profile, state.verifier).answer
        versions = versions_in(profile.version)
        for kind, op in _REQUESTS.items():
            first, last = versions[op]
            is_produce = kind is produce_request.Produce
            usual = min(max(_USUAL_PRODUCE if is_produce else 0, first), last)
            answer = produces if is_produce else _ANSWERS[kind]
            self._answers[kind] = _Requests(answer, usual, *((0, _ANY) if any_version else (first, last)))
        return state

    @property
    def profile(self) -> Profile:
        """The rules that answer; raises MissingBrokerError before any broker is known."""
        if self._state is None:
            raise MissingBrokerError(_NO_BROKER)
        return self._state.profile

    def answer(self, attempt: Attempt) -> Answer:
        """Answer one attempt.

        Raises MissingBrokerError before any broker is known, UnknownVersionError for a broker of unknown version, and
        ValueError, saying what was expected, for configuration that is not a number or records that cannot be read.
        """
        requests = self._answers.get(type(attempt))
        if requests is None:
            return self._set_up(attempt)
        state = self._state
        if state is None:
            raise MissingBrokerError(_NO_BROKER)
        asked: PartitionAttempt = attempt  # type: ignore[assignment]  # those that have an answer
        key = (asked.topic, asked.partition)
        partition, now = state.arrive(key, asked.at)
        answer, usual, first, last = requests
        if usual != NOT_STATED:
            version = asked.api_version  # type: ignore[union-attr]  # those that are requests have one
            if version == NOT_STATED:
                asked = replace(asked, api_version=usual)
            elif not first <= version <= last:
                why = f"version {version} of the request closes the connection, {state.profile.version} answers {first} to {last}"
                return Response(asked.index, {"outcome": "connection-closed"}, why)
        return answer(asked, state, key, partition, now)

    def _set_up(self, attempt: Attempt) -> Answer:
        if isinstance(attempt, configuration.StartBroker):
            return self._start(attempt)
        if self._state is None or not isinstance(attempt, configuration.ConfigureTopic):
            raise MissingBrokerError(_NO_BROKER)
        return self._configure_topic(self._state, attempt)

    def _start(self, attempt: configuration.StartBroker) -> Answer:
        profile = self._override or profile_for(attempt.broker_version)
        config = {name: str(value) for name, value in attempt.config.items()}
        # To another release than the attempts were made to, the client would have sent another version.
        negotiates = str(profile.version) != attempt.broker_version
        self._begin(profile, config, any_version=negotiates and self._override is not None).saw(attempt.at)
        return Response(attempt.index, {"op": "broker"}, f"rules of {profile.version}")

    def _configure_topic(self, state: BrokerState, attempt: configuration.ConfigureTopic) -> Answer:
        config = {name: str(value) for name, value in attempt.config.items()}
        if attempt.recreated:
            state.empty_topic(attempt.topic)
        state.configure_topic(attempt.topic, config, attempt.replicas, attempt.in_sync_replicas)
        self.unread_config |= unread_names(config, READ_OF_TOPICS)
        state.saw(attempt.at)
        return Response(attempt.index, {"outcome": "ok"}, "a topic's configuration")

    def remembered(self, key: TopicPartition) -> Mapping[int, ProducerStateEntry]:
        """Return what a partition remembers of its producer ids."""
        partition = None if self._state is None else self._state.partitions.get(key)
        return {} if partition is None else partition.producers.states

    def transaction(self, transactional_id: str) -> TransactionMetadata | None:
        """Return what the coordinator keeps of a transactional id, None if it does not know it."""
        return None if self._state is None else self._state.coordinator.transaction(transactional_id)
