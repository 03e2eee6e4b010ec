"""The decisions of one run, applied in order: severities, topics, baseline, counts, limit."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.result import ScanResult
from kaudit.policy.baseline import Baseline
from kaudit.policy.comparison import Scope, compare
from kaudit.policy.severities import Severities
from kaudit.policy.topics import TopicRule
from kaudit.report.most_severe import most_severe
from kaudit.report.selection import count, count_statuses


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

    def apply(self, result: ScanResult, scope: Scope) -> ScanResult:
        """Return the result with severities, topics and baseline applied and the counts to match; no finding is removed."""
        findings = [self.severities.apply(finding) for finding in result.findings]
        for rule in self.topics:
            findings = [rule.apply(finding) for finding in findings]
        decided = replace(result, findings=findings)
        if self.known is not None:
            decided = compare(decided, self.known.baseline, self.known.file, scope, self.today)
        totals = replace(decided.summary, findings=count(decided.findings), statuses=count_statuses(decided.findings))
        return replace(decided, summary=totals)

    def limit(self, result: ScanResult) -> ScanResult:
        """Return the result with the most severe findings, as many as --max-findings allows; the summary counts all."""
        if self.max_findings is None or len(result.findings) <= self.max_findings:
            return result
        kept = most_severe(result.findings, self.max_findings)
        omitted = result.summary.omitted + len(result.findings) - len(kept)
        return replace(result, findings=kept, summary=replace(result.summary, omitted=omitted))
