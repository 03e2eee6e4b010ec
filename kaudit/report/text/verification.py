"""A report held against logs: a line for each partition, those that differ first."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from kaudit import __version__
from kaudit.model.fingerprint import PartitionVerification, Verification, VerificationOutcome
from kaudit.model.replicas import OffsetRange
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import plural, span

_SCHEMA = "kaudit.verification/1"
_ORDER = (
    VerificationOutcome.DIFFERS,
    VerificationOutcome.MISSING,
    VerificationOutcome.CLEANED,
    VerificationOutcome.UNPROVEN,
    VerificationOutcome.UNCHANGED,
)
_STYLES = {VerificationOutcome.UNCHANGED: Style.GOOD, VerificationOutcome.DIFFERS: Style.ERROR}
_SHOWN = 50
_RANGES_SHOWN = 5


def document(found: Verification, report: str) -> Iterator[str]:
    """Yield the kaudit.verification/1 document; `report` is the file that was held against the logs."""
    yield json.dumps(
        {
            "schema": _SCHEMA,
            "tool": {"name": "kaudit", "version": __version__},
            "report": report,
            "inputs": list(found.inputs),
            "incomplete": found.incomplete,
            "not_audited": [entry.to_dict() for entry in found.not_audited],
            "partitions": [_partition(entry) for entry in found.partitions],
            "not_judged": [{"topic": topic, "partition": number} for topic, number in found.not_judged],
        },
        indent=2,
    )
    yield "\n"


def _partition(entry: PartitionVerification) -> dict[str, object]:
    return entry.to_dict() | {"grown": None if entry.grown is None else entry.grown.to_dict()}


def render(found: Verification, report: str, console: Console) -> Iterator[str]:
    """Yield the result as text."""
    ordered = sorted(found.partitions, key=lambda entry: _ORDER.index(entry.verdict))
    lines: list[str] = []
    for entry in ordered[:_SHOWN]:
        name = visible(f"{entry.topic}-{entry.partition}")
        verdict = console.paint(entry.verdict.value, _STYLES.get(entry.verdict, Style.WARNING))
        lines += console.wrap("; ".join(_sentences(entry)) + ".", lead=f"{name} {verdict}: ", indent="    ")
    if len(ordered) > _SHOWN:
        lines.append(f"{plural(len(ordered) - _SHOWN, 'more partition')} (json lists all)")
    lines += ["", *console.wrap(_summary(found, report))]
    yield "".join(line + "\n" for line in lines)


def _sentences(entry: PartitionVerification) -> Iterator[str]:
    if entry.verdict is VerificationOutcome.MISSING:
        yield f"the report judged {_offsets(entry)}, and it does not lie here"
        return
    if entry.differing:
        yield f"not what the report judged, somewhere in each of offsets {_ranges(entry.differing)}"
    if entry.lost is not None:
        yield f"the log ends at {entry.log_end_offset}, offsets {_ranges([entry.lost])} are gone"
    if entry.cleaned:
        yield f"offsets {_ranges(entry.cleaned)} differ, where the log cleaner may have been"
    if entry.unchanged:
        yield f"offsets {_ranges(entry.unchanged)} are what the report judged"
    elif entry.start_offset == entry.end_offset:
        yield "the report judged no offset of it"
    yield from _since(entry)


def _since(entry: PartitionVerification) -> Iterator[str]:
    if entry.removed is not None:
        yield f"{_ranges([entry.removed])} removed since, the log begins at {entry.log_start_offset}"
    if entry.not_compared:
        yield f"{_ranges(entry.not_compared)} cannot be compared: the digest there is of more than can be read now"
    if entry.grown is not None:
        yield f"{_ranges([entry.grown])} written since"
    if entry.damaged:
        yield "some bytes are no valid batch ('kaudit scan' says which)"


def _offsets(entry: PartitionVerification) -> str:
    return (
        f"offsets {span(entry.start_offset, entry.end_offset - 1)}" if entry.start_offset < entry.end_offset else "it"
    )


def _ranges(ranges: Sequence[OffsetRange]) -> str:
    shown = ", ".join(span(each.first, each.last) for each in ranges[:_RANGES_SHOWN])
    return shown + (f" and {len(ranges) - _RANGES_SHOWN} more ranges" if len(ranges) > _RANGES_SHOWN else "")


def _summary(found: Verification, report: str) -> str:
    counts = Counter(entry.verdict for entry in found.partitions)
    counted = ", ".join(
        f"{plural(counts[verdict], 'partition')} {verdict.value}" for verdict in reversed(_ORDER) if counts[verdict]
    )
    changes = {
        "grown since": sum(entry.grown is not None for entry in found.partitions),
        "without its former beginning": sum(entry.removed is not None for entry in found.partitions),
        "here that the report did not judge": len(found.not_judged),
    }
    more = "".join(f"; {number:,} {what}" for what, number in changes.items() if number)
    return f"{counted}, by the digests of {visible(report)}{more}"
