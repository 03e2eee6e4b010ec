"""The scripted cluster, without a network: which requests came in which step, and what each is answered."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from tests.client_streams.scenario import Reply, Scenario, Step

FIRST_PRODUCER_ID = 1000
NO_PRODUCER = (-1, -1)
Answer = TypeVar("Answer")
FIRST_WITH_NEW_EPOCH = 5
"""The version of EndTxn whose answer holds the next epoch (KIP-890)."""


class Part(NamedTuple):
    """One partition's batch in a produce request; no producer: -1 in the first three fields."""

    partition: int
    producer_id: int
    epoch: int
    base_sequence: int
    transactional: bool
    records: tuple[int, ...]
    """The application's numbers of its records."""

    def __str__(self) -> str:
        """Return what a stream shows."""
        records = ", ".join(map(str, self.records))
        if self.producer_id < 0:
            return f"{self.partition} record {records}"
        kind = " transactional" if self.transactional else ""
        return f"{self.partition} {_producer(self.producer_id, self.epoch)} sequence {self.base_sequence}{kind} record {records}"


class Response(NamedTuple):
    """What goes back; `errors` by partition, or the one of a request without partitions under -1."""

    errors: dict[int, KafkaError]
    base_offsets: dict[int, int]
    log_start_offset: int
    producer: tuple[int, int]


class Request(Struct, kw_only=True, eq=False):
    """A request of the client that the script answers. `connection` is compared by identity."""

    api: str
    version: int
    node: int
    connection: object
    send_back: Callable[[Response], None]
    close: Callable[[], None]
    transactional_id: str | None = None
    producer: tuple[int, int] = NO_PRODUCER
    parts: list[Part] = []
    partitions: list[int] = []
    commit: bool = False
    acks: int = -1

    def __str__(self) -> str:
        """Return what a stream shows; a request names its partitions in no order that matters."""
        match self.api:
            case "Produce":
                what = "; ".join(map(str, sorted(self.parts)))
            case "InitProducerId":
                what = "" if self.producer == NO_PRODUCER else _producer(*self.producer)
            case "AddPartitionsToTxn":
                what = f"{', '.join(map(str, sorted(self.partitions)))} {_producer(*self.producer)}"
            case _:
                what = f"{'commit' if self.commit else 'abort'} {_producer(*self.producer)}"
        where = "" if self.anywhere else f" to node {self.node}"
        return f"{self.api}{where}{': ' if what else ''}{what}"

    @property
    def anywhere(self) -> bool:
        """Whether any node may be asked."""
        return self.api == "InitProducerId" and self.transactional_id is None


def _producer(producer_id: int, epoch: int) -> str:
    return f"id {producer_id} epoch {epoch}"


class InOrder(Generic[Answer]):
    """Answers on one connection leave in the order of their requests: `send` is called for each."""

    def __init__(self, send: Callable[[Answer], None]) -> None:
        self._send = send
        self._places: deque[list[Answer]] = deque()

    def next_place(self) -> Callable[[Answer], None]:
        """Reserve the place of the next answer; returns what gives it."""
        place: list[Answer] = []
        self._places.append(place)

        def give(answer: Answer) -> None:
            place.append(answer)
            while self._places and self._places[0]:
                self._send(*self._places.popleft())

        return give


class Played(NamedTuple):
    """What a client did: a line for each step and each request, and the version of each kind of request."""

    lines: list[str]
    versions: dict[str, int]


REFUSED = Played(["the configuration is refused"], {})


