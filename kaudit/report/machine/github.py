"""`--output-format github`: workflow commands that GitHub Actions turns into annotations."""

from collections.abc import Sequence

from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.model.severity import Severity
from kaudit.report.console import visible
from kaudit.report.machine.locations import location_text, shown_path
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import omitted_text, plural
from kaudit.results.costs import with_impact
from kaudit.results.incidents import distinct, fingerprints, impact_of, members
from kaudit.results.verdict import verdict_of

ANNOTATIONS_PER_LEVEL = 10
"""GitHub shows no more annotations of one level per step, and does not say that it left some out."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return an annotation for each incident, most severe first, then lines of text that count the findings left out."""
    shown = options.for_people(result.findings)
    lines, groups = [], members(shown)
    left_out = result.summary.omitted
    for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE):
        same = [group for group in groups if group[0].severity is severity]
        # One of the warnings says that the audit is incomplete.
        places = ANNOTATIONS_PER_LEVEL - (severity is Severity.WARNING and result.incomplete)
        lines += [_annotation(group, options.repository) for group in same[:places]]
        left_out += sum(map(len, same[places:]))
    if result.incomplete:
        lines.append(_command("warning", {"title": "kaudit: incomplete audit"}, _incomplete(result)))
    if left_out:
        lines.append(f"kaudit: {omitted_text(left_out)}; see the step summary or --output-format json")
    lines += [f"kaudit: {visible(line)}" for line in verdict_of(result).lines]
    return "".join(f"{line}\n" for line in lines)


def _annotation(group: Sequence[Finding], repository: str | None) -> str:
    """Return one annotation for an incident: its most severe finding, the number of others, and the cost of all."""
    finding, more = group[0], len(distinct(group)) - 1
    properties = {"title": f"kaudit {finding.code} {finding.name}"}
    if (path := shown_path(finding, repository)) is not None:
        properties["file"] = visible(path)
    place = location_text(finding)
    others = f", and {plural(more, 'more finding')} of one cause" if more else ""
    text = with_impact(f"{finding.message}{f' ({place})' if place else ''}{others}", impact_of(group))
    return _command(_LEVELS[finding.severity], properties, f"{text} [{' '.join(fingerprints(group))}]")


def _incomplete(result: ScanResult) -> str:
    unread = [item for item in result.not_audited if item.unreadable] or list(result.not_audited)
    first = f": {unread[0].path}: {unread[0].reason}" if unread else ""
    rest = f" (and {plural(len(unread) - 1, 'more path')})" if len(unread) > 1 else ""
    return f"the absence of findings proves nothing{first}{rest}"


def _command(name: str, properties: dict[str, str], text: str) -> str:
    joined = ",".join(f"{key}={_escaped_property(visible(value))}" for key, value in properties.items())
    return f"::{name} {joined}::{_escaped(visible(text))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
