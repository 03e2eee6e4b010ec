"""`--output-format table`: every finding with its evidence, its argument and the next command."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kaudit.model.finding import Confidence, Explanation, Finding, Severity, Status
from kaudit.model.result import ScanResult, Suggestion
from kaudit.report.console import Console, Style, visible
from kaudit.report.coverage import coverage_sections, text_of
from kaudit.report.evidence import evidence_lines
from kaudit.report.formatting import SEVERITY_STYLE, extent, headline, partition_of, plural, producer_of, span
from kaudit.report.impact import impact_text
from kaudit.report.most_severe import omitted_text
from kaudit.report.render_options import RenderOptions


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the report as text."""
    console = options.console
    shown = options.for_people(result.findings)
    many_inputs = len(result.inputs) > 1
    sections = [finding_lines(finding, console, many_inputs=many_inputs) for finding in shown]
    sections += [_overview(result, shown, console), *coverage_sections(result, console)]
    return text_of([*sections, *(_suggestion(suggestion, console) for suggestion in result.suggestions)])


def _suggestion(suggestion: Suggestion, console: Console) -> list[str]:
    # the command is never wrapped: it is there to be copied
    reason = visible(suggestion.reason)
    return [*console.wrap(f"{reason[:1].upper()}{reason[1:]}:"), f"  {visible(suggestion.command)}"]


def finding_lines(finding: Finding, console: Console, *, many_inputs: bool) -> list[str]:
    """Return one finding: headline, place, evidence, argument, what to do."""
    label, rest = headline(finding)
    lines = console.wrap(rest.lstrip(), lead=f"{label} ", indent="    ", style=SEVERITY_STYLE[finding.severity])
    lines += console.wrap(_place(finding, many_inputs=many_inputs), lead="  --> ", style=Style.FAINT)
    lines += evidence_lines(finding, console)
    rule = finding.evidence.get("rule")
    if isinstance(rule, str):
        lines += _remark("rule", visible(rule), console)
    broker = finding.evidence.get("broker")
    if isinstance(broker, str):
        lines += _remark("broker", visible(broker), console)
    if cost := impact_text(finding.impact):
        lines += _remark("impact", cost, console)
    lines += _causes([cause for cause in finding.explanations if not cause.innocent], console)
    certain = finding.confidence is Confidence.CERTAIN
    if not certain:
        lines += _remark("note", f"{finding.confidence.value}, not certain", console)
    # the one explanation of a certain note is no condition
    harmless = (
        "harmless:"
        if finding.severity is Severity.NOTE and len(finding.explanations) == 1 and certain
        else "harmless if"
    )
    for cause in finding.explanations:
        if cause.innocent:
            lines += _remark("note", f"{harmless} {visible(cause.cause)}", console) + _reasons(cause, console)
    for command in finding.next:
        # Never wrapped: it is there to be copied.
        lines.append(f"  {console.paint('= help:', Style.STRONG)} {visible(command)}")
    return lines


def _place(finding: Finding, *, many_inputs: bool) -> str:
    parts = []
    partition = partition_of(finding)
    if partition is not None:
        offsets = "" if finding.offset is None else f" @ offset {span(finding.offset, finding.last_offset)}"
        parts.append(partition + offsets)
    parts += filter(None, [producer_of(finding)])
    if finding.file is not None:
        byte = "" if finding.position is None else f"byte {finding.position} of "
        parts.append(byte + visible(finding.file))
    if finding.log_dir is not None and (many_inputs or not parts):
        parts.append(f"in {visible(finding.log_dir)}")
    return ", ".join(parts) or "location unknown"


def _causes(causes: Sequence[Explanation], console: Console) -> list[str]:
    lines = []
    for rank, cause in enumerate(causes, start=1):
        number = f"{rank}. " if len(causes) > 1 else ""
        lines += _remark("because", number + visible(cause.cause), console) + _reasons(cause, console)
    return lines


def _reasons(cause: Explanation, console: Console) -> list[str]:
    lines = []
    for sign, reasons in (("+", cause.speaks_for), ("-", cause.speaks_against)):
        for reason in reasons:
            lines += console.wrap(visible(reason), lead=f"        {sign} ")
    return lines


def _remark(name: str, text: str, console: Console) -> list[str]:
    return console.wrap(text, lead=f"  = {name}: ", indent="      ", style=Style.STRONG)


def _overview(result: ScanResult, shown: Sequence[Finding], console: Console) -> list[str]:
    """Return the findings by code with the command that explains each, what is hidden, or that there is nothing to report."""
    lines = explain_lines(shown, console)
    if not shown:
        new = any(finding.status is Status.NEW for finding in result.findings)
        worst = "no findings" if not result.findings else "no errors, no warnings" if new else "no new findings"
        lines.append(f"{console.paint(worst, Style.GOOD)} {extent(result)}")
    return lines + hidden_lines(result, shown)


def explain_lines(shown: Sequence[Finding], console: Console) -> list[str]:
    """Return the findings by code with the command that explains each; nothing without findings."""
    if not shown:
        return []
    tally = Counter((finding.code, finding.name) for finding in shown)
    rows = [
        (f"kaudit explain {code}", f"{name}, {plural(number, 'finding')}")
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
