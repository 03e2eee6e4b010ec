"""A scan's result whose findings come from elsewhere, and how the two become one."""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.replicas.broker_copies import BrokerCopies
from kaudit.checks.doubled import shown_lines, without_doubled
from kaudit.errors import NothingToAuditError
from kaudit.model.finding import Finding
from kaudit.model.result import OUTSIDE_TIME, NotAudited, ScanResult, UnlistedFindings
from kaudit.scanning.not_covered import missing_producer
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.summaries import suggestions, total
from kaudit.source.layout import PartitionDirectory, Unreadable


class ScanFindings(Struct, frozen=True):
    """The findings of a scan with their incidents, and the producer ids they are about; `outside` of the time asked for are more.

    `unlisted` findings are counted only; `failed` are the files that
    could not be read for them, in tasks elsewhere.
    """

    findings: Sequence[Finding]
    producer_ids: Collection[int] = ()
    unlisted: Sequence[UnlistedFindings] = ()
    failed: Sequence[Unreadable] = ()
    outside: int = 0


class ResultWithoutFindings(Struct, frozen=True):
    """A scan's result before its findings are known; tasks bring these together elsewhere.

    `missing_producers`: producer ids asked for that are in no partition.
    """

    options: ScanOptions
    result: ScanResult
    missing_inputs: Sequence[NotAudited]
    missing_producers: Sequence[NotAudited]
    directories: Sequence[PartitionDirectory]
    copies: Sequence[BrokerCopies]

    def with_findings(self, found: ScanFindings) -> ScanResult:
        """Return the whole result.

        Raises:
            NothingToAuditError: none of the producer ids asked for is in a partition or has findings.

        """
        known = {missing_producer(producer_id) for producer_id in found.producer_ids}
        missing = [entry for entry in self.missing_producers if entry.path not in known]
        if missing and len(missing) == len(set(self.options.producer_ids)):
            raise NothingToAuditError("; ".join(f"{entry.path}: {entry.reason}" for entry in missing))
        noted = {note.path for note in self.result.not_audited if note.unreadable}
        failed = {entry.path: entry.reason for entry in found.failed if entry.path not in noted}
        unread = [NotAudited(path, reason, unreadable=True) for path, reason in failed.items()]
        left_out = [NotAudited(OUTSIDE_TIME, _outside(found.outside))] if found.outside else []
        not_audited = [*self.missing_inputs, *missing, *unread, *left_out, *self.result.not_audited]
        findings = found.findings
        if self.result.log_events is not None:
            findings = without_doubled(findings, shown_lines(findings))
        return replace(
            self.result,
            findings=findings,
            not_audited=not_audited,
            summary=total(self.result.partitions, findings, found.unlisted),
            incomplete=any(note.unreadable for note in not_audited),
            suggestions=list(suggestions(self.options, self.directories, self.copies)),
            unlisted=found.unlisted,
        )


def _outside(number: int) -> str:
    what = "1 finding is" if number == 1 else f"{number:,} findings are"
    return f"{what} outside of this time and left out; transactions that are still open are listed, whenever they began before its end"
