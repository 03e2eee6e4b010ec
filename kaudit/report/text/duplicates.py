"""`kaudit dedup`: what repeats what and why, rows of duplicates, and their effect on consumers that deduplicate."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from msgspec import structs, to_builtins

from kaudit.audits.repeats.duplicates import PartitionDuplicates
from kaudit.checks.texts import first_of
from kaudit.listings.duplicates import MAX_RANGES, DuplicateListing, PartitionTotal
from kaudit.model.duplicates import Cause, Duplicate, DuplicateCounts, Relation, RepeatedRange
from kaudit.model.result import NotAudited
from kaudit.model.severity import Confidence
from kaudit.report.console import Console, Style, visible
from kaudit.report.json_rows import rows_document, rows_jsonl
from kaudit.report.text.formatting import duration, plural, span

Row = dict[str, object]

_GIVEN_TWICE = {
    Relation.NO_PRODUCER_ID: "without a producer id",
    Relation.OTHER_PRODUCER_ID: "under another producer id",
    Relation.OTHER_EPOCH: "under another producer epoch",
    Relation.OTHER_SEQUENCE: "under another sequence of the same producer",
    Relation.SAME_SEQUENCE: "under the same sequence, further back than is compared",
}
_HEADINGS = ("a consumer that remembers", "drops equal", "processes equal", "drops different")
_CAUSES = {
    Cause.REPROCESSING: "reprocessing: an application wrote them once more",
    Cause.RE_SNAPSHOT: "re-snapshot: a connector read its tables again",
    Cause.MIRROR: "mirror or restore: written again with the timestamps they had",
    Cause.RECURRING: "recurring: equal records that are written over and over, such as heartbeats",
    Cause.UNKNOWN: "no sign that they were sent again: an application, or a person, may have written them",
}
_RETRIES = {
    Relation.SAME_SEQUENCE: "the broker appended a batch again under the same sequence",
    Relation.OTHER_EPOCH: "the producer raised its epoch and sent again what it had in flight",
    Relation.NO_PRODUCER_ID: "a client without idempotence sent a request again",
}


def duplicate_rows(listing: DuplicateListing, *, read_committed: bool) -> Iterator[Row]:
    """Yield a row for each duplicate and, after its last one, for each range of them, as DUPLICATE_TABLES has them."""
    for partition, found in listing.found(read_committed=read_committed):
        row = _fields(partition, found)
        row["row"] = "range" if isinstance(found, RepeatedRange) else "duplicate"
        yield row


def _fields(partition: PartitionDuplicates, found: Duplicate | RepeatedRange) -> Row:
    directory, fields = partition.directory, to_builtins(found)
    fields |= {"topic": directory.topic, "partition": directory.partition, "replica": directory.replica}
    return cast("Row", fields)


def jsonl(rows: Iterable[Row], listing: Callable[[], DuplicateListing], isolation_level: str) -> Iterator[str]:
    """Yield one row a line, then a summary: `listing` is asked when all rows have been read."""
    return rows_jsonl(rows, lambda: _summary(listing(), isolation_level))


def document(rows: Iterable[Row], listing: Callable[[], DuplicateListing], isolation_level: str) -> Iterator[str]:
    """Yield the kaudit.dedup/1 document; `listing` as `jsonl` has it."""
    return rows_document(
        "kaudit.dedup/1",
        rows,
        lambda: {"inputs": list(listing().scan.inputs), "summary": _summary(listing(), isolation_level)},
    )


def _summary(listing: DuplicateListing, isolation_level: str) -> Row:
    return {
        "isolation_level": isolation_level,
        "compared": "records",
        "exhaustive": _is_exhaustive(listing.totals),
        "incomplete": listing.scan.incomplete,
        "not_compared": [note.to_dict() for note in not_compared(listing)],
        "partitions": [structs.asdict(total) | {"counts": structs.asdict(total.counts)} for total in listing.totals],
        "counts": structs.asdict(_counts(listing.totals)),
        "ranges": [_fields(*each) for each in listing.ranges],
        "more_ranges": listing.range_count - len(listing.ranges),
    }


def summary_text(listing: DuplicateListing, console: Console, isolation_level: str, most_ranges: int) -> Iterator[str]:
    """Yield the lines above the table: the total, at most so many ranges, and the effect on consumers that deduplicate."""
    totals = listing.totals
    counts, records = _counts(totals), sum(total.records for total in totals)
    doubtful = counts.by_confidence.get(Confidence.POSSIBLE.value, 0)
    repeated = counts.repeated - doubtful
    verb = "repeats an earlier one" if repeated == 1 else "repeat earlier ones"
    least = "" if _is_exhaustive(totals) else "at least "
    text = f"{least}{repeated:,} of {plural(records, 'record')} {verb} (as isolation.level={isolation_level} is given them)"
    yield from (console.paint(line, Style.STRONG) + "\n" for line in console.wrap(text))
    if doubtful:
        verb = "equals an earlier one" if doubtful == 1 else "equal earlier ones"
        text = f"{doubtful:,} more {verb}, which proves nothing: alone, under another timestamp, or over and over"
        yield from (line + "\n" for line in console.wrap(text))
    yield from _ranges(listing, console, most_ranges)
    if counts.repeated or counts.lost_by_sequence or _sum(totals, "known_keys"):
        yield "\n"
        yield from _table(totals, counts, console)
    for text in _remarks(totals, counts):
        yield from (line + "\n" for line in console.wrap(text, lead="- ", indent="  "))


def _ranges(listing: DuplicateListing, console: Console, most: int) -> Iterator[str]:
    """Yield the surest ranges with the most records, in the order of the log."""
    certainty = list(Confidence)
    ranges = [each for each in listing.ranges if each[1].cause is not Cause.RECURRING or most == MAX_RANGES]
    chosen = sorted(ranges, key=lambda each: (certainty.index(each[1].confidence), -each[1].record_count))
    shown = chosen[:most]
    chosen_ids = {id(found) for _, found in shown}
    for partition, found in listing.ranges:
        if id(found) in chosen_ids:
            yield "\n"
            yield from _range(partition.directory.name, found, console)
    more = len(ranges) - len(shown) + listing.range_count - len(listing.ranges)
    if more:
        yield f"\n{plural(more, 'more range')} (-v shows them)\n"


def _range(name: str, found: RepeatedRange, console: Console) -> Iterator[str]:
    again, original = span(found.offset, found.last_offset), span(found.original_offset, found.original_last_offset)
    verb = "equals" if found.confidence is Confidence.POSSIBLE else "repeats" if found.record_count == 1 else "repeat"
    if found.confidence is Confidence.POSSIBLE and found.record_count > 1:
        verb = "equal"
    head = f"{visible(name)}: {again} {verb} {original} ({plural(found.record_count, 'record')})"
    yield from (console.paint(line, Style.STRONG) + "\n" for line in console.wrap(head))
    for text in _facts(found):
        yield from (line + "\n" for line in console.wrap(text, lead="  ", indent="    "))


def _facts(found: RepeatedRange) -> Iterator[str]:
    likely = {Confidence.CERTAIN: "", Confidence.LIKELY: "likely a "}.get(found.confidence, "")
    yield f"{likely}{_cause(found)}"
    same = (
        "equal in key, value and headers" if found.differs_in is None else f"they differ in {visible(found.differs_in)}"
    )
    times = "timestamps equal too" if found.same_timestamps else _later(found)
    yield f"{same}; {times}"
    if found.recognisable_by is None:
        yield "nothing but their content shows a consumer that it had them before"
    else:
        yield f"a consumer can recognise them by: {visible(found.recognisable_by)}"


def _cause(found: RepeatedRange) -> str:
    if found.cause is Cause.RETRY:
        if found.relation in _RETRIES:
            return f"retry: {_RETRIES[found.relation]}"
        return "retry: the transaction that wrote them first was aborted"
    if found.cause is Cause.RESTART:
        new, old = (
            f"{producer_id}/{epoch}"
            for producer_id, epoch in (
                (found.producer_id, found.producer_epoch),
                (found.original_producer_id, found.original_producer_epoch),
            )
        )
        return f"restart: producer {new} begins with what producer {old} had written"
    if found.cause is Cause.MIRROR and found.relation is Relation.NO_PRODUCER_ID:
        return "mirror that began again, or a client without idempotence that sent them again in other batches"
    return _CAUSES[found.cause]


def _later(found: RepeatedRange) -> str:
    if found.timestamp is None or found.original_timestamp is None:
        return "no timestamps to compare"
    apart = found.timestamp - found.original_timestamp
    return f"timestamps {duration(abs(apart) / 1000)} {'later' if apart >= 0 else 'earlier'}"


def not_compared(listing: DuplicateListing) -> list[NotAudited]:
    """Return an entry for everything that could not be compared, with the reason."""
    found = [note for note in listing.scan.not_audited if note.unreadable or note.asked_for]
    found += [
        NotAudited(partition.directory.name, "has damage ('kaudit scan' describes it): records in it are not compared")
        for partition in listing.partitions
        if partition.read.damaged
    ]
    for total in listing.totals:
        name = f"{total.topic}-{total.partition}"
        if total.undecoded:
            found.append(NotAudited(name, f"{plural(total.undecoded, 'batch', 'batches')} cannot be decoded"))
        if total.unread:
            found.append(NotAudited(name, f"{plural(total.unread, 'repeat')} cannot be read again, or not be decoded"))
        if total.more:
            text = (
                f"{plural(total.more, 'more record')} whose sequences other batches have, too: not compared with these"
            )
            found.append(NotAudited(name, text))
    return found


def _table(totals: Sequence[PartitionTotal], counts: DuplicateCounts, console: Console) -> Iterator[str]:
    keys = _sum(totals, "known_keys")
    lines = [
        _HEADINGS,
        ("keys", counts.dropped_by_key, counts.repeated - counts.dropped_by_key, keys),
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
    compacted = [f"{total.topic}-{total.partition}" for total in totals if total.compacted]
    if compacted:
        yield f"Compacted ({visible(first_of(compacted))}): copies that the log cleaner removed are not listed, though consumers may have read them."


def _counts(totals: Iterable[PartitionTotal]) -> DuplicateCounts:
    counts = DuplicateCounts()
    for total in totals:
        counts.merge(total.counts)
    return counts


def _is_exhaustive(totals: Iterable[PartitionTotal]) -> bool:
    """Whether every record was compared with all before it, by its sequence too."""
    return not any(total.more for total in totals)


def _sum(totals: Iterable[PartitionTotal], name: str) -> int:
    return sum(getattr(total, name) for total in totals)
