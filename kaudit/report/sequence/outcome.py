"""What became of a run's records, and of many runs', in lines."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.report.console import Console, Style
from kaudit.simulate.sweep import SweepOutcome

WORDS = {
    "sent": "records sent",
    "acknowledged": "acknowledged",
    "failed": "failed",
    "unanswered": "never answered",
    "present": "in the leader's log",
    "absent": "not in it",
    "deleted": "deleted",
    "acknowledged_but_lost": "acknowledged, and lost",
    "written_but_not_acknowledged": "written, not acknowledged",
    "duplicate_copies": "duplicate records",
    "repeated_across_sessions": "repeated across sessions",
    "out_of_order": "out of order",
    "on_a_replica_only": "on another replica only",
    "open_transactions": "open transactions",
    "hanging_transactions": "hanging transactions",
}
_BAD = frozenset(
    {
        "acknowledged_but_lost",
        "duplicate_copies",
        "repeated_across_sessions",
        "out_of_order",
        "open_transactions",
        "hanging_transactions",
    }
)


def facts(summary: Mapping[str, int]) -> dict[str, str]:
    """Return the counts that are not zero under their words."""
    return {WORDS[name]: f"{count:,}" for name, count in summary.items() if count}


def outcome(summary: Mapping[str, int], hidden: Sequence[Mapping[str, object]], console: Console) -> Iterator[str]:
    """Yield the counts of one run, and what no log shows of them."""
    for name, count in summary.items():
        if count:
            words = f"{count:>9,}  {WORDS[name]}"
            yield console.paint(words, Style.ERROR) if name in _BAD else words
    if hidden:
        yield ""
        yield "What the leaders' logs cannot show:"
        for item in hidden:
            words = WORDS.get(str(item["what"]), str(item["what"]).replace("_", " "))
            yield from console.wrap(f"{item['records']:,} {words}: {item['because']}", "  ", "    ")


def sweep(result: SweepOutcome) -> Iterator[str]:
    """Yield the outcomes of many seeds: in how many runs, how many records, and a seed to look at."""
    yield f"{'RUNS':>7}  {'RECORDS':>10}  {'EXAMPLE':>8}  OUTCOME"
    for name, tally in result.tallies.items():
        if tally.runs:
            yield f"{tally.runs:>7,}  {tally.records:>10,}  {tally.example:>8}  {WORDS[name]}"
    yield ""
    share = 100 * result.untouched / result.runs
    yield f"{result.runs:,} runs; in {result.untouched:,} ({share:.1f}%) every record is there once and in order"
