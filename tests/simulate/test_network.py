"""Connections between a client and a broker: what arrives when, what is lost with what, and who notices when.

A broker reads the next request of a connection when it has answered the one before (SocketServer mutes the channel); a client
takes everything in flight on a connection that ends for lost (NetworkClient.handleDisconnections).
"""

from functools import partial
from random import Random

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import Response
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Loss, Network
from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.producer.config import negotiate_versions
from kaudit.simulate.producer.network_client import ClientProcess, NetworkClient
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    CoordinatorResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    InjectedError,
    KafkaRequest,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    describe_request,
    describe_response,
)
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.trace import BrokerAnswer, Copy, EventKind, Trace
from tests.simulate.test_producer_parts import PAYLOAD, batch
from tests.simulate.test_sender import SCENARIO, NoFaults, ScriptedBroker

DELAY, BACKOFF, TIMEOUT = 3, 50, 500
KEY = ("orders", 0)


class ListedFaults(NoFaults):
    """Loses the requests and responses with these numbers, answers others with an error."""

    def __init__(self):
        self.requests: dict[int, Loss] = {}
        self.responses: dict[int, Loss] = {}
        self.errors: dict[int, InjectedError] = {}
        self.numbers: list[tuple[str, str, int]] = []

    def request(self, client, request, number):
        self.numbers.append((client, type(request).__name__, number))
        return self.requests.get(number)

    def response(self, client, request, number):
        return self.responses.get(number)

    def error(self, client, request, number):
        return self.errors.get(number)


def end(number: int = 0) -> EndTxnRequest:
    return EndTxnRequest(f"t{number}", (7, 0), True, 3, KEY)


class Link:
    """A client's connection to a broker, and what became of its requests: when, which, how."""

    def __init__(self, delays=(DELAY, DELAY), max_in_flight=5):
        self.clock = Clock()
        self.faults = ListedFaults()
        self.trace = Trace(10_000)
        self.network = Network(self.clock, delays, Random(7), self.faults, self.trace)
        self.broker = ScriptedBroker()
        self.connection = self.network.connection("app", self.broker, max_in_flight, BACKOFF)
        self.closed: list[int] = []
        self.connection.on_close = lambda: self.closed.append(self.clock.now)
        self.ended: list[tuple[int, str, str]] = []
        self.arrived: list[tuple[int, str]] = []
        handle = self.broker.handle

        def noting(request, respond):
            self.arrived.append((self.clock.now, request.transactional_id))
            handle(request, respond)

        self.broker.handle = noting  # type: ignore[method-assign]

    def send(self, *requests: KafkaRequest):
        for request in requests:
            assert self.connection.can_send
            name = request.transactional_id or ""
            self.connection.send(
                request,
                0,
                TIMEOUT,
                partial(self._answered, name),
                partial(self._end, name, "lost"),
            )

    def _answered(self, name, response):
        self._end(name, describe(response))

    def _end(self, name, how):
        self.ended.append((self.clock.now, name, how))

    def run(self, until):
        self.clock.run(until)
        self.clock.now = until

    def of(self, kind):
        return [event for event in self.trace.events if event.kind is kind]


def describe(response):
    return "nothing" if response is None else describe_response(response)


def test_a_response_is_back_after_both_ways_and_messages_are_in_order():
    link = Link()
    link.send(end(1), end(2))
    link.run(100)
    assert link.arrived == [(DELAY, "t1"), (DELAY, "t2")]
    assert link.ended == [(2 * DELAY, "t1", "ok"), (2 * DELAY, "t2", "ok")]
    request, response = link.of(EventKind.REQUEST)[0], link.of(EventKind.RESPONSE)[0]
    assert (request.sent_at, request.at, request.source, request.target) == (0, DELAY, "app", "broker 1")
    assert (response.sent_at, response.at, response.source, response.target) == (DELAY, 2 * DELAY, "broker 1", "app")
    wide = Link(delays=(1, 9), max_in_flight=60)
    for number in range(50):
        wide.send(end(number))
        wide.run(wide.clock.now + 1)
    wide.run(200)
    for found in (wide.arrived, [(at, name) for at, name, _ in wide.ended]):
        assert [name for _, name in found] == [f"t{number}" for number in range(50)]
        assert found == sorted(found, key=lambda each: each[0])
    assert {wide.network.delay() for _ in range(300)} == set(range(1, 10))
    assert wide.faults.numbers == [("app", "EndTxnRequest", number) for number in range(1, 51)]


