"""Many seeds of one scenario: which outcomes there are, how often, and a seed of each."""

from msgspec import Struct, field

from kaudit.simulate.output.truth import SUMMARY, Truth
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.simulation import Simulation

TROUBLE = (
    "acknowledged_but_lost",
    "duplicate_copies",
    "repeated_across_sessions",
    "out_of_order",
    "unanswered",
    "open_transactions",
)
"""Outcomes a run without trouble has none of."""


class Tally(Struct):
    """One outcome: runs that had it, records (or transactions) over all, the first seed with it, -1 for none."""

    runs: int = 0
    records: int = 0
    example: int = -1


class SweepOutcome(Struct):
    """All runs of a sweep; `untouched` had no trouble."""

    runs: int = 0
    untouched: int = 0
    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in SUMMARY})

    def add(self, seed: int, summary: dict[str, int]) -> None:
        """Count a run."""
        self.runs += 1
        self.untouched += not any(summary[name] for name in TROUBLE)
        for name, count in summary.items():
            if count:
                tally = self.tallies[name]
                tally.runs += 1
                tally.records += count
                if tally.example < 0:
                    tally.example = seed


def sweep(scenario: Scenario, first_seed: int, runs: int) -> SweepOutcome:
    """Run seeds `first_seed` and the `runs` - 1 after it; nothing is written."""
    outcome = SweepOutcome()
    for seed in range(first_seed, first_seed + runs):
        simulation = Simulation(scenario, seed, trace_limit=0).run()
        outcome.add(seed, Truth(simulation).summary())
    return outcome
