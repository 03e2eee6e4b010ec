"""One finding as people read it: headline, place, evidence, argument, what to do."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kaudit.checks.registry import CHECKS
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BatchEvidence
from kaudit.model.finding import Explanation, Finding, KnownBug
from kaudit.model.impact import Impact
from kaudit.model.severity import Confidence, Severity
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import (
    SEVERITY_STYLE,
    date_and_clock,
    headline,
    partition_of,
    plural,
    producer_of,
    span,
)
from kaudit.report.text.log_events import event_text
from kaudit.results.costs import impact_text


def finding_lines(finding: Finding, console: Console, *, many_inputs: bool, replicas: Sequence[str] = ()) -> list[str]:
    """Return one finding: headline, place, evidence, argument, what to do. `replicas` are those with the same finding."""
    placed = place_lines(finding, console, many_inputs=many_inputs, replicas=replicas)
    return placed + argument_lines(finding, console, impact=finding.impact, bugs=finding.known_bugs)


def place_lines(finding: Finding, console: Console, *, many_inputs: bool, replicas: Sequence[str]) -> list[str]:
    """Return headline and place."""
    label, rest = headline(finding)
    lines = console.wrap(rest.lstrip(), lead=f"{label} ", indent="    ", style=SEVERITY_STYLE[finding.severity])
    place = place_text(finding, many_inputs=many_inputs, replicas=replicas)
    return lines + console.wrap(place, lead="  --> ", style=Style.FAINT)


def argument_lines(
    finding: Finding, console: Console, *, impact: Impact, bugs: Sequence[KnownBug], group: Sequence[Finding] = ()
) -> list[str]:
    """Return the lines below a finding's place: evidence, rule, impact, known bugs, causes, what to fetch for its group, commands."""
    lines = evidence_lines(finding, console) + rule_lines(finding, console) + log_lines(finding, console)
    if cost := impact_text(impact):
        lines += remark_lines("impact", cost, console)
    lines += bug_lines(bugs, console) + cause_lines(finding, console)
    return lines + certainty_lines(group or [finding], console) + command_lines(finding, console)


def rule_lines(finding: Finding, console: Console) -> list[str]:
    """Return the rule that was broken, and a broker's reaction."""
    lines: list[str] = []
    rule, broker = finding.evidence.rule, finding.evidence.broker
    if rule is not None:
        lines += remark_lines("rule", visible(rule), console)
    if broker is not None:
        lines += remark_lines("broker", visible(broker), console)
    for name, text in finding.evidence.remarks.items():
        lines += remark_lines(visible(name), visible(text), console)
    return lines


def certainty_lines(findings: Iterable[Finding], console: Console) -> list[str]:
    """Return what to fetch to be certain of findings of one incident."""
    fetches = dict.fromkeys(filter(None, (finding.evidence.to_be_certain for finding in findings)))
    return [line for fetch in fetches for line in remark_lines("to be certain", visible(fetch), console)]


def log_lines(finding: Finding, console: Console) -> list[str]:
    """Return the log lines about the finding: file, line, time by the batches' clock, text."""
    events, count = finding.evidence.log_events, finding.evidence.log_events_count
    lines = [line for event in events for line in remark_lines("log", event_text(event), console)]
    if count is not None and count > len(events):
        lines += remark_lines("log", plural(count - len(events), "more line"), console)
    return lines


def bug_lines(bugs: Sequence[KnownBug], console: Console) -> list[str]:
    """Return the known bugs that a finding looks like, one remark each."""
    return [line for known in bugs for line in remark_lines("known bug", known_bug_text(known), console)]


