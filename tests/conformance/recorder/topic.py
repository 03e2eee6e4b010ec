"""A scenario's topic while it is played: its lines, the producers it names, the batches it has written."""

import time
from dataclasses import dataclass, field
from typing import Any

from kaudit.broker.errors import KafkaError
from tests.live_brokers.protocol import Connection

Step = dict[str, Any]
Line = tuple[Step, Step]
"""An attempt and its answer."""
Producer = tuple[int, int]
"""Producer id and epoch."""
SEQUENCES = 1 << 31
"""Behind the last sequence comes 0."""


NAMES = {-1: "UNKNOWN_SERVER_ERROR", 0: "NONE"}
"""Error codes that kaudit's enumeration leaves out."""


def name_of(code: int) -> str:
    """Kafka's name of an error code."""
    try:
        return KafkaError(code).name
    except ValueError:
        return NAMES.get(code, f"ERROR_{code}")


def clock() -> int:
    """The time in ms."""
    return int(time.time() * 1000)


@dataclass
class Topic:
    """One scenario's topic. `ends` are the partitions' log ends, `restarted` counts restarts it has seen."""

    scenario: Step
    connection: Connection
    """To the leader of its partitions."""
    coordinator: Connection
    """To the coordinator of its transactions."""
    lines: list[Line] = field(default_factory=list)
    producers: dict[str, Producer] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    done: bool = False

    def __post_init__(self) -> None:
        self.name: str = self.scenario["name"]
        self.partitions = range(self.scenario.get("partitions", 1))
        self.waiting: list[Step] = list(self.scenario["steps"])
        self.config: dict[str, str] = self.scenario.get("topic_config") or {}
        """What the release takes of the scenario's configuration."""
        self._newest: Producer = (-1, -1)
        self._written: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def note(self, partition: int, attempt: Step, answer: Step) -> None:
        """Keep a line; `at` is the clock when it was answered, unless the attempt says when it was sent."""
        self.lines.append(({"topic": self.name, "partition": partition, "at": clock(), **attempt}, answer))

    def name_producer(self, name: str, granted: Producer | None) -> None:
        """Let later steps name what was granted, or what there was before, where nothing was."""
        if granted is not None:
            self._newest = granted
        self.producers[name] = self.producers.get(name, self._newest) if granted is None else granted

    def producer(self, step: Step) -> Producer:
        """(producer id, epoch) a step names: numbers, or a producer by name, its epoch also as `NAME+1`, `NAME+-1`."""
        producer_id, epoch = step["pid"], step["epoch"]
        if isinstance(producer_id, str):
            producer_id = self.producers[producer_id][0]
        if isinstance(epoch, str):
            name, _, more = epoch.partition("+")
            epoch = self.producers[name][1] + int(more or 0)
        return producer_id, epoch

    def batch(self, partition: int, producer: Producer, step: Step) -> tuple[int, int]:
        """(base sequence, records) of a produce step.

        `seq` is a number, `next` or `next+N` behind the last batch written in this epoch, or `back:D` or `back:D:K`:
        the D-th last batch again, or K batches from there on as one. `more` adds records to those.
        """
        sequence, count = step["seq"], step.get("count", 1)
        if isinstance(sequence, int):
            return sequence, count
        producer_id, epoch = producer
        written = [each for each in self._written.get((partition, producer_id), []) if each[0] == epoch]
        kind, _, more = sequence.partition(":") if ":" in sequence else sequence.partition("+")
        if kind == "next":
            _, last, records = written[-1] if written else (0, 0, 0)
            return (last + records + int(more or 0)) % SEQUENCES, count
        depth, _, span = more.partition(":")
        again = written[max(len(written) - int(depth), 0) :][: int(span or 1)]
        if not again:
            return 0, count
        return again[0][1], sum(records for _, _, records in again) + step.get("more", 0)

    def wrote(self, partition: int, producer: Producer, sequence: int, count: int) -> None:
        """Remember a batch that now stands in the log."""
        self._written.setdefault((partition, producer[0]), []).append((producer[1], sequence, count))