class Script:
    """Answers by a scenario. Not for several threads at a time."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.leaders = dict(enumerate(scenario.leaders))
        self.leader_epochs = dict.fromkeys(self.leaders, 0)
        self.coordinator = scenario.coordinator
        self.versions: dict[str, int] = {}
        self._arrived: list[Request] = []
        self._open: defaultdict[int, list[Request]] = defaultdict(list)
        self._replies: defaultdict[int, deque[Reply]] = defaultdict(deque)
        self._answers_all = False
        self._offsets: defaultdict[int, Iterator[int]] = defaultdict(count)
        self._producer_ids = count(FIRST_PRODUCER_ID)
        self._transactional: tuple[int, int] | None = None

    # -- the client's side -------------------------------------------------------------------------------------------
    def arrived(self, request: Request) -> None:
        """Take a request; it is answered now, in a later step, or never."""
        self._arrived.append(request)
        self.versions[request.api] = max(request.version, self.versions.get(request.api, 0))
        if request.acks == 0:
            replies = self._replies[request.node]
            if replies and replies.popleft() != Reply():
                request.close()
        elif self._answers_all or request.api not in self.scenario.hold:
            self._reply(request, Reply())
        else:
            self._open[request.node].append(request)
            self._answer(request.node)

    def lost(self, connection: object) -> None:
        """Forget the requests of a connection that is closed."""
        for node, requests in self._open.items():
            self._open[node] = [request for request in requests if request.connection is not connection]

    @property
    def holds_answers(self) -> bool:
        """Whether a request waits for a step that answers it."""
        return any(self._open.values())

    # -- the scenario's side -----------------------------------------------------------------------------------------
    def change(self, step: Step) -> None:
        """Do what a step does to the cluster."""
        for name, node in step.leaders.items():
            self.leaders[int(name)] = node
            self.leader_epochs[int(name)] += 1
        if step.coordinator is not None:
            self.coordinator = step.coordinator
        if step.answer == "ok":
            self._answers_all = True
            for node, requests in list(self._open.items()):
                self._open[node] = []
                for request in requests:
                    self._reply(request, Reply())
        else:
            self._replies[step.node] += map(Reply.of, step.answer)
            self._answer(step.node)

    def take_arrived(self) -> list[str]:
        """Return the requests since the last call; those to one node are in order, nodes by number."""
        arrived, self._arrived = self._arrived, []
        return [str(request) for request in sorted(arrived, key=lambda request: (not request.anywhere, request.node))]

    def _answer(self, node: int) -> None:
        requests, replies = self._open[node], self._replies[node]
        while requests and replies:
            self._reply(requests.pop(0), replies.popleft())
            requests = self._open[node]

    def _reply(self, request: Request, reply: Reply) -> None:
        if reply.instead == "close":
            request.close()
        elif reply.instead is None:
            request.send_back(self._response(request, reply))

    def _response(self, request: Request, reply: Reply) -> Response:
        partitions = [part.partition for part in request.parts] or request.partitions or [-1]
        errors = {partition: reply.error_of(partition) for partition in partitions}
        offsets = {}
        for part in request.parts:
            if errors[part.partition] is KafkaError.NONE:
                taken = [next(self._offsets[part.partition]) for _ in part.records]
                offsets[part.partition] = taken[0]
        granted = NO_PRODUCER
        if errors.get(-1) is KafkaError.NONE:
            granted = self._grant(request)
        return Response(errors, offsets, reply.log_start_offset, granted)

    def _grant(self, request: Request) -> tuple[int, int]:
        """Return the producer id and epoch that an answer holds."""
        if request.api == "InitProducerId" and request.transactional_id is None:
            return next(self._producer_ids), 0
        if request.api == "InitProducerId" and self._transactional is None:
            self._transactional = next(self._producer_ids), 0
        elif request.api == "InitProducerId" or request.version >= FIRST_WITH_NEW_EPOCH:
            assert self._transactional is not None
            self._transactional = self._transactional[0], self._transactional[1] + 1
        return self._transactional or NO_PRODUCER


class Arrivals(Protocol):
    """What collects the client's requests: the script, or what guards it."""

    @property
    def versions(self) -> dict[str, int]:
        """The version of each kind of request."""
        ...

    def take_arrived(self) -> list[str]:
        """Return the requests since the last call."""
        ...


class Player(Protocol):
    """A client under test, and the network between it and the script."""

    def call(self, line: str) -> None:
        """Let the application do something: `init`, `begin`, `commit`, `abort`."""
        ...

    def send(self, number: int, partition: int) -> None:
        """Send the application's record of this number."""
        ...

    def change(self, step: Step) -> None:
        """Do what a step does to the cluster."""
        ...

    def settle(self, at_least_ms: int) -> None:
        """Let so much time pass, and then more until the client sends nothing more."""
        ...

    def unwritten(self) -> list[int]:
        """Return the records that failed or are unfinished."""
        ...


def play(scenario: Scenario, arrivals: Arrivals, player: Player) -> Played:
    """Play a scenario from opening the client on."""
    lines: list[str] = []
    numbers = count()

    def settle(what: str, at_least_ms: int) -> None:
        player.settle(at_least_ms)
        lines.extend([what, *(f"    {request}" for request in arrivals.take_arrived())])

    settle("open", 0)
    for step in scenario.steps:
        player.change(step)
        if step.call is not None:
            player.call(step.call)
        for partition in step.send:
            player.send(next(numbers), partition)
        settle(str(step), step.wait_ms)
    unwritten = player.unwritten()
    lines.append(f"not acknowledged: {', '.join(map(str, unwritten))}" if unwritten else "all acknowledged")
    return Played(lines, arrivals.versions)
