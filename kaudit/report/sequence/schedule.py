"""A schedule that a search found: its sequence diagram in short, and the events it takes."""

from collections.abc import Iterator, Mapping
from typing import Any

from kaudit.report.console import Console, visible
from kaudit.report.sequence.decisions import participants
from kaudit.report.sequence.run_text import outcome_lines, terminal_diagram
from kaudit.simulate.search.schedule import Schedule
from kaudit.simulate.search.search import Found
from kaudit.simulate.trace import DEFAULT_LIMIT, EventKind

_WHEN = ("at_ms", "request", "marker")
"""Keys of a fault that say when it happens."""
_NOT_FOUND = {
    "acknowledged-lost": "in none was an acknowledged record lost",
    "duplicate": "in none was a record written twice",
    "reordered": "in none was a record written out of order",
    "hanging": "in none did a transaction hang",
}


def found_document(found: Found, name: str, toml: str | None) -> dict[str, Any]:
    """Return the result of a search as JSON; `toml` is the scenario that gives the outcome again."""
    schedule = found.schedule
    return {
        "schema": "kaudit.simulate-find/1",
        "scenario": name,
        "outcome": found.outcome,
        "seed": found.seed,
        "found": schedule is not None,
        "interrupted": found.interrupted,
        "schedules_tried": found.tried,
        "schedules_tried_to_shrink": found.shrinking_tried,
        "events": None if schedule is None else list(event_lines(schedule)),
        "event_count": None if schedule is None else schedule.events,
        "shrunk_from": None if schedule is None else found.shrunk_from,
        "toml": toml,
    }


def found_lines(found: Found, name: str, console: Console, written: str | None) -> Iterator[str]:
    """Yield the result of a search for people; `written` is the file the scenario was written to."""
    tried = f"{found.tried:,} schedule{'' if found.tried == 1 else 's'} of {name}"
    if found.schedule is None:
        ended = " before the search was interrupted" if found.interrupted else ""
        yield from console.wrap(
            f"{found.outcome}: {tried} tried{ended}; {_NOT_FOUND[found.outcome]}. That is no proof that it cannot happen."
        )
        return
    schedule = found.schedule
    yield from console.wrap(
        f"{found.outcome}: found after {tried}, and shrunk from {found.shrunk_from:,} events to {schedule.events} "
        f"({found.shrinking_tried:,} more schedules)"
    )
    yield ""
    yield from _diagram(schedule, console)
    yield ""
    yield "Events:"
    yield from (line for event in event_lines(schedule) for line in console.wrap(event, "  ", "    "))
    yield ""
    if written is None:
        yield "-o FILE.toml writes it as a scenario to run again."
    else:
        yield f"Run it again: kaudit simulate {visible(written)}"


def _diagram(schedule: Schedule, console: Console) -> Iterator[str]:
    """Yield the diagram of a run without replication, and the counts of its records."""
    truth = schedule.play(DEFAULT_LIMIT)
    simulation = truth.simulation
    rows = [row for row in simulation.trace.events if row.kind is not EventKind.REPLICATION]
    brokers = [broker.name for broker in simulation.cluster.brokers.values()]
    lanes = participants(rows, simulation.applications, brokers)
    yield from terminal_diagram(rows, lanes, simulation.trace.omitted, console)
    yield ""
    yield from outcome_lines(truth.summary(), (), console)


def event_lines(schedule: Schedule) -> Iterator[str]:
    """Yield a sentence for each thing that happens in a schedule."""
    for producer in schedule.scenario.producers:
        records = "1 record" if producer.records == 1 else f"{producer.records:,} records"
        pace = "" if producer.records == 1 else f", {producer.burst} every {producer.every_ms:,} ms"
        yield f"{producer.name} sends {records} from {producer.start_ms:,} ms on{pace}"
    for table in schedule.document.get("faults", ()):
        yield fault_line(table)


def fault_line(table: Mapping[str, Any]) -> str:
    """Return a fault of a scenario in words: its kind, when, and the rest of its keys."""
    when = "".join(
        f" at {table[key]:,} ms" if key == "at_ms" else f" {key} {table[key]}" for key in _WHEN if key in table
    )
    rest = [f"{key} {_value(value)}" for key, value in table.items() if key not in ("kind", *_WHEN)]
    return f"{table['kind']}{when}{': ' if rest else ''}{', '.join(rest)}"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
