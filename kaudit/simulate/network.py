"""Connections between clients and brokers: delays, lost messages, order kept within one connection only.

Source: NetworkClient, InFlightRequests, SocketServer. A broker reads the next request of a connection when it has
answered the one before; a client that loses a connection takes everything in flight on it for lost.
"""

import random
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from kaudit.broker.errors import KafkaError
from kaudit.simulate.clock import Clock
from kaudit.simulate.requests import (
    ConnectionClosed,
    CoordinatorResponse,
    InjectedError,
    KafkaRequest,
    KafkaResponse,
    OnResponse,
    ProduceRequest,
    ProduceResponse,
    Respond,
    describe_request,
    describe_response,
    partitions_of,
    producer_of,
)
from kaudit.simulate.trace import BrokerAnswer, EventKind, Trace, TraceEvent


class Loss(NamedTuple):
    """How a message gets lost: the client notices at once, or only after request.timeout.ms (`silent`).

    `behind`: requests that follow on the connection still reach the broker.
    """

    silent: bool = False
    behind: bool = True


class MarkerLoss(NamedTuple):
    """How WriteTxnMarkers gets lost: the request, or the `response` to it; noticed at once or by its timeout (`silent`)."""

    response: bool
    silent: bool


class MessageFaults(Protocol):
    """What happens on its way to a client's `number`th request of a kind, and to a coordinator's."""

    def request(self, client: str, request: KafkaRequest, number: int) -> Loss | None:
        """Return how the request gets lost, None if it does not."""
        ...

    def response(self, client: str, request: KafkaRequest, number: int) -> Loss | None:
        """Return how the response to it gets lost, None if it does not."""
        ...

    def error(self, client: str, request: KafkaRequest, number: int) -> InjectedError | None:
        """Return the error it is answered with, None where the broker handles it."""
        ...

    def marker(self, partition: str, number: int) -> MarkerLoss | None:
        """Return how the `number`th WriteTxnMarkers to a partition (from 1) gets lost, None if it does not."""
        ...


class BrokerEndpoint(Protocol):
    """A broker as the network sees it."""

    number: int
    name: str

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether it handles requests: it is up and not paused."""
        ...

    def handle(self, request: KafkaRequest, respond: Respond) -> None:
        """Handle a request and respond, now or later."""
        ...


class InFlightRequest(NamedTuple):
    """A request under way; `number` counts the client's requests of its kind from 1."""

    request: KafkaRequest
    number: int
    sent_at: int
    on_response: OnResponse
    on_disconnect: Callable[[], None]


class Network:
    """All connections between clients and brokers."""

    def __init__(
        self, clock: Clock, delays: tuple[int, int], source: random.Random, faults: MessageFaults, trace: Trace
    ) -> None:
        self.clock = clock
        self.faults = faults
        self.trace = trace
        self._delays = delays
        self._source = source
        self._connections: dict[int, list[Connection]] = {}
        self._requests: Counter[tuple[str, type[KafkaRequest]]] = Counter()

    def count(self, client: str, kind: type[KafkaRequest]) -> int:
        """Return how many requests of this kind a client has sent, this one included."""
        self._requests[client, kind] += 1
        return self._requests[client, kind]

    def delay(self) -> int:
        """Return how long the next message travels, in ms."""
        low, high = self._delays
        return low if low == high else low + int(self._source.random() * (high - low + 1))

    def connection(
        self, client: str, broker: BrokerEndpoint, max_in_flight: int, reconnect_backoff_ms: int
    ) -> "Connection":
        """Make a client's connection to a broker."""
        made = Connection(self, client, broker, max_in_flight, reconnect_backoff_ms)
        self._connections.setdefault(broker.number, []).append(made)
        return made

    def broker_died(self, broker: int) -> None:
        """Close every connection to a broker; requests it had not handled are lost."""
        for connection in self._connections.get(broker, []):
            connection.broker_died()

    def broker_resumed(self, broker: int) -> None:
        """Let a broker handle the requests that arrived while it was paused."""
        for connection in self._connections.get(broker, []):
            connection.broker_resumed()


class _Channel:
    """A connection from being opened to being closed; times are those of the last message, in ms."""

    __slots__ = (
        "abandoned",
        "busy",
        "inbound",
        "last_request_at",
        "last_response_at",
        "loses_requests",
        "loses_responses",
        "processing",
    )

    def __init__(self) -> None:
        self.inbound: deque[InFlightRequest] = deque()
        self.busy = False
        self.processing = False
        self.abandoned = False
        """The broker handles no more requests of it."""
        self.loses_requests = False
        self.loses_responses = False
        self.last_request_at = 0
        self.last_response_at = 0