def cause_lines(finding: Finding, console: Console) -> list[str]:
    """Return possible causes, how certain they are, and harmless ones."""
    lines = _causes([cause for cause in finding.explanations if not cause.innocent], console)
    certain = finding.confidence is Confidence.CERTAIN
    if not certain:
        lines += remark_lines("note", f"{finding.confidence.value}, not certain", console)
    # a certain note with one explanation has no other cause
    harmless = (
        "harmless:"
        if finding.severity is Severity.NOTE and len(finding.explanations) == 1 and certain
        else "harmless if"
    )
    for cause in finding.explanations:
        if cause.innocent:
            lines += remark_lines("note", f"{harmless} {visible(cause.cause)}", console) + _reasons(cause, console)
    return lines


def command_lines(finding: Finding, console: Console) -> list[str]:
    """Return the commands to run next, never wrapped, so that they can be copied."""
    help_ = console.paint("= help:", Style.STRONG)
    lines: list[str] = []
    for command in map(visible, finding.next):
        if command.startswith("# "):
            lines += console.wrap(command, lead="  = help: ", indent="          # ", style=Style.STRONG)
        else:
            lines.append(f"  {help_} {console.paint(command, Style.COMMAND)}")
    return lines


def place_text(finding: Finding, *, many_inputs: bool, replicas: Sequence[str]) -> str:
    """Return where a finding is: partition and offsets, producer, file. `replicas` are those with the same finding."""
    parts = []
    partition = partition_of(finding)
    if partition is not None:
        offsets = "" if finding.offset is None else f" @ offset {span(finding.offset, finding.last_offset)}"
        parts.append(partition + offsets)
    parts += filter(None, [producer_of(finding)])
    if finding.file is not None:
        byte = "" if finding.position is None else f"byte {finding.position} of "
        parts.append(byte + visible(finding.file))
    if len(replicas) > 1:
        parts.append(f"on replicas {', '.join(map(visible, replicas))}")
    elif finding.log_dir is not None and (many_inputs or not parts):
        parts.append(f"in {visible(finding.log_dir)}")
    if not parts and finding.evidence.log_events:
        first = finding.evidence.log_events[0]
        parts.append(visible(f"{first.path}, line {first.line}"))
    return ", ".join(parts) or "location unknown"


def _causes(causes: Sequence[Explanation], console: Console) -> list[str]:
    lines = []
    for rank, cause in enumerate(causes, start=1):
        number = f"{rank}. " if len(causes) > 1 else ""
        lines += remark_lines("because", number + visible(cause.cause), console) + _reasons(cause, console)
    return lines


def _reasons(cause: Explanation, console: Console) -> list[str]:
    lines = []
    for sign, reasons in (("+", cause.speaks_for), ("-", cause.speaks_against)):
        for reason in reasons:
            lines += console.wrap(visible(reason), lead=f"        {sign} ")
    return lines


def remark_lines(name: str, text: str, console: Console) -> list[str]:
    """Return `= name: text` below a finding, wrapped."""
    return console.wrap(text, lead=f"  = {name}: ", indent="      ", style=Style.STRONG)


def known_bug_text(known: KnownBug) -> str:
    """Return `looks like KAFKA-12671, fixed in 3.6.0 by KIP-890: 2 of 2 traits seen`."""
    fixed = f"fixed in {known.fixed_in}" if known.fixed_in else "no fix known"
    seen = f"{len(known.traits_seen)} of {plural(len(known.traits), 'trait')} seen"
    return visible(f"looks like {known.id}, {fixed}: {seen}")


def bugs_of(findings: Iterable[Finding]) -> Sequence[KnownBug]:
    """Return the bugs that findings of one cause look like, each once, with the most traits that any of them shows."""
    found: dict[str, KnownBug] = {}
    for finding in findings:
        for known in finding.known_bugs:
            if known.id not in found or len(found[known.id].traits_seen) < len(known.traits_seen):
                found[known.id] = known
    return list(found.values())


def with_known_bugs(text: str, bugs: Iterable[KnownBug]) -> str:
    """Return the text, and the known bugs that it looks like."""
    return ". ".join([text, *(f"It {known_bug_text(known)}" for known in bugs)])


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
