"""The decisions of one run, applied in order: severities, topics, baseline, counts, limit.

A team's settings for a topic: what is normal there, and which findings are accepted, with a reason.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding
from kaudit.model.result import AppliedConfiguration, ScanResult, UnlistedFindings
from kaudit.model.severity import Confidence, Severity, Status
from kaudit.policy.baseline import Baseline
from kaudit.policy.comparison import Scope, compare, mark_known
from kaudit.results.selection import Selection, count, count_statuses, most_severe
from kaudit.results.verdict import with_verdict


class Accepted(Struct, frozen=True):
    """Codes, or prefixes of codes, that are accepted, and why."""

    codes: Sequence[str]
    reason: str


class TopicRule(Struct, frozen=True):
    """`pattern`: a topic's name, or with `*` and `?` many (Kafka allows neither in a name).

    `expected_producers`: up to this many producer ids in a partition are not reported.
    """

    pattern: str
    compacted: bool = False
    expected_producers: int | None = None
    accepted: Sequence[Accepted] = ()

    def applies_to(self, topic: str | None) -> bool:
        """Whether the rule is for this topic."""
        return topic is not None and fnmatchcase(topic, self.pattern)

    def apply(self, finding: Finding) -> Finding:
        """Return the finding, suppressed if it is accepted here."""
        if finding.status is not Status.NEW or not self.applies_to(finding.topic):
            return finding
        reason = self._reason(finding)
        return finding if reason is None else replace(finding, status=Status.SUPPRESSED, suppression=reason)

    def _reason(self, finding: Finding) -> str | None:
        for accepted in self.accepted:
            if any(finding.code.startswith(code) for code in accepted.codes):
                return accepted.reason
        tolerated = CHECKS[finding.code].tolerated if finding.code in CHECKS else None
        if tolerated is None:
            return None
        number, most = tolerated.number(finding.evidence), getattr(self, tolerated.setting)
        if number is not None and most is not None and number <= most:
            return tolerated.reason.format(most)
        return None


class Severities(Struct, frozen=True):
    """Levels by code or prefix of codes; the longest prefix decides."""

    levels: Mapping[str, Severity] = field(default_factory=dict)

    def apply(self, finding: Finding) -> Finding:
        """Return the finding with the severity asked for. Its fingerprint stays: it is the same finding."""
        matching = [prefix for prefix in self.levels if finding.code.startswith(prefix)]
        return replace(finding, severity=self.levels[max(matching, key=len)]) if matching else finding


class NamedBaseline(Struct, frozen=True):
    """A baseline, and the file it came from as reports name it."""

    file: str
    baseline: Baseline


def _today() -> date:
    return datetime.now(UTC).date()


class Policy(Struct, frozen=True):
    """A team's decisions about findings. `today` is the clock that baseline entries expire by."""

    severities: Severities = field(default_factory=Severities)
    topics: Sequence[TopicRule] = ()
    known: NamedBaseline | None = None
    max_findings: int | None = None
    today: date = field(default_factory=_today)
    configuration: AppliedConfiguration | None = None
    configured: frozenset[str] = frozenset()
    """The options among `severity`, `select` and `ignore` that a file or a variable sets."""

    def apply(self, result: ScanResult, scope: Scope) -> ScanResult:
        """Return the result with severities, topics and baseline applied, the counts to match, and the verdict; no finding is removed."""
        decided = replace(result, findings=self._by_rules(result.findings), unlisted=self._unlisted(result.unlisted))
        if self.known is not None:
            decided = compare(decided, self.known.baseline, self.known.file, scope, self.today)
        counted: list[Finding | UnlistedFindings] = [*decided.findings, *decided.unlisted]
        totals = replace(decided.summary, findings=count(counted), statuses=count_statuses(counted))
        return with_verdict(replace(decided, summary=totals, configuration=self._applied(result)))

    def _applied(self, result: ScanResult) -> AppliedConfiguration | None:
        """Return what configuration changed of a result's findings, that of a saved result where there is no other."""
        if self.configuration is None:
            return result.configuration
        decided = [
            (1, one.severity is not other.severity, one.status is not other.status)
            for one, other in zip(result.findings, self._by_rules(result.findings), strict=True)
        ] + [
            (one.count, one.severity is not other.severity, one.status is not other.status)
            for one, other in zip(result.unlisted, self._unlisted(result.unlisted), strict=True)
        ]
        changed = sum(number for number, severity, _ in decided if severity)
        suppressed = sum(number for number, _, status in decided if status)
        return replace(
            self.configuration,
            severities_changed=changed if "severity" in self.configured else 0,
            suppressed=suppressed,
            left_out=result.left_out if self.configured & {"select", "ignore"} else 0,
        )

    def decide(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return some of a scan's findings with severities, topics and baseline applied."""
        decided = self._by_rules(findings)
        return decided if self.known is None else mark_known(decided, self.known.baseline, self.today)

    def _by_rules(self, findings: Sequence[Finding]) -> list[Finding]:
        decided = [*map(self.severities.apply, findings)] if self.severities.levels else [*findings]
        for rule in self.topics:
            decided = [rule.apply(finding) for finding in decided]
        return decided

    def _unlisted(self, unlisted: Sequence[UnlistedFindings]) -> list[UnlistedFindings]:
        """Apply the decisions that depend only on a finding's code and topic."""
        alike = [
            Finding(more.code, "", more.severity, Confidence.CERTAIN, "", topic=more.topic, status=more.status)
            for more in unlisted
        ]
        return [
            replace(more, severity=one.severity, status=one.status)
            for more, one in zip(unlisted, self._by_rules(alike), strict=True)
        ]

    def limit(self, result: ScanResult) -> ScanResult:
        """Return the result with the most severe findings, as many as --max-findings allows; the summary counts all."""
        if self.max_findings is None:
            return result
        kept = most_severe(result.findings, self.max_findings)
        omitted = result.summary.omitted + len(result.findings) - len(kept)
        return replace(result, findings=kept, summary=replace(result.summary, omitted=omitted))


class Decision(Struct, frozen=True):
    """Decides which findings of a run are reported, and how."""

    selection: Selection
    policy: Policy

    def __call__(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that belong into the report, with severities, topics and baseline applied."""
        return self.policy.decide([finding for finding in findings if self.selection.includes(finding.code)])
