"""A broker that answers what a test scripts: a cluster of one, its partitions lists of batches."""

import socket
import struct
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, Self
from uuid import UUID

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS = 1, 2, 3, 18, 23, 32
DESCRIBE_ACLS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 29, 61, 65, 66
VERSIONS = {
    FETCH: (0, 12),
    LIST_OFFSETS: (0, 7),
    METADATA: (0, 12),
    API_VERSIONS: (0, 4),
    OFFSET_FOR_LEADER_EPOCH: (0, 4),
    DESCRIBE_CONFIGS: (0, 4),
    DESCRIBE_ACLS: (0, 2),
    DESCRIBE_PRODUCERS: (0, 0),
    DESCRIBE_TRANSACTIONS: (0, 0),
    LIST_TRANSACTIONS: (0, 0),
}
"""Those of a broker of 3.0."""
NODE = 1
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC = 1, 3
_REQUESTS = {
    own.API_KEY: own
    for own in (
        FetchRequest, ListOffsetsRequest, MetadataRequest, ApiVersionsRequest, OffsetForLeaderEpochRequest,
        DescribeConfigsRequest, DescribeAclsRequest, DescribeProducersRequest, DescribeTransactionsRequest,
        ListTransactionsRequest,
    )
}  # fmt: skip

Script = Callable[[Any], Any]
"""From a decoded request to a response, bytes to be sent as they are, or None for no answer."""


