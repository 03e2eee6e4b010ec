"""Simulated runs as text: sequence diagrams for terminals and for Mermaid, record outcomes, and schedules that a search found."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kaudit.report.console import Console, Style, visible
from kaudit.report.sequence.decisions import participants, reason_of
from kaudit.simulate.search.schedule import Schedule
from kaudit.simulate.search.search import Found
from kaudit.simulate.sweep import SweepOutcome
from kaudit.simulate.trace import DEFAULT_LIMIT, EventKind, TraceEvent

_TIME_WIDTH = 9
_WIDEST_LANE = 13
_NARROWEST_LANE = 4
_NARROWEST_TEXT = 26
_DEFAULT_WIDTH = 100


class _Strokes(NamedTuple):
    """Characters of the drawing."""

    bar: str
    line: str
    dashed: str
    right: str
    left: str
    lost: str
    own: str


_DRAWN = _Strokes("│", "─", "╌", "►", "◄", "✗", "●")
_PLAIN = _Strokes("|", "-", ".", ">", "<", "x", "*")

_STYLES = {
    EventKind.LOST: Style.ERROR,
    EventKind.FAULT: Style.WARNING,
    EventKind.NOTE: Style.NOTE,
    EventKind.REPLICATION: Style.FAINT,
}


def terminal_diagram(rows: Sequence[TraceEvent], lanes: Sequence[str], omitted: int, console: Console) -> Iterator[str]:
    """Yield the lines of the diagram."""
    strokes = _DRAWN if console.draws else _PLAIN
    width = console.width or _DEFAULT_WIDTH
    space = width - _TIME_WIDTH - _NARROWEST_TEXT
    lane = max(_NARROWEST_LANE, min(_WIDEST_LANE, space // max(len(lanes), 1)))
    text_at = _TIME_WIDTH + lane * len(lanes)
    places = {name: index for index, name in enumerate(lanes)}
    yield from _heads(lanes, lane)
    bars = "".join(strokes.bar.ljust(lane) for _ in lanes)
    for row in rows:
        drawn = _drawn(row, places, lane, strokes)
        words = textwrap.wrap(visible(_words(row)), max(width - text_at, _NARROWEST_TEXT)) or [""]
        style = Style.ERROR if row.is_error else _STYLES.get(row.kind)
        first, *rest = [word if style is None else console.paint(word, style) for word in words]
        yield f"{row.at:>{_TIME_WIDTH - 2}}  {drawn}{first}".rstrip()
        for word in rest:
            yield f"{'':{_TIME_WIDTH}}{bars}{word}"
    if omitted:
        yield f"{'':{_TIME_WIDTH}}{omitted:,} more messages are not shown (--rows)"


def _heads(lanes: Sequence[str], lane: int) -> Iterator[str]:
    """Yield the names above the lanes, wrapped to the lanes' width."""
    cut = [textwrap.wrap(visible(name), lane - 1) for name in lanes]
    for line in range(max((len(parts) for parts in cut), default=0)):
        head = f"{'ms':>{_TIME_WIDTH - 2}}  " if line == 0 else " " * _TIME_WIDTH
        yield (head + "".join((parts[line] if line < len(parts) else "").ljust(lane) for parts in cut)).rstrip()


def _drawn(row: TraceEvent, places: dict[str, int], lane: int, strokes: _Strokes) -> str:
    """Return a row's lanes with its arrow."""
    cells = list("".join(strokes.bar.ljust(lane) for _ in places))
    source, target = places[row.source] * lane, places[row.target] * lane
    if source == target:
        cells[source] = strokes.own
        return "".join(cells)
    low, high = sorted((source, target))
    line = strokes.dashed if row.kind in (EventKind.LOST, EventKind.REPLICATION) else strokes.line
    for at in range(low + 1, high):
        cells[at] = line
    if row.kind is EventKind.LOST:
        cells[(low + high) // 2] = strokes.lost
        return "".join(cells)
    if target > source:
        cells[target - 1] = strokes.right
    else:
        cells[target + 1] = strokes.left
    return "".join(cells)


def _words(row: TraceEvent) -> str:
    if row.kind in (EventKind.NOTE, EventKind.FAULT):
        return row.text if row.source == "controller" else f"{row.source}: {row.text}"
    reason = reason_of(row)
    text = f"{row.text}: {reason}" if reason else row.text
    return f"lost: {text}" if row.kind is EventKind.LOST and "lost" not in row.text else text


_ARROWS = {EventKind.REQUEST: "->>", EventKind.RESPONSE: "-->>", EventKind.LOST: "-x", EventKind.REPLICATION: "-)"}


def mermaid_diagram(rows: Sequence[TraceEvent], lanes: Sequence[str], omitted: int) -> Iterator[str]:
    """Yield the lines of the diagram in Mermaid."""
    yield "sequenceDiagram"
    names = {name: f"P{index}" for index, name in enumerate(lanes)}
    for name, alias in names.items():
        yield f"    participant {alias} as {_escaped(name)}"
    for row in rows:
        source, target = names[row.source], names[row.target]
        reason = reason_of(row)
        text = f"{row.at} ms: {_escaped(f'{row.text}: {reason}' if reason else row.text)}"
        if row.source == row.target:
            yield f"    Note over {source}: {text}"
        else:
            yield f"    {source}{_ARROWS.get(row.kind, '->>')}{target}: {text}"
    if omitted and lanes:
        yield f"    Note over {names[lanes[0]]}: {omitted} more messages are not shown"


def _escaped(text: str) -> str:
    """Escape characters with a meaning in Mermaid: # begins an entity, ; ends a statement, < and > are markup."""
    spelled = visible(text).replace("#", "#35;")
    return spelled.replace("; ", ", ").replace("<", "#lt;").replace(">", "#gt;").replace("\\", "/")


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


def record_facts(summary: Mapping[str, int]) -> dict[str, str]:
    """Return the counts that are not zero under their words."""
    return {WORDS[name]: f"{count:,}" for name, count in summary.items() if count}


def outcome_lines(
    summary: Mapping[str, int], hidden: Sequence[Mapping[str, object]], console: Console
) -> Iterator[str]:
    """Yield the counts of one run, and the counts that no log shows."""
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


def sweep_lines(result: SweepOutcome) -> Iterator[str]:
    """Yield the outcomes of many seeds: the number of runs and records, and one seed as an example."""
    yield f"{'RUNS':>7}  {'RECORDS':>10}  {'EXAMPLE':>8}  OUTCOME"
    for name, tally in result.tallies.items():
        if tally.runs:
            yield f"{tally.runs:>7,}  {tally.records:>10,}  {tally.example:>8}  {WORDS[name]}"
    yield ""
    share = 100 * result.untouched / result.runs
    yield f"{result.runs:,} runs; in {result.untouched:,} ({share:.1f}%) every record is there once and in order"


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