def test_requests_are_counted_by_client_and_kind():
    link = Link()
    link.send(end(), InitProducerIdRequest("t", 1, (-1, -1), 3, KEY), end())
    link.connection = link.network.connection("other", link.broker, 5, BACKOFF)
    link.send(end())
    assert link.faults.numbers == [
        ("app", "EndTxnRequest", 1),
        ("app", "InitProducerIdRequest", 1),
        ("app", "EndTxnRequest", 2),
        ("other", "EndTxnRequest", 1),
    ]


def test_a_broker_handles_one_request_of_a_connection_at_a_time_and_so_many_may_be_in_flight():
    link = Link(max_in_flight=2)
    link.broker.hold = EndTxnRequest
    link.send(end(1), end(2))
    assert not link.connection.can_send
    link.run(50)
    assert link.arrived == [(DELAY, "t1")]
    link.broker.release()
    assert link.arrived[1:] == [(50, "t2")]
    link.run(50 + DELAY)
    assert link.ended == [(50 + DELAY, "t1", "ok")]
    assert link.connection.can_send


def test_a_request_without_an_answer_in_time_ends_the_connection_and_all_on_it():
    """NetworkClient.handleTimedOutRequests; opened again after reconnect.backoff.ms."""
    link = Link()
    link.broker.hold = EndTxnRequest
    link.send(end(1))
    link.run(100)
    link.send(end(2))
    link.run(TIMEOUT - 1)
    assert (link.ended, link.closed) == ([], [])
    link.run(TIMEOUT)
    assert link.ended == [(TIMEOUT, "t1", "lost"), (TIMEOUT, "t2", "lost")]
    assert (link.closed, link.connection.is_open) == ([TIMEOUT], False)
    link.run(TIMEOUT + BACKOFF - 1)
    assert not link.connection.can_send
    link.run(TIMEOUT + BACKOFF)
    assert link.connection.can_send
    # what is answered now is answered on a connection that is gone; the broker goes on with what it had received
    link.broker.release()
    link.run(TIMEOUT + 2 * BACKOFF)
    assert len(link.ended) == 2
    assert [name for _, name in link.arrived] == ["t1", "t2"]
    assert len(link.of(EventKind.LOST)) == 1
    # the time of a request that was answered ends nothing
    link.broker.hold = ()
    link.send(end(3))
    link.run(3 * TIMEOUT)
    assert link.ended[2:] == [(TIMEOUT + 2 * BACKOFF + 2 * DELAY, "t3", "ok")]
    assert link.closed == [TIMEOUT]


@pytest.mark.parametrize("silent", [False, True])
def test_with_a_lost_request_those_behind_it_are_lost(silent):
    link = Link()
    link.faults.requests[2] = Loss(silent=silent)
    link.send(end(1), end(2), end(3))
    link.run(1000)
    assert link.arrived == [(DELAY, "t1")]
    # the connection ends when the request would have arrived, else when the client gives up
    at = TIMEOUT if silent else DELAY
    lost = ["t2", "t3"] if silent else ["t1", "t2", "t3"]
    assert [entry for entry in link.ended if entry[2] == "lost"] == [(at, name, "lost") for name in lost]
    assert [event.text for event in link.of(EventKind.LOST)][:2] == [describe_request(end(2)), describe_request(end(3))]
    assert link.connection.can_send
    link.faults.requests.clear()
    link.send(end(4))
    link.run(2000)
    assert link.ended[-1] == (1000 + 2 * DELAY, "t4", "ok")


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("silent", [False, True])
def test_with_a_lost_response_those_behind_it_are_lost_though_handled_perhaps(silent, behind):
    link = Link()
    link.faults.responses[1] = Loss(silent=silent, behind=behind)
    link.send(end(1), end(2))
    link.run(1000)
    assert [name for _, name in link.arrived] == (["t1", "t2"] if behind else ["t1"])
    at = TIMEOUT if silent else 2 * DELAY
    assert link.ended == [(at, "t1", "lost"), (at, "t2", "lost")]
    notes = [event.text for event in link.of(EventKind.NOTE)]
    assert notes == (
        ["request.timeout.ms: closes the connection"] if silent else ["connection to broker 1 lost, 2 in flight"]
    )


