"""Requests to a cluster, one method each. All of them only read: none joins a group, commits, produces or creates."""

import base64
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kaudit.source.kafka.answers import (
    ActiveProducer,
    BrokerFeatures,
    Cluster,
    DescribedTransaction,
    Fetched,
    ListedTransaction,
    Node,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from kaudit.source.kafka.command_config import ClientSettings, load_settings
from kaudit.source.kafka.connections import LARGEST_ANSWER, Answer, Connections
from kaudit.source.kafka.failures import RetriableError, UnknownTopicError, error_of_code
from kaudit.source.kafka.fetched_segment import FETCH_BYTES, BrokerError

EARLIEST, LATEST = -2, -1
"""Timestamps that ListOffsets takes for the log start and the end of what a consumer may read."""
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
RETRY_SECONDS = 30.0
"""How long a request is retried, for example while a leader is elected or a broker restarts."""
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.1, 2.0
_CONSUMER, _DEBUGGING_CONSUMER = -1, -2
"""Replica ids in requests; ListOffsets answers the second on every replica, with its log end offset."""
_ANY = 1
"""ANY in ResourceType, PatternType, AclOperation and AclPermissionType."""
_SECURITY_DISABLED = 54
_GONE = (16, 105)
"""NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND: the id moved or expired since it was listed."""
_TOPIC, _BROKER = 2, 4
_FIRST_FETCH, _LAST_FETCH_BY_NAME = 4, 12
"""Versions of Fetch: the first with batches of magic 2, the last with topics by name instead of ids."""
_FIRST_FETCH_FROM_FOLLOWER = 11
_MOST_ITEMS, _LONGEST_ITEM = 4, 60

_Result = TypeVar("_Result")


class KafkaClient:
    """A client of one cluster. Not for several threads, and not to be taken into another process.

    Every method raises OSError: UnknownTopicError for a topic or partition that is not there, OffsetOutOfRangeError,
    AccessDeniedError, UnsupportedRequestError, BrokerError for the rest. Transient failures are retried for
    `retry_seconds`.
    """

    def __init__(
        self,
        servers: str,
        settings: ClientSettings | None = None,
        *,
        retry_seconds: float = RETRY_SECONDS,
        largest_answer: int = LARGEST_ANSWER,
    ) -> None:
        """Prepare a client; nothing is sent yet. `servers` as in bootstrap.servers; empty: the settings' own.

        Raises:
            UrlError: `servers` is not a list of HOST:PORT.

        """
        self._connections = Connections(servers, settings or load_settings(None), largest_answer)
        self._retry_seconds = retry_seconds
        self._leaders: dict[TopicPartition, int] = {}
        self._connected = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @property
    def servers(self) -> str:
        """The bootstrap servers, as in bootstrap.servers."""
        return ",".join(self._connections.servers)

    def describe_cluster(self) -> Cluster:
        """Return the cluster's id and brokers."""
        answer = self._metadata([])
        return Cluster(answer.cluster_id, self._connections.nodes)

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicMetadata]:
        """Return topics by name, with their partitions in order; None: all that the principal may describe.

        Raises UnknownTopicError for a name that is not there, BrokerError for an answer about other names or with numbers that
        no broker gives.
        """
        names = None if topics is None else list(topics)
        found = self._patiently(lambda: _topics(self._metadata(names)))
        self._require_named(names, [entry.topic for entry in found])
        listed = {node.node_id for node in self._connections.nodes}
        for entry in found:
            _require_numbers(entry)
            # brokers answer -1 where the leader is down: a retry would bring the same
            for own in entry.partitions:
                if own.leader >= 0 and own.leader not in listed:
                    place = f"{entry.topic}-{own.partition}"
                    raise BrokerError(
                        place, f"its leader is broker {own.leader}, and the cluster lists no broker of this id"
                    )
        return found

    def leader(self, partition: TopicPartition) -> int:
        """Return the node that leads a partition. Raises RetriableError while no node does."""
        if partition not in self._leaders:
            for entry in self.describe_topics([partition.topic]):
                self._leaders |= {TopicPartition(entry.topic, own.partition): own.leader for own in entry.partitions}
        leader = self._leaders.get(partition)
        if leader is None:
            raise UnknownTopicError(str(partition), "the topic has no such partition")
        if leader < 0:
            raise RetriableError(str(partition), "the partition has no leader: its brokers are down")
        return leader

    def list_offset(
        self, partition: TopicPartition, timestamp: int, isolation: int = READ_UNCOMMITTED, node: int | None = None
    ) -> int:
        """Return the first offset with a timestamp of at least this (ms), -1 if there is none, or that of EARLIEST or LATEST.

        LATEST is the high watermark, or with READ_COMMITTED the last stable offset. With `node` any replica is asked,
        and answers LATEST with its own log end offset.
        """
        asker = _CONSUMER if node is None else _DEBUGGING_CONSUMER
        request = partial(_list_offsets, [partition], timestamp, isolation, asker)
        return int(self._of_partition(partition, node, request).offset)

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermarks, each leader asked once; a partition that has none now is left out."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            try:
                by_leader.setdefault(self.leader(partition), []).append(partition)
            except (RetriableError, UnknownTopicError):
                self._leaders.pop(partition, None)
        found: dict[TopicPartition, int] = {}
        for leader, led in by_leader.items():
            try:
                answer = self._connections.ask(leader, _list_offsets(led, LATEST))
            except RetriableError:
                self._leaders.clear()
                continue
            for topic in answer.topics or ():
                for own in topic.partitions or ():
                    partition = TopicPartition(topic.name, own.partition_index)
                    if own.error_code:
                        self._leaders.pop(partition, None)
                    elif partition in led:
                        found[partition] = own.offset
        return found

    def fetch(  # noqa: PLR0913 - the fields of a request, by name
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 0,
        isolation: int = READ_UNCOMMITTED,
        node: int | None = None,
    ) -> Fetched:
        """Fetch batches from the one that holds `offset` on, from the leader or from the replica on `node`.

        The first batch comes whole however large it is. At the end of what may be read the answer waits up to
        `max_wait_ms` for more, and then holds none. Raises OffsetOutOfRangeError.
        """
        own = FetchRequest.FetchTopic.FetchPartition(
            partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = partial(
            FetchRequest,
            replica_id=_CONSUMER,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation,
            topics=[FetchRequest.FetchTopic(topic=partition.topic, partitions=[own])],
            min_version=_FIRST_FETCH if node is None else _FIRST_FETCH_FROM_FOLLOWER,
            max_version=_LAST_FETCH_BY_NAME,
        )
        answer = self._of_partition(partition, node, request, "responses")
        return Fetched(
            answer.records or b"",
            answer.high_watermark,
            answer.last_stable_offset,
            answer.log_start_offset,
            frozenset((one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()),
            self.leader(partition) if node is None else node,
        )

    def epoch_end_offset(self, partition: TopicPartition, leader_epoch: int) -> tuple[int, int]:
        """Return the greatest leader epoch up to this one and the offset where it ended; -1 twice where none is known."""
        kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        own = kind.OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=-1, leader_epoch=leader_epoch
        )
        topics = [kind(topic=partition.topic, partitions=[own])]
        request = partial(OffsetForLeaderEpochRequest, replica_id=_CONSUMER, topics=topics)
        answer = self._of_partition(partition, None, request)
        return answer.leader_epoch, answer.end_offset

    def describe_topic_configs(self, topics: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Return the configuration of topics, defaults included; sensitive values are left out."""
        return self._configs(_TOPIC, [str(topic) for topic in topics], None)

    def describe_broker_configs(self, node: int) -> Mapping[str, str]:
        """Return the configuration of a broker, defaults included; sensitive values are left out."""
        return self._configs(_BROKER, [str(node)], node)[str(node)]

    def describe_producers(self, partition: TopicPartition, node: int | None = None) -> list[ActiveProducer]:
        """Return the producers that the leader, or the replica on `node`, has state of (brokers since 2.8)."""
        topic = DescribeProducersRequest.TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
        answer = self._of_partition(partition, node, partial(DescribeProducersRequest, topics=[topic]))
        names = ActiveProducer.__struct_fields__
        return [ActiveProducer(*(getattr(one, name) for name in names)) for one in answer.active_producers or ()]

    def list_transactions(self) -> list[ListedTransaction]:
        """Return the transactional ids that the brokers coordinate, of those the principal may describe (since 3.0)."""
        return [one for node in self.describe_cluster().nodes for one in self._listed(node)]

    def describe_transactions(self, listed: Iterable[ListedTransaction]) -> list[DescribedTransaction]:
        """Ask the coordinators about the transactional ids that `list_transactions` found (since 3.0).

        FindCoordinator is not used: it would create a missing __transaction_state.
        """
        found = (self._described(one) for one in listed)
        return [one for one in found if one is not None]

    def has_authorizer(self) -> bool:
        """Return whether the cluster has ACLs, which may hide topics and transactions from this principal."""
        names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
        kinds = dict.fromkeys(("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), _ANY)
        answer = self._ask(None, partial(DescribeAclsRequest, **names, **kinds))
        return bool(answer.error_code != _SECURITY_DISABLED)

    def features(self, node: int | None = None) -> BrokerFeatures:
        """Return the request versions a broker takes, and the cluster's finalized feature levels (since 2.7)."""
        request = partial(ApiVersionsRequest, client_software_name="kaudit", client_software_version="1")
        answer = self._ask(node, request)
        versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys or ()}
        levels = {own.name: own.max_version_level for own in getattr(answer, "finalized_features", None) or ()}
        return BrokerFeatures(versions, levels)

    def _listed(self, node: Node) -> list[ListedTransaction]:
        answer = self._ask(node.node_id, partial(ListTransactionsRequest, state_filters=[], producer_id_filters=[]))
        if answer.error_code:
            raise error_of_code(node.address, answer.error_code)
        return [
            ListedTransaction(one.transactional_id, one.producer_id, one.transaction_state, node.node_id)
            for one in answer.transaction_states or ()
        ]

    def _described(self, listed: ListedTransaction) -> DescribedTransaction | None:
        asked = listed.transactional_id
        answer = self._ask(listed.coordinator, partial(DescribeTransactionsRequest, transactional_ids=[asked]))
        for one in answer.transaction_states or ():
            if one.error_code in _GONE:
                return None
            if one.error_code:
                raise error_of_code(asked, one.error_code)
            partitions = [
                TopicPartition(own.topic, number) for own in one.topics or () for number in own.partitions or ()
            ]
            return DescribedTransaction(
                one.transactional_id,
                one.producer_id,
                one.producer_epoch,
                one.transaction_state,
                one.transaction_timeout_ms,
                one.transaction_start_time_ms,
                partitions,
            )
        return None

    def _configs(self, kind: int, names: Sequence[str], node: int | None) -> dict[str, Mapping[str, str]]:
        resource = partial(DescribeConfigsRequest.DescribeConfigsResource, resource_type=kind, configuration_keys=None)
        resources = [resource(resource_name=name) for name in names]
        options = {"include_synonyms": False, "include_documentation": False}
        answer = self._ask(node, partial(DescribeConfigsRequest, resources=resources, **options))
        found: dict[str, Mapping[str, str]] = {}
        for result in answer.results or ():
            if result.error_code:
                raise error_of_code(result.resource_name, result.error_code, result.error_message)
            own = result.configs or ()
            found[result.resource_name] = {
                entry.name: entry.value for entry in own if entry.value is not None and not entry.is_sensitive
            }
        self._require_named(names, [result.resource_name for result in answer.results or ()])
        return found

    def _require_named(self, asked: Sequence[str] | None, answered: Sequence[object]) -> None:
        """Require each name asked for once in an answer, and no other; None: any names, each once."""
        wanted = set(answered) if asked is None else set(asked)
        if (
            set(answered) != wanted
            or len(answered) != len(wanted)
            or not all(isinstance(name, str) for name in answered)
        ):
            what = "all" if asked is None else ", ".join(asked)
            raise BrokerError(self.servers, f"asked about {what}, the broker answers about {_first_of(answered)}")

    def _metadata(self, topics: Iterable[str] | None) -> Answer:
        names = None if topics is None else list(topics)
        if not self._connected:
            # not retried: wrong hosts, ports and credentials stay wrong
            answer = self._connections.refresh(names)
            self._connected = True
            return answer
        return self._patiently(lambda: self._connections.refresh(names))

    def _ask(self, node: int | None, request: Callable[[], Any]) -> Answer:
        """Ask a node, or any if None; each attempt sends a new `request`."""
        if node is None:
            return self._patiently(lambda: self._connections.ask_any(request))
        return self._patiently(lambda: self._connections.ask(node, request()))

    def _of_partition(
        self, partition: TopicPartition, node: int | None, request: Callable[[], Any], topics: str = "topics"
    ) -> Answer:
        """Ask about one partition and return that part of the answer, whose field `topics` has it."""

        def attempt() -> Answer:
            asked = self.leader(partition) if node is None else node
            if node is not None and not self._connected:
                self._metadata([])
            answer = self._connections.ask(asked, request())
            if getattr(answer, "error_code", 0):
                raise error_of_code(self._connections.address(asked), answer.error_code)
            return _only_partition(partition, getattr(answer, topics))

        return self._patiently(attempt)

    def _patiently(self, attempt: Callable[[], _Result]) -> _Result:
        """Retry transient failures, with back-off, for `retry_seconds`."""
        deadline, delay = time.monotonic() + self._retry_seconds, _FIRST_DELAY_SECONDS
        while True:
            try:
                return attempt()
            except RetriableError:
                if not self._connected or time.monotonic() + delay > deadline:
                    raise
                self._leaders.clear()
            time.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)


