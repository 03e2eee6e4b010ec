"""Small pieces of text that several human formats share: counts, spans, places, times."""

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaudit.checks.texts import block_text
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.json_record import rfc3339
from kaudit.model.severity import Severity, Status
from kaudit.report.console import Console, Style, visible

if TYPE_CHECKING:  # explanations are written with these pieces too, and know nothing of results
    from kaudit.model.coordinator import ExpiredTransactionalId
    from kaudit.model.finding import Finding
    from kaudit.model.producer_listing import Producer, ProducerPartition
    from kaudit.model.result import ScanResult, StateUse

SEVERITY_STYLE = {Severity.ERROR: Style.ERROR, Severity.WARNING: Style.WARNING, Severity.NOTE: Style.NOTE}


def plural(number: int, noun: str, several: str | None = None) -> str:
    """Return `1 batch`, `2,000 batches`."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def omitted_text(number: int) -> str:
    """Return `3 more findings, not listed here`, or nothing where nothing is left out."""
    return f"{plural(number, 'more finding', 'more findings')}, not listed here" if number else ""


def duration(seconds: float) -> str:
    """Return `0.4 s`, `41 s`, `12 min 5 s`, `3 h 20 min`, `12 d 4 h`."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"


def span(first: object, last: object) -> str:
    """Return `7`, `7..9`, or `-` where there is no number."""
    if first is None or first == "":
        return "-"
    return str(first) if last in (None, first) else f"{first}..{last}"


def partition_of(finding: "Finding") -> str | None:
    """Return `topic-partition`, or None for a finding about no topic."""
    return None if finding.place is None else visible(finding.place)


def producer_of(finding: "Finding") -> str | None:
    """Return `producer 42 epoch 0`, or None for a finding about no producer."""
    if finding.producer_id is None:
        return None
    return f"producer {finding.producer_id}" + (
        "" if finding.producer_epoch is None else f" epoch {finding.producer_epoch}"
    )


def short_producer_of(finding: "Finding") -> list[str]:
    """Return `producer 42/0` in a list, an empty one for a finding about no producer."""
    epoch = "-" if finding.producer_epoch is None else finding.producer_epoch
    return [] if finding.producer_id is None else [f"producer {finding.producer_id}/{epoch}"]


def headline_lines(finding: "Finding", console: Console, *, lead: str, indent: str, end: str = "") -> list[str]:
    """Return the headline and `end` after `lead`, wrapped, the severity in its colour."""
    label, rest = headline(finding)
    lines = console.wrap(label + rest + end, lead=lead, indent=indent)
    lines[0] = lines[0].replace(label, console.paint(label, SEVERITY_STYLE[finding.severity]), 1)
    return lines


def headline(finding: "Finding") -> tuple[str, str]:
    """Return (`error[KA102]`, ` old-duplicate: message`)."""
    return f"{finding.severity.value}[{finding.code}]", f" {finding.name}: {visible(finding.message)}"


def counts_text(result: "ScanResult", *, notes_hidden: bool) -> str:
    """Return `3 errors, 1 warning, 2 notes (hidden)`, or `no findings`."""
    counts = result.summary.findings
    parts = [plural(counts[severity], severity) for severity in ("error", "warning", "note") if counts.get(severity)]
    if parts and notes_hidden and counts.get("note"):
        parts[-1] += " (hidden; -v shows)"
    return (", ".join(parts) or "no findings") + _statuses(result.summary.statuses)


def _statuses(counts: Mapping[str, int]) -> str:
    """Return ` (2 new, 1 in the baseline)`, or nothing where all is new."""
    words = {"known": "in the baseline", "suppressed": "suppressed"}
    accepted = [f"{counts[status]:,} {word}" for status, word in words.items() if counts.get(status)]
    if not accepted:
        return ""
    return f" ({', '.join([f'{counts.get(Status.NEW.value, 0):,} new', *accepted])})"