def test_an_answer_of_a_broker_that_died_never_arrives_and_who_waits_learns_of_it():
    link = Link()
    link.broker.hold = EndTxnRequest
    link.send(end(1), end(2))
    link.run(10)
    link.broker.is_up = link.broker.is_running = False
    link.network.broker_died(1)
    link.broker.release()
    link.run(1000)
    assert link.ended == [(10 + DELAY, "t1", "lost"), (10 + DELAY, "t2", "lost")]
    assert [name for _, name in link.arrived] == ["t1"]
    # nobody listens: another try, and its backoff
    assert not link.connection.can_send
    assert link.connection.reconnect_at == 1000 + BACKOFF
    link.broker.is_up = link.broker.is_running = True
    assert not link.connection.can_send
    link.run(1000 + BACKOFF)
    assert link.connection.can_send
    link.network.broker_died(2)  # another one
    link.run(2000)
    assert link.connection.is_open


def test_a_request_on_its_way_to_a_broker_that_dies_is_lost():
    link = Link()
    link.send(end(1))
    link.run(1)
    link.broker.is_up = link.broker.is_running = False
    link.network.broker_died(1)
    link.run(100)
    assert (link.arrived, link.ended) == ([], [(1 + DELAY, "t1", "lost")])
    assert len(link.of(EventKind.LOST)) == 1


@pytest.mark.parametrize("given_up", [False, True])
def test_a_paused_broker_handles_what_arrived_when_it_goes_on(given_up):
    """Also what a client has given up since: it lies in the socket's buffer."""
    link = Link()
    link.broker.is_running = False
    link.send(end(1), end(2))
    resumes = 700 if given_up else 300
    link.run(resumes)
    assert link.arrived == []
    link.broker.is_running = True
    link.network.broker_resumed(1)
    assert link.arrived == [(resumes, "t1"), (resumes, "t2")]
    link.run(1000)
    assert {how for _, _, how in link.ended} == ({"lost"} if given_up else {"ok"})
    link.network.broker_resumed(1)
    assert len(link.arrived) == 2


@pytest.mark.parametrize("dies_at", [0, DELAY - 1, DELAY, 10])
def test_a_client_that_dies_hears_nothing_and_what_it_sent_is_handled(dies_at):
    """Also what arrives after its end: TCP delivers data before the end of the connection."""
    link = Link()
    link.broker.is_running = False
    link.send(end(1))
    link.run(dies_at)
    link.connection.abandon()
    link.run(20)
    assert link.arrived == []
    link.broker.is_running = True
    link.network.broker_resumed(1)
    link.run(1000)
    assert (link.ended, link.closed) == ([], [])
    assert [name for _, name in link.arrived] == ["t1"]


def produced(acks: int, *numbers: int, sequence: int = 0, producer_id: int = 7) -> ProduceRequest:
    one = batch(*numbers, sequence=sequence)
    part = PartitionProduceData(KEY, one, b"", producer_id, 0, sequence, len(numbers), 0, False)
    return ProduceRequest((part,), acks, TIMEOUT, "p", 9)


def test_nobody_waits_for_an_answer_with_acks_0_and_an_error_closes_the_connection():
    link = Link(max_in_flight=1)
    link.send(produced(0, 1), produced(0, 2))
    assert link.ended == [(0, "p", "nothing"), (0, "p", "nothing")]
    link.run(1000)
    assert (len(link.broker.received), link.closed) == (2, [])
    link.broker.script[ProduceRequest, 3] = KafkaError.NOT_LEADER_OR_FOLLOWER
    link.send(produced(0, 3))
    link.run(2000)
    assert link.closed == [1000 + 2 * DELAY]
    assert "closes the connection to app: NOT_LEADER_OR_FOLLOWER" in link.of(EventKind.NOTE)[0].text


