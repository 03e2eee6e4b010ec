"""Events of broker and client logs as text: lines of evidence, and a section at the end of a report."""

from collections.abc import Sequence

from kaudit.model.application_logs import LogClock, LogEventSummary, RefusedBatches
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.text_lines import TextLines
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import date_and_clock, duration, plural, span

_SHOWN = 10
_LONGEST = 200
_SKEW_MS = 1000
"""Clocks that differ by no more than this are called the same."""
_OUTCOMES = {
    "landed": "landed later",
    "superseded": "were followed by a higher epoch, in which the producer may have sent them again",
    "fenced": "came from a fenced producer, as intended",
    "unknown": "are not shown by the logs",
}


def event_text(event: EventEvidence) -> str:
    """Return an event as one line: `server.log:1234 2026-01-01 12:00:00.000: text`."""
    when = "" if event.timestamp is None else " ".join(filter(None, date_and_clock(event.timestamp)))
    place = f"{str(event.path).rpartition('/')[2]}:{event.line}"
    return visible(f"{place}{' ' if when else ''}{when}: {shortened(str(event.text))}")


def shortened(text: str) -> str:
    """Return the text, cut where it is too long for a report."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def log_section(summary: LogEventSummary | None, console: Console, *, each: bool = False) -> list[str]:
    """Return how much was read, how the logs' clocks differ, and refused batches that are not in the log; empty without logs.

    With `each` also how the lines of every file were taken.
    """
    if summary is None:
        return []
    files, lines = summary.files, sum(file.lines for file in summary.files)
    unknown = sum(file.unknown_lines for file in files)
    read = f"{plural(len(files), 'file')}, {plural(lines, 'line')}, {plural(sum(summary.events.values()), 'event')}"
    text = [console.paint("Logs of brokers and clients:", Style.STRONG)]
    text += console.wrap(read + (f", {unknown:,} lines not understood" if unknown else ""), lead="  ")
    for file in files if each else ():
        taken = TextLines(file.lines, file.other_lines, file.unknown_lines)
        lead = f"{file.path} ({file.origin}): {file.lines:,} lines, of them {taken.read_lines:,} read"
        rest = f"{file.other_lines:,} not Kafka's, {file.unknown_lines:,} not understood, {file.events:,} events"
        text += console.wrap(visible(f"{lead}, {rest}"), lead="  - ")
    for clock in summary.clocks:
        text += console.wrap(clock_text(clock), lead="  ", indent="    ")
    lost = [one for one in summary.refused if one.outcome == "never-landed"]
    for one in lost[:_SHOWN]:
        text += console.wrap(
            refused_text(one), lead="  refused, never in the log: ", indent="    ", style=Style.WARNING
        )
    if len(lost) > _SHOWN:
        text.append(f"  refused, never in the log: {len(lost) - _SHOWN} more (--output-format json lists them)")
    text += console.wrap(_others(summary.refused), lead="  ", indent="    ") if len(lost) < len(summary.refused) else []
    return text


def refused_text(refused: RefusedBatches) -> str:
    """Return a producer's refused batches as text."""
    sequences = span(refused.first_sequence, refused.last_sequence)
    of = "" if sequences == "-" else f", base sequence {sequences}"
    return visible(
        f"{refused.topic}-{refused.partition} producer {refused.producer_id} epoch "
        f"{'-' if refused.producer_epoch is None else refused.producer_epoch}: "
        f"{plural(refused.attempts, 'line')} {refused.event}{of} ({refused.path.rpartition('/')[2]}:{refused.line})"
    )


def clock_text(clock: LogClock) -> str:
    """Return how far a log's clock is from that of the batches."""
    name = visible(clock.directory.rpartition("/")[2] or clock.directory or ".")
    if clock.zone_minutes is not None and clock.zone_minutes:
        sign, minutes = ("-", -clock.zone_minutes) if clock.zone_minutes < 0 else ("+", clock.zone_minutes)
        ahead = "behind" if clock.zone_minutes < 0 else "ahead of"
        return (
            f"{name}: the log clock is {duration(60 * minutes)} {ahead} the batches: a time zone, "
            f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}"
        )
    if abs(clock.likely_ms) <= _SKEW_MS:
        return f"{name}: the log clock is that of the batches, to {duration(_SKEW_MS / 1000)}"
    ahead = "ahead of" if clock.likely_ms < 0 else "behind"
    return f"{name}: the log clock is {duration(abs(clock.likely_ms) / 1000)} {ahead} the batches"


def _others(refused: Sequence[RefusedBatches]) -> str:
    counts = {name: sum(one.attempts for one in refused if one.outcome == name) for name in _OUTCOMES}
    parts = [f"{counts[name]:,} {text}" for name, text in _OUTCOMES.items() if counts[name]]
    return f"refused attempts: {'; '.join(parts)}"
