"""Schedules to try: faults drawn where a scenario leaves room for them, and their neighbours."""

import functools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec.inspect as schema
from msgspec import Struct
from msgspec.structs import fields

from kaudit.simulate.output.truth import Truth
from kaudit.simulate.random_faults import HALF, draw_faults, happens
from kaudit.simulate.scenario.model import Fault, Scenario
from kaudit.simulate.scenario.reading import scenario_of
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.search.schedule import Document, Schedule, schedule_of, with_tables

WEIGHTS = {
    "error-response": 0.0,
    "lose-allocation": 0.1,
    "use-producer-ids": 0.1,
    "jump-broker-clock": 0.2,
    "jump-producer-clock": 0.2,
    "delete-records": 0.3,
    "start-broker": 0.3,
    "lose-request": 2.0,
    "lose-response": 2.0,
    "kill-broker": 2.0,
    "pause-broker": 2.0,
}
"""Weights with which kinds are drawn; the others have 1. Injected errors are never drawn: they have no cause in the cluster."""

_LONGEST = 4
"""Upper bound of drawn durations, as a multiple of the time in which records are sent."""
_MOST = 8
"""Upper bound of drawn numbers whose field gives none."""


class Activity(Struct, frozen=True):
    """When and how much a scenario's producers send while nothing goes wrong: ms from the run's start, batches."""

    until_ms: int
    batches: Mapping[str, int]

    @classmethod
    def of(cls, truth: Truth) -> "Activity":
        """Return the activity of a run."""
        simulation = truth.simulation
        last = simulation.clock.base
        batches: dict[str, int] = dict.fromkeys(simulation.applications, 0)
        for outcomes in truth.outcomes.values():
            for outcome in outcomes:
                last = max(last, *outcome.batch.timestamps)
                batches[outcome.batch.payload.producer] += 1
        return cls(last - simulation.clock.base + 300, batches)


@functools.cache
def _kinds() -> list[schema.StructType]:
    """The fields of every kind of fault."""
    information = schema.type_info(Fault)
    assert isinstance(information, schema.UnionType)
    return [kind for kind in information.types if isinstance(kind, schema.StructType)]


class FaultSpace:
    """The faults that can befall a scenario."""

    def __init__(self, scenario: Scenario, activity: Activity) -> None:
        self._activity = activity
        self._brokers = scenario.cluster.brokers
        partitions = [f"{topic.name}-{number}" for topic in scenario.topics for number in range(topic.partitions)]
        self._names = {
            "producer": [producer.name for producer in scenario.producers],
            "partition": partitions,
            "leader_of": partitions,
        }
        self._kinds = _kinds()
        self._weights = [WEIGHTS.get(str(kind.tag), 1.0) for kind in self._kinds]

    def draw(self, chance: random.Random) -> dict[str, Any]:
        """Return a fault's table; the scenario may refuse it."""
        kind = chance.choices(self._kinds, self._weights)[0]
        table: dict[str, Any] = {"kind": kind.tag}
        for field in kind.fields:
            if field.required or field.encode_name in self._names or happens(chance, HALF):
                value = self._value(field.encode_name, field.type, chance)
                if value is not None:
                    table[field.encode_name] = value
        if "broker" in table and "leader_of" in table:
            del table[chance.choice(("broker", "leader_of"))]
        elif any(field.encode_name == "leader_of" for field in kind.fields) and "broker" not in table:
            table.setdefault("leader_of", chance.choice(self._names["leader_of"]))
        return table

    def _value(self, name: str, kind: schema.Type, chance: random.Random) -> Any:  # noqa: ANN401 - of TOML
        """Draw a field's value, None where the possible values are not known."""
        value: Any = None
        match kind:
            case schema.UnionType(types=types):
                (of_value,) = (item for item in types if not isinstance(item, schema.NoneType))
                value = self._value(name, of_value, chance)
            case schema.IntType(ge=low, le=high):
                value = self._number(name, low or 0, _MOST if high is None else high, chance)
            case schema.BoolType():
                value = happens(chance, HALF)
            case schema.LiteralType(values=values):
                value = chance.choice(values)
            case schema.StrType() if name in self._names:
                value = chance.choice(self._names[name])
            case schema.VarTupleType(item_type=item):
                value = sorted({self._value(name.removesuffix("s"), item, chance) for _ in range(chance.randint(1, 2))})
        return value

    def _number(self, name: str, low: int, high: int, chance: random.Random) -> int:
        if name == "at_ms":
            return chance.randint(0, self._activity.until_ms)
        if name == "broker":
            return chance.randint(1, self._brokers)
        if name == "request":
            return chance.randint(1, max(self._activity.batches.values()) + 2)
        if not name.endswith("_ms"):
            return chance.randint(low, min(high, _MOST))
        longest = min(high, _LONGEST * self._activity.until_ms)
        drawn = max(int(longest ** chance.random()), low)
        return -drawn if low < 0 and happens(chance, HALF) else drawn


