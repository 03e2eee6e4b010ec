"""Which batches an audit judged, for people: the digest of each partition."""

from collections.abc import Iterator, Sequence

from kaudit.model.digests import Digests, PartitionDigest
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import plural, span

_SHOWN = 8


def digest_section(digests: Digests | None, console: Console) -> list[str]:
    """Return the section of a report as text; nothing where digests were not asked for."""
    if digests is None or not digests.partitions:
        return []
    lines = [console.paint(f"Judged ({digests.algorithm}):", Style.STRONG)]
    for what, digest in named_digests(digests.partitions, _SHOWN):
        lines += console.wrap(f"{visible(what)}: {digest}", lead="  - ")
    return lines + [f"  - {more}" for more in more_digests(digests, _SHOWN)]


def named_digests(partitions: Sequence[PartitionDigest], most: int) -> Iterator[tuple[str, str]]:
    """Yield for the first `most` partitions what was judged, and its digest."""
    for entry in partitions[:most]:
        offsets = f"offsets {span(entry.start_offset, entry.end_offset - 1)}" if entry.batches else "no batch"
        batches = f", {plural(entry.batches, 'batch', 'batches')}" if entry.batches else ""
        yield f"{entry.topic}-{entry.partition} of {entry.replica}, {offsets}{batches}", entry.digest or "no digest"


def more_digests(digests: Digests, most: int) -> Iterator[str]:
    """Yield how many more partitions have digests, where there are some."""
    if len(digests.partitions) > most:
        yield f"{plural(len(digests.partitions) - most, 'more partition')} (json lists all)"
