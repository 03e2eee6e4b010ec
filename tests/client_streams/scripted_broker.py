"""A cluster that is a script: nodes on ports of this machine that speak Kafka's protocol with a real client."""

import contextlib
import socket
import struct
import threading
import time
import uuid
from typing import Any

from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafka.record import MemoryRecords

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version
from kaudit.formats.log.batch_header import HEADER, RecordBatchHeader, batch_size
from kaudit.model.batch_fields import TRANSACTIONAL_FLAG
from tests.client_streams.scenario import Step
from tests.client_streams.script import InOrder, Part, Request, Response, Script

TOPIC = "sales"
"""Up to four partitions of it, from the highest to the lowest, are in the order in which Java's HashMap has them.

Clients since 2.3 drain partitions in that order, older ones as an answer of Metadata lists them. So that the order is
one for all, partition 0 of a scenario is the topic's last.
"""
TOPIC_ID = uuid.UUID(int=7)
LAST_FOR_OLD_CLIENTS = Version.parse("3.9")
"""Later brokers refuse clients before 2.1 (KIP-896), so a client before 4.0 meets a broker of this release."""
FIRST_OF_NEW_BROKERS = Version.parse("4.0")
_REQUESTS = (
    ProduceRequest, MetadataRequest, FindCoordinatorRequest, ApiVersionsRequest, InitProducerIdRequest,
    AddPartitionsToTxnRequest, EndTxnRequest,
)  # fmt: skip
_BY_KEY = {request.API_KEY: request for request in _REQUESTS}
_PRODUCE, _METADATA, _COORDINATOR, _VERSIONS, _INIT, _ADD, _END = (request.API_KEY for request in _REQUESTS)
_RESPONSES = {
    _PRODUCE: ProduceResponse,
    _METADATA: MetadataResponse,
    _COORDINATOR: FindCoordinatorResponse,
    _INIT: InitProducerIdResponse,
    _ADD: AddPartitionsToTxnResponse,
    _END: EndTxnResponse,
}
_FETCH = 1
"""It is offered, not answered: librdkafka takes from its version which batches a broker knows."""
_OLD_BROKERS = {_FETCH: 12, _PRODUCE: 11, _METADATA: 12, _COORDINATOR: 6, _VERSIONS: 3, _INIT: 5, _ADD: 3, _END: 4}
_NEW_BROKERS = {_PRODUCE: 13, _METADATA: 13, _COORDINATOR: 6, _VERSIONS: 4, _INIT: 5, _ADD: 3, _END: 5}
"""The newest versions a broker of 3.9 and of 4.x knows of what a client may send."""
_FIRST_BY_KEYS = 4
"""The version of FindCoordinator that asks for several at once (KIP-699)."""
_FIRST_BY_TOPIC_ID = 13
_FIRST_FLEXIBLE_VERSIONS = 3

Message = Any
"""A message of kafka.protocol; the library has no types."""


class _Connection:
    """One connection of the client to a node: answers leave in the order of their requests."""

    def __init__(self, link: socket.socket, node: int) -> None:
        self.node = node
        self._link = link
        self.answers = InOrder(self._send)

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._link.sendall(struct.pack(">i", len(data)) + data)

    def hang_up(self) -> None:
        """End it in both directions; whoever reads from it closes it, so that no other socket gets its number before."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self._link.close()

    def read(self) -> bytes | None:
        """Return the next request without its size, None where the client has hung up."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        with contextlib.suppress(OSError):
            while len(data) < size:
                piece = self._link.recv(size - len(data))
                if not piece:
                    return None
                data += piece
            return bytes(data)
        return None


