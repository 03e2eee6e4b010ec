"""What the parts of a cluster share in one run: its clock, its network, the recorded attempts, the trace."""

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