def _list_offsets(
    partitions: Sequence[TopicPartition], timestamp: int, isolation: int = READ_UNCOMMITTED, asker: int = _CONSUMER
) -> Any:  # noqa: ANN401 - the library has no types
    kind = ListOffsetsRequest.ListOffsetsTopic
    topics = [
        kind(
            name=name,
            partitions=[
                kind.ListOffsetsPartition(partition_index=own.partition, timestamp=timestamp)
                for own in partitions
                if own.topic == name
            ],
        )
        for name in dict.fromkeys(own.topic for own in partitions)
    ]
    return ListOffsetsRequest(
        replica_id=asker, isolation_level=isolation, topics=topics, timeout_ms=10_000, min_version=1
    )


def _topics(answer: Answer) -> list[TopicMetadata]:
    topics = answer.topics or ()
    for topic in topics:
        if topic.error_code:
            raise error_of_code(str(topic.name), topic.error_code)
    return sorted(map(_topic_metadata, topics), key=lambda entry: str(entry.topic))


def _require_numbers(topic: TopicMetadata) -> None:
    """Require partitions, each number once and not negative, and leaders that are a node or -1, none."""
    numbers = [own.partition for own in topic.partitions]
    if not numbers or len(set(numbers)) != len(numbers) or numbers[0] < 0:
        raise BrokerError(topic.topic, f"the broker answers with partitions {_first_of(numbers)}: no topic has them")
    leaders = [own.leader for own in topic.partitions if own.leader < -1]
    if leaders:
        raise BrokerError(topic.topic, f"the broker answers with leader {leaders[0]}: no node has this id")