def table_of(fault: Fault) -> dict[str, Any]:
    """Return a fault's table, without what is the default."""
    values = {field.encode_name: getattr(fault, field.name) for field in fields(fault)}
    defaults = {field.encode_name: field.default for field in fields(fault)}
    kind = type(fault).__struct_config__.tag
    return {"kind": kind} | {name: value for name, value in values.items() if value != defaults[name]}


FEW_RECORDS = 60
"""Records a producer sends at most in a schedule that is drawn: many short runs find more than a few long ones."""
_LONG = 1000
"""A scenario with more events is tried with fewer records only."""
_MOST_FAULTS = 5
_OWN_FAULTS = 0.8
"""The share of a scenario's own faults in a schedule that is drawn."""
_SLOWEST = 6
"""How often the upper bound of the network's delays is doubled at most."""
_DURATION_MS = 180_000
"""How long a drawn schedule goes on after the last record: clients have given up, transactions have timed out."""


class Candidates:
    """The schedules of a scenario, each made from its number and the seed of the search alone."""

    def __init__(self, document: Document, name: str, seed: int) -> None:
        """`document` must describe a scenario. Raises ScenarioError."""
        self._name = name
        self._seed = seed
        self._own = {key: value for key, value in document.items() if key != "random"}
        scenario = scenario_of(document, name)
        self._drawn_own = [table_of(fault) for fault in scenario.faults]
        producers = [_with_few_records(table) for table in document["producers"]]
        self._short = with_tables(self._own, producers=producers, faults=[])
        self._bounds: Scenario | None = None
        if scenario.random_faults is not None:
            self._bounds = scenario_of({**document, "faults": [], "producers": producers}, name)
        quiet = schedule_of(self._short, name)
        if quiet is None:
            raise ScenarioError("producers", "fewer records to be possible")
        self._activity = Activity.of(quiet.play())
        self._space = FaultSpace(quiet.scenario, self._activity)

    def __iter__(self) -> Iterator[Schedule]:
        """Yield schedules without end: the scenario's own first, unless it is a long one, then drawn ones."""
        own = schedule_of(self._own, self._name)
        if own is not None and own.events <= _LONG:
            yield own
        number = 0
        while True:
            number += 1
            schedule = schedule_of(self._draw(number), self._name)
            if schedule is not None:
                yield schedule

    def _draw(self, number: int) -> Document:
        chance = random.Random(f"{self._seed}/schedule/{number}")  # noqa: S311 - a model, not a secret
        faults: list[dict[str, Any]] = []
        if self._bounds is not None and number % 2:
            faults = [table_of(fault) for fault in draw_faults(self._bounds, chance)]
            faults += self._draw_losses(self._bounds, chance)
        else:
            faults = [self._moved(table, chance) for table in self._drawn_own if happens(chance, _OWN_FAULTS)]
            faults += [self._space.draw(chance) for _ in range(chance.randint(0 if faults else 1, _MOST_FAULTS))]
        network = dict(self._own.get("network", {}))
        low, high = _bounds(network.get("delay_ms", [1, 3]))
        if happens(chance, HALF):
            network["delay_ms"] = [low, max(low, 1, high) << chance.randint(1, _SLOWEST)]
        duration = min(self._own.get("duration_ms", _DURATION_MS), self._activity.until_ms + _DURATION_MS)
        changed = {**self._short, "seed": chance.getrandbits(31), "duration_ms": duration, "network": network}
        return with_tables({key: value for key, value in changed.items() if value != {}}, faults=faults)

    def _draw_losses(self, bounds: Scenario, chance: random.Random) -> Iterator[dict[str, Any]]:
        """Yield the messages lost by the scenario's rates."""
        rates = bounds.random_faults
        assert rates is not None
        for kind, rate in (("lose-request", rates.request_loss), ("lose-response", rates.response_loss)):
            for producer, batches in self._activity.batches.items():
                for request in range(1, batches + 1):
                    if happens(chance, rate):
                        loss = {"kind": kind, "producer": producer, "request": request}
                        loss["silent"], loss["behind"] = happens(chance, rates.silent_share), happens(chance, HALF)
                        yield loss

    def _moved(self, table: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        """Return a fault of the scenario's own, often at another time or with another message."""
        moved = dict(table)
        for key in ("at_ms", "request"):
            if key in moved and happens(chance, HALF):
                moved[key] = max(round(moved[key] * chance.uniform(0.5, 1.5)), 1)
        return moved


def _with_few_records(table: dict[str, Any]) -> dict[str, Any]:
    return {key: min(value, FEW_RECORDS) if key == "records" else value for key, value in table.items()}


def _bounds(value: Any) -> tuple[int, int]:  # noqa: ANN401 - one number of TOML stands for both
    low, high = value if isinstance(value, list) else (value, value)
    return low, high
