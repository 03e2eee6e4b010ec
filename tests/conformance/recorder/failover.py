"""Plays fail-over scenarios: three brokers hold the replicas, a fourth, which never stops, leads them all.

The fourth holds none of the topics: it is the controller and the transaction coordinator, so that nothing but the
partition's own leader changes. Scenarios that see the same changes are played together.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from tests.conformance.recorder.script import NOT_READY, Recorder
from tests.conformance.recorder.topic import Line, Step, Topic, clock
from tests.live_brokers.cluster import CONTROLLER, REPLICAS, Cluster
from tests.live_brokers.protocol import (
    DESCRIBE_PRODUCERS,
    ELECT_LEADERS,
    LATEST,
    REASSIGN_PARTITIONS,
    Connection,
    Led,
)

FIRST, *FOLLOWERS = REPLICAS
"""The first replica leads; the second does when it goes."""
CHANGE_SECONDS = 90
ELECTION_SECONDS = 1
FETCH_WAIT_SECONDS = 0.8
"""A fetch that waits on the leader (replica.fetch.wait.max.ms) would take the next batch along to a paused follower."""
INVALID_REPLICA_ASSIGNMENT = 39
RETURNS = ("restarted_old_leader", "resumed_old_leader")


class FailOverRecorder(Recorder):
    """Plays scenarios of one partition whose leader changes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.cluster = cluster

    def record(self, scenarios: Iterable[Step]) -> Iterator[Line]:
        """Play all scenarios; yield attempts and answers, scenario by scenario."""
        if not self._versions:
            self.cluster.start()
            self._versions = self._connection.api_versions()
            self._await_coordinator()  # its topic has one replica, on the only broker there is
        for group in groups([scenario for scenario in scenarios if self._supported(scenario)]):
            self._all_up()
            topics = [self._topic(scenario) for scenario in group]
            self._topics = topics
            for topic in topics:
                self._create(topic)
            self._settle(topics, lambda led: set(led.in_sync) == set(REPLICAS))
            self._play(topics)
            while waiting := [topic for topic in topics if topic.waiting]:
                (step,) = [topic.waiting.pop(0) for topic in waiting][:1]
                self._meet(step, waiting)
                self._play(waiting)
            for topic in topics:
                topic.connection.close()
                topic.coordinator.close()
                yield from topic.lines

    def _supported(self, scenario: Step) -> bool:
        reordered = any(step.get("via") == "preferred_election" for step in scenario["steps"])
        return super()._supported(scenario) and (not reordered or REASSIGN_PARTITIONS in self._versions)

    def _topic(self, scenario: Step) -> Topic:
        self.cluster.leaders[scenario["name"]] = FIRST
        return Topic(scenario, Connection(self.cluster.replicas[FIRST].port), Connection(self.cluster.port))

    def _create_with(self, topic: Topic, config: dict[str, str]) -> int:
        error: int = self._until(
            lambda: topic.coordinator.create_topic(topic.name, len(topic.partitions), config, REPLICAS),
            lambda code: code not in (*NOT_READY, INVALID_REPLICA_ASSIGNMENT),
        )
        return error

    def _all_up(self) -> None:
        for replica in self.cluster.replicas.values():
            replica.resume()
            if not replica.running:
                replica.start()
        self._until(lambda: self._connection.metadata()[0], {*REPLICAS, CONTROLLER}.__eq__, CHANGE_SECONDS)

    # -- what happens to the brokers -----------------------------------------------------------------------------------
    def _meet(self, step: Step, topics: list[Topic]) -> None:
        """Do to the brokers what the scenarios wait for, and note it."""
        for topic in topics:
            topic.connection.close()
        at = clock()
        if step["kind"] == "lag":
            for node in FOLLOWERS:
                self.cluster.replicas[node].pause()
            time.sleep(FETCH_WAIT_SECONDS)
            if step["isr"] == "leader_only":
                self._settle(topics, lambda led: led.in_sync == [FIRST])
        elif step["kind"] == "follower_restart":
            clean = step["how"] == "clean"
            for node in FOLLOWERS:
                self.cluster.replicas[node].stop(clean=clean)
            for node in FOLLOWERS:
                self.cluster.replicas[node].start()
            self._settle(topics, lambda led: set(led.in_sync) == set(REPLICAS))
            for topic in (topic for topic in topics if not topic.done):
                topic.note(0, {"op": "follower_restart", "clean": clean, "at": at}, {"outcome": "ok"})
        else:
            self._move(step, topics)
            self.note_leaders(step, topics, at)

    def _move(self, step: Step, topics: list[Topic]) -> None:
        leader, via = self.cluster.replicas[FIRST], step.get("via")
        if via in RETURNS:
            leader.resume()
            if not leader.running:
                leader.start()
            self._settle(topics, lambda led: set(led.in_sync) == set(REPLICAS))
            self._elect(topics, FIRST)
        elif via == "preferred_election":
            for topic in topics:
                self._connection.reassign(topic.name, 0, (FOLLOWERS[0], FIRST, *FOLLOWERS[1:]))
            self._elect(topics, FOLLOWERS[0])
        else:
            if step["how"] == "paused":
                leader.pause()
            elif step["how"] == "clean":
                leader.stop(clean=True)
            else:
                leader.kill()
            for node in FOLLOWERS:
                self.cluster.replicas[node].resume()
            self._settle(topics, lambda led: led.leader in FOLLOWERS)

    def _elect(self, topics: list[Topic], node: int) -> None:
        version = min(self._versions[ELECT_LEADERS][1], 1)

        def ask() -> None:
            for topic in topics:
                self._connection.elect_preferred(version, topic.name, 0)

        self._settle(topics, lambda led: led.leader == node, ask)

    def _settle(
        self, topics: list[Topic], settled: Callable[[Led], bool], ask: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until the partition of every topic is as it should be; one where it is not so in time is left out."""
        deadline = time.monotonic() + CHANGE_SECONDS
        left = [topic for topic in topics if not topic.done]
        while left and time.monotonic() < deadline:
            ask()
            asked = time.monotonic()
            while left and time.monotonic() < asked + ELECTION_SECONDS:
                left = [topic for topic in left if not settled(self._led(topic))]
                time.sleep(0.05)
        for topic in left:
            sys.stderr.write(f"{topic.name}: {self._led(topic)} in the end, the scenario is left out\n")
            _leave_out(topic)

    def _led(self, topic: Topic) -> Led:
        return self._connection.metadata(topic.name)[1].get(0, Led(-1, []))

    def note_leaders(self, step: Step, topics: list[Topic], at: int) -> None:
        """Note who leads now, and from which offset on that broker lacks what was there at `at`, in ms."""
        for topic in (topic for topic in topics if not topic.done):
            old, new = self.cluster.leaders[topic.name], self._led(topic).leader
            self.cluster.leaders[topic.name] = new
            topic.connection = Connection(self.cluster.replicas[new].port)
            self._ready(topic)
            attempt: Step = {"op": "leader_change", "how": step["how"], "old_leader": old, "new_leader": new, "at": at}
            if "via" in step:
                attempt["via"] = step["via"]
            _, end = topic.connection.offset(topic.name, LATEST, 0)
            if end < topic.ends[0]:
                attempt["lost_from_offset"] = end
            answer: Step = {"outcome": "ok"}
            if DESCRIBE_PRODUCERS in self._versions:
                answer["producers"] = topic.connection.describe_producers(topic.name, 0)
            topic.note(0, attempt, answer)
            self._take_ends(topic)


def _leave_out(topic: Topic) -> None:
    topic.lines.clear()
    topic.waiting.clear()
    topic.done = True


def groups(scenarios: list[Step]) -> list[list[Step]]:
    """Scenarios that see the same changes, but for the old leader's return: some end before it."""
    groups: dict[str, list[Step]] = {}
    for scenario in scenarios:
        barriers = [step for step in scenario["steps"] if step["op"] == "barrier" and step.get("via") not in RETURNS]
        groups.setdefault(json.dumps(barriers, sort_keys=True), []).append(scenario)
    return list(groups.values())