@pytest.mark.parametrize("after_append", [False, True])
def test_an_injected_error_is_answered_in_place_of_the_brokers_answer(after_append):
    link = Link()
    link.faults.errors[1] = InjectedError(KafkaError.NOT_COORDINATOR, None, after_append)
    link.send(end(1), end(2))
    link.run(100)
    assert [(name, how) for _, name, how in link.ended] == [("t1", "NOT_COORDINATOR"), ("t2", "ok")]
    assert len(link.broker.received) == 1 + after_append


def test_how_messages_are_put_in_the_sequence_diagram():
    texts = {
        describe_request(produced(1, 5)): "orders-0 #5 id 7 epoch 0 seq 0",
        describe_request(produced(1, 5, 6, sequence=2**31 - 1)): f"orders-0 #5..6 id 7 epoch 0 seq {2**31 - 1}..0",
        describe_request(produced(1, 5, 6, producer_id=-1)): "orders-0 #5..6",
        describe_request(produced(1, 5, producer_id=0)): "orders-0 #5 id 0 epoch 0 seq 0",
        describe_request(InitProducerIdRequest(None, 1, (-1, -1), 3, KEY)): "InitProducerId",
        describe_request(InitProducerIdRequest("t", 1, (0, 4), 3, KEY)): "InitProducerId t, has id 0 epoch 4",
        describe_request(AddPartitionsToTxnRequest("t", (7, 2), (KEY, ("a", 1)), 3)): (
            "AddPartitionsToTxn t epoch 2: orders-0, a-1"
        ),
        describe_request(end()): "EndTxn t0 epoch 0: commit",
        describe_response(CoordinatorResponse(KafkaError.NONE, (0, 3))): "ok, id 0 epoch 3",
        describe_response(CoordinatorResponse(KafkaError.NONE, (-1, 0))): "ok",
        describe_response(CoordinatorResponse(KafkaError.NOT_COORDINATOR, (-1, -1))): "NOT_COORDINATOR",
        describe_response(ProduceResponse(())): "",
    }
    assert list(texts) == list(texts.values())


