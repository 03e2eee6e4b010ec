"""The findings and partitions as plain tables: the page without scripts."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.report.html.page_model import FindingRow, PageModel, PartitionRow
from kaudit.report.html.script_json import within
from kaudit.report.text.formatting import date_and_clock, span

_MOST_ROWS = 300
_MOST_BYTES = 200_000
"""Of one table: hostile names are long."""

PlainTable = Mapping[str, object]
"""`caption`, `headings`, `rows` and `more`, a sentence that says how many rows are left out, or nothing."""


def plain_tables(page: PageModel) -> Iterator[PlainTable]:
    """Yield the tables of a page that have rows."""
    yield from _table("Findings", _FINDING, [_finding(row) for row in page.findings[:_MOST_ROWS]], len(page.findings))
    partitions = [_partition(row) for row in page.partitions[:_MOST_ROWS]]
    yield from _table("Partitions", _PARTITION, partitions, len(page.partitions))
    missing = [[row.path, row.reason] for row in page.overview.not_audited[:_MOST_ROWS]]
    yield from _table("Not audited", ("path", "reason"), missing, len(page.overview.not_audited))
    left_out = [
        [row.what, "" if row.count is None else f"{row.count:,}", row.how_to_see] for row in page.overview.left_out
    ]
    yield from _table("Left out of this page", ("what", "how many", "shown by"), left_out, len(left_out))


_FINDING = ("severity", "code", "name", "where", "time (UTC)", "finding", "impact", "fingerprint")
_PARTITION = (
    "topic",
    "partition",
    "replica",
    "log start",
    "high watermark",
    "last stable offset",
    "log end",
    "producer ids",
    "runs",
    "batches",
    "records",
)


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Iterator[PlainTable]:
    rows = within(rows, _MOST_BYTES)
    if rows:
        more = f"{total - len(rows):,} more rows are shown with scripts on." if total > len(rows) else ""
        yield {"caption": caption, "headings": headings, "rows": rows, "more": more}


def _finding(row: FindingRow) -> list[str]:
    at = "" if row.timestamp is None else " ".join(date_and_clock(int(row.timestamp)))
    return [row.severity, row.code, row.name, row.place, at.strip(), row.message, row.impact, row.fingerprint]


def _partition(row: PartitionRow) -> list[str]:
    offsets = (row.log_start_offset, row.high_watermark, row.last_stable_offset, row.log_end_offset)
    counts = (row.producers, row.runs, row.batches, row.records)
    return [
        row.topic,
        str(row.partition),
        row.replica,
        *(span(offset, None) for offset in offsets),
        *(f"{count:,}" for count in counts),
    ]
