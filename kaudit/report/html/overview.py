"""The first part of the page: verdict and cost, incidents, counts, a map of the findings, and what was not checked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.listings.activity import ActivityOverTime, added
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import BaselineComparison, ScanResult
from kaudit.model.severity import Severity
from kaudit.model.total_impact import total_impact
from kaudit.report.html.page_model import (
    CheckCount,
    Counts,
    HeatCell,
    HeatRow,
    IncidentRow,
    LeftOut,
    NotAuditedRow,
    Overview,
    Series,
    SeverityName,
    within,
)
from kaudit.report.html.partition_columns import Key
from kaudit.report.text.incident_block import extent_text
from kaudit.report.text.not_checked import (
    clock_text,
    configuration_lines,
    more_digests,
    named_digests,
    rules_text,
)
from kaudit.report.text.table import hidden_lines
from kaudit.results.costs import impact_text
from kaudit.results.incidents import describe, distinct
from kaudit.results.scope import coverage_sentence, extent
from kaudit.results.verdict import verdict_of

MOST_INCIDENTS = 200
_MOST_OF_INCIDENT = 100
_MOST_DIGESTS = 20
_MOST_CELLS = 3_000
_FOR_INCIDENTS = 300_000
_FOR_NOT_AUDITED = 150_000


class PagePlaces(Struct, frozen=True):
    """Where the page shows things: the indexes of findings (by their index in the result) and of partition replicas.

    `facts` come before the overview's own.
    """

    findings: Mapping[int, int]
    partitions: Mapping[Key, int]
    facts: Sequence[tuple[str, str]] = ()


def overview(
    result: ScanResult, shown: Sequence[Finding], groups: Sequence[Sequence[Finding]], page: PagePlaces
) -> Overview:
    """Return the overview without the activity over time; `groups` are the `members` of `shown`, the findings for people."""
    verdict = verdict_of(result)
    heat, more_cells = _heat(result, page.partitions)
    by_identity = {id(finding): place for place, finding in enumerate(result.findings)}
    incidents = within(
        (_incident(group, page.findings, by_identity) for group in groups[:MOST_INCIDENTS]), _FOR_INCIDENTS
    )
    not_audited = within(
        (NotAuditedRow(item.path, item.reason, unreadable=item.unreadable) for item in result.not_audited),
        _FOR_NOT_AUDITED,
    )
    return Overview(
        verdict=list(verdict.lines),
        severity=None if verdict.severity is None else verdict.severity.value,
        facts=[*page.facts, *_facts(result, shown)],
        incidents=incidents,
        counts=_counts(result),
        heat=heat,
        series=None,
        not_audited=not_audited,
        left_out=[
            *left_out("incidents", len(groups) - len(incidents), "kaudit scan -v"),
            *left_out("partition replicas in the map", more_cells, "kaudit scan --output-format json"),
            *left_out(
                "paths that were not checked",
                len(result.not_audited) - len(not_audited),
                "kaudit scan --output-format json",
            ),
        ],
    )


def with_histories(first: Overview, activity: Sequence[ActivityOverTime], more: Sequence[LeftOut]) -> Overview:
    """Return the overview with the activity of all partition replicas, and with more entries of what is left out."""
    return replace(first, series=_series(activity), left_out=[*more, *first.left_out])


def left_out(what: str, count: int, how_to_see: str) -> list[LeftOut]:
    """Return the entry for what is left out, in a list; an empty list where it is nothing."""
    return [LeftOut(what, count, how_to_see)] if count > 0 else []


def _incident(group: Sequence[Finding], indexes: Mapping[int, int], by_identity: Mapping[int, int]) -> IncidentRow:
    incident, lead = describe(group), group[0]
    places = [indexes[by_identity[id(finding)]] for finding in group if by_identity[id(finding)] in indexes]
    return IncidentRow(
        id=incident.id,
        severity=incident.severity.value,
        codes=list(incident.checks),
        title=f"{lead.code} {lead.name}: {incident.title or lead.message}",
        cost=impact_text(incident.impact),
        extent=extent_text(incident),
        count=len(distinct(group)),
        findings=places[:_MOST_OF_INCIDENT],
        next=list(lead.next),
    )


def _facts(result: ScanResult, shown: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    summary = result.summary
    yield "read", extent(result).removeprefix("in ")
    yield "batches", f"{summary.batches:,}"
    yield "records", f"{summary.records:,}"
    if result.coverage:
        yield "offsets", coverage_sentence(result)
    yield "rules of", rules_text(result.broker_version)
    if result.clock is not None:
        yield "time of the log", clock_text(result.clock)
    yield from (("not shown in the verdict", line) for line in hidden_lines(result, shown))
    if result.baseline is not None:
        yield "baseline", _baseline(result.baseline)
    if result.configuration is not None:
        yield from (("configuration", line) for line in configuration_lines(result.configuration))
    if result.digests is not None:
        for what, digest in named_digests(result.digests.partitions, _MOST_DIGESTS):
            yield f"audited ({result.digests.algorithm})", f"{what}: {digest}"
        for more in more_digests(result.digests, _MOST_DIGESTS):
            yield f"audited ({result.digests.algorithm})", more
    for suggestion in result.suggestions:
        yield suggestion.reason, suggestion.command


def _baseline(compared: BaselineComparison) -> str:
    counts = {
        "known": compared.known,
        "stale": len(compared.stale),
        "expired": len(compared.expired),
        "out of scope": len(compared.out_of_scope),
    }
    return f"{compared.file}: {', '.join(f'{count:,} {name}' for name, count in counts.items() if count)}"


def _counts(result: ScanResult) -> Counts:
    by_check = grouped((finding.code, finding) for finding in result.findings)
    severities: list[tuple[SeverityName, int]] = [
        (severity.value, result.summary.findings.get(severity.value, 0))
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    ]
    checks = [
        CheckCount(
            code,
            found[0].name,
            max(finding.severity for finding in found).value,
            len(found),
            impact_text(total_impact(found)),
        )
        for code, found in sorted(by_check.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ]
    return Counts(severities, checks)


def _heat(result: ScanResult, partitions: Mapping[Key, int]) -> tuple[list[HeatRow], int]:
    """Return the map, and how many partition replicas are left out of it: those with most findings are in it."""
    worst: dict[Key, Severity] = {}
    count: Counter[Key] = Counter()
    for finding in result.findings:
        if finding.topic is not None and finding.partition is not None:
            key = (finding.topic, finding.partition, finding.replica or "")
            worst[key] = max(worst.get(key, finding.severity), finding.severity)
            count[key] += 1
    keys = [(entry.topic, entry.partition, entry.replica) for entry in result.partitions]
    chosen = sorted(sorted(keys, key=lambda key: -count[key])[:_MOST_CELLS])
    rows: dict[str, list[HeatCell]] = {}
    for key in chosen:
        topic, partition, replica = key
        severity: SeverityName | None = worst[key].value if key in worst else None
        rows.setdefault(topic, []).append(HeatCell(partition, replica, severity, count[key], partitions.get(key)))
    return [HeatRow(topic, cells) for topic, cells in rows.items()], len(keys) - len(chosen)


def _series(activity: Sequence[ActivityOverTime]) -> Series | None:
    total = added(list(activity))
    return None if total is None else Series(str(total.start_ms), total.bucket_ms, total.bytes, total.active)
