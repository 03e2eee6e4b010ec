"""One finding as people read it: headline, place, evidence, argument, what to do."""

from collections.abc import Iterable, Sequence

from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.known_bug import KnownBug
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.evidence import evidence_lines
from kaudit.report.text.formatting import SEVERITY_STYLE, headline, impact_text, partition_of, plural, producer_of, span
from kaudit.report.text.log_events import event_text


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


def argument_lines(finding: Finding, console: Console, *, impact: Impact, bugs: Sequence[KnownBug]) -> list[str]:
    """Return the lines below a finding's place: evidence, rule, impact, known bugs, causes, commands."""
    lines = evidence_lines(finding, console) + rule_lines(finding, console) + log_lines(finding, console)
    if cost := impact_text(impact):
        lines += remark_lines("impact", cost, console)
    return lines + bug_lines(bugs, console) + cause_lines(finding, console) + command_lines(finding, console)


def rule_lines(finding: Finding, console: Console) -> list[str]:
    """Return the rule that was broken, and a broker's reaction."""
    lines: list[str] = []
    rule, broker = finding.evidence.rule, finding.evidence.broker
    if rule is not None:
        lines += remark_lines("rule", visible(rule), console)
    if broker is not None:
        lines += remark_lines("broker", visible(broker), console)
    return lines


def log_lines(finding: Finding, console: Console) -> list[str]:
    """Return the log lines about the finding: file, line, time by the batches' clock, text."""
    events, count = finding.evidence.log_events, finding.evidence.log_events_count
    lines = [line for event in events for line in remark_lines("log", event_text(event), console)]
    if count is not None and count > len(events):
        lines += remark_lines("log", f"{count - len(events):,} more lines", console)
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
    return [f"  {help_} {console.paint(visible(command), Style.COMMAND)}" for command in finding.next]


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
