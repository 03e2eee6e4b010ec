"""Faults drawn at random: every kind a scenario can have, read off the schema of its TOML."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec.inspect as schema
from msgspec import Struct
from msgspec.structs import fields

from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.model import Fault, Scenario

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
"""How often a kind is drawn beside the others, which have 1. An injected error is no event that leads to one: never."""

_LONGEST = 4
"""Durations are drawn up to so many times the time in which records are sent."""
_MOST = 8
"""Numbers without a meaning of their own are drawn up to this one."""


class Activity(Struct, frozen=True):
    """When and how much a scenario's producers send while nothing goes wrong: ms from the run's start, batches."""

    until_ms: int
    batches: Mapping[str, int]

    @classmethod
    def of(cls, truth: Truth) -> "Activity":
        """Read it off a run."""
        simulation = truth.simulation
        last = simulation.clock.base
        batches: dict[str, int] = dict.fromkeys(simulation.applications, 0)
        for outcomes in truth.outcomes.values():
            for outcome in outcomes:
                last = max(last, *outcome.batch.timestamps)
                batches[outcome.batch.payload.producer] += 1
        return cls(last - simulation.clock.base + 300, batches)


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
        information = schema.type_info(Fault)
        assert isinstance(information, schema.UnionType)
        self._kinds = [kind for kind in information.types if isinstance(kind, schema.StructType)]
        self._weights = [WEIGHTS.get(str(kind.tag), 1.0) for kind in self._kinds]

    def draw(self, chance: random.Random) -> dict[str, Any]:
        """Return a fault's table; the scenario may refuse it."""
        kind = chance.choices(self._kinds, self._weights)[0]
        table: dict[str, Any] = {"kind": kind.tag}
        for field in kind.fields:
            if field.required or field.encode_name in self._names or chance.random() < 0.5:
                value = self._value(field.encode_name, field.type, chance)
                if value is not None:
                    table[field.encode_name] = value
        if "broker" in table and "leader_of" in table:
            del table[chance.choice(("broker", "leader_of"))]
        elif any(field.encode_name == "leader_of" for field in kind.fields) and "broker" not in table:
            table.setdefault("leader_of", chance.choice(self._names["leader_of"]))
        return table

    def _value(self, name: str, kind: schema.Type, chance: random.Random) -> Any:  # noqa: ANN401 - of TOML
        """Draw a field's value, None where nothing says what it could be."""
        value: Any = None
        match kind:
            case schema.UnionType(types=types):
                (of_value,) = (item for item in types if not isinstance(item, schema.NoneType))
                value = self._value(name, of_value, chance)
            case schema.IntType(ge=low, le=high):
                value = self._number(name, low or 0, _MOST if high is None else high, chance)
            case schema.BoolType():
                value = chance.random() < 0.5
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
        return -drawn if low < 0 and chance.random() < 0.5 else drawn


def table_of(fault: Fault) -> dict[str, Any]:
    """Return a fault's table, without what is the default."""
    values = {field.encode_name: getattr(fault, field.name) for field in fields(fault)}
    defaults = {field.encode_name: field.default for field in fields(fault)}
    kind = type(fault).__struct_config__.tag
    return {"kind": kind} | {name: value for name, value in values.items() if value != defaults[name]}
