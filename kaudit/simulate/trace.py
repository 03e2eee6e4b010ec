"""The events of a run that a sequence diagram shows, in order, each with the run's state after it.

States are data of the diagram's page (kaudit/report/sequence/page_model.py): offsets and producer ids are decimal text, since a
browser's numbers are exact up to 2**53 only; times are ms since the run began.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry
from kaudit.broker.response import Answer

Int64 = str
"""A number of 64 bits as decimal text."""


class QueuedBatch(Struct, frozen=True):
    """A client's batch: its records, its sequences (empty while it has none), its epoch and failed attempts."""

    records: str
    sequences: str
    epoch: int
    attempts: int


class ClientPartition(Struct, frozen=True):
    """A client's batches of one partition: the first that wait, the first that were sent and not answered, and how many of each.

    Sequences are -1 without any. While `muted` nothing more is sent until the request under way is answered
    (max.in.flight.requests.per.connection=1); while `unresolved` nothing new is sent: a batch was given up after it had been sent.
    """

    partition: str
    queue: tuple[QueuedBatch, ...]
    queued: int
    in_flight: tuple[QueuedBatch, ...]
    sent: int
    muted: bool
    unresolved: bool
    next_sequence: int
    last_acknowledged: int


class Client(Struct, frozen=True):
    """A client's process, producer id, transaction and batches.

    The id and the epoch are -1 while it has none; `transaction_state` is None without a transactional id.
    """

    name: str
    process: str
    producer_id: Int64
    epoch: int
    max_in_flight: int
    transactional_id: str | None
    transaction_state: str | None
    partitions: tuple[ClientPartition, ...]


class Replica(Struct, frozen=True):
    """One replica's log."""

    broker: int
    process: str
    in_sync: bool
    log_start: Int64
    log_end: Int64
    high_watermark: Int64


class Partition(Struct, frozen=True):
    """A partition over its replicas; leader and its last stable offset are None while there is none."""

    name: str
    leader: int | None
    leader_epoch: int
    min_insync_replicas: int
    last_stable_offset: Int64 | None
    replicas: tuple[Replica, ...]


class Transaction(Struct, frozen=True):
    """What the coordinator holds of a transactional id; `started_at` is None while no transaction is open."""

    transactional_id: str
    producer_id: Int64
    epoch: int
    status: str
    partitions: tuple[str, ...]
    started_at: int | None
    timeout_ms: int


class RememberedProducer(Struct, frozen=True):
    """What a partition's leader remembers of one producer id."""

    partition: str
    producer_id: int
    entry: ProducerStateEntry


class RunState(Struct, frozen=True):
    """What clients, brokers and the transaction coordinator hold after an event."""

    clients: tuple[Client, ...] = ()
    partitions: tuple[Partition, ...] = ()
    producers: tuple[RememberedProducer, ...] = ()
    transactions: tuple[Transaction, ...] = ()


NO_STATE = RunState()


def numbers_text(first: int, last: int) -> str:
    """Return a range of numbers, both included: `3` or `3 to 5`."""
    return str(first) if first == last else f"{first} to {last}"


class EventKind(Enum):
    """What happened."""

    REQUEST = "request"
    RESPONSE = "response"
    LOST = "lost"
    """A message that never arrives."""
    REPLICATION = "replication"
    NOTE = "note"
    FAULT = "fault"
    """Something done to the cluster or a client by the scenario."""


class Copy(NamedTuple):
    """A batch of the same records that the log holds already: its base offset, producer id and epoch, -1 without one."""

    offset: int
    producer_id: int
    epoch: int


class BrokerAnswer(Struct, frozen=True):
    """What a broker decided about a request, or about one partition's part of it.

    `partition` is empty where the coordinator decided, and `answer` None where no batch was checked; `error` and `why`, a
    sentence, are set where they are not the answer's. `copies` are the batches of these records that the leader's log held
    already.
    """

    partition: str
    answer: Answer | None
    error: KafkaError = KafkaError.NONE
    why: str = ""
    copies: tuple[Copy, ...] = ()


class TraceEvent(Struct):
    """A message from one participant to another, or, with the same one twice, what one did.

    `sent_at` and `at` (arrival) in ms since the run began; `is_error`: the response is an error; `partitions` are those it
    is about, none where that is all of a participant's. `answers` are those the event brought about or carries, `state` is
    the run's when everything that happened at once was done.
    """

    kind: EventKind
    sent_at: int
    at: int
    source: str
    target: str
    text: str
    is_error: bool = False
    partitions: tuple[str, ...] = ()
    producer_id: int = -1
    answers: tuple[BrokerAnswer, ...] = ()
    state: RunState = NO_STATE
    omitted: int = 0
    """How many events before it were not kept."""


DEFAULT_LIMIT = 400


class Trace:
    """Keeps the first `limit` events and all faults; counts the rest."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._ordinary = 0
        self._unsettled: TraceEvent | None = None
        self._under_way: object = None
        self.observe: Callable[[], RunState] = lambda: NO_STATE
        """Returns the run's state."""
        self.events: list[TraceEvent] = []
        self.omitted = 0
        self._omitted_before = 0

    @property
    def is_full(self) -> bool:
        """Whether only faults are still kept: then no text is needed for other events."""
        return self._ordinary >= self.limit

    def add(self, event: TraceEvent, request: object = None) -> None:
        """Add an event; `request` is what arrives with it, if the broker may handle it at once."""
        if event.kind is not EventKind.FAULT:
            if self._ordinary >= self.limit:
                self.omitted += 1
                return
            self._ordinary += 1
        self.settle()
        event.omitted = self.omitted - self._omitted_before
        self._omitted_before = self.omitted
        self.events.append(event)
        if self.limit:
            self._unsettled = event
            self._under_way = request

    def note(self, at: int, who: str, text: str, *partitions: str) -> None:
        """Add what one participant did, to `partitions` where only some are concerned."""
        self.add(TraceEvent(EventKind.NOTE, at, at, who, who, text, partitions=partitions))

    def fault(self, at: int, who: str, text: str, *partitions: str) -> None:
        """Add what the scenario did to a participant."""
        self.add(TraceEvent(EventKind.FAULT, at, at, who, who, text, partitions=partitions))

    def answered(self, request: object, answer: BrokerAnswer) -> None:
        """Add what a broker decided about a request to the event of its arrival, if that is the last one."""
        event = self._unsettled
        if event is not None and self._under_way is request:
            event.answers = (*event.answers, answer)

    def settle(self) -> None:
        """Give the last event the state the run is in now: everything that followed at once is done."""
        if self._unsettled is not None:
            self._unsettled.state = self.observe()
            self._unsettled = None
