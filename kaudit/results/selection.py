"""The findings that a report lists: --select and --ignore, and limits on their number."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.listed import LISTED, find, nearest
from kaudit.errors import UsageError
from kaudit.model.finding import Finding
from kaudit.model.ledger import LedgerResult
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import Changed, ScanResult, TimelineResult, UnlistedFindings
from kaudit.model.severity import Severity, Status

_Compared = TypeVar("_Compared", DiffResult, LedgerResult)


def parse_codes(values: Sequence[str], option: str) -> tuple[str, ...]:
    """Parse codes, prefixes of codes or names of checks, commas between, to codes and prefixes.

    Raises UsageError for anything else; `option` is the option it was given to.
    """
    typed = [code.strip() for value in values for code in value.split(",")]
    return tuple(_code(code, option) for code in typed if code)


def _code(typed: str, option: str) -> str:
    found, prefix = find(typed), typed.upper()
    if found is not None:
        return found.code
    if any(code.startswith(prefix) for code in LISTED):
        return prefix
    raise UsageError(f"{option} {typed}: no check has this code, prefix or name{nearest(typed)}")


class Selection(Struct, frozen=True):
    """Prefixes of codes. The longest matching prefix decides; at equal length `ignore` does."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def includes(self, code: str) -> bool:
        """Return whether the report has findings of this code."""
        selected = _longest(self.select or ("",), code)
        return selected is not None and selected > (_longest(self.ignore, code) or -1)

    def codes(self) -> frozenset[str] | None:
        """Return the codes that the report has, None for all."""
        if not self.select and not self.ignore:
            return None
        return frozenset(code for code in LISTED if self.includes(code))

    def of_scan(self, result: ScanResult) -> ScanResult:
        """Return the result with only the selected findings, and the counts to match."""
        belonging = set(filter(self.includes, {finding.code for finding in result.findings}))
        kept = [finding for finding in result.findings if finding.code in belonging]
        unlisted = [more for more in result.unlisted if self.includes(more.code)]
        if len(kept) == len(result.findings) and len(unlisted) == len(result.unlisted):
            return result
        omitted = sum(more.count for more in unlisted)
        summary = replace(result.summary, findings=count([*kept, *unlisted]), omitted=omitted)
        left_out = len(result.findings) - len(kept) + sum(more.count for more in result.unlisted) - omitted
        return replace(result, findings=kept, unlisted=unlisted, summary=summary, left_out=result.left_out + left_out)

    def of_timeline(self, result: TimelineResult) -> TimelineResult:
        """Return the timelines with only the selected findings."""
        histories = result.histories
        if not all(map(self.includes, {finding.code for finding in result.scan.findings})):
            histories = Changed(histories, lambda each: each.with_findings(self.includes))
        return replace(result, scan=self.of_scan(result.scan), histories=histories)

    def of_producers(self, result: ProducersResult) -> ProducersResult:
        """Return the list with only the selected findings; the engine has left the others out of the producers."""
        scan = self.of_scan(result.scan)
        return replace(result, scan=scan, summary={**result.summary, "findings": dict(scan.summary.findings)})

    def of_comparison(self, result: _Compared) -> _Compared:
        """Return the comparison with only the selected findings."""
        return replace(result, scan=self.of_scan(result.scan))


def count(findings: Sequence[Finding | UnlistedFindings]) -> dict[str, int]:
    """Count findings by severity; every severity is there, also at 0."""
    return _counted(findings, "severity", (Severity.ERROR, Severity.WARNING, Severity.NOTE))


def count_statuses(findings: Sequence[Finding | UnlistedFindings]) -> dict[str, int]:
    """Count findings by status; every status is there, also at 0."""
    return _counted(findings, "status", Status)


def _counted(
    findings: Sequence[Finding | UnlistedFindings], name: str, kinds: Iterable[Severity | Status]
) -> dict[str, int]:
    counts = Counter(map(attrgetter(name), findings))
    for more in findings:
        if isinstance(more, UnlistedFindings):
            counts[getattr(more, name)] += more.count - 1
    return {kind.value: counts[kind] for kind in kinds}


def _longest(prefixes: Sequence[str], code: str) -> int | None:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=None)


def most_severe(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """Return at most `limit` findings, new and severe ones before others, in their original order."""
    weights = [(finding.status is not Status.NEW, -finding.severity.rank) for finding in findings]
    return [findings[index] for index in sorted(sorted(range(len(findings)), key=weights.__getitem__)[:limit])]


def first_of_checks(result: ScanResult, limit: int | None) -> ScanResult:
    """Return the result with at most `limit` findings of each check, severity and status in a topic partition, the first.

    The summary counts all. None is no limit.
    """
    if limit is None:
        return result
    counts: Counter[tuple[str, Severity, Status, str | None, int | None]] = Counter()
    kept = []
    for finding in result.findings:
        key = finding.code, finding.severity, finding.status, finding.topic, finding.partition
        counts[key] += 1
        if counts[key] <= limit:
            kept.append(finding)
    omitted = result.summary.omitted + len(result.findings) - len(kept)
    return replace(result, findings=kept, summary=replace(result.summary, omitted=omitted))
