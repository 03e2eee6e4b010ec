"""`kaudit diff --output-format table`: a line per partition, then the findings as in a scan."""

from collections import Counter
from collections.abc import Sequence

from kaudit.model.replicas import DiffResult, PartitionComparison, Relation
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.fitting import GAP, aligned
from kaudit.report.text.formatting import plural, span
from kaudit.report.text.not_checked import text_of, unchecked_sections, verdict_section
from kaudit.report.text.table import explain_lines, finding_sections, hidden_lines
from kaudit.results.scope import size

_STYLES = {
    Relation.IDENTICAL: Style.GOOD,
    Relation.BEHIND: Style.NOTE,
    Relation.DIVERGED: Style.ERROR,
    Relation.APPENDED: Style.GOOD,
    Relation.TRUNCATED: Style.WARNING,
    Relation.SEPARATE: Style.FAINT,
    Relation.MISSING: Style.FAINT,
}
_PARTITIONS_SHOWN = 200


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return the report as text."""
    console = options.console
    shown = options.for_people(result.scan.findings)
    sections = [
        verdict_section(result.scan, console),
        _replicas(result, console),
        relation_table(*difference_rows(result), console),
        _truncated(result, console),
    ]
    sections += finding_sections(shown, options, many_inputs=True)
    explained = [] if options.statistics else explain_lines(shown, console)
    sections.append([*explained, *console.wrap(comparison_text(result)), *hidden_lines(result.scan, shown)])
    return text_of([*sections, *unchecked_sections(result.scan, console)])


def _replicas(result: DiffResult, console: Console) -> list[str]:
    lines: list[str] = []
    for replica in result.replicas:
        if replica.name != replica.path:
            lines += console.wrap(visible(replica.path), lead=f"{visible(replica.name)} = ")
    for entry in result.broker_copies:
        names = f"{', '.join(entry.replicas[:-1])} and {entry.replicas[-1]}"
        what = f"{names} are broker {entry.broker_id} at different times (oldest first), not replicas of one another"
        lines += console.wrap(visible(what), indent="  ")
    return lines


def difference_rows(result: DiffResult) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row for each partition whose replicas differ."""
    listed = [
        entry
        for entry in result.partitions
        if entry.relation in (Relation.BEHIND, Relation.DIVERGED, Relation.SEPARATE)
    ]
    earlier = {name for entry in result.broker_copies for name in entry.replicas[:-1]}
    names = [replica.name for replica in result.replicas if replica.name not in earlier]
    ends = [f"{visible(name)} ends" for name in names]
    headings = ["partition", "relation", "identical up to", *ends, "broker would truncate"]
    return headings, [_cells(entry, names) for entry in listed]


def _truncated(result: DiffResult, console: Console) -> list[str]:
    """Return a table of the offsets that brokers truncated between two copies of them."""
    rows = [
        [
            visible(f"{entry.topic}-{entry.partition}"),
            "truncated",
            str(change.common_end_offset),
            span(change.truncated.first, change.truncated.last),
            visible(f"{change.earlier} -> {change.later}"),
            "unknown" if change.missing is None else f"{change.missing.records:,}",
        ]
        for entry in result.partitions
        for change in entry.copy_changes
        if change.truncated is not None
    ]
    headings = ["partition", "change", "identical up to", "offsets", "between", "missing records"]
    return relation_table(headings, rows, console)


def relation_table(headings: Sequence[str], cells: Sequence[Sequence[str]], console: Console) -> list[str]:
    """Return rows under their headings, as lists where they do not fit; nothing without rows. The second cell has a colour."""
    rows = cells[:_PARTITIONS_SHOWN]
    if not rows:
        return []
    widths = [max(len(heading), *(len(row[at]) for row in rows)) for at, heading in enumerate(headings)]
    lines = []
    if not console.fits(sum(widths) + len(GAP) * (len(widths) - 1)):
        for row in rows:
            facts = ", ".join(
                f"{heading} {cell}" for heading, cell in zip(headings[2:], row[2:], strict=True) if cell != "-"
            )
            lines += console.wrap(facts, lead=f"{row[0]} {row[1]}: ", indent="    ")
    else:
        lines.append(console.paint(aligned(headings, widths), Style.FAINT))
        for row in rows:
            lines.append(aligned(row, widths).replace(row[1], console.paint(row[1], _STYLES[Relation(row[1])]), 1))
    if len(cells) > len(rows):
        lines.append(f"{plural(len(cells) - len(rows), 'more partition')} that differ (json lists all)")
    return lines


def _cells(entry: PartitionComparison, names: Sequence[str]) -> list[str]:
    cuts = [
        f"{visible(name)} to {cut}"
        for name, cut in entry.truncation_offsets.items()
        if cut is not None and cut < entry.end_offsets[name]
    ]
    return [
        visible(f"{entry.topic}-{entry.partition}"),
        entry.relation.value,
        "-" if entry.common_end_offset is None else str(entry.common_end_offset),
        *(str(entry.end_offsets.get(name, "-")) for name in names),
        ", ".join(cuts) or "-",
    ]


def comparison_text(result: DiffResult) -> str:
    """Return how many partitions are identical, behind or diverged, and how much was read."""
    # replicas say more of a partition than earlier copies of them
    compared = (entry for entry in result.partitions if entry.relations or not entry.copy_changes)
    counts = Counter(
        relation for _, _, relation in {(entry.topic, entry.partition, entry.relation) for entry in compared}
    )
    changes = Counter(change.relation for entry in result.partitions for change in entry.copy_changes)
    words = {Relation.MISSING: "on one replica only", Relation.SEPARATE: "with copies of different logs"}
    parts = [
        f"{plural(counts[relation], 'partition')} {words.get(relation, relation.value)}"
        for relation in Relation
        if counts[relation]
    ]
    between = [f"{changes[relation]:,} {relation.value}" for relation in Relation if changes[relation]]
    if between:
        parts.append(f"between copies of one broker: {', '.join(between)}")
    read = result.scan.summary
    where = f"in {plural(read.segments, 'segment')} of {plural(len(result.replicas), 'replica')}, {size(read.bytes)}"
    return f"{', '.join(parts) or 'no partitions'} {where}"
