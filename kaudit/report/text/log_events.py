"""Events of broker and client logs as text: lines of evidence, and a section at the end of a report."""

from collections.abc import Sequence

from kaudit.model.application_logs import LogClock, LogEventSummary, RefusedBatches, UnalignedLog, zone_text
from kaudit.model.coverage import TextLines
from kaudit.model.evidence_parts import EventEvidence
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
_SOURCES = {
    "groups": "about groups",
    "transactions": "about transactions",
    "quorum": "about the controller's election",
    "metadata": "about metadata",
    "batches": "among batches that brokers stamped",
    "brokers": "of what brokers say too",
}
"""What lines that are compared tell of, by AnchorSource."""


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
    for log in summary.unaligned:
        text += console.wrap(unaligned_text(log), lead="  ", indent="    ")
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
    """Return how far a log's clock is from the times that brokers wrote, and by what that is known."""
    by = ", ".join(f"{plural(one.agreeing, 'line')} {_SOURCES[one.source]}" for one in clock.aligned_by if one.agreeing)
    against = clock.anchors - clock.agreeing
    known = f"by {by}" if by else ""
    known += f"; {plural(against, 'line')} {'contradicts' if against == 1 else 'contradict'}" if against else ""
    known += f"; spread {clock.spread_ms:,} ms" if clock.spread_ms is not None else ""
    behind = clock.behind_controller_ms
    if behind is not None and abs(behind) > _SKEW_MS:
        side = "behind" if behind > 0 else "ahead of"
        known += f"; this broker's clock is {duration(abs(behind) / 1000)} {side} the controller's"
    return f"{_log_name(clock.directory, clock.broker_id)}: {_difference(clock)}{f' ({known})' if known else ''}"


def _difference(clock: LogClock) -> str:
    parts = [date_and_clock(at) for at in (clock.since_ms, clock.until_ms) if at is not None]
    when = " ".join(filter(None, parts[0])) if parts else ""
    until = f"{'until' if clock.since_ms is None else 'from'} {when}, " if when else ""
    if not clock.exact and clock.zone_minutes is None and clock.time_zones:
        first, last = clock.time_zones[0], clock.time_zones[-1]
        zones = f"time zones {first} to {last}" if first != last else f"time zone {first}, by too few lines"
        between = f"{_ahead(clock.upper_ms)} to {_ahead(clock.lower_ms)} the batches"
        return f"{until}the log clock is {between}: {zones}; times are taken as UTC"
    if clock.zone_minutes:
        ahead = "behind" if clock.zone_minutes < 0 else "ahead of"
        skew = clock.likely_ms + 60_000 * clock.zone_minutes
        beside = (
            f", beside it {duration(abs(skew) / 1000)} {'ahead' if skew < 0 else 'behind'}"
            if abs(skew) > _SKEW_MS
            else ""
        )
        return (
            f"{until}the log clock is {duration(60 * abs(clock.zone_minutes))} {ahead} the batches: a time zone, "
            f"{zone_text(clock.zone_minutes)}{beside}"
        )
    if abs(clock.likely_ms) <= _SKEW_MS:
        return f"{until}the log clock is that of the batches, to {duration(_SKEW_MS / 1000)}"
    ahead = "ahead of" if clock.likely_ms < 0 else "behind"
    return f"{until}the log clock is {duration(abs(clock.likely_ms) / 1000)} {ahead} the batches"


def unaligned_text(log: UnalignedLog) -> str:
    """Return why the times of a log are taken as UTC."""
    why = (
        "nothing that was read shows how its clock goes"
        if log.reason == "no-anchor"
        else f"{plural(log.anchors, 'line')} of it and the bytes contradict one another: another cluster or time, or brokers whose clocks differ"
    )
    return f"{_log_name(log.directory, log.broker_id)}: {why}; times are taken as UTC"


def _log_name(directory: str, broker_id: int | None) -> str:
    name = visible(directory.rpartition("/")[2] or directory or ".")
    return name if broker_id is None else f"{name} (broker {broker_id})"


def _ahead(offset_ms: int) -> str:
    """Return where a log's clock is whose times get `offset_ms` added."""
    if not offset_ms:
        return "that of"
    return f"{duration(abs(offset_ms) / 1000)} {'behind' if offset_ms > 0 else 'ahead of'}"


def _others(refused: Sequence[RefusedBatches]) -> str:
    counts = {name: sum(one.attempts for one in refused if one.outcome == name) for name in _OUTCOMES}
    parts = [f"{counts[name]:,} {text}" for name, text in _OUTCOMES.items() if counts[name]]
    return f"refused attempts: {'; '.join(parts)}"