class FakeBroker:
    """Listens on loopback while the context lasts. `scripts` replace the answers to API keys; `requests` is what came."""

    def __init__(
        self, logs: Mapping[tuple[str, int], Sequence[bytes]] | None = None, scripts: dict[int, Script] | None = None
    ) -> None:
        self.logs = {key: list(batches) for key, batches in (logs or {}).items()}
        self.log_start: dict[tuple[str, int], int] = {}
        self.high_watermark: dict[tuple[str, int], int] = {}
        self.epochs: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.versions = dict(VERSIONS)
        self.features: dict[str, int] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.replicas: dict[tuple[str, int], list[int]] = {}
        """The brokers that hold a partition; all of them listen here."""
        self.producers: dict[tuple[str, int], list[dict[str, int]]] = {}
        self.transactions: list[dict[str, Any]] = []
        self.acls_error = 0
        self.errors: dict[tuple[str, int], int] = {}
        """Codes that ListOffsets answers of partitions."""
        self.scripts = {**self._scripts(), **(scripts or {})}
        self.requests: list[Any] = []
        self._known_ends: dict[tuple[str, int], list[int]] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (self._server, *self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def asked(self, kind: Any) -> list[Any]:
        """The requests of one kind, in order."""
        return [request for request in self.requests if isinstance(request, kind)]

    def end_of(self, key: tuple[str, int]) -> int:
        """The offset after the last batch."""
        return max([self.log_start.get(key, 0), *self._ends(key)[-1:]])

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while True:
                size = struct.unpack(">i", _exactly(connection, 4))[0]
                data = _exactly(connection, size)
                key, version, correlation_id = struct.unpack_from(">hhi", data)
                request = _REQUESTS[key].decode(data, version=version, header=True)
                self.requests.append(request)
                answer = self.scripts[key](request)
                if isinstance(answer, bytes):
                    connection.sendall(answer)
                elif answer is not None:
                    answer.API_VERSION = version
                    answer.with_header(correlation_id=correlation_id)
                    connection.sendall(answer.encode(header=True, framed=True))
        except (OSError, EOFError):
            connection.close()

    def _scripts(self) -> dict[int, Script]:
        return {
            API_VERSIONS: self._api_versions,
            METADATA: self._metadata,
            LIST_OFFSETS: self._list_offsets,
            FETCH: self.fetched,
            OFFSET_FOR_LEADER_EPOCH: self._epoch_end_offset,
            DESCRIBE_CONFIGS: self._describe_configs,
            DESCRIBE_ACLS: lambda _: DescribeAclsResponse(error_code=self.acls_error, error_message=None, resources=[]),
            DESCRIBE_PRODUCERS: self._describe_producers,
            LIST_TRANSACTIONS: self._list_transactions,
            DESCRIBE_TRANSACTIONS: self._describe_transactions,
        }

    def _api_versions(self, _: Any) -> Any:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.versions.items()
        ]
        levels = [
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=1)
            for name, level in self.features.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0, finalized_features=levels)

    def _metadata(self, request: Any) -> Any:
        known = sorted({topic for topic, _ in self.logs})
        wanted = known if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in wanted:
            partitions = [
                MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
                    error_code=0, partition_index=number, leader_id=NODE,
                    leader_epoch=self.epochs.get((topic, number), [(0, 0)])[-1][0],
                    replica_nodes=self.replicas.get((topic, number), [NODE]),
                    isr_nodes=[NODE], offline_replicas=[],
                )
                for topic, number in sorted(self.logs) if topic == name
            ]  # fmt: skip
            topics.append(
                MetadataResponse.MetadataResponseTopic(
                    error_code=0 if partitions else UNKNOWN_TOPIC, name=name, partitions=partitions, is_internal=False,
                    topic_id=self.topic_ids.get(name),
                )
            )  # fmt: skip
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=self.port, rack=None)
            for node in sorted({NODE, *(node for nodes in self.replicas.values() for node in nodes)})
        ]
        return MetadataResponse(brokers=brokers, cluster_id="fake", controller_id=NODE, topics=topics)

    def _list_offsets(self, request: Any) -> Any:
        response = ListOffsetsResponse.ListOffsetsTopicResponse

        def listed(topic: str, own: Any) -> Any:
            key = (topic, own.partition_index)
            latest = self.high_watermark.get(key, self.end_of(key))
            return response.ListOffsetsPartitionResponse(
                partition_index=own.partition_index, error_code=self.errors.get(key, 0), timestamp=-1,
                offset=self.log_start.get(key, 0) if own.timestamp == -2 else latest, leader_epoch=0,
            )  # fmt: skip

        return ListOffsetsResponse(
            topics=[
                response(name=topic.name, partitions=[listed(topic.name, own) for own in topic.partitions])
                for topic in request.topics
            ]
        )

    def fetched(self, request: Any, **changes: Any) -> Any:
        """Answer a fetch as a broker would; `changes` are fields of the partition's part of the answer."""
        topic = request.topics[0]
        own = topic.partitions[0]
        key = (topic.topic, own.partition)
        start, end = self.log_start.get(key, 0), self.end_of(key)
        records = b""
        for batch in self.logs[key][self._first_of(key, own.fetch_offset) :]:
            if end_offset(batch) > own.fetch_offset:
                room = own.partition_max_bytes - len(records)
                records += batch if not records else batch[:room]
                if len(records) >= own.partition_max_bytes:
                    break
        aborted = self.aborted_of(key) if request.isolation_level else None
        fields = {
            "partition_index": own.partition,
            "error_code": 0 if start <= own.fetch_offset <= end else OFFSET_OUT_OF_RANGE,
            "high_watermark": self.high_watermark.get(key, end),
            "last_stable_offset": self.high_watermark.get(key, end),
            "log_start_offset": start,
            "aborted_transactions": aborted,
            "records": records,
            **changes,
        }
        partition = FetchResponse.FetchableTopicResponse.PartitionData(**fields)
        return FetchResponse(
            error_code=0,
            session_id=0,
            responses=[FetchResponse.FetchableTopicResponse(topic=topic.topic, partitions=[partition])],
        )

    def _epoch_end_offset(self, request: Any) -> Any:
        """Answer as LeaderEpochFileCache.endOffsetFor does; `epochs` are (epoch, start offset), oldest first."""
        topic = request.topics[0]
        own = topic.partitions[0]
        key = (topic.topic, own.partition)
        known = self.epochs.get(key, [(0, 0)])
        later = [start for epoch, start in known if epoch > own.leader_epoch]
        if own.leader_epoch == known[-1][0]:
            epoch, end = own.leader_epoch, self.end_of(key)
        elif later:
            epoch = max((each for each, _ in known if each <= own.leader_epoch), default=own.leader_epoch)
            end = later[0]
        else:
            epoch = end = -1
        topics = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        partition = topics.EpochEndOffset(error_code=0, partition=own.partition, leader_epoch=epoch, end_offset=end)
        return OffsetForLeaderEpochResponse(topics=[topics(topic=topic.topic, partitions=[partition])])

    def _first_of(self, key: tuple[str, int], offset: int) -> int:
        return bisect_right(self._ends(key), offset)

    def _ends(self, key: tuple[str, int]) -> list[int]:
        batches = self.logs[key]
        if key not in self._known_ends or len(self._known_ends[key]) != len(batches):
            self._known_ends[key] = list(accumulate(map(end_offset, batches), max))
        return self._known_ends[key]

    def aborted_of(self, key: tuple[str, int]) -> list[Any]:
        """Every aborted transaction of a partition, as a fetch lists those that it overlaps."""
        kind = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction
        begun: dict[int, int] = {}
        found = []
        for batch in self.logs[key]:
            attributes = int.from_bytes(batch[21:23]) if batch[16] == 2 else 0
            producer_id = int.from_bytes(batch[43:51], signed=True)
            if attributes & 0x30 == 0x10:
                begun.setdefault(producer_id, int.from_bytes(batch[:8]))
            elif attributes & 0x20 and len(batch) > 70:
                first = begun.pop(producer_id, None)
                if first is not None and batch[69] == 0:  # the low byte of the control record's type
                    found.append(kind(producer_id=producer_id, first_offset=first))
        return found

    def _describe_configs(self, request: Any) -> Any:
        results = []
        for resource in request.resources:
            own = {"cleanup.policy": "delete", **self.configs.get(resource.resource_name, {})}
            result = DescribeConfigsResponse.DescribeConfigsResult
            configs = [
                result.DescribeConfigsResourceResult(
                    name=name, value=value, read_only=False, config_source=5, is_sensitive=False, synonyms=[],
                    config_type=2, documentation=None,
                )
                for name, value in own.items()
            ]  # fmt: skip
            results.append(
                result(
                    error_code=0, error_message=None, resource_type=resource.resource_type,
                    resource_name=resource.resource_name, configs=configs,
                )
            )  # fmt: skip
        return DescribeConfigsResponse(results=results)

    def _describe_producers(self, request: Any) -> Any:
        topic = request.topics[0]
        number = topic.partition_indexes[0]
        response = DescribeProducersResponse.TopicResponse
        states = [
            response.PartitionResponse.ProducerState(**state) for state in self.producers.get((topic.name, number), [])
        ]
        partition = response.PartitionResponse(
            partition_index=number, error_code=0, error_message=None, active_producers=states
        )
        return DescribeProducersResponse(topics=[response(name=topic.name, partitions=[partition])])

    def _list_transactions(self, _: Any) -> Any:
        names = ("transactional_id", "producer_id", "transaction_state")
        states = [
            ListTransactionsResponse.TransactionState(**{name: own[name] for name in names})
            for own in self.transactions
        ]
        return ListTransactionsResponse(error_code=0, unknown_state_filters=[], transaction_states=states)

    def _describe_transactions(self, request: Any) -> Any:
        states = []
        for own in self.transactions:
            if own["transactional_id"] in request.transactional_ids:
                kind = DescribeTransactionsResponse.TransactionState
                topics = [
                    kind.TopicData(topic=topic, partitions=[number]) for topic, number in own.get("partitions", ())
                ]
                fields = {name: value for name, value in own.items() if name != "partitions"}
                states.append(kind(**{"error_code": 0, **fields, "topics": topics}))
        return DescribeTransactionsResponse(transaction_states=states)


def end_offset(batch: bytes) -> int:
    """The offset after a batch's last."""
    if batch[16] < 2:
        return int(struct.unpack_from(">q", batch)[0]) + 1
    return int(struct.unpack_from(">q", batch)[0]) + int(struct.unpack_from(">i", batch, 23)[0]) + 1


def framed(correlation_id: int, body: bytes) -> bytes:
    """An answer of any bytes behind a length and a correlation id."""
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
