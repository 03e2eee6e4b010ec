"""What a scan and a timeline return: engine-neutral, format-neutral (CONTRACT.md section 2)."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.model.finding import Finding, Severity, Status


class BrokerVersions(Struct, frozen=True):
    """The versions the log may come from: what was asked for, the range used, and the evidence for it."""

    requested: str
    profile: str | None
    at_least: str | None
    at_most: str | None
    because: Sequence[str] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "requested": self.requested,
            "profile": self.profile,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "because": list(self.because),
        }


class NotAudited(Struct, frozen=True):
    """A path, or an aspect of one, that no check covered, and why."""

    path: str
    reason: str
    unreadable: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"path": self.path, "reason": self.reason, "unreadable": self.unreadable}


class PartitionSummary(Struct, frozen=True):
    """One replica of one partition as read. Offsets are exclusive ends where named `end` or `stable`."""

    topic: str
    partition: int
    replica: str
    log_start_offset: int | None
    log_end_offset: int | None
    last_stable_offset: int | None
    compacted: bool
    segments: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    producers: int = 0
    runs: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "replica": self.replica,
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "last_stable_offset": self.last_stable_offset,
            "compacted": self.compacted,
            "segments": self.segments,
            "bytes": self.bytes,
            "batches": self.batches,
            "records": self.records,
            "producers": self.producers,
            "runs": self.runs,
        }


class SegmentSummary(Struct, frozen=True):
    """One segment file: `status` is `read`, `empty` or `unreadable`, the last with its reason."""

    topic: str
    partition: int
    replica: str
    segment: str
    path: str
    base_offset: int
    bytes: int
    modified: int
    status: str
    reason: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the row of the `segments` table."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Summary(Struct, frozen=True):
    """Totals over everything audited.

    `findings` (by severity) and `statuses` count every finding, also the `omitted` ones that a limit keeps out of the
    list.
    """

    partitions: int = 0
    segments: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    producers: int = 0
    runs: int = 0
    findings: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    omitted: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "partitions": self.partitions,
            "segments": self.segments,
            "bytes": self.bytes,
            "batches": self.batches,
            "records": self.records,
            "producers": self.producers,
            "runs": self.runs,
            "findings": dict(self.findings),
            "statuses": dict(self.statuses),
            "omitted": self.omitted,
        }


class Expected(Struct, frozen=True):
    """One entry of a baseline, as reports show it."""

    fingerprint: str
    code: str
    summary: str
    reason: str | None = None
    expires: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "fingerprint": self.fingerprint,
            "code": self.code,
            "summary": self.summary,
            "reason": self.reason,
            "expires": self.expires,
        }


class BaselineComparison(Struct, frozen=True):
    """A scan held against a baseline: entries seen, entries seen no more, and entries the scan could not see."""

    file: str
    known: int = 0
    stale: Sequence[Expected] = ()
    out_of_scope: Sequence[Expected] = ()
    expired: Sequence[Expected] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "file": self.file,
            "known": self.known,
            "stale": [entry.to_dict() for entry in self.stale],
            "out_of_scope": [entry.to_dict() for entry in self.out_of_scope],
            "expired": [entry.to_dict() for entry in self.expired],
        }


class ScanResult(Struct, frozen=True):
    """Everything one scan found, in contract order."""

    inputs: Sequence[str]
    broker_version: BrokerVersions
    partitions: Sequence[PartitionSummary]
    findings: Sequence[Finding]
    not_audited: Sequence[NotAudited]
    summary: Summary
    incomplete: bool = False
    baseline: BaselineComparison | None = None
    segments: Sequence[SegmentSummary] = ()

    def worst(self) -> Severity | None:
        """Return the gravest severity among findings that are new, or None."""
        new = [finding.severity for finding in self.findings if finding.status is Status.NEW]
        return max(new) if new else None


class Timeline(Struct, frozen=True):
    """One producer id's history in one partition replica. `entries` and `state` are JSON-ready mappings."""

    topic: str
    partition: int
    replica: str
    producer_id: int
    transactional_id: str | None
    entries: Sequence[Mapping[str, object]]
    state: Mapping[str, object]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "replica": self.replica,
            "producer_id": self.producer_id,
            "transactional_id": self.transactional_id,
            "entries": [dict(entry) for entry in self.entries],
            "state": dict(self.state),
        }


class TimelineResult(Struct, frozen=True):
    """All timelines asked for, with the scan they came from."""

    scan: ScanResult
    timelines: Sequence[Timeline]
