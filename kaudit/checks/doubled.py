"""What lines of logs, the bytes and other copies show of one thing: said once, with what each of them adds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.checks.listed import LISTED, NEEDS
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.replicas import PartitionComparison, Relation
from kaudit.model.severity import Severity

_CODES = {listed.name: code for code, listed in LISTED.items()}
"""By name: whether findings are about one thing is asked in every scan, which most of these checks have nothing to say in."""
_DIVERGED, _CUT_OFF = _CODES["replicas-diverged"], _CODES["records-cut-off"]
_OF_COPIES = (_DIVERGED, _CODES["only-copy"])
_OF_ENDS = (_CODES["log-ends-early"], _CODES["checkpoint-disagrees"])


About = tuple[str | int | None, ...]
"""A line of a log, or a producer in its partition."""


def shown_lines(findings: Iterable[Finding]) -> dict[About, Severity]:
    """Return the lines that findings have as evidence beside what they are about, with the severity of the gravest."""
    lines: dict[About, Severity] = {}
    for finding in findings:
        if not _of_lines(finding) and finding.evidence.log_events:
            for about in _lines_of(finding):
                lines[about] = max(lines.get(about, finding.severity), finding.severity)
    return lines


def without_doubled(findings: Sequence[Finding], lines: Mapping[About, Severity]) -> Sequence[Finding]:
    """Return the findings without those of lines of logs alone that another finding, at least as severe, shows."""
    return [
        finding
        for finding in findings
        if not _of_lines(finding)
        or not any(lines[about] >= finding.severity for about in _lines_of(finding) if about in lines)
    ]


def bounded_by_lines(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those of comparisons with the bound of what lines say was lost at the same offsets and more.

    Those of lines give way to a comparison that counts exactly what was lost of all their offsets, or has a bound where they have none.
    """
    compared = [finding for finding in findings if finding.code in _OF_COPIES]
    exact = [finding for finding in compared if _is_exact(finding.impact)]
    left = [
        finding
        for finding in findings
        if finding.code != _CUT_OFF or not (_is_within(finding, exact) or _is_bounded(finding, compared))
    ]
    lost = [finding for finding in left if finding.code == _CUT_OFF and finding.impact.records_lost_at_most]
    if any(finding.impact.cautions for finding in left if finding.code == _DIVERGED):
        # which replicas these are is known where they are given
        left = [_without_cautions(finding) if finding.code == _CUT_OFF else finding for finding in left]
    return [_bounded(finding, lost) if finding.code == _DIVERGED else finding for finding in left]


def _without_cautions(finding: Finding) -> Finding:
    return replace(finding, impact=replace(finding.impact, cautions=()))


def _is_exact(impact: Impact) -> bool:
    return impact.records_lost_at_least is not None and impact.records_lost_at_least == impact.records_lost_at_most


def _is_bounded(finding: Finding, others: Sequence[Finding]) -> bool:
    """Return whether nothing but an election shows a loss of which a copy shows how much it is at most."""
    if getattr(finding.evidence, "cut_off_by", True):
        return False
    return any(
        other.impact.records_lost_at_most is not None and (other.offset or 0) >= (finding.offset or 0)
        for other in others
    )


def _is_within(finding: Finding, others: Sequence[Finding]) -> bool:
    """Return whether another finding is about all offsets of this one."""
    return any(_covers(other, finding) for other in others)


def _covers(whole: Finding, part: Finding) -> bool:
    if whole.offset is None or whole.last_offset is None or part.offset is None or part.last_offset is None:
        return False
    return whole.offset <= part.offset and part.last_offset <= whole.last_offset


def _bounded(finding: Finding, lost: Sequence[Finding]) -> Finding:
    if finding.impact.records_lost_at_most is not None or finding.offset is None:
        return finding
    last = finding.offset if finding.last_offset is None else finding.last_offset
    for whole in lost:
        if _covers(whole, replace(finding, last_offset=last)):
            most = whole.impact.records_lost_at_most
            return replace(finding, impact=replace(finding.impact, records_lost_at_most=most))
    return finding


def kept_by_others(findings: Sequence[Finding], comparison: PartitionComparison) -> list[Finding]:
    """Return the findings; ends of logs that a copy lacks cost nothing where the copy that it follows holds these offsets."""
    holder = comparison.reference
    lacking = [(gap.first_offset, gap.last_offset) for gap in comparison.gaps if holder in gap.missing_on]
    return [_kept(finding, comparison, lacking) for finding in findings]


def _kept(finding: Finding, comparison: PartitionComparison, lacking: Sequence[tuple[int, int]]) -> Finding:
    first, last, holder = finding.offset, finding.last_offset, comparison.reference
    if finding.code not in _OF_ENDS or first is None or last is None:
        return finding
    if holder is None or comparison.relations.get(finding.replica or "") is not Relation.BEHIND:
        return finding
    end = comparison.end_offsets[holder]
    if end <= first or any(begin <= last and first <= stop for begin, stop in lacking):
        return finding
    left = max(last + 1 - end, 0)
    least, most = finding.impact.records_lost_at_least or 0, finding.impact.records_lost_at_most
    impact = replace(
        finding.impact,
        records_lost_at_least=min(least, left),
        records_lost_at_most=0 if not left else None if most is None else min(most, left),
    )
    kept = [] if left else [Explanation(f"{holder} holds these offsets", innocent=True)]
    return replace(finding, impact=impact, explanations=[*finding.explanations, *kept])


def _of_lines(finding: Finding) -> bool:
    return NEEDS.get(finding.code) == frozenset(("LoggedIncident",))


def _lines_of(finding: Finding) -> Iterator[About]:
    """Yield the lines that a finding shows, and its producer in its partition."""
    for event in finding.evidence.log_events:
        yield event.path, event.line
    if finding.producer_id is not None and finding.topic is not None:
        yield finding.topic, finding.partition, finding.producer_id
