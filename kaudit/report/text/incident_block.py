"""Incidents as people read them: one block each, the worst first, in as much detail as asked for."""

from collections.abc import Sequence

from kaudit.model.finding import Finding
from kaudit.model.total_impact import total_impact
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.finding_block import (
    argument_lines,
    bug_lines,
    bugs_of,
    cause_lines,
    certainty_lines,
    command_lines,
    evidence_lines,
    finding_lines,
    log_lines,
    place_lines,
    remark_lines,
    rule_lines,
)
from kaudit.report.text.formatting import SEVERITY_STYLE, date_and_clock, headline, partition_of, plural, span
from kaudit.results.costs import impact_text
from kaudit.results.incidents import AffectedPartition, Incident, describe, distinct, members

_BLOCKS = 10
"""Incidents shown in full unless all are asked for."""
_LISTED = 3
_FEW = 3
"""Up to this many findings of an incident are all named; of more, one is shown as an example."""


def incident_sections(findings: Sequence[Finding], options: RenderOptions, *, many_inputs: bool) -> list[list[str]]:
    """Return a block for each incident, and how many are left out; nothing without findings."""
    if not findings:
        return []
    console, groups = options.console, members(findings)
    shown = groups if options.verbose else groups[:_BLOCKS]
    sections: list[list[str]] = []
    explained: set[object] = set()
    for group in shown:
        once = distinct(group)
        if len(once) > _FEW or (len(once) > 1 and options.verbose):
            incident = describe(group)
            kind = (incident.cause, once[0].code)
            sections.append(_block(incident, once, options, explained=kind in explained))
            explained.add(kind)
        elif len(once) > 1:
            sections.append(_named(group, once, console, many_inputs=many_inputs))
        if len(once) == 1 or options.verbose:
            sections += [_single(finding, group, console, many_inputs=many_inputs) for finding in once]
    if len(groups) > len(shown):
        number = sum(map(len, groups)) - sum(map(len, shown))
        text = f"{plural(len(groups) - len(shown), 'more incident')} with {plural(number, 'finding')} (-v shows all)"
        sections.append([console.paint(text, Style.STRONG)])
    return sections


def _single(finding: Finding, group: Sequence[Finding], console: Console, *, many_inputs: bool) -> list[str]:
    return finding_lines(finding, console, many_inputs=many_inputs, replicas=_replicas(finding, group))


def _replicas(finding: Finding, group: Sequence[Finding]) -> list[str]:
    """Return the replicas that have the finding."""
    copies = [other.replica for other in group if other.fingerprint == finding.fingerprint]
    return sorted({replica for replica in copies if replica is not None})


def _named(group: Sequence[Finding], once: Sequence[Finding], console: Console, *, many_inputs: bool) -> list[str]:
    """Return the most severe finding of a few in full, and the headlines of the others, with whether to commit if that differs."""
    lead, others = once[0], once[1:]
    lines = place_lines(lead, console, many_inputs=many_inputs, replicas=_replicas(lead, group))
    for other in others:
        label, message = headline(other)
        elsewhere = (other.topic, other.partition) != (lead.topic, lead.partition)
        where = f" ({partition_of(other)})" if elsewhere and other.topic is not None else ""
        advice = other.evidence.remarks.get("commit")
        own = "" if advice in (None, lead.evidence.remarks.get("commit")) else f"; {advice}"
        lines += remark_lines("also", f"{label}{message}{where}{own}", console)
    return lines + argument_lines(lead, console, impact=total_impact(group), bugs=bugs_of(group), group=once)


def _block(incident: Incident, once: Sequence[Finding], options: RenderOptions, *, explained: bool) -> list[str]:
    """Return the common part of several findings, with the evidence of the first, the most severe.

    `explained`: an incident of this kind above has its causes.
    """
    console, lead = options.console, once[0]
    label = f"{incident.severity.value}[{', '.join(incident.checks)}]"
    what = f"{incident.title}: {plural(incident.findings, 'finding')}"
    lines = console.wrap(what, lead=f"{label} ", indent="    ", style=SEVERITY_STYLE[incident.severity])
    lines += console.wrap(extent_text(incident), lead="  --> ", style=Style.FAINT)
    if cost := impact_text(incident.impact):
        lines += remark_lines("impact", cost, console)
    lines += bug_lines(bugs_of(once), console)
    if options.verbose:
        return lines + remark_lines("incident", visible(str(incident.id)), console)
    lines += remark_lines("one of them", headline(lead)[1].strip(), console) + evidence_lines(lead, console)
    lines += log_lines(lead, console)
    if not explained:
        lines += rule_lines(lead, console) + cause_lines(lead, console)
    lines += certainty_lines(once[:_FEW], console) + command_lines(lead, console)
    causes = "causes as above; " if explained else ""
    return lines + remark_lines(
        "note", f"{causes}-v shows the other {plural(incident.findings - 1, 'finding')}", console
    )


def extent_text(incident: Incident) -> str:
    """Return where an incident is: partitions, producers, times, replicas."""
    parts = [_partitions(incident.partitions)] if incident.partitions else []
    if incident.producer_ids:
        noun = "producer" if len(incident.producer_ids) == 1 else "producers"
        parts.append(f"{noun} {_some([str(number) for number in incident.producer_ids])}")
    if incident.transactional_ids:
        noun = "transactional id" if len(incident.transactional_ids) == 1 else "transactional ids"
        parts.append(f"{noun} {_some([visible(name) for name in incident.transactional_ids])}")
    parts += filter(None, [_times(incident)])
    if len(incident.replicas) > 1:
        parts.append(f"on replicas {_some([visible(replica) for replica in incident.replicas])}")
    return ", ".join(parts) or "location unknown"


def _partitions(partitions: Sequence[AffectedPartition]) -> str:
    if len(partitions) == 1:
        only = partitions[0]
        offsets = "" if only.first_offset is None else f" @ offset {span(only.first_offset, only.last_offset)}"
        return visible(f"{only.topic}-{only.partition}") + offsets
    return _some([visible(f"{entry.topic}-{entry.partition}") for entry in partitions])


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _times(incident: Incident) -> str:
    """Return the first and the last time, to the second; the date once where both have the same."""
    (day, since), (last_day, until) = (
        date_and_clock(time) for time in (incident.first_timestamp, incident.last_timestamp)
    )
    since, until = since.partition(".")[0], until.partition(".")[0]
    if not day or (day, since) == (last_day, until):
        return f"{day} {since} UTC" if day else ""
    return f"{day} {since} to {until if day == last_day else f'{last_day} {until}'} UTC"
