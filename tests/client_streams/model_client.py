"""Plays a scenario with the model of the producer, in simulated time."""

import contextlib
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version
from kaudit.broker.response import TopicPartition
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Connection, Network
from kaudit.simulate.producer.config import negotiate_versions
from kaudit.simulate.producer.kafka_producer import KafkaProducer
from kaudit.simulate.producer.network_client import NetworkClient
from kaudit.simulate.producer.txn_request_handler import TransactionManagerState
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    CoordinatorResponse,
    EndTxnRequest,
    KafkaRequest,
    KafkaResponse,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from kaudit.simulate.scenario.model import ProducerSpec
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.trace import Trace
from tests.client_streams.scenario import Scenario, Step
from tests.client_streams.script import REFUSED, InOrder, Part, Played, Request, Response, Script, play

TOPIC = "sales"
QUIET_MS = 1000
_DELAYS_MS = (1, 1)
_OLD_BROKER, _NEW_BROKER = Version.parse("3.9.2"), Version.parse("4.4.0")
_BLOCKING = (
    TransactionManagerState.INITIALIZING, TransactionManagerState.COMMITTING, TransactionManagerState.ABORTING,
)  # fmt: skip
_FIRST_OF_NEW_BROKERS = Version.parse("4.0")


class _NoFaults:
    """Only the script loses messages and answers with errors."""

    def request(self, client: str, request: KafkaRequest, number: int) -> None:
        """Lose nothing."""

    def response(self, client: str, request: KafkaRequest, number: int) -> None:
        """Lose nothing."""

    def error(self, client: str, request: KafkaRequest, number: int) -> None:
        """Put no error in place of the script's answer."""

    def marker(self, partition: str, number: int) -> None:
        """Lose nothing."""


class _Node:
    """One node of the scripted cluster."""

    is_running = True

    def __init__(self, number: int, cluster: "_Cluster") -> None:
        self.is_up = True
        self.number = number
        self.name = f"node {number}"
        self.cluster = cluster

    def handle(self, request: KafkaRequest, respond: Callable[[KafkaResponse | None], None]) -> None:
        raise AssertionError("its connections hand over requests themselves")


class _Connection(Connection):
    """Hands over every request when it arrives, so that the script sees the requests that wait behind a held one."""

    cluster: "_Cluster"

    def _process(self, channel: Any) -> None:
        while channel.inbound:
            sent = channel.inbound.popleft()
            self.cluster.arrived(self, channel, sent.request, partial(self._respond, channel, sent))

    @property
    def node(self) -> int:
        """The number of its broker."""
        return self._broker.number

    def hang_up(self, channel: Any) -> None:
        """Close it from the broker's side."""
        channel.abandoned = channel.loses_responses = True
        self._clock.after(_DELAYS_MS[0], partial(self._lose_connection, channel))

    def close(self) -> None:
        self.cluster.script.lost(self._channel)
        super().close()


class _Network(Network):
    """Makes such connections."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, _DELAYS_MS, random.Random(0), _NoFaults(), Trace(0))

    def connection(self, client: str, broker: Any, *more: int) -> Connection:
        made = _Connection(self, client, broker, *more)
        made.cluster = broker.cluster
        self._connections.setdefault(broker.number, []).append(made)
        return made


class _Cluster:
    """The script's nodes and metadata, as a client in simulated time finds them."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self.script = script
        self.last_arrival_at = 0
        self._clock = clock
        self.brokers = {number: _Node(number, self) for number in script.scenario.nodes}
        self._orders: dict[int, InOrder[Callable[[], None]]] = {}
        self._held: list[object] = []

    def leaders(self) -> dict[TopicPartition, int | None]:
        return {(TOPIC, partition): node for partition, node in self.script.leaders.items()}

    @property
    def coordinator(self) -> int | None:
        return self.script.coordinator or None

    def arrived(
        self,
        connection: _Connection,
        channel: object,
        request: KafkaRequest,
        respond: Callable[[KafkaResponse | None], None],
    ) -> None:
        """Hand a request to the script."""
        self.last_arrival_at = self._clock.now
        if id(channel) not in self._orders:
            self._held.append(channel)  # so that its id stays its own
            self._orders[id(channel)] = InOrder(lambda answer: answer())
        waits = not (isinstance(request, ProduceRequest) and request.acks == 0)
        place = self._orders[id(channel)].next_place() if waits else None

        def send_back(response: Response) -> None:
            assert place is not None
            place(partial(respond, _answer(request, response)))

        self.script.arrived(
            Request(
                api=type(request).__name__.removesuffix("Request"), version=request.api_version,
                node=connection.node, connection=channel, send_back=send_back,
                close=partial(connection.hang_up, channel), **_content(request),
            )
        )  # fmt: skip


