"""What a scenario of the scripted broker says: TOML to values."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version

FOLDER = Path(__file__).with_name("scenarios")
QUICK: dict[str, str | int | bool] = {
    "batch.size": 100,
    "linger.ms": 100,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "enable.idempotence": True,
    "acks": "all",
}
"""A producer's configuration unless the scenario says otherwise: each record is a batch, retries come within a step."""

_SINCE = {"retry.backoff.max.ms": "3.7"}


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """How a request is answered: one error for all of its partitions, or by partition those that have one."""

    error: str = "NONE"
    errors: dict[str, str] = {}
    log_start_offset: int = 0
    instead: Literal["close", "lose"] | None = None
    """The connection is closed, or nothing ever comes back."""

    def error_of(self, partition: int) -> KafkaError:
        """Return what a partition is answered."""
        return KafkaError[self.errors.get(str(partition), self.error)]

    def __str__(self) -> str:
        """Return what a stream shows."""
        if self.instead is not None:
            return {"close": "by closing the connection", "lose": "nothing"}[self.instead]
        partly = [f"{error} for {partition}" for partition, error in self.errors.items()]
        start = f" with log start {self.log_start_offset}" if self.log_start_offset else ""
        return " and ".join(partly) or ("ok" if self.error == "NONE" else self.error) + start

    @classmethod
    def of(cls, short: "str | Reply") -> "Reply":
        """Read `ok`, `close`, `lose` or the name of an error."""
        if isinstance(short, Reply):
            return short
        if short in ("close", "lose"):
            return msgspec.convert({"instead": short}, cls)
        return cls("NONE" if short == "ok" else short)


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens at once, in the order of these fields; then everything settles before the next step."""

    leaders: dict[str, int] = {}
    """Partitions whose leader metadata names from now on."""
    coordinator: int | None = None
    """The node that coordinates transactions from now on, 0 for none."""
    down: int | None = None
    """The node that takes no connections from now on, and closes those it has."""
    close: int | None = None
    """The node that closes its connections."""
    answer: list[str | Reply] | Literal["ok"] = []
    """How `node` answers its oldest open requests and, if there are fewer, the next ones; "ok": all nodes, for ever."""
    node: int = 1
    call: Literal["init", "begin", "commit", "abort"] | None = None
    send: list[int] = []
    """The partition of each record."""
    wait_ms: int = 0

    def __str__(self) -> str:
        """Return what stands above the requests of a stream."""
        said = [f"partition {partition} moves to node {node}" for partition, node in self.leaders.items()]
        if self.coordinator is not None:
            said.append(f"node {self.coordinator} coordinates")
        if self.down is not None:
            said.append(f"node {self.down} dies")
        if self.close is not None:
            said.append(f"node {self.close} closes its connections")
        if self.answer == "ok":
            said.append("all is answered ok")
        elif self.answer:
            said.append(f"node {self.node} answers {', '.join(str(Reply.of(each)) for each in self.answer)}")
        said += [self.call] if self.call is not None else []
        said += [f"send to {_runs(self.send)}"] if self.send else []
        said += [f"wait {self.wait_ms} ms"] if self.wait_ms else []
        return "; ".join(said)


def _runs(partitions: list[int]) -> str:
    counts: list[list[int]] = []
    for partition in partitions:
        if counts and counts[-1][0] == partition:
            counts[-1][1] += 1
        else:
            counts.append([partition, 1])
    return ", ".join(f"{partition} ({times}x)" if times > 1 else str(partition) for partition, times in counts)


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """One scenario: a cluster, a producer, and what happens step by step."""

    title: str
    steps: list[Step]
    producer: dict[str, str | int | bool] = {}
    """Configuration beside QUICK."""
    defaults: list[str] = []
    """What of QUICK is left to the client."""
    leaders: tuple[int, ...] = (1,)
    """The node that leads each partition at first."""
    coordinator: int = 1
    record_bytes: int = 200
    transaction_version: int = 2
    """The feature of brokers since 4.0."""
    hold: tuple[str, ...] = ("Produce",)
    """Requests that are answered when a step says so; all others at once, without error."""
    since: str = "0.11"
    """The first release of the client that can play it."""
    differs: dict[str, str] = {}
    """Why the model does not do what the client does, by the client's version."""

    @property
    def nodes(self) -> list[int]:
        """All nodes of the cluster."""
        named = {*self.leaders, self.coordinator}
        for step in self.steps:
            named |= {step.node, step.coordinator or 0, *step.leaders.values()}
        return sorted(named - {0})

    def config(self, version: str) -> Mapping[str, str | int | bool]:
        """The producer's configuration under Kafka's names, as far as a client of this version knows it."""
        release = Version.parse(version)
        return {
            name: value
            for name, value in (QUICK | self.producer).items()
            if (name not in _SINCE or release >= Version.parse(_SINCE[name]))
            and (name not in self.defaults or name in self.producer)
        }

    def suits(self, version: str) -> bool:
        """Whether a client of this version can play it."""
        return Version.parse(version) >= Version.parse(self.since)


def scenarios() -> dict[str, Scenario]:
    """All scenarios by name."""
    found = {}
    for path in sorted(FOLDER.glob("*.toml")):
        found[path.stem] = msgspec.convert(tomllib.loads(path.read_text()), Scenario)
    return found
