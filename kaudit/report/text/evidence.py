"""The small table under a finding: the batch before, the offending one, the one after."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.checks.registry import CHECKS
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BatchEvidence
from kaudit.model.finding import Finding
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import date_and_clock, span

_GAP = "  "


class EvidenceColumn(Struct, frozen=True):
    """One column of the table: its heading, and a cell for each batch, `-` where there is no value."""

    heading: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        """Characters of the widest cell."""
        return max(len(self.heading), *map(len, self.cells))

    @property
    def uniform(self) -> bool:
        """Whether all batches have the same value."""
        return len(set(self.cells) - {"-"}) <= 1

    @property
    def empty(self) -> bool:
        """Whether no batch has a value."""
        return set(self.cells) == {"-"}


class EvidenceTable(Struct, frozen=True):
    """The batches around a finding, or the copies of an offset: `names` of the rows, whether each is `marked`, and columns.

    `faulty` is the heading of the column whose value breaks the rule, empty where none does.
    """

    names: Sequence[str]
    marked: Sequence[bool]
    columns: Sequence[EvidenceColumn]
    faulty: str


def evidence_batches(evidence: FindingEvidence) -> list[tuple[str, BatchEvidence]]:
    """Return the batches before, at and after a finding, in log order, by name."""
    around = {"previous": evidence.previous, "offending": evidence.offending, "next": evidence.next}
    return [(name, batch) for name, batch in around.items() if batch is not None]


def evidence_table(finding: Finding) -> EvidenceTable | None:
    """Return the table of a finding; None without such evidence."""
    batches = evidence_batches(finding.evidence)
    marked = [name == "offending" for name, _ in batches]
    copies = finding.evidence.copies
    if copies is not None:  # one offset as several replicas hold it
        held = [(visible(f"on {name}"), batch) for name, batch in copies.items()]
        batches, marked = batches + held, marked + [True] * len(held)
    if not batches:
        return None
    columns = _columns([batch for _, batch in batches])
    if copies is not None:
        columns.insert(-2, EvidenceColumn("leader epoch", [_text(batch.leader_epoch) for _, batch in batches]))
    return EvidenceTable([name for name, _ in batches], marked, columns, _broken_field(finding))


def evidence_lines(finding: Finding, console: Console) -> list[str]:
    """Return the table, or one wrapped line per batch where the table is too wide; nothing without such evidence."""
    table = evidence_table(finding)
    if table is None:
        return []
    names = [f"> {name}" if marked else f"  {name}" for name, marked in zip(table.names, table.marked, strict=True)]
    label = EvidenceColumn("", names)
    for fewer in (table.columns, [column for column in table.columns if column.heading != "byte"]):
        if console.fits(2 + sum(column.width + len(_GAP) for column in [label, *fewer])):
            return _table([label, *fewer], table.faulty, console)
    return _list(names, table.columns, console)


def _columns(batches: Sequence[BatchEvidence]) -> list[EvidenceColumn]:
    times = _times([date_and_clock(batch.timestamp) for batch in batches])
    producer = EvidenceColumn("producer", [_text(batch.producer_id) for batch in batches])
    columns = [
        EvidenceColumn("offset", [span(batch.offset, batch.last_offset) for batch in batches]),
        times,
        producer,
        EvidenceColumn("epoch", [_text(batch.producer_epoch) for batch in batches]),
        EvidenceColumn("sequence", [_sequences(batch) for batch in batches]),
        EvidenceColumn("kind", [_kind(batch) for batch in batches]),
        EvidenceColumn("crc", [_crc(batch) for batch in batches]),
        EvidenceColumn("byte", [_text(batch.position) for batch in batches]),
    ]
    # The location line has the producer: a column is needed only where it changes.
    return [column for column in columns if not column.empty and not (column is producer and column.uniform)]


def _times(times: Sequence[tuple[str, str]]) -> EvidenceColumn:
    """Return the column of times; a date or year that all share moves into its heading."""
    days = {date for date, _ in times if date}
    if len(days) == 1:
        return EvidenceColumn(f"{days.pop()} UTC", [clock for _, clock in times])
    years = {day.split("-", 1)[0] for day in days}
    if len(years) == 1:
        cells = [f"{date.partition('-')[2]} {clock}".strip() for date, clock in times]
        return EvidenceColumn(f"{years.pop()} UTC", cells)
    return EvidenceColumn("time (UTC)", [f"{date} {clock}".strip() for date, clock in times])


def _text(value: object) -> str:
    return "-" if value is None else visible(str(value))


def _sequences(batch: BatchEvidence) -> str:
    first = batch.base_sequence
    return "-" if first == -1 else span(first, batch.last_sequence)


def _kind(batch: BatchEvidence) -> str:
    marker = batch.type
    if marker is not None:
        return visible(f"{marker} marker")
    transactional = batch.is_transactional
    return "-" if transactional is None else "txn" if transactional else "plain"


def _crc(batch: BatchEvidence) -> str:
    return "-" if batch.crc is None else f"{batch.crc:08x}"


def _table(columns: Sequence[EvidenceColumn], broken: str, console: Console) -> list[str]:
    header = "  " + _GAP.join(column.heading.ljust(column.width) for column in columns)
    lines = [console.paint(header.rstrip(), Style.FAINT)]
    for row, name in enumerate(columns[0].cells):
        cells = _GAP.join(column.cells[row].ljust(column.width) for column in columns)
        offending = name.startswith(">")
        lines.append("  " + (console.paint(cells.rstrip(), Style.STRONG) if offending else cells.rstrip()))
        if offending:
            lines += _caret(columns, row, broken, console)
    return lines


def _caret(columns: Sequence[EvidenceColumn], row: int, broken: str, console: Console) -> list[str]:
    start = 2
    for column in columns:
        if broken and column.heading == broken:
            return [" " * start + console.paint("^" * len(column.cells[row]), Style.ERROR)]
        start += column.width + len(_GAP)
    return []


def _list(names: Sequence[str], columns: Sequence[EvidenceColumn], console: Console) -> list[str]:
    lines = []
    for row, name in enumerate(names):
        facts = ", ".join(f"{column.heading} {cell}" for column in columns if (cell := column.cells[row]) != "-")
        lines += console.wrap(facts, lead=f"  {name:<11}  ", style=Style.STRONG if name.startswith(">") else None)
    return lines


def _broken_field(finding: Finding) -> str:
    """Return the heading of the column whose value breaks the rule; none for a check of another version of kaudit."""
    return CHECKS[finding.code].faulty_column if finding.code in CHECKS else ""
