"""A scan compared with a baseline: what is new, known, stale, or out of this scan's scope."""

from collections.abc import Callable, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.check import Reading
from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding
from kaudit.model.result import BaselineComparison, ScanResult, UnlistedFindings
from kaudit.model.severity import Status
from kaudit.policy.baseline import Baseline, Entry
from kaudit.scanning.options import Depth, ScanOptions

_REPLICA_FAMILY = "KA6"
_DEPTHS = {
    Reading.HEADERS: frozenset(Depth),
    Reading.BATCHES: frozenset(Depth) - {Depth.HEADERS},
    Reading.RECORDS: frozenset((Depth.RECORDS,)),
}
"""The depths of a scan that read what a check needs."""


class Scope(Struct, frozen=True):
    """What the scan looked for. `options` are None for a saved scan, whose own partitions decide then.

    `compares`: it was a comparison of replicas, which reports differences and damage only; nothing else reports
    differences.
    """

    asked_for: Callable[[str], bool]
    options: ScanOptions | None = None
    compares: bool = False

    def covers(self, entry: Entry, result: ScanResult) -> bool:
        """Whether the scan would have reported the entry's finding if it were still there."""
        if result.incomplete or result.summary.omitted or not self.asked_for(entry.code):
            return False
        check = CHECKS.get(entry.code)
        compared = self.compares and check is not None and check.compared
        covered = entry.code.startswith(_REPLICA_FAMILY) or compared
        if covered is not self.compares:
            return False
        return self._options_cover(entry) and _partitions_cover(entry, result)

    def _options_cover(self, entry: Entry) -> bool:
        options = self.options
        if options is None:
            return True
        if options.since_ms is not None or options.until_ms is not None:
            return False
        if options.producer_ids and entry.producer_id is not None and entry.producer_id not in options.producer_ids:
            return False
        check = CHECKS.get(entry.code)
        return check is None or options.depth in _DEPTHS[check.reads]


def compare(result: ScanResult, baseline: Baseline, file: str, scope: Scope, today: date) -> ScanResult:
    """Return the result with known findings marked, and every baseline entry's state."""
    findings = mark_known(result.findings, baseline, today)
    seen = {finding.fingerprint for finding in result.findings}
    unlisted, known = _split(result.unlisted, baseline, today)
    seen |= known
    unseen = [entry for entry in baseline.entries if entry.fingerprint not in seen]
    stale = [entry for entry in unseen if scope.covers(entry, result)]
    gone = {entry.fingerprint for entry in stale}
    comparison = BaselineComparison(
        file,
        known=sum(finding.status is Status.KNOWN for finding in findings)
        + sum(more.count for more in unlisted if more.status is Status.KNOWN),
        stale=[entry.for_report() for entry in stale],
        out_of_scope=[entry.for_report() for entry in unseen if entry.fingerprint not in gone],
        expired=[e.for_report() for e in baseline.entries if e.expired(today) and e.fingerprint in seen],
    )
    return replace(result, findings=findings, baseline=comparison, unlisted=unlisted)


def mark_known(findings: Sequence[Finding], baseline: Baseline, today: date) -> list[Finding]:
    """Return the findings; those in the baseline are marked as known."""
    entries = baseline.by_fingerprint()
    return [_marked(finding, entries.get(finding.fingerprint), today) for finding in findings]


def _split(
    unlisted: Sequence[UnlistedFindings], baseline: Baseline, today: date
) -> tuple[list[UnlistedFindings], set[str]]:
    """Split findings that are only counted into new and known; return the known fingerprints too, expired entries included."""
    entries = {int(entry.fingerprint, 16): entry for entry in baseline.entries}
    found: list[UnlistedFindings] = []
    seen: set[str] = set()
    for more in unlisted:
        here = [number for number in more.fingerprints if int(number) in entries]
        seen |= {entries[int(number)].fingerprint for number in here}
        known = {int(number) for number in here if not entries[int(number)].expired(today)}
        if not known or more.status is not Status.NEW:
            found.append(more)
            continue
        new = [int(number) for number in more.fingerprints if int(number) not in known]
        same = [int(number) for number in more.fingerprints if int(number) in known]
        found += [replace(more, fingerprints=new)] if new else []
        found.append(replace(more, fingerprints=same, status=Status.KNOWN))
    return found, seen


def _marked(finding: Finding, entry: Entry | None, today: date) -> Finding:
    if entry is None or entry.expired(today) or finding.status is not Status.NEW:
        return finding
    reason = "in the baseline" + (f": {entry.reason}" if entry.reason else "")
    return replace(finding, status=Status.KNOWN, suppression=reason)


def _partitions_cover(entry: Entry, result: ScanResult) -> bool:
    """Whether the entry's partition was read, and retention has not removed its offset."""
    if entry.topic is None:
        return bool(result.partitions)
    starts = [
        part.log_start_offset
        for part in result.partitions
        if (part.topic, part.partition) == (entry.topic, entry.partition)
    ]
    return any(entry.offset is None or start is None or start <= entry.offset for start in starts)