@pytest.mark.parametrize(
    ("outcome", "copies", "error", "text"),
    [
        (None, (), KafkaError.NONE, "ok, offset 40"),
        ("no-response", (), KafkaError.NONE, "ok, offset 40"),
        ("appended", (), KafkaError.NONE, "ok, offset 40"),
        ("appended", (30, 35), KafkaError.NONE, "ok, offset 40 (the same records are at offset 30)"),
        ("duplicate", (30,), KafkaError.NONE, "duplicate of offset 40"),
        ("appended", (30,), KafkaError.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT"),
        ("rejected", (), KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ],
)
def test_how_the_response_to_a_batch_is_put(outcome, copies, error, text):
    (part,) = produced(1, 5).parts
    answer = None if outcome is None else Response(0, {"outcome": outcome}, "")
    decided = BrokerAnswer("orders-0", answer, copies=tuple(Copy(offset, 7, 0) for offset in copies))
    result = PartitionProduceResponse(part, error, 40, 0, decided)
    assert describe_response(ProduceResponse((result,))) == text
    assert describe_response(ProduceResponse((result, result))) == f"{text}; {text}"
    undecided = PartitionProduceResponse(part, KafkaError.NONE, 40, 0)
    assert describe_response(ProduceResponse((undecided,))) == "ok, offset 40"


# -- the client's end: ClientProcess, NetworkClient -----------------------------------------------------------------------


def test_a_paused_process_does_later_what_came_meanwhile_and_a_dead_one_nothing():
    process, done = ClientProcess(), list[str]()
    process.run(lambda: done.append("at once"))
    process.pause()
    process.run(lambda: done.append("later"))
    assert (done, process.is_running) == (["at once"], False)
    process.resume()
    process.resume()
    assert (done, process.is_running) == (["at once", "later"], True)
    process.pause()
    process.run(lambda: done.append("never"))
    process.kill()
    process.run(lambda: done.append("never"))
    process.resume()  # its pause was to end now
    process.run(lambda: done.append("never"))
    assert (done, process.is_running) == (["at once", "later"], False)


class ThreeBrokers:
    """Three brokers that hold every request."""

    coordinator = 1

    def __init__(self):
        self.brokers = {number: ScriptedBroker() for number in (1, 2, 3)}
        for number, broker in self.brokers.items():
            broker.number = number
            broker.hold = EndTxnRequest

    def leaders(self):
        return {}


def client_of_three() -> tuple[ThreeBrokers, NetworkClient, Trace]:
    (spec,) = parse_scenario(
        SCENARIO.format(client="java 3.9.1", config='"enable.idempotence" = true', more=""), "test"
    ).producers
    clock, trace = Clock(), Trace()
    network = Network(clock, (DELAY, DELAY), Random(1), NoFaults(), trace)
    cluster = ThreeBrokers()
    versions = negotiate_versions(client_for("java 3.9.1"), client_for("java 3.9.1").version)
    return cluster, NetworkClient(spec.name, spec.config, versions, cluster, network, Random(1)), trace


def ask(client: NetworkClient, broker: int) -> None:
    connection = client.connect(broker)
    assert connection.can_send
    connection.send(end(), 0, 30_000, lambda _: None, lambda: None)


def test_the_least_loaded_broker_is_asked_for_a_producer_id():
    """NetworkClient.leastLoadedNode: connected and idle before busy, busy before unconnected, nobody where nobody is up."""
    cluster, client, _ = client_of_three()
    assert {client.least_loaded_broker() for _ in range(60)} == {1, 2, 3}
    cluster.brokers[2].is_up = False
    assert {client.least_loaded_broker() for _ in range(60)} == {1, 3}
    assert client.connect(3).can_send
    assert {client.least_loaded_broker() for _ in range(20)} == {3}
    ask(client, 1)
    assert {client.least_loaded_broker() for _ in range(20)} == {3}
    for _ in range(2):
        ask(client, 3)
    assert {client.least_loaded_broker() for _ in range(20)} == {1}
    ask(client, 1)
    ask(client, 1)
    assert {client.least_loaded_broker() for _ in range(20)} == {3}
    for gone in cluster.brokers.values():
        gone.is_up = False
    _, alone, _ = client_of_three()
    alone._brokers = dict.fromkeys((1, 2), cluster.brokers[1])
    assert alone.least_loaded_broker() is None


def test_a_broker_whose_connection_is_closed_is_asked_after_those_connected():
    _, client, _ = client_of_three()
    for broker in (1, 3):
        ask(client, broker)
    client.connect(1).close()
    client.clock.now = 10 * BACKOFF  # it may be connected to again
    assert {client.least_loaded_broker() for _ in range(60)} == {3}
    assert not client.connect(1).is_open
    client.connect(3).close()
    client.clock.now *= 2
    assert {client.least_loaded_broker() for _ in range(60)} == {1, 2, 3}


@pytest.mark.parametrize(("by_ms", "closes"), [(29_989, False), (29_990, True), (-60_000, False)])
def test_a_clock_that_jumps_ends_what_has_waited_too_long_by_it(by_ms, closes):
    """NetworkClient.handleTimedOutRequests goes by the wall clock; request.timeout.ms is 30 s."""
    _, client, trace = client_of_three()
    ask(client, 2)
    client.connect(3)
    client.clock.run(10)
    client.clock.now = 10
    client.clock_jumped(by_ms)
    assert client.connect(2).is_open is not closes
    assert len([event for event in trace.events if "by the new clock" in event.text]) == closes


def test_a_batch_of_the_payload_is_not_smaller_than_its_size_says():
    for numbers in ([0], [7, 8, 9], list(range(95, 130)), [99_999, 100_000]):
        one = batch(*numbers, sequence=5)
        assert len(one.encoded()) <= one.size
        assert one.size - len(one.encoded()) <= 10 * len(numbers)
        assert [PAYLOAD.of(number)[0] for number in numbers] == [b"%d" % number for number in numbers]
