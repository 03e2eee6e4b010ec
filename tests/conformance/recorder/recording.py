"""A recording: scenarios played on one release, compared with kaudit's answers, and written as tests read it."""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.conformance.comparison import Difference, Json, compare, replayed
from tests.conformance.recorder.failover import FailOverRecorder
from tests.conformance.recorder.script import TOPICS_AT_ONCE, Recorder
from tests.conformance.recorder.topic import Line, Step
from tests.live_brokers.cluster import Cluster
from tests.live_brokers.jars import jars_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.server_logs import Levels

AGAIN = "-again"
DIFFERING = "-differing"
"""How the name of a recording ends whose scenarios kaudit answers otherwise, so far."""
_NAMED = ("topic", "scenario")


class Agreement(NamedTuple):
    """How many attempts of an op there were, and how many kaudit answers as the broker did."""

    attempts: int
    agreed: int


@dataclass
class Recording:
    """Lines of scenarios on one release; `broker` is the first line's."""

    broker: Json
    lines: list[Line] = field(default_factory=list)

    @classmethod
    def of(cls, attempts: Iterable[Json], answers: Iterable[Json]) -> "Recording":
        """A recording that was written, without its numbers."""
        (broker, _), *lines = [
            ({key: value for key, value in attempt.items() if key != "index"}, answer)
            for attempt, answer in zip(attempts, answers, strict=True)
        ]
        del broker["op"]
        return cls(broker, [(attempt, {k: v for k, v in answer.items() if k != "index"}) for attempt, answer in lines])

    def attempts(self) -> list[Json]:
        """The attempts, numbered from the broker's line on."""
        first = {"index": 0, "op": "broker", **self.broker}
        return [first, *({"index": index, **attempt} for index, (attempt, _) in enumerate(self.lines, 1))]

    def answers(self) -> list[Json]:
        """What was answered, numbered likewise."""
        return [
            {"index": 0, "op": "broker"},
            *({"index": index, **answer} for index, (_, answer) in enumerate(self.lines, 1)),
        ]

    def differences(self) -> list[Difference]:
        """Where kaudit answers otherwise."""
        attempts = self.attempts()
        return compare(attempts, self.answers(), replayed(attempts))

    def differing(self) -> dict[str, list[Difference]]:
        """The same by scenario."""
        by_topic: dict[str, list[Difference]] = {}
        for difference in self.differences():
            by_topic.setdefault(scenario_of(difference.attempt), []).append(difference)
        return by_topic

    def agreement(self) -> dict[str, Agreement]:
        """Figures by op."""
        asked = Counter(str(attempt["op"]) for attempt, _ in self.lines)
        differ = Counter(str(difference.attempt["op"]) for difference in self.differences())
        return {op: Agreement(count, count - differ[op]) for op, count in asked.items()}

    def without(self, topics: Iterable[str]) -> "Recording":
        """The same without the lines of some scenarios."""
        left_out = set(topics)
        return Recording(self.broker, [line for line in self.lines if scenario_of(line[0]) not in left_out])

    def only(self, topics: Iterable[str]) -> "Recording":
        """Nothing but the lines of some scenarios."""
        kept = set(topics)
        return Recording(self.broker, [line for line in self.lines if scenario_of(line[0]) in kept])

    def write(self, directory: Path, name: str) -> None:
        """Write `NAME.attempts.jsonl.xz` and `NAME.answers.jsonl.xz`."""
        directory.mkdir(parents=True, exist_ok=True)
        for kind, rows in (("attempts", self.attempts()), ("answers", self.answers())):
            with lzma.open(directory / f"{name}.{kind}.jsonl.xz", "wt", preset=9) as out:
                out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


class Session:
    """Live brokers of one release and configuration that play one list of scenarios after the other.

    They run one at a time, with `fail_over` together.
    """

    def __init__(
        self,
        version: str,
        config: dict[str, object],
        home: Path,
        *,
        fail_over: bool = False,
        server_logs: Levels | None = None,
        at_once: int = TOPICS_AT_ONCE,
    ) -> None:
        self._version, self._config, self._home, self._fail_over = version, config, home, fail_over
        self._server_logs, self._at_once = server_logs, at_once
        self._jars = jars_of(version).resolve()
        self._begun = self._played = 0
        self._recorder = self._begin()

    def _begin(self) -> Recorder:
        self._begun += 1
        home = self._home / f"broker{self._begun}"
        if self._fail_over:
            cluster = Cluster(self._version, self._jars, home, self._config, server_logs=self._server_logs)
            return FailOverRecorder(cluster)
        recorder = Recorder(Broker(self._version, self._jars, home, self._config, server_logs=self._server_logs))
        recorder.at_once = self._at_once
        return recorder

    def play(self, scenarios: Iterable[Step]) -> Recording:
        """Play scenarios once; where the last ones left a broker that does not start, on a new one."""
        if self._recorder.broken:
            self.end()
            self._recorder = self._begin()
        broker = self._recorder.broker
        first = {"broker_version": broker.version, "config": broker.recorded_config}
        return Recording(first, list(self._recorder.record(scenarios)))

    def end(self) -> None:
        """Stop the broker."""
        self._recorder.close()
        self._recorder.broker.end()

    def play_again(self, scenarios: Iterable[Step]) -> Recording:
        """Play scenarios that were played before, in topics and under transactional ids of their own.

        The recording bears the original names.
        """
        self._played += 1
        suffix = f"{AGAIN}{self._played}"
        recording = self.play([renamed(scenario, suffix) for scenario in scenarios])
        lines = [
            ({**attempt, **{name: attempt[name].removesuffix(suffix) for name in _NAMED if name in attempt}}, answer)
            for attempt, answer in recording.lines
        ]
        return Recording(recording.broker, lines)


@contextmanager
def session(
    version: str,
    config: dict[str, object],
    home: Path,
    *,
    fail_over: bool = False,
    server_logs: Levels | None = None,
    at_once: int = TOPICS_AT_ONCE,
) -> Iterator[Session]:
    """A broker of `version`, or several, ended afterwards; their directories are below `home`."""
    live = Session(version, config, home, fail_over=fail_over, server_logs=server_logs, at_once=at_once)
    try:
        yield live
    finally:
        live.end()


def renamed(scenario: Step, suffix: str) -> Step:
    """A scenario in a topic of its own; its transactional ids, which name the topic, change with it."""
    text = re.sub(r'("txn_id": "tx-[^"]*)"', rf'\1{suffix}"', json.dumps(scenario))
    return {**json.loads(text), "name": scenario["name"] + suffix}


def scenario_of(attempt: Json) -> str:
    """The scenario an attempt is of: its topic, unless it says so."""
    return str(attempt.get("scenario", attempt.get("topic", "")))


def same_difference(difference: Difference) -> tuple[str, str]:
    """What makes two differences one: the op, and both sides' outcome in words."""
    words = [(name.rpartition(".")[2], _word(ours), _word(theirs)) for name, ours, theirs in difference.fields]
    return str(difference.attempt["op"]), json.dumps(words)


def _word(value: object) -> str:
    return value if isinstance(value, str) else type(value).__name__