def state_lines(use: "StateUse", *, quiet: bool) -> list[str]:
    """Return the lines for stderr about the use of a saved state; with `quiet` only problems."""
    lines: list[str] = []
    if use.notice is not None:
        lines.append(f"--state: {use.notice}: everything was read anew")
    if use.damaged:
        lines.append(f"--state: damaged in {plural(use.damaged, 'place')}: the log was read there")
    if use.not_saved is not None:
        reason, partitions = use.not_saved
        lines.append(f"--state: not saved: {plural(partitions, 'partition')}: {reason}")
    if not quiet:
        names = ("unchanged", "grown", "new", "read_again", "dropped")
        found = [f"{number:,} {name.replace('_', ' ')}" for name in names if (number := getattr(use, name))]
        lines.append(f"--state: segments: {', '.join(found) or 'none'}")
    return lines


def clock_time(milliseconds: int) -> str:
    """Return the time of day to the second, UTC."""
    return date_and_clock(milliseconds)[1].partition(".")[0]


def date_and_clock(milliseconds: object) -> tuple[str, str]:
    """Return (date, time of day) for a table; a time outside the calendar stays a number of ms."""
    if not isinstance(milliseconds, int) or milliseconds == NO_TIMESTAMP:
        return "", "-"
    text = rfc3339(milliseconds)
    if text is None:
        return "", f"{milliseconds} ms"
    date, clock = text.removesuffix("Z").split("T")
    return date, clock


def timestamp_of(finding: "Finding") -> int | None:
    """Return when the batch in question was written, in ms since the epoch; None where the evidence has no such time."""
    evidence, offending = finding.evidence, finding.evidence.offending
    times = (evidence.timestamp, evidence.first_timestamp, evidence.last_timestamp)
    known = times if offending is None else (offending.timestamp, *times)
    return next((time for time in known if time is not None and time >= 0), None)


def timestamp_text(milliseconds: int) -> str:
    """Return `2026-11-21 06:02:49`, or `-`."""
    date, clock = date_and_clock(milliseconds)
    return f"{date} {clock.partition('.')[0]}" if date else clock


def blocks_of(producer: "Producer") -> str:
    """Return `block 3000..3999 of broker 0`, all of them if there are several."""
    if not producer.grants:
        return "block unknown"
    return " and ".join(f"block {block_text(block)}" for block in producer.grants)


def partition_text(place: "ProducerPartition") -> str:
    """Return the producer's activity in one partition, and the state that a broker would remember."""
    name = visible(f"{place.topic}-{place.partition}") + (f" ({visible(place.replica)})" if place.replica else "")
    epochs = span(place.first_epoch, place.last_epoch)
    did = (
        f"{plural(place.batches, 'batch', 'batches')}, {plural(place.records, 'record')}, epoch {epochs}, "
        f"{timestamp_text(place.first_timestamp)} to {timestamp_text(place.last_timestamp)}"
    )
    state = place.state
    parts = [f"epoch {state.producer_epoch}"]
    parts.append(
        "no sequence"
        if state.last_sequence < 0
        else f"last sequence {state.last_sequence} at offset {state.last_offset}"
    )
    if state.coordinator_epoch >= 0:
        parts.append(f"coordinator epoch {state.coordinator_epoch}")
    if state.current_txn_start_offset >= 0:
        parts.append(f"transaction open since offset {state.current_txn_start_offset}")
    return f"{name} @ {span(place.first_offset, place.last_offset)}: {did}; a broker remembers {', '.join(parts)}"


def expired_text(expired: "ExpiredTransactionalId") -> str:
    """Return the producer id of a transactional id, when it expired, and its producer id since."""
    had, following = "its earlier producer id is no longer in the log", expired.next_producer_id
    if expired.producer_id is not None:
        assert expired.last_update_timestamp is not None
        updated = timestamp_text(expired.last_update_timestamp)
        had = f"producer id {expired.producer_id} epoch {expired.producer_epoch}, last updated {updated}"
    since = "not seen since" if following is None else f"then producer id {following}"
    where = f"__transaction_state-{expired.partition}@{expired.offset}"
    name = visible(expired.transactional_id)
    return f"{name}: {had}; expired {timestamp_text(expired.expired_timestamp)} UTC ({where}); {since}"


def fold(line: str, width: int | None, hanging: int) -> str:
    """Break a line of text that is longer than `width`; further lines are indented by `hanging` or as the line was."""
    if width is None or len(line) <= width:
        return line
    indent = " " * max(hanging, len(line) - len(line.lstrip()))
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )
