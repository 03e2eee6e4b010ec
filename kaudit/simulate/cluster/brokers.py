"""The processes of the brokers: which run, what their clocks and disks do, and which of them reach one another.

What the parts of a cluster share in one run: its clock, its network, the recorded attempts, the trace.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kaudit.broker.attempts import Attempt, ConfigureTopic, PartitionAttempt, StartBroker
from kaudit.broker.response import Answer, TopicPartition
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Network
from kaudit.simulate.trace import Trace

_encode = msgspec.json.Encoder(order="sorted").encode
_Kind = TypeVar("_Kind", bound=ConfigureTopic | PartitionAttempt)


class AttemptRecorder:
    """Records the attempts of a run and the answers to them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lines: list[tuple[Attempt, dict[str, Any]]] = []
        """Attempts with the answers to them."""
        self._given: dict[int, dict[str, Any]] = {}
        """By index: the fields an attempt was made with, which are written even where they have their defaults."""
        self.ended_because: str | None = None
        """Why recording stopped before the end of the run, None where it did not."""

    def attempt(self, kind: type[_Kind], key: TopicPartition, **fields: Any) -> _Kind:  # noqa: ANN401 - the fields of any kind
        """Return a new attempt with the index it will have if it is recorded next."""
        topic, partition = key
        self._given[len(self.lines)] = fields
        return kind(index=len(self.lines), topic=topic, partition=partition, at=self._clock.timestamp, **fields)

    def end(self, because: str) -> None:
        """Stop recording: the attempts format cannot express what happens next."""
        if self.ended_because is None:
            self.ended_because = because

    def record(self, attempt: Attempt, answer: Answer | dict[str, Any]) -> None:
        """Add an attempt and the answer to it."""
        if self.ended_because is not None:
            return
        fields = answer.fields if isinstance(answer, Answer) else answer
        self.lines.append((attempt, fields))

    def broker(self, version: str, config: dict[str, str]) -> None:
        """Add the line that names the broker release and its configuration."""
        attempt = StartBroker(index=len(self.lines), broker_version=version, config=config)
        self._given[attempt.index] = {"config": config}
        self.lines.append((attempt, {"op": "broker"}))

    def attempts_text(self) -> str:
        """Return attempts.jsonl."""
        return "".join(
            f"{_encode(self._given[attempt.index] | msgspec.to_builtins(attempt)).decode()}\n"
            for attempt, _ in self.lines
        )

    def answers_text(self) -> str:
        """Return answers.jsonl: one answer a line, joined to its attempt by `index`."""
        return "".join(f"{_encode({'index': attempt.index, **answer}).decode()}\n" for attempt, answer in self.lines)


class RunContext(Struct, frozen=True):
    """Simulated time, connections, the attempts recorded so far, and the events of the sequence diagram."""

    clock: Clock
    network: Network
    recorder: AttemptRecorder
    trace: Trace


class ProcessState(Enum):
    """What a broker's process does."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class BrokerProcess:
    """One broker's process. `number` is its node id, from 1."""

    def __init__(self, number: int, clock: Clock) -> None:
        self.number = number
        self.name = f"broker {number}"
        self.process = ProcessState.RUNNING
        self.incarnation = 0
        """Counts the ends of its process: work that one process began does not continue in the next."""
        self.started_at = 0
        """When its process was started, in ms since the run began."""
        self.disk_delay_ms = 0
        """How much longer than usual a write takes."""
        self.clock_offset_ms = 0
        """How far its wall clock is ahead."""
        self._clock = clock

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections: a paused process does."""
        return self.process in (ProcessState.RUNNING, ProcessState.PAUSED)

    @property
    def is_running(self) -> bool:
        """Whether it handles requests."""
        return self.process is ProcessState.RUNNING

    @property
    def timestamp(self) -> int:
        """Its wall clock, ms since 1970."""
        return self._clock.timestamp + self.clock_offset_ms


class Brokers:
    """The state of every broker by node id, and the cuts between them."""

    def __init__(self, processes: Mapping[int, BrokerProcess]) -> None:
        self._processes = processes
        self.cuts: list[frozenset[int]] = []
        """Brokers that cannot reach the others, once for each such fault."""

    def is_up(self, broker: int) -> bool:
        """Return whether a broker's process exists, paused or not."""
        return self._processes[broker].is_up

    def is_running(self, broker: int) -> bool:
        """Return whether a broker handles requests."""
        return self._processes[broker].is_running

    def reaches(self, broker: int, other: int) -> bool:
        """Return whether two brokers can reach one another."""
        return not any((broker in cut) != (other in cut) for cut in self.cuts)

    def disk_delay_ms(self, broker: int) -> int:
        """Return how much longer than usual a broker takes to write."""
        return self._processes[broker].disk_delay_ms

    def timestamp(self, broker: int) -> int:
        """Return a broker's wall clock, ms since 1970."""
        return self._processes[broker].timestamp

    def started_at(self, broker: int) -> int:
        """Return when a broker's process was started, in ms since the run began."""
        return self._processes[broker].started_at