class ScriptedCluster:
    """Listens for a client of `client_version`, whose requests the script answers."""

    def __init__(self, script: Script, client_version: str) -> None:
        self._script = script
        new = Version.parse(client_version) >= FIRST_OF_NEW_BROKERS
        self._newest = _NEW_BROKERS if new else _OLD_BROKERS
        self._features = {"transaction.version": script.scenario.transaction_version} if new else {}
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self.failure: Exception | None = None
        """What went wrong while a request was handled."""
        self.last_request_at = self.last_frame_at = time.monotonic()
        """When the script was asked something, and when any node was."""
        self._listeners = {node: socket.create_server(("127.0.0.1", 0)) for node in script.scenario.nodes}
        self.ports: dict[int, int] = {node: each.getsockname()[1] for node, each in self._listeners.items()}
        for node, listener in self._listeners.items():
            threading.Thread(target=self._accept, args=(node, listener), daemon=True).start()

    def close(self) -> None:
        """Stop listening, hang up."""
        for node in self._listeners:
            self._stop_listening(node)
        with self._lock:
            for connection in self._connections:
                connection.hang_up()

    def change(self, step: Step) -> None:
        """Do what a step does to the cluster."""
        if step.down is not None:
            self._stop_listening(step.down)
        with self._lock:
            for connection in list(self._connections):
                if connection.node in (step.close, step.down):
                    self._hang_up(connection)
            self._script.change(step)

    def _stop_listening(self, node: int) -> None:
        with contextlib.suppress(OSError):
            self._listeners[node].shutdown(socket.SHUT_RDWR)
        self._listeners[node].close()

    def take_arrived(self) -> list[str]:
        """Return the requests since the last call."""
        with self._lock:
            return self._script.take_arrived()

    @property
    def versions(self) -> dict[str, int]:
        """The version of each kind of request."""
        return self._script.versions

    @property
    def holds_answers(self) -> bool:
        """Whether a request waits for a step that answers it."""
        with self._lock:
            return self._script.holds_answers

    def _accept(self, node: int, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except ConnectionError:
                continue
            except OSError:
                return
            with contextlib.suppress(OSError):
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(link, node)
            with self._lock:
                self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: _Connection) -> None:
        while (data := connection.read()) is not None:
            with self._lock:
                try:
                    self._handle(connection, data)
                except Exception as error:  # noqa: BLE001 - it is raised where the scenario is played
                    self.failure = error
                    break
        with self._lock:
            self._hang_up(connection)
        connection.close()

    def _hang_up(self, connection: _Connection) -> None:
        connection.hang_up()
        if connection in self._connections:
            self._connections.remove(connection)
        self._script.lost(connection)

    # -- requests ----------------------------------------------------------------------------------------------------
    def _handle(self, connection: _Connection, data: bytes) -> None:
        self.last_frame_at = time.monotonic()
        key, version, correlation = struct.unpack_from(">hhi", data)
        if key == _VERSIONS:
            connection.answers.next_place()(self._api_versions(version, correlation))
            return
        asked = _BY_KEY[key].decode(data, version=version, header=True)

        def encoded(**fields: object) -> bytes:
            response = _RESPONSES[key][version](throttle_time_ms=0, **fields)
            response.with_header(correlation_id=correlation)
            return bytes(response.encode(header=True))

        if key == _METADATA:
            connection.answers.next_place()(encoded(**self._metadata()))
        elif key == _COORDINATOR:
            connection.answers.next_place()(encoded(**self._coordinator(asked, version)))
        else:
            self.last_request_at = self.last_frame_at
            acks = asked.acks if key == _PRODUCE else -1
            answer = connection.answers.next_place() if acks != 0 else None

            def send_back(response: Response) -> None:
                assert answer is not None
                answer(encoded(**_fields(key, asked, response, self._script)))

            self._script.arrived(
                Request(
                    api=_BY_KEY[key].__name__.removesuffix("Request"), version=version, node=connection.node,
                    connection=connection, send_back=send_back, close=lambda: self._hang_up(connection), acks=acks,
                    **_content(key, asked, self._script),
                )
            )  # fmt: skip

    def _api_versions(self, version: int, correlation: int) -> bytes:
        known = version <= self._newest[_VERSIONS]
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest)
            for key, newest in self._newest.items()
        ]
        features: dict[str, object] = {}
        if known and version >= _FIRST_FLEXIBLE_VERSIONS and self._features:
            features = {
                "supported_features": [
                    ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=0, max_version=level)
                    for name, level in self._features.items()
                ],
                "finalized_features_epoch": 1,
                "finalized_features": [
                    ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                    for name, level in self._features.items()
                ],
            }
        response = ApiVersionsResponse[version if known else 0](
            error_code=KafkaError.NONE if known else KafkaError.UNSUPPORTED_VERSION, api_keys=keys, throttle_time_ms=0,
            **features,
        )  # fmt: skip
        response.with_header(correlation_id=correlation)
        return bytes(response.encode(header=True))

    def _metadata(self) -> dict[str, object]:
        script = self._script
        partitions = [
            MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
                error_code=0, partition_index=_number(script, partition), leader_id=leader,
                leader_epoch=script.leader_epochs[partition], replica_nodes=list(self.ports),
                isr_nodes=list(self.ports), offline_replicas=[],
            )
            for partition, leader in script.leaders.items()
        ]  # fmt: skip
        topic = MetadataResponse.MetadataResponseTopic(
            error_code=0, name=TOPIC, topic_id=TOPIC_ID, is_internal=False, partitions=partitions
        )
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port, rack=None)
            for node, port in self.ports.items()
        ]
        return {
            "brokers": brokers, "cluster_id": "scripted", "controller_id": min(self.ports), "topics": [topic],
            "error_code": 0,
        }  # fmt: skip

    def _coordinator(self, asked: Message, version: int) -> dict[str, object]:
        node = self._script.coordinator
        error = KafkaError.NONE if node else KafkaError.COORDINATOR_NOT_AVAILABLE
        found: dict[str, object] = {
            "error_code": error, "error_message": None, "node_id": node or -1, "host": "127.0.0.1" if node else "",
            "port": self.ports.get(node, -1),
        }  # fmt: skip
        if version < _FIRST_BY_KEYS:
            return found
        return {
            "coordinators": [FindCoordinatorResponse.Coordinator(key=key, **found) for key in asked.coordinator_keys]
        }


