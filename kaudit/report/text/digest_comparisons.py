"""`kaudit diff` by digests: two sites' fingerprints compared, or the logs compared with a saved report; a line per partition."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from kaudit.checks.texts import first_of
from kaudit.model.fingerprint import (
    FingerprintComparison,
    FingerprintDiff,
    HeldBatch,
    PartitionVerification,
    Verification,
    VerificationOutcome,
)
from kaudit.model.json_record import document_head
from kaudit.model.replicas import OffsetRange, Relation
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.diff import relation_table
from kaudit.report.text.formatting import plural, span

_COMPARISON_SCHEMA = "kaudit.fingerprint-diff/1"
_RANGES_SHOWN = 3
_REMARKS_SHOWN = 20


def comparison_document(found: FingerprintDiff) -> Iterator[str]:
    """Yield the kaudit.fingerprint-diff/1 document."""
    yield json.dumps(
        {
            **document_head(_COMPARISON_SCHEMA),
            "inputs": list(found.inputs),
            "sites": list(found.names),
            "incomplete": found.incomplete,
            "not_audited": [entry.to_dict() for entry in found.not_audited],
            "partitions": [_partition(entry) for entry in found.partitions],
            "only_on": {
                name: [{"topic": topic, "partition": number} for topic, number in keys]
                for name, keys in found.only_on.items()
            },
        },
        indent=2,
    )
    yield "\n"


def _partition(entry: FingerprintComparison) -> dict[str, object]:
    first = entry.first_difference
    batches = None if first is None else {name: _batch(batch) for name, batch in first.items()}
    return entry.to_dict() | {"first_difference": batches}


def _batch(batch: HeldBatch | None) -> dict[str, int] | None:
    return None if batch is None else {name: getattr(batch, name) for name in batch.__struct_fields__}


def comparison_text(found: FingerprintDiff, console: Console, narrowing: str | None) -> Iterator[str]:
    """Yield the report as text; `narrowing` is the command that makes digests of narrower ranges, None where there is none to run."""
    listed = [entry for entry in found.partitions if entry.relation in (Relation.BEHIND, Relation.DIVERGED)]
    headings = [
        "partition",
        "relation",
        "identical up to",
        *(f"{visible(name)} ends" for name in found.names),
        "differs in",
    ]
    sections = [
        relation_table(headings, [_cells(entry, found.names) for entry in listed], console),
        [line for text in _remarks(found) for line in console.wrap(text, lead="- ", indent="  ")],
        [*console.wrap(_comparison_summary(found)), *_next(found, narrowing)],
    ]
    text = "\n".join("".join(line + "\n" for line in section) for section in sections if section)
    yield text


def _cells(entry: FingerprintComparison, names: Sequence[str]) -> list[str]:
    return [
        visible(f"{entry.topic}-{entry.partition}"),
        "" if entry.relation is None else entry.relation.value,
        "-" if entry.identical_up_to is None else str(entry.identical_up_to),
        *(str(entry.end_offsets[name]) for name in names),
        _few(entry.differing) or "-",
    ]


def _few(ranges: Sequence[OffsetRange]) -> str:
    return _ranges(ranges, _RANGES_SHOWN, "more")


def _remarks(found: FingerprintDiff) -> Iterator[str]:
    remarks = [text for entry in found.partitions for text in _of_partition(entry, found.names)]
    for name, keys in found.only_on.items():
        if keys:
            held = first_of([f"{topic}-{partition}" for topic, partition in keys])
            remarks.append(f"{visible(held)}: on {visible(name)} only, not compared.")
    yield from remarks[:_REMARKS_SHOWN]
    if len(remarks) > _REMARKS_SHOWN:
        yield f"{plural(len(remarks) - _REMARKS_SHOWN, 'more remark')} like these: json lists all."


def _of_partition(entry: FingerprintComparison, names: Sequence[str]) -> Iterator[str]:
    partition = visible(f"{entry.topic}-{entry.partition}")
    if entry.first_difference is not None:
        held = "; ".join(f"{visible(name)} holds {_held(batch)}" for name, batch in entry.first_difference.items())
        yield f"{partition} at offset {entry.differing[0].first}: {held}."
    if entry.differing and entry.compacted:
        yield (
            f"{partition} differs in {_few(entry.differing)}, but is compacted: the log cleaner removes records at its own "
            "time on each replica. Compare the directories themselves."
        )
    for name in entry.damaged_on:
        yield f"{partition}: some bytes on {visible(name)} are not a valid batch; 'kaudit scan' says which."
    if entry.not_compared:
        yield f"{partition}: {_few(entry.not_compared)} not compared: the digests there cover other offsets on each site."
    elif entry.relation is None and not entry.differing:
        spans = " and ".join(
            f"{visible(name)} {_bounds(entry.start_offsets[name], entry.end_offsets[name])}" for name in names
        )
        yield f"{partition}: no offset is in both logs, {spans}."


def _bounds(start: int, end: int) -> str:
    return f"holds {span(start, end - 1)}" if start < end else f"is empty at {end}"


def _held(batch: HeldBatch | None) -> str:
    if batch is None:
        return "no batch"
    epoch = "no leader epoch" if batch.leader_epoch < 0 else f"leader epoch {batch.leader_epoch}"
    return f"batch {span(batch.base_offset, batch.last_offset)} ({epoch}, CRC {batch.crc:08x})"


def _comparison_summary(found: FingerprintDiff) -> str:
    counts = Counter(entry.relation for entry in found.partitions)
    partial = sum(1 for entry in found.partitions if entry.relation is Relation.IDENTICAL and entry.not_compared)
    parts = [f"{plural(counts[relation], 'partition')} {relation.value}" for relation in Relation if counts[relation]]
    if counts[None]:
        parts.append(f"{counts[None]} undecided")
    text = ", ".join(parts) or "no partition that both have"
    return f"{text}, by digests of {visible(found.names[0])} and {visible(found.names[1])}" + (
        f"; {partial} of the identical ones only as far as compared" if partial else ""
    )


def _next(found: FingerprintDiff, narrowing: str | None) -> list[str]:
    """Return how to narrow the difference down; nothing where the batches that differ are known."""
    if narrowing is None or not any(
        entry.not_compared or (entry.differing and entry.first_difference is None) for entry in found.partitions
    ):
        return []
    return [
        "To narrow it down, make digests of narrower ranges here:",
        f"    {narrowing} > narrower.json",
        "and at the other site: kaudit diff narrower.json DIR",
    ]


_VERIFICATION_SCHEMA = "kaudit.verification/1"
_ORDER = (
    VerificationOutcome.DIFFERS,
    VerificationOutcome.MISSING,
    VerificationOutcome.CLEANED,
    VerificationOutcome.UNPROVEN,
    VerificationOutcome.UNCHANGED,
)
_STYLES = {VerificationOutcome.UNCHANGED: Style.GOOD, VerificationOutcome.DIFFERS: Style.ERROR}
_SHOWN = 50
_VERIFIED_RANGES_SHOWN = 5


def verification_document(found: Verification, report: str) -> Iterator[str]:
    """Yield the kaudit.verification/1 document; `report` is the file that the logs were compared with."""
    yield json.dumps(
        {
            **document_head(_VERIFICATION_SCHEMA),
            "report": report,
            "inputs": list(found.inputs),
            "incomplete": found.incomplete,
            "not_audited": [entry.to_dict() for entry in found.not_audited],
            "partitions": [
                entry.to_dict() | {"grown": None if entry.grown is None else entry.grown.to_dict()}
                for entry in found.partitions
            ],
            "not_judged": [{"topic": topic, "partition": number} for topic, number in found.not_in_report],
        },
        indent=2,
    )
    yield "\n"


def verification_text(found: Verification, report: str, console: Console) -> Iterator[str]:
    """Yield the result as text."""
    ordered = sorted(found.partitions, key=lambda entry: _ORDER.index(entry.verdict))
    lines: list[str] = []
    for entry in ordered[:_SHOWN]:
        name = visible(f"{entry.topic}-{entry.partition}")
        verdict = console.paint(entry.verdict.value, _STYLES.get(entry.verdict, Style.WARNING))
        lines += console.wrap("; ".join(_sentences(entry)) + ".", lead=f"{name} {verdict}: ", indent="    ")
    if len(ordered) > _SHOWN:
        lines.append(f"{plural(len(ordered) - _SHOWN, 'more partition')} (json lists all)")
    lines += ["", *console.wrap(_verification_summary(found, report))]
    yield "".join(line + "\n" for line in lines)


def _sentences(entry: PartitionVerification) -> Iterator[str]:
    if entry.verdict is VerificationOutcome.MISSING:
        yield f"the report audited {_offsets(entry)}, and it is not here"
        return
    if entry.differing:
        yield f"not what the report audited, somewhere in each of offsets {_ranges(entry.differing)}"
    if entry.lost is not None:
        yield f"the log ends at {entry.log_end_offset}, offsets {_ranges([entry.lost])} are gone"
    if entry.cleaned:
        yield f"offsets {_ranges(entry.cleaned)} differ, where the log cleaner may have been"
    if entry.unchanged:
        yield f"offsets {_ranges(entry.unchanged)} are what the report audited"
    elif entry.start_offset == entry.end_offset:
        yield "the report audited no offset of it"
    yield from _since(entry)


def _since(entry: PartitionVerification) -> Iterator[str]:
    if entry.removed is not None:
        yield f"{_ranges([entry.removed])} removed since, the log begins at {entry.log_start_offset}"
    if entry.not_compared:
        yield f"{_ranges(entry.not_compared)} cannot be compared: the digest there is of more than can be read now"
    if entry.grown is not None:
        yield f"{_ranges([entry.grown])} written since"
    if entry.damaged:
        yield "some bytes are not a valid batch ('kaudit scan' says which)"


def _offsets(entry: PartitionVerification) -> str:
    return (
        f"offsets {span(entry.start_offset, entry.end_offset - 1)}" if entry.start_offset < entry.end_offset else "it"
    )


def _ranges(ranges: Sequence[OffsetRange], most: int = _VERIFIED_RANGES_SHOWN, noun: str = "more ranges") -> str:
    shown = ", ".join(span(each.first, each.last) for each in ranges[:most])
    return shown + (f" and {len(ranges) - most} {noun}" if len(ranges) > most else "")


def _verification_summary(found: Verification, report: str) -> str:
    counts = Counter(entry.verdict for entry in found.partitions)
    counted = ", ".join(
        f"{plural(counts[verdict], 'partition')} {verdict.value}" for verdict in reversed(_ORDER) if counts[verdict]
    )
    changes = {
        "grown since": sum(entry.grown is not None for entry in found.partitions),
        "without its former beginning": sum(entry.removed is not None for entry in found.partitions),
        "here that the report did not audit": len(found.not_in_report),
    }
    more = "".join(f"; {number:,} {what}" for what, number in changes.items() if number)
    return f"{counted}, by the digests of {visible(report)}{more}"
