"""What became of the offsets of all partitions: one sentence for reports, and an account of each partition with -v."""

from collections.abc import Iterator

from kaudit.model.coverage import Coverage, OffsetClass, OffsetRange, TextLines
from kaudit.model.remote_segments import RemoteAccount
from kaudit.model.result import ScanResult
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import plural
from kaudit.results.scope import coverage_sentence, size

_RANGES_SHOWN = 5
_WORDS = {
    OffsetClass.MARKER: "in markers",
    OffsetClass.DATA: "in records",
    OffsetClass.RETENTION: "removed by retention",
}


def coverage_line(result: ScanResult, end: str = ".") -> str:
    """Return the sentence as a line of its own."""
    sentence = coverage_sentence(result)
    return f"{sentence[0].upper()}{sentence[1:]}{end}" if sentence else ""


def coverage_section(result: ScanResult, console: Console, *, each: bool) -> list[str]:
    """Return the sentence as a section; with `each` what became of the offsets of every partition."""
    if not result.coverage:
        return []
    if not each:
        return console.wrap(coverage_line(result))
    lines = [console.paint(coverage_line(result, end=":"), Style.STRONG)]
    for account in result.coverage:
        lines += console.wrap(visible(account_text(account)), lead="  - ")
        if account.text_lines is not None:
            lines += console.wrap(lines_text(account.text_lines), lead="    - ")
        if account.remote is not None:
            lines += console.wrap(_remote_text(account.remote), lead="    - ")
        lines += [line for text in _unaccounted(account) for line in console.wrap(visible(text), lead="    - ")]
    return lines


def lines_text(lines: TextLines) -> str:
    """Return how the lines of a text were taken."""
    return (
        f"lines of the text: {lines.read_lines:,} read, {lines.other_lines:,} not Kafka's, "
        f"{lines.unknown_lines:,} cut off or not understood"
    )


def _remote_text(remote: RemoteAccount) -> str:
    """Return what is in remote storage, and what of it is on the disk too."""
    if remote.first_offset is None:
        return "in remote storage: no readable segment"
    pending = f", {plural(remote.pending, 'copy', 'copies')} not finished" if remote.pending else ""
    return (
        f"in remote storage: offsets {remote.first_offset}..{remote.last_offset} in {plural(remote.segments, 'segment')}, "
        f"{size(remote.size)}, {plural(remote.also_local, 'offset')} of them also on this disk, where the log begins at "
        f"{remote.local_start_offset}{pending}"
    )


def account_text(account: Coverage) -> str:
    """Return the log's bounds, who says so, and how many offsets there are of each class."""
    end = "is not known" if account.log_end_offset is None else f"{account.log_end_offset:,}{_confirmed(account)}"
    start = f"log start {account.log_start_offset:,} ({account.log_start_source})"
    return f"{account.topic}-{account.partition} of {account.replica}: {start}, end {end}: {classes_text(account)}"


def classes_text(account: Coverage) -> str:
    """Return how many offsets there are of each class."""
    counted = [(kind, account.offsets.get(kind.value, 0)) for kind in OffsetClass]
    return ", ".join(f"{number:,} {_WORDS.get(kind, kind.value)}" for kind, number in counted if number) or "no offsets"


def _confirmed(account: Coverage) -> str:
    """Return who else knows this end of the log, or the furthest that anyone does."""
    if not account.witnesses:
        return " (the last batch; no file beside it knows it)"
    furthest = max(witness.end_offset for witness in account.witnesses)
    names = ", ".join(witness.name for witness in account.witnesses if witness.end_offset == furthest)
    if furthest == account.log_end_offset:
        return f" (the last batch, {names})"
    return f" (the last batch; {names} up to {furthest:,})"


def _unaccounted(account: Coverage) -> Iterator[str]:
    for found in account.ranges[:_RANGES_SHOWN]:
        yield f"{_offsets(found)} {found.kind.value}: {found.reason}"
    if len(account.ranges) > _RANGES_SHOWN:
        yield f"{len(account.ranges) - _RANGES_SHOWN:,} more ranges (json lists them)"


def _offsets(found: OffsetRange) -> str:
    if found.last_offset is None:
        return f"offsets from {found.first_offset} on"
    span = f"{found.first_offset}..{found.last_offset}"
    within = found.last_offset - found.first_offset + 1
    return f"offsets {span}" if found.offsets == within else f"{plural(found.offsets, 'offset')} of {span}"
