"""`--output-format table`: what happened and what it cost, each incident with its evidence and the next command."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import ScanResult, Suggestion
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.counts import check_counts, topic_counts
from kaudit.report.text.digests import digest_section
from kaudit.report.text.formatting import extent, omitted_text, plural
from kaudit.report.text.incident_block import incident_sections
from kaudit.report.text.not_checked import coverage_sections, text_of

_FEW = 8
"""Findings that are read one by one; more are counted in a table, too."""


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the report as text."""
    shown = options.for_people(result.findings)
    sections = finding_sections(shown, options, many_inputs=len(result.inputs) > 1)
    sections += [_overview(result, shown, options), digest_section(result.digests, options.console)]
    sections += coverage_sections(result, options)
    return text_of([*sections, *(_suggestion(suggestion, options.console) for suggestion in result.suggestions)])


def _suggestion(suggestion: Suggestion, console: Console) -> list[str]:
    # the command is never wrapped: it is there to be copied
    reason = visible(suggestion.reason)
    return [
        *console.wrap(f"{reason[:1].upper()}{reason[1:]}:"),
        f"  {console.paint(visible(suggestion.command), Style.COMMAND)}",
    ]


def finding_sections(shown: Sequence[Finding], options: RenderOptions, *, many_inputs: bool) -> list[list[str]]:
    """Return the findings: the incidents and, where they fill more than a screen, a table of them; or their counts."""
    if options.statistics:
        return [check_counts(shown, options.console)]
    sections = incident_sections(shown, options, many_inputs=many_inputs)
    if len(shown) > _FEW:
        sections.append(topic_counts(shown, options.console))
    return sections


def _overview(result: ScanResult, shown: Sequence[Finding], options: RenderOptions) -> list[str]:
    """Return the command that explains each code, what is hidden, or that there is nothing to report."""
    lines = [] if options.statistics else explain_lines(shown, options.console)
    if not shown:
        lines.append(f"{options.console.paint(nothing_text(result), Style.GOOD)} {extent(result)}")
    return lines + hidden_lines(result, shown)


def nothing_text(result: ScanResult) -> str:
    """Return what to say where no finding is shown."""
    new = any(finding.status is Status.NEW for finding in result.findings)
    return "no findings" if not result.findings else "no errors, no warnings" if new else "no new findings"


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
    lines += [f"{plural(number, 'finding')} hidden: {why}" for number, why in _accepted(result)]
    if result.summary.omitted:
        lines.append(f"{omitted_text(result.summary.omitted)} (--max-findings)")
    return lines


def _accepted(result: ScanResult) -> list[tuple[int, str]]:
    """Return how many findings someone has accepted before, and how."""
    reasons = {Status.KNOWN: "in the baseline", Status.SUPPRESSED: "suppressed by the configuration"}
    counted = [(sum(finding.status is status for finding in result.findings), why) for status, why in reasons.items()]
    return [(number, why) for number, why in counted if number]


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {left}   {right}" for left, right in rows]
