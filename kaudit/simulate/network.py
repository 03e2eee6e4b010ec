"""Connections between clients and brokers: delays, lost messages, order kept within one connection only.

Source: NetworkClient, InFlightRequests, SocketServer. A broker reads the next request of a connection when it has
answered the one before; a client that loses a connection takes everything in flight on it for lost.
"""

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from kaudit.broker.errors import KafkaError
from kaudit.simulate.clock import Clock
from kaudit.simulate.requests import (
    CoordinatorResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    answered,
    spoken,
)
from kaudit.simulate.trace import Kind, Row, Trace

OnResponse = Callable[[Response | None], None]
"""Called once: with the response, with None when nothing is to be expected (acks=0)."""


class Loss(NamedTuple):
    """How a message gets lost: the client notices at once, or only by request.timeout.ms (`silent`).

    `behind`: requests that follow on the connection still reach the broker.
    """

    silent: bool = False
    behind: bool = True


class Losses(Protocol):
    """Decides which messages get lost."""

    def request(self, client: str, broker: int, number: int) -> Loss | None:
        """Return how the client's `number`th (from 1) produce request gets lost, None if it does not."""
        ...

    def response(self, client: str, broker: int, number: int) -> Loss | None:
        """Return how the response to that request gets lost, None if it does not."""
        ...


class Endpoint(Protocol):
    """A broker, as far as its network threads see it."""

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

    def handle(self, request: Request, respond: Callable[[Response | None], None]) -> None:
        """Handle a request and respond, now or later."""
        ...


class InFlight(NamedTuple):
    """A request under way; `number` counts the client's produce requests, 0 for others."""

    request: Request
    number: int
    sent_at: int
    on_response: OnResponse
    on_disconnect: Callable[[], None]


class Network:
    """All connections, and the chances they run."""

    def __init__(
        self, clock: Clock, delays: tuple[int, int], chance: random.Random, losses: Losses, trace: Trace
    ) -> None:
        self.clock = clock
        self.losses = losses
        self.trace = trace
        self._delays = delays
        self._chance = chance
        self._connections: dict[int, list[Connection]] = {}

    def delay(self) -> int:
        """Return how long the next message travels, in ms."""
        low, high = self._delays
        return low if low == high else low + int(self._chance.random() * (high - low + 1))

    def connection(self, client: str, broker: Endpoint, max_in_flight: int, reconnect_backoff_ms: int) -> "Connection":
        """Make a client's connection to a broker."""
        made = Connection(self, client, broker, max_in_flight, reconnect_backoff_ms)
        self._connections.setdefault(broker.number, []).append(made)
        return made

    def broker_died(self, broker: int) -> None:
        """Cut every connection to a broker; what it had not handled is gone."""
        for connection in self._connections.get(broker, []):
            connection.broker_died()

    def broker_resumed(self, broker: int) -> None:
        """Let a broker go on with the requests that arrived meanwhile."""
        for connection in self._connections.get(broker, []):
            connection.broker_resumed()


class _Channel:
    """One life of a connection: from being opened to being cut."""

    __slots__ = ("back_at", "busy", "dropped", "inbound", "muted", "out_at", "processing", "severed")

    def __init__(self) -> None:
        self.inbound: deque[InFlight] = deque()
        self.busy = False
        self.processing = False
        self.dropped = False
        """The broker handles nothing of it any more."""
        self.severed = False
        """No request arrives any more."""
        self.muted = False
        """No response arrives any more."""
        self.out_at = 0
        self.back_at = 0


