"""A schedule: a scenario in which chance decides nothing but how long messages travel, as its TOML document."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import scenario_of
from kaudit.simulate.scenario.tables import ScenarioError
from kaudit.simulate.simulation import Simulation

Document = Mapping[str, Any]
"""What TOML describes: tables and arrays, never changed once made."""


class Schedule(Struct, frozen=True):
    """A document and the scenario it describes; the scenario's seed decides the delays."""

    document: Document
    scenario: Scenario

    @property
    def events(self) -> int:
        """How many things happen in it: records sent, messages lost, and what is done to brokers and applications."""
        return sum(producer.records for producer in self.scenario.producers) + sum(
            getattr(fault, "times", 1) for fault in self.scenario.faults
        )

    def play(self, trace_limit: int = 0) -> Truth:
        """Run it, and return what became of every record."""
        return Truth(Simulation(self.scenario, self.scenario.seed, trace_limit).run())


def schedule_of(document: Document, name: str) -> Schedule | None:
    """Return the schedule a document describes, None where the scenario would be refused."""
    try:
        return Schedule(document, scenario_of(document, name))
    except ScenarioError:
        return None


def with_tables(document: Document, **arrays: list[dict[str, Any]]) -> Document:
    """Return the document with arrays of tables replaced; an empty one is left out."""
    return {key: value for key, value in (dict(document) | arrays).items() if value != []}
