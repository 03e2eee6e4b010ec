"""`kaudit diff --output-format table`: a line per partition, then the findings as in a scan."""

from collections import Counter
from collections.abc import Sequence

from kaudit.model.replicas import DiffResult, PartitionComparison, Relation
from kaudit.report.console import Console, Style, visible
from kaudit.report.coverage import text_of, unchecked_sections
from kaudit.report.formatting import plural, size
from kaudit.report.render_options import RenderOptions
from kaudit.report.table import explain_lines, finding_sections, hidden_lines

_GAP = "  "
_STYLES = {
    Relation.IDENTICAL: Style.GOOD,
    Relation.BEHIND: Style.NOTE,
    Relation.DIVERGED: Style.ERROR,
    Relation.MISSING: Style.FAINT,
}
_PARTITIONS_SHOWN = 200


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return the report as text."""
    console = options.console
    shown = options.for_people(result.scan.findings)
    sections = [_replicas(result, console), _partitions(result, console)]
    sections += finding_sections(shown, options, many_inputs=True)
    explained = [] if options.statistics else explain_lines(shown, console)
    sections.append([*explained, *console.wrap(_summary(result)), *hidden_lines(result.scan, shown)])
    return text_of([*sections, *unchecked_sections(result.scan, console)])


def _replicas(result: DiffResult, console: Console) -> list[str]:
    lines: list[str] = []
    for replica in result.replicas:
        if replica.name != replica.path:
            lines += console.wrap(visible(replica.path), lead=f"{visible(replica.name)} = ")
    return lines


def _partitions(result: DiffResult, console: Console) -> list[str]:
    """Return a table of the partitions that differ; identical ones are counted below it."""
    listed = [entry for entry in result.partitions if entry.relation in (Relation.BEHIND, Relation.DIVERGED)]
    if not listed:
        return []
    shown = listed[:_PARTITIONS_SHOWN]
    names = [replica.name for replica in result.replicas]
    headings = [
        "partition",
        "relation",
        "identical up to",
        *(f"{visible(name)} ends" for name in names),
        "broker would truncate",
    ]
    rows = [_cells(entry, names) for entry in shown]
    widths = [max(len(heading), *(len(row[at]) for row in rows)) for at, heading in enumerate(headings)]
    if not console.fits(sum(widths) + len(_GAP) * (len(widths) - 1)):
        lines = []
        for row in rows:
            facts = ", ".join(
                f"{heading} {cell}" for heading, cell in zip(headings[2:], row[2:], strict=True) if cell != "-"
            )
            lines += console.wrap(facts, lead=f"{row[0]} {row[1]}: ", indent="    ")
    else:
        lines = [console.paint(_aligned(headings, widths), Style.FAINT)]
        for entry, row in zip(shown, rows, strict=True):
            text = _aligned(row, widths)
            lines.append(text.replace(row[1], console.paint(row[1], _STYLES[entry.relation]), 1))
    if len(listed) > len(shown):
        lines.append(f"{plural(len(listed) - len(shown), 'more partition')} that differ (json lists all)")
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


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _summary(result: DiffResult) -> str:
    counts = Counter(entry.relation for entry in result.partitions)
    words = {Relation.MISSING: "on one replica only"}
    parts = [
        f"{plural(counts[relation], 'partition')} {words.get(relation, relation.value)}"
        for relation in Relation
        if counts[relation]
    ]
    read = result.scan.summary
    where = f"in {plural(read.segments, 'segment')} of {plural(len(result.replicas), 'replica')}, {size(read.bytes)}"
    return f"{', '.join(parts) or 'no partitions'} {where}"
