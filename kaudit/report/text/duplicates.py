"""`kaudit dedup`: rows of duplicates, and their effect on consumers that deduplicate."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import structs

from kaudit import __version__
from kaudit.audits.repeats.suspects import WINDOW
from kaudit.listings.duplicates import DuplicateListing, PartitionTotal
from kaudit.model.duplicates import RECURRING_COPY, DuplicateCounts, Relation
from kaudit.model.result import NotAudited
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_rows import rows_document, rows_jsonl
from kaudit.report.text.formatting import plural

Row = dict[str, object]

_GIVEN_TWICE = {
    Relation.NO_PRODUCER_ID: "without a producer id",
    Relation.OTHER_PRODUCER_ID: "under another producer id",
    Relation.OTHER_EPOCH: "under another producer epoch",
    Relation.OTHER_SEQUENCE: "under another sequence of the same producer",
    Relation.SAME_SEQUENCE: "under the same sequence, further back than is compared",
}
_HEADINGS = ("a consumer that remembers", "recognises", "processes twice", "drops, though new")


def duplicate_rows(listing: DuplicateListing, *, read_committed: bool) -> Iterator[Row]:
    """Yield a row for each duplicate, as DUPLICATE_TABLES has them."""
    for partition, found in listing.duplicates(read_committed=read_committed):
        directory = partition.directory
        place = {"topic": directory.topic, "partition": directory.partition, "replica": directory.replica}
        yield {"row": "duplicate", **place, **structs.asdict(found), "relation": found.relation.value}


def jsonl(rows: Iterable[Row], listing: Callable[[], DuplicateListing], isolation_level: str) -> Iterator[str]:
    """Yield one row a line, then a summary: `listing` is asked when all rows have been read."""
    yield from rows_jsonl(rows)
    yield from rows_jsonl([{"row": "summary", **_summary(listing(), isolation_level)}])


def document(rows: Iterable[Row], listing: Callable[[], DuplicateListing], isolation_level: str) -> Iterator[str]:
    """Yield the kaudit.dedup/1 document; `listing` as `jsonl` has it."""
    return rows_document(
        {},
        rows,
        lambda: {
            "inputs": list(listing().scan.inputs),
            "schema": "kaudit.dedup/1",
            "summary": _summary(listing(), isolation_level),
            "tool": {"name": "kaudit", "version": __version__},
        },
    )


def _summary(listing: DuplicateListing, isolation_level: str) -> Row:
    return {
        "isolation_level": isolation_level,
        "compared": "records" if _compares_records(listing.totals) else "batches",
        "window": WINDOW,
        "incomplete": listing.scan.incomplete,
        "not_compared": [note.to_dict() for note in not_compared(listing)],
        "partitions": [structs.asdict(total) | {"counts": structs.asdict(total.counts)} for total in listing.totals],
        "counts": structs.asdict(_counts(listing.totals)),
    }


def summary_text(listing: DuplicateListing, console: Console, isolation_level: str) -> Iterator[str]:
    """Yield the lines above the table: the total, and the effect on consumers that deduplicate."""
    totals = listing.totals
    counts, records = _counts(totals), sum(total.records for total in totals)
    compared = "one by one" if _compares_records(totals) else "batch by batch"
    verb = "repeats an earlier one" if counts.repeated == 1 else "repeat earlier ones"
    text = f"{counts.repeated:,} of {plural(records, 'record')} {verb} (compared {compared}, as isolation.level={isolation_level} is given them)"
    yield from (console.paint(line, Style.STRONG) + "\n" for line in console.wrap(text))
    if counts.repeated or counts.lost_by_sequence or _known(totals, "known_keys"):
        yield "\n"
        yield from _table(totals, counts, console)
    for text in _remarks(totals, counts):
        yield from (line + "\n" for line in console.wrap(text, lead="- ", indent="  "))


def not_compared(listing: DuplicateListing) -> list[NotAudited]:
    """Return an entry for everything that could not be compared, with the reason."""
    found = [note for note in listing.scan.not_audited if note.unreadable or note.asked_for]
    found += [
        NotAudited(partition.directory.name, "text of kafka-dump-log: it holds no records to compare")
        for partition in listing.partitions
        if any(segment.text is not None for segment in partition.directory.segments)
    ]
    for total in listing.totals:
        name = f"{total.topic}-{total.partition}"
        if total.undecoded:
            found.append(NotAudited(name, f"{plural(total.undecoded, 'batch', 'batches')} cannot be decoded"))
        if total.unread:
            found.append(NotAudited(name, f"{plural(total.unread, 'suspect')} cannot be read again, or not be decoded"))
        if total.more:
            found.append(NotAudited(name, f"{plural(total.more, 'more suspect')} counted here, not listed"))
    return found


def _table(totals: Sequence[PartitionTotal], counts: DuplicateCounts, console: Console) -> Iterator[str]:
    keys = _known(totals, "known_keys")
    lines = [
        _HEADINGS,
        ("keys", counts.dropped_by_key, counts.repeated - counts.dropped_by_key, "not known" if keys is None else keys),
        (
            "producer id, epoch, sequence",
            counts.dropped_by_sequence,
            counts.repeated - counts.dropped_by_sequence,
            counts.lost_by_sequence,
        ),
    ]
    widths = [max(len(str(cell)) for cell in column) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = [str(cell).rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text = "  ".join([str(line[0]).ljust(widths[0]), *cells])
        yield (console.paint(text, Style.FAINT) if not number else text) + "\n"


def _remarks(totals: Sequence[PartitionTotal], counts: DuplicateCounts) -> Iterator[str]:
    if counts.repeated and counts.given_twice_by_sequence:
        parts = [
            f"{records} {_GIVEN_TWICE[Relation(relation)]}"
            for relation, records in sorted(counts.given_twice_by_sequence.items())
        ]
        yield f"Not recognised by sequence: {', '.join(parts)}."
    if counts.repeated > counts.dropped_by_key:
        yield f"Not recognised by key: {counts.repeated - counts.dropped_by_key} have no key."
    if counts.recurring:
        yield (
            f"{counts.recurring} of the repeats are copy {RECURRING_COPY} or later: records that recur by themselves, "
            "rather than copies that a client sent again."
        )
    if totals and not _compares_records(totals):
        yield "Batches were compared as wholes: --depth records finds records that were batched anew, and keys that recur."
    compacted = [f"{total.topic}-{total.partition}" for total in totals if total.compacted]
    if compacted:
        more = f" and {len(compacted) - 1} more" if len(compacted) > 1 else ""
        yield f"Compacted ({visible(compacted[0])}{more}): copies that the log cleaner removed are not listed, though consumers may have read them."


def _counts(totals: Iterable[PartitionTotal]) -> DuplicateCounts:
    counts = DuplicateCounts()
    for total in totals:
        counts.merge(total.counts)
    return counts


def _known(totals: Iterable[PartitionTotal], name: str) -> int | None:
    known = [number for number in (getattr(total, name) for total in totals) if number is not None]
    return sum(known) if known else None


def _compares_records(totals: Iterable[PartitionTotal]) -> bool:
    return any(total.known_keys is not None for total in totals)
