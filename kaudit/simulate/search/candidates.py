"""Schedules to try for a scenario: its own, those its [random] bounds allow, and others with faults of every kind."""

import random
from collections.abc import Iterator
from typing import Any

from kaudit.simulate.random_faults import draw_faults
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import scenario_of
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.search.fault_space import Activity, FaultSpace, table_of
from kaudit.simulate.search.schedule import Document, Schedule, schedule_of, with_tables

FEW_RECORDS = 60
"""Records a producer sends at most in a schedule that is drawn: many short runs find more than a few long ones."""
_LONG = 1000
"""Events of a scenario that is tried with fewer records only."""
_MOST_FAULTS = 5
_SLOWEST = 6
"""The upper bound of the network's delays is doubled up to so often."""


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
            faults = [self._moved(table, chance) for table in self._drawn_own if chance.random() < 0.8]
            faults += [self._space.draw(chance) for _ in range(chance.randint(0 if faults else 1, _MOST_FAULTS))]
        network = dict(self._own.get("network", {}))
        low, high = _bounds(network.get("delay_ms", [1, 3]))
        if chance.random() < 0.5:
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
                    if chance.random() < rate:
                        loss = {"kind": kind, "producer": producer, "request": request}
                        loss["silent"], loss["behind"] = chance.random() < rates.silent_share, chance.random() < 0.5
                        yield loss

    def _moved(self, table: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        """Return a fault of the scenario's own, often at another time or with another message."""
        moved = dict(table)
        for key in ("at_ms", "request"):
            if key in moved and chance.random() < 0.5:
                moved[key] = max(round(moved[key] * chance.uniform(0.5, 1.5)), 1)
        return moved


def _with_few_records(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "records": min(table.get("records", 10), FEW_RECORDS)}


def _bounds(value: Any) -> tuple[int, int]:  # noqa: ANN401 - one number of TOML stands for both
    low, high = value if isinstance(value, list) else (value, value)
    return low, high
