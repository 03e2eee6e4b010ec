"""Plays scenarios against one broker and keeps what was asked and answered.

Topics are played side by side up to a restart of the broker; then all that wait for a restart of that kind get it
together. Coordinator requests are repeated while the coordinator is busy: the answer is the one a client ends up with.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance.recorder import disk
from tests.conformance.recorder.steps import TRANSACTION_TIMEOUT_MS, Steps
from tests.conformance.recorder.topic import Line, Step, Topic, clock
from tests.live_brokers.jvm import BrokenStartError, Broker
from tests.live_brokers.protocol import (
    DESCRIBE_PRODUCERS,
    LATEST,
    Connection,
    ConnectionClosedError,
)

NOT_READY = (3, 5, 6, 38)
INVALID_CONFIG = 40
TOPIC_ALREADY_EXISTS = 36
TOPICS_AT_ONCE = 6
"""Waits overlap then; more would make the broker late."""
EXPIRY_CONFIGS = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""A broker that is down stays down for as long: whoever could be forgotten is, whenever it loads its logs."""
SWEEP_CONFIG = "producer.id.expiration.check.interval.ms"
"""Producers read from the log, not from a snapshot, are forgotten at the first sweep only: it is waited for."""


class Recorder(Steps):
    """Plays scenarios against `broker`, which it starts unless it runs; several lists may follow one another."""

    def __init__(self, broker: Broker, coordinator: Broker | None = None) -> None:
        """`coordinator` is the broker that coordinates transactions, where it is another one."""
        super().__init__(broker)
        self.steps["recreate"] = self._recreate
        self._coordinator = coordinator or broker
        self._connection = Connection(broker.port)
        self._topics: list[Topic] = []
        self.at_once = TOPICS_AT_ONCE
        self.broken = False
        """Whether the broker did not come back after a restart."""

    def record(self, scenarios: Iterable[Step]) -> Iterator[Line]:
        """Play all scenarios; yield attempts and answers, scenario by scenario."""
        if not self._versions:
            if not self.broker.running:
                self.broker.start()
            self._versions = self._connection.api_versions()
            self._await_coordinator()
        self._topics = topics = [self._topic(scenario) for scenario in scenarios if self._supported(scenario)]
        for topic in topics:
            self._create(topic)
        # a kill -9 first should find no snapshot that a clean stop wrote
        early = [topic for topic in topics if _first_restart(topic) != "kill9"]
        for begun in (early, topics):
            self._play(begun)
            while any(topic.waiting for topic in begun):
                kinds = {_restart_due(topic) for topic in begun}
                kind = "clean" if "clean" in kinds else "kill9"
                if begun is early and kind == "kill9":
                    break
                self._restart(kind, [topic for topic in begun if not topic.done])
                self._play(begun)
        for topic in topics:
            topic.connection.close()
            topic.coordinator.close()
            yield from topic.lines

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _topic(self, scenario: Step) -> Topic:
        return Topic(scenario, Connection(self.broker.port), Connection(self._coordinator.port))

    def _supported(self, scenario: Step) -> bool:
        needed = (scenario.get("min_api") or {}).items()
        return all(self._versions.get(int(api), (0, -1))[1] >= version for api, version in needed)

    def _await_coordinator(self) -> None:
        coordinator = Connection(self._coordinator.port)
        self._until(lambda: coordinator.find_coordinator("warm"), lambda error: error == 0)
        self._until(
            lambda: coordinator.init_producer_id(0, "warm-up", TRANSACTION_TIMEOUT_MS, (-1, -1))[0],
            lambda error: error == 0,
        )
        coordinator.close()

    def _create(self, topic: Topic) -> None:
        error = self._create_with(topic, topic.config)
        if error == INVALID_CONFIG:  # this release does not allow it
            topic.config = {}
            error = self._create_with(topic, topic.config)
        assert error == 0, (topic.name, error)
        self._ready(topic)
        self._take_ends(topic)
        if topic.config:
            topic.note(0, {"op": "topic", "config": topic.config}, {"outcome": "ok"})

    def _recreate(self, topic: Topic, step: Step) -> None:
        """Delete the topic and create it again; wait until the broker has another log for every partition."""
        directories = [self.broker.logs / f"{topic.name}-{partition}" for partition in topic.partitions]
        before = _file_numbers(directories)
        at = clock()
        self._until(lambda: topic.connection.delete_topic(topic.name), lambda code: code not in NOT_READY)
        created = self._until(lambda: self._create_with(topic, topic.config), lambda code: code != TOPIC_ALREADY_EXISTS)
        self._ready(topic)
        now = self._until(lambda: _file_numbers(directories), lambda now: not {None, *before} & set(now))
        if created or {None, *before} & set(now):
            raise TimeoutError(f"{topic.name} does not come back: error {created}")
        self._ready(topic)
        topic.note(0, {"op": "topic", "config": topic.config, "recreated": True, "at": at}, {"outcome": "ok"})
        self._take_ends(topic)

    def _create_with(self, topic: Topic, config: dict[str, str]) -> int:
        """Create a topic, on the brokers `replicas` of the scenario, or wherever; return the error code."""
        partitions, replicas = len(topic.partitions), tuple(topic.scenario.get("replicas", ()))
        error: int = self._until(
            lambda: topic.connection.create_topic(topic.name, partitions, config, replicas),
            lambda code: code not in NOT_READY,
        )
        return error

    def _ready(self, topic: Topic) -> None:
        def errors() -> list[int]:
            return [topic.connection.offset(topic.name, LATEST, partition)[0] for partition in topic.partitions]

        self._until(errors, lambda codes: not any(codes))

    def _play(self, topics: list[Topic]) -> None:
        with ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(self._play_topic, topics))

    def _play_topic(self, topic: Topic) -> None:
        while topic.waiting and topic.waiting[0]["op"] != "barrier":
            step = topic.waiting.pop(0)
            try:
                self.steps[step["op"]](topic, step)
            except ConnectionClosedError:
                sys.stderr.write(f"{topic.name}: no answer to {step}, left out\n")
            except (KeyError, TimeoutError) as error:
                # a producer no step has named, or a broker that hangs: nothing after it is worth keeping
                sys.stderr.write(f"{topic.name}: {error!r} at {step}, the scenario is left out\n")
                topic.lines.clear()
                topic.waiting.clear()
                topic.done = True
        if not topic.waiting and not topic.done:
            for partition in topic.partitions:
                self._describe(topic, {"partition": partition})
            topic.done = True

    # -- restarts ----------------------------------------------------------------------------------------------------
    def _restart(self, kind: str, topics: list[Topic]) -> None:
        """Stop the broker, do to the files what the topics that wait for this kind say, start it again."""
        self._connection.close()
        for topic in self._topics:
            topic.connection.close()
            topic.coordinator.close()
        stopped_at = clock()
        self.broker.stop(clean=kind == "clean")
        lines = []
        for topic in topics:
            step = topic.waiting.pop(0) if _restart_due(topic) == kind else {}
            for partition in topic.partitions:
                done = disk.change(self.broker, topic, partition, step)
                lines.append((topic, partition, {"op": "restart", "clean": kind == "clean", "at": stopped_at, **done}))
        time.sleep(self._milliseconds(*EXPIRY_CONFIGS) / 1000)
        try:
            self.broker.start()
        except BrokenStartError as error:
            sys.stderr.write(f"{error}; what would have followed is left out\n")
            self.broken = True
            for topic in topics:
                topic.waiting.clear()
                topic.done = True
            return
        self._await_coordinator()
        time.sleep(2 * self._milliseconds(SWEEP_CONFIG) / 1000)
        started_at = clock()
        for topic, partition, attempt in lines:
            attempt["started_at"] = started_at
            self._ready(topic)
            answer: Step = {"outcome": "ok"}
            if DESCRIBE_PRODUCERS in self._versions:
                answer["producers"] = topic.connection.describe_producers(topic.name, partition)
            topic.note(partition, attempt, answer)
            self._take_ends(topic)

    def _milliseconds(self, *names: str) -> int:
        return max(int(str(self.broker.config.get(name, 0))) for name in names)


def _file_numbers(directories: list[Path]) -> list[int | None]:
    """What tells a directory from another one of its name; None where there is none."""
    numbers: list[int | None] = []
    for directory in directories:
        try:
            numbers.append(directory.stat().st_ino)
        except FileNotFoundError:
            numbers.append(None)
    return numbers


def _restart_due(topic: Topic) -> str | None:
    steps = topic.waiting
    return steps[0]["kind"] if steps and steps[0]["op"] == "barrier" else None


def _first_restart(topic: Topic) -> str | None:
    return next((step["kind"] for step in topic.waiting if step["op"] == "barrier"), None)
