"""`kaudit timeline --output-format table`: a picture of each partition, a block per producer id in offset order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.json_record import rfc3339
from kaudit.model.result import TimelineResult
from kaudit.model.sequence import distance
from kaudit.model.timeline import (
    EndState,
    Entry,
    EventEntry,
    FindingEntry,
    MarkerEntry,
    MissingEntry,
    RunEntry,
    Timeline,
)
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import (
    date_and_clock,
    duration,
    headline_lines,
    partition_of,
    plural,
    producer_of,
    span,
)
from kaudit.report.text.not_checked import closing_sections, text_pieces, verdict_section
from kaudit.report.text.timeline_lanes import lane_lines
from kaudit.results.scope import extent

_HEADINGS = ("offset", "event", "epoch", "sequence", "time (UTC)")
_STYLES = {
    "COMMIT": Style.GOOD,
    "ABORT": Style.WARNING,
    "missing": Style.ERROR,
    "open since ": Style.WARNING,
    "fences epoch ": Style.NOTE,
}
"""Events, and beginnings of details, in their colours."""
_GAP = "  "
_INDENT = "  "


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield the report as text, a block of lines at a time."""
    return text_pieces(_sections(result, options))


def _sections(result: TimelineResult, options: RenderOptions) -> Iterator[Sequence[str]]:
    console = options.console
    shown = options.for_people(result.scan.findings)
    by_fingerprint = {finding.fingerprint: finding for finding in shown}
    yield verdict_section(result.scan, console)
    listed: set[str] = set()
    empty = True
    for _, of_replica in groupby(result.timelines, key=lambda one: (one.topic, one.partition, one.replica)):
        empty = False
        yield from _replica(of_replica, by_fingerprint, listed, console)
    if empty:
        yield [f"no producer ids {extent(result.scan)}"]
    yield _others([finding for finding in shown if finding.fingerprint not in listed], console)
    yield from closing_sections(result.scan, options)


def _replica(
    timelines: Iterable[Timeline], findings: Mapping[str, Finding], listed: set[str], console: Console
) -> Iterator[Sequence[str]]:
    """Yield the diagram and the blocks of a partition replica, and add the fingerprints of their findings to `listed`."""
    if console.width is not None:  # the diagram needs all of them, and a width
        timelines = list(timelines)
        yield lane_lines(timelines, findings, console)
    for timeline in timelines:
        listed.update(entry.fingerprint for entry in timeline.entries if isinstance(entry, FindingEntry))
        yield _block(timeline, findings, console)


def _others(others: Sequence[Finding], console: Console) -> list[str]:
    """Return the findings that no timeline lists, such as damage."""
    lines = [console.paint("Findings outside the timelines above:", Style.STRONG)] if others else []
    for finding in others:
        where = partition_of(finding) or visible(finding.file or "")
        at = f"{where} @ {span(finding.offset, finding.last_offset)}" if where else producer_of(finding)
        lead = f"  {at}  " if at else "  "
        lines += headline_lines(finding, console, lead=lead, indent=_INDENT * 3)
    return lines


def _block(timeline: Timeline, findings: Mapping[str, Finding], console: Console) -> list[str]:
    name = visible(f"{timeline.topic}-{timeline.partition}")
    title = [f"{name}  producer {timeline.producer_id}"]
    if timeline.transactional_id is not None:
        title.append(f"transactional id {visible(timeline.transactional_id)}")
    if timeline.replica:
        title.append(f"replica {visible(timeline.replica)}")
    rows = [_cells(entry) for entry in timeline.entries]
    widths = tuple([max(map(len, column)) for column in zip(_HEADINGS, *rows)])  # noqa: B905 - the date has no column
    lines = [console.paint(line, Style.STRONG) for line in _folded(title, console.width)]
    lines.append(console.paint((_row_form(widths) % _HEADINGS).rstrip(), Style.FAINT))
    day = ""
    epoch = leader_epoch = None
    for entry, cells in zip(timeline.entries, rows, strict=True):
        if isinstance(entry, FindingEntry):
            finding = findings.get(entry.fingerprint)
            if finding is not None:
                lines += headline_lines(finding, console, lead=_INDENT, indent=_INDENT * 3)
            continue
        date = cells[-1]
        if date and date != day:
            lines.append(console.paint(f"{_INDENT}{date}", Style.FAINT))
            day = date
        lines += _row(cells, widths, detail(entry, epoch, leader_epoch), console)
        if isinstance(entry, RunEntry | MarkerEntry):
            epoch = entry.producer_epoch
        if isinstance(entry, RunEntry):
            leader_epoch = entry.last_leader_epoch
    return lines + console.wrap(_state(timeline.state), lead=f"{_INDENT}end state: ")


def _cells(entry: Entry) -> tuple[str, ...]:
    """Return what stands in the columns, and last the date."""
    if isinstance(entry, FindingEntry):
        return ("",) * (len(_HEADINGS) + 1)
    epoch = None if isinstance(entry, MissingEntry) else entry.producer_epoch
    date, clock = date_and_clock(entry.first_timestamp)
    return offsets(entry), event(entry), "-" if epoch is None else str(epoch), sequences(entry), clock, date


@lru_cache(maxsize=256)
def _row_form(widths: tuple[int, ...]) -> str:
    """Return the columns of a line, to be filled: few widths differ between producers."""
    return _INDENT + _GAP.join(f"%-{width}s" for width in widths)


