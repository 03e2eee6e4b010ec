"""Plays a scenario with the real Java producer of any release."""

import contextlib
import time
from pathlib import Path

from tests.client_streams.scenario import Scenario, Step
from tests.client_streams.script import REFUSED, Played, Script, play
from tests.client_streams.scripted_broker import TOPIC, ScriptedCluster
from tests.live_brokers.java_producer import ProducerProgram, java_program

QUIET_SECONDS = 1.0
"""How long nothing may come until a step is over: on a busy machine, more than any back-off of the scenarios."""
_WARM_UP = Scenario("A program that has just started is slower than a step lasts", [Step(send=[0]), Step(answer="ok")])
BLOCKED_SECONDS = 8.0
"""How long a step lasts where the application waits although no answer is held back, or asks for the cluster for ever."""
_POLL_SECONDS = 0.02


class JavaPlayer:
    """The producer as a process, and the nodes it talks to."""

    def __init__(self, scenario: Scenario, cluster: ScriptedCluster, producer: ProducerProgram) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._producer = producer
        self._said = self._done = 0
        self._sent: set[int] = set()
        self._written: set[int] = set()

    def call(self, line: str) -> None:
        """As `Player.call`; the program does the next line when this one is done."""
        self._producer.say(line)

    def send(self, number: int, partition: int) -> None:
        """As `Player.send`."""
        self._sent.add(number)
        behind = len(self._scenario.leaders) - 1 - partition
        self._producer.say(f"send {TOPIC}:{behind} {number} {self._scenario.record_bytes}")

    def change(self, step: Step) -> None:
        """As `Player.change`."""
        self._cluster.change(step)

    def settle(self, at_least_ms: int) -> None:
        """As `Player.settle`."""
        self._producer.say("ready")
        self._said += 1
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + at_least_ms / 1000 or not self._is_quiet(now, begun):
            time.sleep(_POLL_SECONDS)

    def _is_quiet(self, now: float, begun: float) -> bool:
        """Whether nothing came for a while, and the application has done what it was asked or waits for an answer."""
        self._take_answers()
        if self._cluster.failure is not None:
            raise self._cluster.failure
        if now - max(begun, self._cluster.last_request_at) < QUIET_SECONDS:
            return False
        if self.is_blocked and not self._cluster.holds_answers:
            return now - begun > BLOCKED_SECONDS
        return now - self._cluster.last_frame_at > QUIET_SECONDS or now - begun > BLOCKED_SECONDS

    @property
    def is_blocked(self) -> bool:
        """Whether the program has not yet done what it was asked, for instance because it waits for an answer."""
        self._take_answers()
        return self._done < self._said

    def unwritten(self) -> list[int]:
        """As `Player.unwritten`."""
        self._take_answers()
        return sorted(self._sent - self._written)

    def _take_answers(self) -> None:
        for answer in self._producer.answers():
            what, _, result = answer.partition(": ")
            if what == "ready":
                self._done += 1
            elif what.startswith("send ") and result.startswith("offset "):
                self._written.add(int(what.removeprefix("send ")))


class JavaClients:
    """A program with kafka-clients `version` that plays scenario after scenario; it is started anew when one blocks it.

    Its logs are below `home`, which must not exist.
    """

    def __init__(self, version: str, home: Path) -> None:
        self.version = version
        self._home = home
        self._started = 0
        self._program = contextlib.ExitStack()
        self._producer: ProducerProgram | None = None

    def played(self, scenario: Scenario) -> Played:
        """Play a scenario with a new producer."""
        if self._producer is None:
            self._producer = self._start()
            self.played(_WARM_UP)
        producer = self._producer
        cluster = ScriptedCluster(Script(scenario), self.version)
        try:
            try:
                producer.open(cluster.ports[min(cluster.ports)], scenario.config(self.version))
            except ValueError:
                return REFUSED
            player = JavaPlayer(scenario, cluster, producer)
            played = play(scenario, cluster, player)
            if player.is_blocked:
                self.close()
            return played
        finally:
            cluster.close()

    def close(self) -> None:
        """End the program."""
        if self._producer is not None:
            self._producer.kill()
            self._producer = None
        self._program.close()

    def _start(self) -> ProducerProgram:
        self._started += 1
        return self._program.enter_context(java_program(self.version, self._home / str(self._started)))