def _content(request: KafkaRequest) -> dict[str, Any]:
    if isinstance(request, ProduceRequest):
        parts = [
            Part(
                part.partition[1], part.producer_id, part.epoch, part.base_sequence, part.transactional,
                tuple(part.batch.numbers),
            )
            for part in request.parts
        ]  # fmt: skip
        return {"parts": parts, "acks": request.acks, "transactional_id": request.transactional_id}
    content: dict[str, Any] = {"transactional_id": request.transactional_id, "producer": request.producer}
    if isinstance(request, AddPartitionsToTxnRequest):
        return content | {"partitions": [partition for _, partition in request.partitions]}
    return content | ({"commit": request.commit} if isinstance(request, EndTxnRequest) else {})


def _answer(request: KafkaRequest, response: Response) -> KafkaResponse:
    if isinstance(request, ProduceRequest):
        return ProduceResponse(
            tuple(
                PartitionProduceResponse(
                    part, response.errors[part.partition[1]], response.base_offsets.get(part.partition[1], -1),
                    response.log_start_offset,
                )
                for part in request.parts
            )
        )  # fmt: skip
    errors = sorted(response.errors.values(), key=lambda error: error is KafkaError.NONE)
    return CoordinatorResponse(errors[0], response.producer)


class ModelPlayer:
    """The model of the producer, its clock and its connections."""

    def __init__(self, version: str, scenario: Scenario, script: Script) -> None:
        self._script = script
        self._clock = Clock()
        self._network = _Network(self._clock)
        self._cluster = _Cluster(script, self._clock)
        spec = _spec(version, scenario)
        new = Version.parse(version) >= _FIRST_OF_NEW_BROKERS and scenario.transaction_version > 1
        versions = negotiate_versions(spec.config.client, _NEW_BROKER if new else _OLD_BROKER)
        client = NetworkClient(spec.name, spec.config, versions, self._cluster, self._network, random.Random(0))
        self._payload = Payload(spec.name, scenario.record_bytes, spec.name, 1)
        self._is_transactional = spec.config.transactional_id is not None
        self._sent: set[int] = set()
        self._written: set[int] = set()
        self._producer = KafkaProducer(client, (TOPIC, 0), count(1), self._completed)
        self._waiting: deque[Callable[[], None]] = deque()
        """What the application does when the call it waits for is done."""
        transactions = self._producer.transactions
        if transactions is not None:
            transactions.on_change = lambda: self._clock.after(0, self._go_on)
        self._producer.wake()

    def _completed(self, batch: ProducerBatch) -> None:
        if batch.error is None:
            self._written.update(batch.numbers)

    def _go_on(self) -> None:
        while self._waiting and not self._is_blocked:
            with contextlib.suppress(RuntimeError):  # the program prints the exception and reads the next line
                self._waiting.popleft()()

    @property
    def _is_blocked(self) -> bool:
        transactions = self._producer.transactions
        return transactions is not None and transactions.state in _BLOCKING and self._is_transactional

    def call(self, line: str) -> None:
        """As `Player.call`."""
        transactions = self._producer.transactions
        assert transactions is not None
        end = transactions.end
        calls: dict[str, Callable[[], None]] = {
            "init": transactions.initialize,
            "begin": transactions.begin,
            "commit": partial(end, commit=True),
            "abort": partial(end, commit=False),
        }
        self._waiting.append(calls[line])
        self._go_on()

    def send(self, number: int, partition: int) -> None:
        """As `Player.send`."""
        self._sent.add(number)
        self._waiting.append(partial(self._producer.send, (TOPIC, partition), self._payload, number))
        self._go_on()

    def change(self, step: Step) -> None:
        """As `Player.change`."""
        if step.down is not None:
            self._cluster.brokers[step.down].is_up = False
        for node in (step.close, step.down):
            if node is not None:
                self._network.broker_died(node)
        self._script.change(step)

    def settle(self, at_least_ms: int) -> None:
        """As `Player.settle`."""
        clock = self._clock
        until = clock.now + max(at_least_ms, QUIET_MS)
        while clock.now < until:
            clock.run(until)
            clock.now = until
            until = max(until, self._cluster.last_arrival_at + QUIET_MS)

    def unwritten(self) -> list[int]:
        """As `Player.unwritten`."""
        return sorted(self._sent - self._written)


def _spec(version: str, scenario: Scenario) -> ProducerSpec:
    """The producer as a scenario of `kaudit simulate` has it."""
    names = ", ".join(f'"{name}" = {_toml(value)}' for name, value in scenario.config(version).items())
    text = (
        f'topics = [{{ name = "{TOPIC}" }}]\n[[producers]]\nname = "producer"\nclient = "{_client(version)}"\n'
        f"config = {{ {names} }}\n"
    )
    if "transactional.id" in scenario.producer:
        text += "transaction = {}\n"
    (producer,) = parse_scenario(text, "played").producers
    return producer


def _client(version: str) -> str:
    return f"java {version}"


def _toml(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def played_by_model(version: str, scenario: Scenario) -> Played:
    """What the model of the client `version` does."""
    script = Script(scenario)
    try:
        player = ModelPlayer(version, scenario, script)
    except ScenarioError:
        return REFUSED
    return play(scenario, script, player)