def _row(cells: tuple[str, ...], widths: tuple[int, ...], detail: str, console: Console) -> list[str]:
    text = _row_form(widths) % cells[:-1]
    beside = detail and console.fits(len(text) + len(_GAP) + len(detail))
    below = console.wrap(detail, lead=_INDENT + " " * (widths[0] + len(_GAP))) if detail and not beside else []
    lines = [f"{text}{_GAP}{detail}" if beside else text.rstrip(), *below]
    return [_highlighted(line, cells[1], console) for line in lines] if console.color else lines


def _highlighted(line: str, event: str, console: Console) -> str:
    """Colour ends of transactions, open transactions, fencing and missing offsets."""
    for word, style in _STYLES.items():
        if word == event or word.endswith(" "):
            line = line.replace(word, console.paint(word, style), 1)
    return line


def _folded(parts: Sequence[str], width: int | None) -> list[str]:
    """Put parts of a title side by side; parts that do not fit go on lines of their own below."""
    lines = [parts[0]]
    for part in parts[1:]:
        if width is None or len(lines[-1]) + len(_GAP) + len(part) <= width:
            lines[-1] += _GAP + part
        else:
            lines.append(_INDENT * 2 + part)
    return lines


def _state(state: EndState) -> str:
    """Return what a broker would remember of this producer after the last entry."""
    sequence, open_since = state.last_sequence, state.current_txn_start_offset
    parts = [f"epoch {state.producer_epoch}"]
    parts.append(
        "no sequence remembered"
        if sequence in (None, -1)
        else f"last sequence {sequence} at offset {state.last_offset}"
    )
    parts.append("no open transaction" if open_since in (None, -1) else f"transaction open since offset {open_since}")
    return ", ".join(parts)


_SHORT_MS = 50
"""The duration of a run is shown from here on."""


def event(entry: Entry) -> str:
    """Return the kind of event: data, txn data, COMMIT, missing, ..."""
    match entry:
        case RunEntry():
            return "txn data" if entry.is_transactional else "data"
        case MarkerEntry():
            return visible((entry.type or "marker").upper())
        case EventEntry():
            return visible(f"refused: {entry.event}" if entry.is_refusal else entry.event)
    return entry.kind


def offsets(entry: Entry) -> str:
    """Return the entry's offset or offsets."""
    return span(entry.first_offset, entry.last_offset)


def sequences(entry: Entry) -> str:
    """Return the sequences of a run, or of the batch that an event is about; others have none."""
    if isinstance(entry, RunEntry):
        return span(entry.first_sequence, entry.last_sequence)
    return span(entry.base_sequence, None) if isinstance(entry, EventEntry) else "-"


def detail(entry: Entry, epoch: int | None = None, leader_epoch: int | None = None) -> str:
    """Return further details of the entry; `epoch` and `leader_epoch` are those of the runs and markers before it, None for the first."""
    return ", ".join(filter(None, _details(entry, epoch, leader_epoch)))


def _details(entry: Entry, epoch: int | None, leader_epoch: int | None) -> Iterator[str]:
    match entry:
        case MissingEntry():
            yield f"{plural(entry.offsets, 'offset')} not in the log: {entry.cause.value}"
        case EventEntry():
            yield visible(f"{entry.path.rpartition('/')[2]}:{entry.line}")
            if entry.expected_sequence is not None:
                yield f"the broker has {entry.expected_sequence}"
            elif entry.expected_epoch is not None:
                yield f"the broker has epoch {entry.expected_epoch}"
            yield "" if entry.placed_by == "offset" else f"placed by {visible(entry.placed_by)}"
        case MarkerEntry():
            yield _fenced(entry.producer_epoch, epoch)
            yield "" if entry.coordinator_epoch is None else f"coordinator epoch {entry.coordinator_epoch}"
        case RunEntry():
            yield _fenced(entry.producer_epoch, epoch)
            if entry.transaction is not None:
                outcome = visible(entry.transaction.outcome)
                yield f"{outcome} since offset {entry.transaction.first_offset}" if outcome == "open" else outcome
            yield from _amount(entry)
            if entry.first_leader_epoch != entry.last_leader_epoch or leader_epoch not in (
                None,
                entry.first_leader_epoch,
            ):
                yield f"leader epoch {span(entry.first_leader_epoch, entry.last_leader_epoch)}"


def _fenced(epoch: int, lower: int | None) -> str:
    """Return which epoch a higher one fences, where it rises."""
    return f"fences epoch {lower}" if lower is not None and epoch > lower else ""


def _amount(run: RunEntry) -> Iterator[str]:
    """Yield the number of batches, and of records where compaction removed some: the sequences show how many there were."""
    first, last = run.min_timestamp, run.max_timestamp
    shows = first != NO_TIMESTAMP and last >= first + _SHORT_MS
    yield plural(run.batches, "batch", "batches") + (f" in {duration((last - first) / 1000)}" if shows else "")
    written = distance(run.first_sequence, run.last_sequence) + 1
    if run.records != written and written >= 1:
        yield f"{run.records:,} of {written:,} records left"


def describe(entry: Entry) -> str:
    """Return the whole entry on one line, each value with its name."""
    parts = [event(entry), f"offset {offsets(entry)}"]
    if isinstance(entry, RunEntry | MarkerEntry | EventEntry):
        parts.append(f"epoch {entry.producer_epoch}")
    if isinstance(entry, RunEntry):
        parts.append(f"sequence {sequences(entry)}")
    if (first := _time(entry.first_timestamp)) is not None:
        parts.append(span(first, _time(entry.last_timestamp)))
    return ", ".join(filter(None, [*parts, detail(entry)]))


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds in (None, NO_TIMESTAMP) else rfc3339(milliseconds)
