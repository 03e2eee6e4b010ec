"""One entry of a timeline as text."""

from collections.abc import Iterator

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.json_record import rfc3339
from kaudit.model.sequence import distance
from kaudit.model.timeline import Entry, EventEntry, MarkerEntry, MissingEntry, RunEntry
from kaudit.report.console import visible
from kaudit.report.text.formatting import duration, plural, span

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