def _first_of(items: Sequence[object]) -> str:
    """Return the first of what an answer holds: the other side wrote it."""
    return (
        ", ".join(repr(item)[:_LONGEST_ITEM] for item in items[:_MOST_ITEMS]) + ", ..." * (len(items) > _MOST_ITEMS)
        or "none"
    )


def _topic_metadata(topic: Any) -> TopicMetadata:  # noqa: ANN401 - the library has no types
    partitions = [
        PartitionMetadata(
            own.partition_index,
            own.leader_id,
            own.leader_epoch,
            tuple(own.replica_nodes or ()),
            tuple(own.isr_nodes or ()),
            tuple(own.offline_replicas or ()),
        )
        for own in topic.partitions or ()
    ]
    has_id = topic.topic_id is not None and topic.topic_id.int  # a cluster without topic ids answers zeros
    topic_id = base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("=") if has_id else None
    ordered = sorted(partitions, key=lambda own: own.partition)
    return TopicMetadata(topic.name, topic_id, bool(topic.is_internal), ordered)


def _only_partition(partition: TopicPartition, topics: Any) -> Answer:  # noqa: ANN401 - the library has no types
    """Return the one partition of an answer. Its error, if it has one, is raised."""
    for topic in topics or ():
        if (topic.topic if hasattr(topic, "topic") else topic.name) != partition.topic:
            continue
        for own in topic.partitions or ():
            number = own.partition if hasattr(own, "partition") else own.partition_index
            if number == partition.partition:
                if own.error_code:
                    raise error_of_code(str(partition), own.error_code, getattr(own, "error_message", None))
                return own
    raise RetriableError(str(partition), "the answer does not name the partition")
