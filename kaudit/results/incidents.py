"""Incidents as reports show them: the findings of each, and their total impact.

An incident: findings with one cause, and its extent.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import neg

from kaudit.checks.incident_groups import rule_of
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.impact import Impact
from kaudit.model.json_record import JsonRecord
from kaudit.model.severity import Confidence, Severity
from kaudit.model.total_impact import total_impact


class AffectedPartition(JsonRecord, frozen=True):
    """A partition with findings of an incident; the offsets are of its first and last one, None where they have none."""

    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None


class Incident(JsonRecord, frozen=True):
    """Summary of the findings of one cause. Severity and confidence are those of the most severe.

    `cause` and `title` are None for a finding that stands alone; `findings` counts each once, whatever the number of
    replicas that have it; `checks` counts them by code; `transactional_ids` are those that are known. Times are of the
    batches in question, ms since the epoch.
    """

    id: str | None
    cause: str | None
    title: str | None
    severity: Severity
    confidence: Confidence
    findings: int
    checks: Mapping[str, int]
    partitions: Sequence[AffectedPartition]
    replicas: Sequence[str]
    producer_ids: Sequence[int]
    transactional_ids: Sequence[str]
    first_timestamp: int | None
    last_timestamp: int | None
    impact: Impact


_FINGERPRINTS = 5
"""Findings of an incident that a line for people names by fingerprint; machine formats have all."""
_CONFIDENCES = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE)


def members(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return the findings of each incident, the most severe first, and the incidents ordered by cost, then by place."""
    # two stable sorts: one combined key would take memory for each of many findings
    ordered = enumerate(sorted(sorted(findings, key=Finding.sort_key), key=_most_severe_first))
    groups = grouped((number if finding.incident is None else finding.incident, finding) for number, finding in ordered)
    return sorted(groups.values(), key=_costliest_first)


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, each once: other replicas have copies of them."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.fingerprint, finding)
    return list(first.values())


def describe(group: Sequence[Finding]) -> Incident:
    """Return the incident of these findings; the first is the most severe."""
    lead, rule = group[0], rule_of(group)
    once = distinct(group)
    times = [time for finding in once for time in _timestamps(finding)]
    return Incident(
        id=lead.incident,
        cause=None if rule is None else rule.cause,
        title=None if rule is None else rule.title,
        severity=lead.severity,
        confidence=lead.confidence,
        findings=len(once),
        checks=dict(sorted(Counter(finding.code for finding in once).items())),
        partitions=list(_affected(once)),
        replicas=sorted({finding.replica for finding in group if finding.replica is not None}),
        producer_ids=sorted({finding.producer_id for finding in once if finding.producer_id is not None}),
        transactional_ids=sorted({name for finding in once if (name := finding.evidence.transactional_id)}),
        first_timestamp=min(times, default=None),
        last_timestamp=max(times, default=None),
        impact=impact_of(group),
    )


def incidents_of(findings: Iterable[Finding]) -> list[Incident]:
    """Return the incidents of findings, the costliest first."""
    return [describe(group) for group in members(found for found in findings if found.incident is not None)]


def _most_severe_first(finding: Finding) -> tuple[int, int]:
    return -finding.severity.rank, _CONFIDENCES.index(finding.confidence)


def _costliest_first(group: Sequence[Finding]) -> tuple[int, ...]:
    cost = impact_of(group)
    lost = cost.records_lost_at_most or cost.records_lost_at_least or 0
    figures = (lost, cost.offsets_invisible or 0, cost.records_duplicated or 0, cost.bytes_truncated or 0)
    return *_most_severe_first(group[0]), *map(neg, figures)


def impact_of(group: Sequence[Finding]) -> Impact:
    """Return the total impact of the findings of one incident."""
    return group[0].impact if len(group) == 1 else total_impact(group)


def _affected(findings: Iterable[Finding]) -> Iterator[AffectedPartition]:
    offsets: dict[tuple[str, int], list[int]] = {}
    for finding in findings:
        if finding.topic is not None and finding.partition is not None:
            held = offsets.setdefault((finding.topic, finding.partition), [])
            held += [offset for offset in (finding.offset, finding.last_offset) if offset is not None]
    for (topic, partition), held in sorted(offsets.items()):
        yield AffectedPartition(topic, partition, min(held, default=None), max(held, default=None))


def _timestamps(finding: Finding) -> Iterator[int]:
    evidence, offending = finding.evidence, finding.evidence.offending
    found = (None if offending is None else offending.timestamp, evidence.first_timestamp, evidence.last_timestamp)
    return (time for time in found if time is not None and time >= 0)


def fingerprints(findings: Sequence[Finding]) -> list[str]:
    """Return the fingerprints of the first findings of an incident."""
    return [finding.fingerprint for finding in distinct(findings)[:_FINGERPRINTS]]