class Connection:
    """A client's connection to one broker, opened again whenever it was cut."""

    def __init__(
        self, network: Network, client: str, broker: Endpoint, max_in_flight: int, reconnect_backoff_ms: int
    ) -> None:
        self._network = network
        self._clock = network.clock
        self._client = client
        self._broker = broker
        self._max_in_flight = max_in_flight
        self._backoff = reconnect_backoff_ms
        self._channel: _Channel | None = None
        self.in_flight: deque[InFlight] = deque()
        self.reconnect_at = 0
        """Not to be opened again before this time."""

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
        request: Request,
        number: int,
        timeout_ms: int,
        on_response: OnResponse,
        on_disconnect: Callable[[], None],
    ) -> None:
        """Send a request; one of the two is called later. Only while `can_send`."""
        channel = self._channel
        assert channel is not None
        clock = self._clock
        unanswered = isinstance(request, ProduceRequest) and request.acks == 0
        sent = InFlight(request, number, clock.now, on_response, on_disconnect)
        channel.out_at = max(channel.out_at, clock.now + self._network.delay())
        if not unanswered:
            self.in_flight.append(sent)
            clock.after(timeout_ms, partial(self._time_out, channel, sent))
        loss = None
        if not channel.severed and number:
            loss = self._network.losses.request(self._client, self._broker.number, number)
        if channel.severed or loss is not None:
            self._trace(Kind.LOST, sent.sent_at, clock.now, request)
            channel.severed = True
            if loss is not None and not loss.silent:
                clock.at(channel.out_at, partial(self._cut, channel))
        else:
            clock.at(channel.out_at, partial(self._arrive, channel, sent))
        if unanswered:
            on_response(None)

    # -- at the broker -----------------------------------------------------------------------------------------------
    def _arrive(self, channel: _Channel, sent: InFlight) -> None:
        if channel.dropped or not self._broker.is_up:
            self._trace(Kind.LOST, sent.sent_at, self._clock.now, sent.request)
            return
        self._trace(Kind.REQUEST, sent.sent_at, self._clock.now, sent.request)
        channel.inbound.append(sent)
        self._process(channel)

    def _process(self, channel: _Channel) -> None:
        if channel.processing:
            return
        channel.processing = True
        while channel.inbound and not channel.busy and self._broker.is_running:
            channel.busy = True
            sent = channel.inbound.popleft()
            self._broker.handle(sent.request, partial(self._respond, channel, sent))
        channel.processing = False

    def _respond(self, channel: _Channel, sent: InFlight, response: Response | None) -> None:
        if channel.dropped:
            return
        channel.busy = False
        if response is not None:
            self._send_back(channel, sent, response)
        self._process(channel)

    def _send_back(self, channel: _Channel, sent: InFlight, response: Response) -> None:
        clock = self._clock
        channel.back_at = max(channel.back_at, clock.now + self._network.delay())
        loss = None
        if not channel.muted and sent.number:
            loss = self._network.losses.response(self._client, self._broker.number, sent.number)
        if channel.muted or loss is not None or channel is not self._channel:
            self._trace_back(Kind.LOST, clock.now, clock.now, response)
            channel.muted = True
            if loss is not None:
                if not loss.behind:
                    channel.dropped = True
                if not loss.silent:
                    clock.at(channel.back_at, partial(self._cut, channel))
            return
        clock.at(channel.back_at, partial(self._deliver, channel, sent, response, clock.now))

    def broker_died(self) -> None:
        """Learn that the broker is gone."""
        channel = self._channel
        if channel is not None:
            channel.dropped = channel.muted = True
            channel.inbound.clear()
            self._clock.after(self._network.delay(), partial(self._cut, channel))

    def broker_resumed(self) -> None:
        """Let the broker go on with what arrived while it was paused."""
        if self._channel is not None:
            self._process(self._channel)

    # -- back at the client ------------------------------------------------------------------------------------------
    def _deliver(self, channel: _Channel, sent: InFlight, response: Response, sent_back_at: int) -> None:
        if channel is not self._channel:
            self._trace_back(Kind.LOST, sent_back_at, self._clock.now, response)
            return
        assert self.in_flight[0] is sent
        self.in_flight.popleft()
        self._trace_back(Kind.RESPONSE, sent_back_at, self._clock.now, response)
        sent.on_response(response)

    def _time_out(self, channel: _Channel, sent: InFlight) -> None:
        if channel is self._channel and any(other is sent for other in self.in_flight):
            self._network.trace.note(self._clock.now, self._client, "request.timeout.ms: closes the connection")
            self.close()

    def _cut(self, channel: _Channel) -> None:
        if channel is self._channel:
            if self.in_flight:
                self._network.trace.note(
                    self._clock.now,
                    self._client,
                    f"connection to {self._broker.name} lost, {len(self.in_flight)} in flight",
                )
            self.close()

    def close(self) -> None:
        """Cut the connection: whatever is in flight counts as lost, oldest first."""
        lost = list(self.in_flight)
        self.in_flight.clear()
        self._channel = None
        self.reconnect_at = self._clock.now + self._backoff
        for sent in lost:
            sent.on_disconnect()

    def abandon(self) -> None:
        """Cut the connection because the client died: nobody is told."""
        self.in_flight.clear()
        self._channel = None

    # -- ladder ------------------------------------------------------------------------------------------------------
    def _trace(self, kind: Kind, sent_at: int, at: int, request: Request) -> None:
        trace = self._network.trace
        if trace.is_full:
            trace.omitted += 1
        else:
            trace.add(Row(kind, sent_at, at, self._client, self._broker.name, spoken(request)))

    def _trace_back(self, kind: Kind, sent_at: int, at: int, response: Response) -> None:
        trace = self._network.trace
        if trace.is_full:
            trace.omitted += 1
        else:
            trace.add(Row(kind, sent_at, at, self._broker.name, self._client, answered(response), refused(response)))


def refused(response: Response) -> bool:
    """Tell whether a response holds an error."""
    if isinstance(response, CoordinatorResponse):
        return response.error is not KafkaError.NONE
    assert isinstance(response, ProduceResponse)
    return any(result.error is not KafkaError.NONE for result in response.results)