def _number(script: Script, partition: int) -> int:
    """The topic's number of a scenario's partition, and the other way round."""
    return len(script.leaders) - 1 - partition


def _content(key: int, asked: Message, script: Script) -> dict[str, Any]:
    """A request's fields as the script has them."""
    if key == _PRODUCE:
        parts = [
            _part(_number(script, data.index), bytes(data.records))
            for topic in asked.topic_data
            for data in topic.partition_data
        ]
        return {"parts": parts, "transactional_id": asked.transactional_id}
    if key == _ADD:
        return {
            "transactional_id": asked.v3_and_below_transactional_id,
            "producer": (asked.v3_and_below_producer_id, asked.v3_and_below_producer_epoch),
            "partitions": [_number(script, index) for topic in asked.v3_and_below_topics for index in topic.partitions],
        }
    content = {"producer": (asked.producer_id, asked.producer_epoch), "transactional_id": asked.transactional_id}
    return content if key == _INIT else content | {"commit": asked.committed}


def _part(partition: int, records: bytes) -> Part:
    header = RecordBatchHeader(*HEADER.struct().unpack_from(records))
    assert batch_size(records) == len(records), "a produce request holds one batch of a partition"
    return Part(
        partition, header.producer_id, header.producer_epoch, header.base_sequence,
        bool(header.attributes & TRANSACTIONAL_FLAG),
        tuple(int(record.key) for record in MemoryRecords(records).next_batch()),
    )  # fmt: skip


def _fields(key: int, asked: Message, response: Response, script: Script) -> dict[str, object]:
    """An answer's fields."""
    if key == _PRODUCE:
        return {"responses": [_topic_answer(topic, response, script) for topic in asked.topic_data]}
    if key == _ADD:
        result = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
        partition = result.AddPartitionsToTxnPartitionResult
        return {
            "results_by_topic_v3_and_below": [
                result(
                    name=topic.name,
                    results_by_partition=[
                        partition(partition_index=index, partition_error_code=response.errors[_number(script, index)])
                        for index in topic.partitions
                    ],
                )
                for topic in asked.v3_and_below_topics
            ]
        }
    return {
        "error_code": response.errors[-1], "producer_id": response.producer[0], "producer_epoch": response.producer[1]
    }  # fmt: skip


def _topic_answer(topic: Message, response: Response, script: Script) -> Message:
    answer = ProduceResponse.TopicProduceResponse
    partitions = []
    for data in topic.partition_data:
        partition = _number(script, data.index)
        partitions.append(
            answer.PartitionProduceResponse(
                index=data.index, error_code=response.errors[partition],
                base_offset=response.base_offsets.get(partition, -1), log_append_time_ms=-1,
                log_start_offset=response.log_start_offset, record_errors=[], error_message=None,
            )
        )  # fmt: skip
    return answer(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
