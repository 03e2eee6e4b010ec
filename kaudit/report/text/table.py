"""`--output-format table`: incidents with their cost, evidence and next command."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import ScanResult, Suggestion
from kaudit.model.severity import Severity, Status
from kaudit.model.total_impact import total_impact
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.finding_block import finding_lines
from kaudit.report.text.formatting import SEVERITY_STYLE, omitted_text, plural
from kaudit.report.text.incident_block import incident_sections
from kaudit.report.text.not_checked import closing_sections, digest_section, text_of, verdict_section
from kaudit.results.costs import impact_text

_FEW = 8
"""Above this number, a table counts the findings too."""


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the report as text."""
    shown = options.for_people(result.findings)
    sections = [verdict_section(result, options.console)]
    sections += finding_sections(shown, options, many_inputs=len(result.inputs) > 1)
    sections += [_overview(result, shown, options), digest_section(result.digests, options.console)]
    sections += closing_sections(result, options)
    return text_of([*sections, *(_suggestion(suggestion, options.console) for suggestion in result.suggestions)])


def stream_findings(findings: Iterable[Finding], options: RenderOptions) -> str:
    """Return the blocks of findings that a watch reports."""
    blocks = [finding_lines(finding, options.console, many_inputs=False) for finding in options.for_people(findings)]
    return "".join("\n".join([*block, "", ""]) for block in blocks)


def _suggestion(suggestion: Suggestion, console: Console) -> list[str]:
    # the command is never wrapped, so that it can be copied
    reason = visible(suggestion.reason)
    return [
        *console.wrap(f"{reason[:1].upper()}{reason[1:]}:"),
        f"  {console.paint(visible(suggestion.command), Style.COMMAND)}",
    ]


def finding_sections(shown: Sequence[Finding], options: RenderOptions, *, many_inputs: bool) -> list[list[str]]:
    """Return the incidents and, of many findings, a table of their counts; with --statistics only counts."""
    if options.statistics:
        return [check_counts(shown, options.console)]
    sections = incident_sections(shown, options, many_inputs=many_inputs)
    if len(shown) > _FEW:
        sections.append(topic_counts(shown, options.console))
    return sections


def _overview(result: ScanResult, shown: Sequence[Finding], options: RenderOptions) -> list[str]:
    """Return the commands that explain the codes, and what is hidden."""
    return ([] if options.statistics else explain_lines(shown, options.console)) + hidden_lines(result, shown)


def explain_lines(shown: Sequence[Finding], console: Console) -> list[str]:
    """Return the findings by code with the command that explains each; nothing without findings."""
    if not shown:
        return []
    if len(shown) > _FEW:
        return ["kaudit explain CODE says more about a check"]
    tally = Counter((finding.code, finding.name) for finding in shown)
    rows = [
        (console.paint(f"kaudit explain {code}", Style.COMMAND), f"{name}, {plural(number, 'finding')}")
        for (code, name), number in sorted(tally.items())
    ]
    return [console.paint("More about each:", Style.STRONG), *_aligned(rows)]


def hidden_lines(result: ScanResult, shown: Sequence[Finding]) -> list[str]:
    """Return how many findings are not shown, and why."""
    lines: list[str] = []
    notes = sum(finding.severity is Severity.NOTE and finding.status is Status.NEW for finding in result.findings)
    notes -= sum(finding.severity is Severity.NOTE for finding in shown)
    if notes:
        lines.append(f"{plural(notes, 'informational note')} hidden (-v shows {'it' if notes == 1 else 'them'})")
    if result.summary.omitted:
        lines.append(f"{omitted_text(result.summary.omitted)} (--max-findings)")
    return lines


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {left}   {right}" for left, right in rows]


_TOPIC_ROWS = 20
_GAP = "  "
_COST = "cost"
_NARROW = 24
"""Least columns for a cost beside its row; with less room it goes below."""


def check_counts(findings: Iterable[Finding], console: Console) -> list[str]:
    """Return a line for each check: its number of findings and their cost, the most frequent first."""
    groups = _grouped(findings, lambda finding: (finding.code, finding.name))
    rows = [(f"{len(found):,}", *place, _cost(found)) for place, found in groups]
    worst = [max(finding.severity for finding in found) for _, found in groups]
    lines = []
    for severity, (count, code, name, cost) in zip(worst, rows, strict=True):
        lead = _GAP.join([count.rjust(_width(rows, 0)), code, name.ljust(_width(rows, 2)), ""])
        first, *more = _row(lead, cost, console)
        lines += [first.replace(code, console.paint(code, SEVERITY_STYLE[severity]), 1), *more]
    return lines


def topic_counts(findings: Iterable[Finding], console: Console) -> list[str]:
    """Return a table of topics and checks by number of findings; at most as many rows as fit a screen."""
    groups = _grouped(findings, lambda finding: (visible(finding.topic or "-"), f"{finding.code} {finding.name}"))
    rows = [(*place, f"{len(found):,}", _cost(found)) for place, found in groups[:_TOPIC_ROWS]]
    headings = ("topic", "check", "findings", _COST)
    topic, check, number, _ = (max(len(heading), _width(rows, at)) for at, heading in enumerate(headings))
    lines = []
    for name, what, count, cost in (headings, *rows):
        lead = _GAP.join([name.ljust(topic), what.ljust(check), count.rjust(number), ""])
        lines += _row(lead, cost, console)
    lines[0] = console.paint(lines[0], Style.FAINT)
    if len(groups) > len(rows):
        lines.append(f"{plural(len(groups) - len(rows), 'more row')} (json lists all findings)")
    return lines


def _row(lead: str, cost: str, console: Console) -> list[str]:
    """Return a row with its cost beside it, or below where there is too little room."""
    if console.fits(len(lead) + min(len(cost), _NARROW)):
        return [line.rstrip() for line in console.wrap(cost, lead=lead)]
    return [lead.rstrip(), *(console.wrap(cost, lead="    ") if cost != _COST else ())]


def _grouped(
    findings: Iterable[Finding], key: Callable[[Finding], tuple[str, str]]
) -> list[tuple[tuple[str, str], list[Finding]]]:
    groups = grouped((key(finding), finding) for finding in findings)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _width(rows: Sequence[Sequence[str]], column: int) -> int:
    return max((len(row[column]) for row in rows), default=0)


def _cost(findings: Sequence[Finding]) -> str:
    return impact_text(total_impact(findings))