class Connection:
    """A client's connection to one broker, opened again whenever it was closed."""

    def __init__(
        self, network: Network, client: str, broker: BrokerEndpoint, max_in_flight: int, reconnect_backoff_ms: int
    ) -> None:
        self._network = network
        self._clock = network.clock
        self._client = client
        self._broker = broker
        self._max_in_flight = max_in_flight
        self._backoff = reconnect_backoff_ms
        self._channel: _Channel | None = None
        self._unread: dict[_Channel, None] = {}
        """Channels with requests that a paused broker has to handle yet, whether the client has closed them or not."""
        self.in_flight: deque[InFlightRequest] = deque()
        self.reconnect_at = 0
        """Not to be opened again before this time."""
        self.on_close: Callable[[], None] = lambda: None
        """Called when the client notices that it is closed."""

    @property
    def is_open(self) -> bool:
        """Whether the client regards it as open."""
        return self._channel is not None

    @property
    def can_send(self) -> bool:
        """Whether one more request may be sent; opens the connection where that is possible."""
        if self._channel is None:
            if self._clock.now < self.reconnect_at:
                return False
            if not self._broker.is_up:
                self.reconnect_at = self._clock.now + self._backoff
                return False
            self._channel = _Channel()
        return len(self.in_flight) < self._max_in_flight

    def send(
        self,
        request: KafkaRequest,
        number: int,
        timeout_ms: int,
        on_response: OnResponse,
        on_disconnect: Callable[[], None],
    ) -> None:
        """Send a request; one of the two is called later. Only while `can_send`.

        `number` counts the client's produce requests, 0 for others: these are counted here.
        """
        channel = self._channel
        assert channel is not None
        number = number or self._network.count(self._client, type(request))
        clock = self._clock
        unanswered = isinstance(request, ProduceRequest) and request.acks == 0
        sent = InFlightRequest(request, number, clock.now, on_response, on_disconnect)
        channel.last_request_at = max(channel.last_request_at, clock.now + self._network.delay())
        if not unanswered:
            self.in_flight.append(sent)
            clock.after(timeout_ms, partial(self._time_out, channel, sent))
        loss = None
        if not channel.loses_requests:
            loss = self._network.faults.request(self._client, request, number)
        if channel.loses_requests or loss is not None:
            self._trace(EventKind.LOST, sent.sent_at, clock.now, request)
            channel.loses_requests = True
            if loss is not None and not loss.silent:
                clock.at(channel.last_request_at, partial(self._lose_connection, channel))
        else:
            clock.at(channel.last_request_at, partial(self._arrive, channel, sent))
        if unanswered:
            on_response(None)

    # -- at the broker -----------------------------------------------------------------------------------------------
    def _arrive(self, channel: _Channel, sent: InFlightRequest) -> None:
        if channel.abandoned or not self._broker.is_up:
            self._trace(EventKind.LOST, sent.sent_at, self._clock.now, sent.request)
            return
        self._trace(EventKind.REQUEST, sent.sent_at, self._clock.now, sent.request)
        channel.inbound.append(sent)
        self._process(channel)

    def _process(self, channel: _Channel) -> None:
        if channel.processing:
            return
        channel.processing = True
        while channel.inbound and not channel.busy and self._broker.is_running:
            channel.busy = True
            sent = channel.inbound.popleft()
            respond = partial(self._respond, channel, sent)
            error = self._network.faults.error(self._client, sent.request, sent.number)
            if error is None:
                self._broker.handle(sent.request, respond)
            else:
                error.answer(self._broker.handle, self._broker.name, sent.request, respond)
        channel.processing = False
        if channel.inbound and not channel.busy:
            self._unread[channel] = None

    def _respond(
        self, channel: _Channel, sent: InFlightRequest, response: KafkaResponse | ConnectionClosed | None
    ) -> None:
        if channel.abandoned:
            return
        channel.busy = False
        if isinstance(response, ConnectionClosed):
            self._closed_by_broker(channel, response.why)
            return
        if response is not None:
            self._send_back(channel, sent, response)
        self._process(channel)

    def _send_back(self, channel: _Channel, sent: InFlightRequest, response: KafkaResponse) -> None:
        clock = self._clock
        channel.last_response_at = max(channel.last_response_at, clock.now + self._network.delay())
        loss = None
        if not channel.loses_responses:
            loss = self._network.faults.response(self._client, sent.request, sent.number)
        if channel.loses_responses or loss is not None or channel is not self._channel:
            self._trace_back(EventKind.LOST, clock.now, clock.now, sent.request, response)
            channel.loses_responses = True
            if loss is not None:
                if not loss.behind:
                    channel.abandoned = True
                if not loss.silent:
                    clock.at(channel.last_response_at, partial(self._lose_connection, channel))
            return
        clock.at(channel.last_response_at, partial(self._deliver, channel, sent, response, clock.now))

    def _closed_by_broker(self, channel: _Channel, why: str) -> None:
        """Close the connection from the broker's end: requests on their way to it are lost."""
        self._network.trace.note(self._clock.now, self._broker.name, f"closes the connection to {self._client}: {why}")
        if channel is self._channel:
            self.broker_died()

    def broker_died(self) -> None:
        """Close the connection, a network delay after the broker died."""
        self._unread.clear()
        channel = self._channel
        if channel is not None:
            channel.abandoned = channel.loses_responses = True
            channel.inbound.clear()
            self._clock.after(self._network.delay(), partial(self._lose_connection, channel))

    def broker_resumed(self) -> None:
        """Let the broker handle what arrived while it was paused, whether the client still waits or not."""
        unread, self._unread = self._unread, {}
        for channel in unread:
            self._process(channel)

    # -- back at the client ------------------------------------------------------------------------------------------
    def _deliver(self, channel: _Channel, sent: InFlightRequest, response: KafkaResponse, sent_back_at: int) -> None:
        if channel is not self._channel:
            self._trace_back(EventKind.LOST, sent_back_at, self._clock.now, sent.request, response)
            return
        assert self.in_flight[0] is sent
        self.in_flight.popleft()
        self._trace_back(EventKind.RESPONSE, sent_back_at, self._clock.now, sent.request, response)
        sent.on_response(response)

    def _time_out(self, channel: _Channel, sent: InFlightRequest) -> None:
        if channel is self._channel and any(other is sent for other in self.in_flight):
            self._network.trace.note(self._clock.now, self._client, "request.timeout.ms: closes the connection")
            self.close()

    def _lose_connection(self, channel: _Channel) -> None:
        if channel is self._channel:
            if self.in_flight:
                self._network.trace.note(
                    self._clock.now,
                    self._client,
                    f"connection to {self._broker.name} lost, {len(self.in_flight)} in flight",
                )
            self.close()

    def close(self) -> None:
        """Close the connection: requests in flight count as lost, oldest first."""
        lost = list(self.in_flight)
        self.in_flight.clear()
        self._channel = None
        self.reconnect_at = self._clock.now + self._backoff
        self.on_close()
        for sent in lost:
            sent.on_disconnect()

    def abandon(self) -> None:
        """Close the connection because the client died: no callback is called."""
        self.in_flight.clear()
        self._channel = None

    # -- trace ----------------------------------------------------------------------------------------------------------
    def _trace(self, kind: EventKind, sent_at: int, at: int, request: KafkaRequest) -> None:
        trace = self._network.trace
        if trace.is_full:
            trace.omitted += 1
        else:
            text, partitions = describe_request(request), partitions_of(request)
            event = TraceEvent(kind, sent_at, at, self._client, self._broker.name, text, partitions=partitions)
            event.producer_id = producer_of(request)
            trace.add(event, request)

    def _trace_back(
        self, kind: EventKind, sent_at: int, at: int, request: KafkaRequest, response: KafkaResponse
    ) -> None:
        trace = self._network.trace
        if trace.is_full:
            trace.omitted += 1
            return
        event = TraceEvent(
            kind, sent_at, at, self._broker.name, self._client, describe_response(response), has_error(response)
        )
        event.partitions, event.producer_id = partitions_of(request), producer_of(request)
        event.answers = _answers(response)
        trace.add(event)


def _answers(response: KafkaResponse) -> tuple[BrokerAnswer, ...]:
    if isinstance(response, CoordinatorResponse):
        return (response.decided,)
    return tuple(result.decided for result in response.results if result.decided is not None)


def has_error(response: KafkaResponse) -> bool:
    """Whether a response holds an error."""
    if isinstance(response, CoordinatorResponse):
        return response.error is not KafkaError.NONE
    assert isinstance(response, ProduceResponse)
    return any(result.error is not KafkaError.NONE for result in response.results)
