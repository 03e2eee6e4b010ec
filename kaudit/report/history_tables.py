"""Histories as rows of the tables `timelines` and `producers`, packed where they are made."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kaudit.analysis.timelines.producer_histories import PartitionHistory, Piece
from kaudit.model.finding import Finding
from kaudit.report.content import Row
from kaudit.report.parquet import to_ipc
from kaudit.report.tables import producer_row, timeline_rows

_PIECE_ROWS = 20_000
"""Rows made at once: some MB as Python objects."""


def tell_tables(history: PartitionHistory, findings: Sequence[Finding], remembers_markers: bool) -> Iterator[Piece]:  # noqa: FBT001 - a Teller
    """Yield the rows of one partition replica: its timelines, then its producers."""
    entries = (row for timeline in history.timelines(findings) for row in timeline_rows(timeline))
    yield from _pieces("timelines", entries)
    names = {
        finding.producer_id: name
        for finding in findings
        if isinstance(name := finding.evidence.get("transactional_id"), str)
    }
    producers = history.producers(remembers_markers=remembers_markers)
    yield from _pieces("producers", (producer_row(number, names.get(number), part) for number, part in producers))


def _pieces(table: str, rows: Iterable[Row]) -> Iterator[Piece]:
    waiting = iter(rows)
    while held := list(islice(waiting, _PIECE_ROWS)):
        yield table, to_ipc(table, held)
