"""The results of a scan and of timelines, whatever the engine and the output format.

The verdict over a result: what was lost or written twice, what is blocked, and what to do first.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kaudit.model.application_logs import LogEventSummary
from kaudit.model.audit_clock import AuditClock
from kaudit.model.coverage import Coverage
from kaudit.model.digests import Digests
from kaudit.model.finding import Finding
from kaudit.model.impact import Caution
from kaudit.model.json_record import JsonRecord
from kaudit.model.severity import Severity, Status

if TYPE_CHECKING:  # numpy comes with it
    from kaudit.model.timeline import Histories


class PartitionBounds(JsonRecord, frozen=True):
    """Records lost, or written twice, over partitions: `at_most` bounds those where a bound is known.

    `partitions` counts them; in `unknown_in` others only the lower bound is known. `at_least` is of all of them.
    """

    at_least: int = 0
    at_most: int = 0
    partitions: int = 0
    unknown_in: int = 0

    @property
    def nothing(self) -> bool:
        """Whether no partition is concerned."""
        return not self.partitions and not self.unknown_in


class BlockedPartition(JsonRecord, frozen=True):
    """A partition whose last stable offset an open transaction holds back, and since when (ms since the epoch).

    `offsets_invisible` is None where the end of the log is not known. `severity`: note where the transaction may still
    end by itself. `open_transactions` are all of the partition, `siblings` the ids of members of their applications that went on.
    `aborted_at_timestamp` (ms) is when a coordinator aborts the first of them.
    """

    topic: str
    partition: int
    last_stable_offset: int | None
    offsets_invisible: int | None
    since_timestamp: int | None
    severity: Severity
    transactional_ids: Sequence[str] = ()
    open_transactions: int = 0
    siblings: Sequence[str] = ()
    aborted_at_timestamp: int | None = None


class Verdict(JsonRecord, frozen=True):
    """At most three lines, the same in every format, and the numbers in them.

    `lines`: what was lost or written twice, with bounds; what is blocked now and since when; what to do first, and what
    not to do before. `severity` is the worst of the new findings, None without errors and warnings. `first` is the command
    or the act to begin with, `blocked` lists the first partitions by name.
    """

    lines: Sequence[str]
    severity: Severity | None
    records_lost: PartitionBounds
    records_duplicated: PartitionBounds
    blocked: Sequence[BlockedPartition] = ()
    blocked_partitions: int = 0
    first: str | None = None
    cautions: Sequence[Caution] = ()


class CoverageGap(Enum):
    """Why something was not covered; each value is the sentence that a report says."""

    RECORDS = (
        "text of kafka-dump-log: CRCs are as the tool found them, not computed again; records and side files are not "
        "there to be checked"
    )
    MARKERS = (
        "the text does not say which markers commit and which abort, nor their coordinator epochs: outcomes, epochs "
        "raised by aborts (KA203) and KA205 are not checked (a dump with --print-data-log has them)"
    )
    COUNTS = (
        "the text counts no records of a batch (kafka-dump-log before 2.0): whether missing offsets were compacted away "
        "is not known, they are not reported"
    )
    BATCHES = (
        "the text shows records, not batches (a deep dump of a release before 2.0): batches are put together from them, "
        "CRCs and sizes are not known, so an exact duplicate cannot be distinguished from a restart at the same sequence"
    )
    POSITIONS = (
        "lines of batches are cut off in the text: what they do not show - positions, sizes, times, CRCs and whether those "
        "match - is not known and not checked; an exact duplicate cannot be distinguished from a restart at the same sequence"
    )


_COUNTS = ("unchanged", "grown", "new", "read_again", "dropped", "damaged")


class StateUse(Struct):
    """How the saved state was used: the number of segments of each kind.

    Of `unchanged` and `grown` ones only the new part was read; `new` ones are in no earlier audit; those `read_again`
    are not what was read before: truncated, compacted, written anew, or the log start moved into them. `dropped` are
    not there any more. `damaged`: how often the state differed from what had been saved, so that the log was read.
    `not_saved`: why partitions were not saved, and how many. `notice`: why the whole state could not be used.
    """

    unchanged: int = 0
    grown: int = 0
    new: int = 0
    read_again: int = 0
    dropped: int = 0
    damaged: int = 0
    not_saved: tuple[str, int] | None = None
    notice: str | None = None

    def add(self, other: "StateUse") -> None:
        """Add the numbers of another partition."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.not_saved is not None:
            reason, count = self.not_saved or (other.not_saved[0], 0)
            self.not_saved = reason, count + other.not_saved[1]


class BrokerVersions(JsonRecord, frozen=True):
    """The versions the log may come from: what was asked for, the range used, and the evidence for it."""

    requested: str
    profile: str | None
    at_least: str | None
    at_most: str | None
    because: Sequence[str] = ()


class NotAudited(JsonRecord, frozen=True):
    """A path, or an aspect of one, that no check covered, and why."""

    path: str
    reason: str
    unreadable: bool = False
    asked_for: bool = False
    """The user named it: an input, a topic, a partition, a producer id."""


OUTSIDE_TIME = "--since, --until"
"""The path of the entry that says how many findings are outside of the time asked for."""


class Suggestion(JsonRecord, frozen=True):
    """A command that shows more than this one can of the same inputs, and why."""

    reason: str
    command: str


class PartitionSummary(JsonRecord, frozen=True):
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


class SegmentSummary(JsonRecord, frozen=True):
    """One segment file: `status` is `read`, `empty`, `vanished` (while it was read) or `unreadable`, these with a reason."""

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


class Summary(JsonRecord, frozen=True):
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


class UnlistedFindings(Struct, frozen=True):
    """Findings of one check and severity about one topic that are counted and not listed; no status is decided yet.

    `fingerprints` are theirs, read as hexadecimal numbers.
    """

    code: str
    severity: Severity
    topic: str | None
    fingerprints: Collection[int]
    status: Status = Status.NEW

    @property
    def count(self) -> int:
        """The number of findings."""
        return len(self.fingerprints)


class Expected(JsonRecord, frozen=True):
    """One entry of a baseline, as reports show it."""

    fingerprint: str
    code: str
    summary: str
    reason: str | None = None
    expires: str | None = None


class BaselineComparison(JsonRecord, frozen=True):
    """A scan compared with a baseline: entries found again, no longer found, and out of the scan's scope."""

    file: str
    known: int = 0
    stale: Sequence[Expected] = ()
    out_of_scope: Sequence[Expected] = ()
    expired: Sequence[Expected] = ()


class AppliedConfiguration(JsonRecord, frozen=True):
    """The files and environment variables that configured a scan, and how many findings they changed.

    `not_used`: files that lie in an input, which makes them evidence. `left_out`: by codes that are selected or ignored;
    `fail_on`: the severity from which findings count for the exit code, None where the command line or nobody says it.
    """

    sources: Sequence[str] = ()
    not_used: Sequence[str] = ()
    severities_changed: int = 0
    suppressed: int = 0
    left_out: int = 0
    fail_on: str | None = None


class ScanResult(Struct, frozen=True):
    """Everything one scan found; findings in the order of `Finding.sort_key`."""

    inputs: Sequence[str]
    broker_version: BrokerVersions
    partitions: Sequence[PartitionSummary]
    findings: Sequence[Finding]
    not_audited: Sequence[NotAudited]
    summary: Summary
    incomplete: bool = False
    baseline: BaselineComparison | None = None
    segments: Sequence[SegmentSummary] = ()
    suggestions: Sequence[Suggestion] = ()
    clock: AuditClock | None = None
    """What idleness was measured against, of the newest copies where there are several; None of a comparison of replicas."""
    log_events: LogEventSummary | None = None
    """Summary of the logs of brokers and clients, where they were given."""
    unlisted: Sequence[UnlistedFindings] = ()
    """Findings that the engine counted and did not list; `summary` counts them, among the `omitted` too."""
    digests: Digests | None = None
    """Digests of the batches that were audited, where that was asked for."""
    state: StateUse | None = None
    """How a saved state was used; nothing else of the result depends on it."""
    coverage: Sequence[Coverage] = ()
    """The account of each partition's offsets, in the order of `partitions`; none where copies are only compared."""
    configuration: AppliedConfiguration | None = None
    """None where there was none."""
    left_out: int = 0
    """Findings whose code was not asked for."""
    verdict: Verdict | None = None
    """What was lost or written twice, what is blocked, what to do first; None before the run's decisions are applied."""

    def worst(self) -> Severity | None:
        """Return the highest severity among new findings, or None."""
        counted: list[Finding | UnlistedFindings] = [*self.findings, *self.unlisted]
        new = {finding.severity for finding in counted if finding.status is Status.NEW}
        return max(new) if new else None


class Changed:
    """Items that are changed whenever they are read: there may be a million."""

    def __init__(self, items: Iterable[Any], change: Callable[[Any], object]) -> None:
        self._items = items
        self._change = change

    def __iter__(self) -> Iterator[Any]:
        return map(self._change, self._items)

    def __len__(self) -> int:
        assert isinstance(self._items, Sized)
        return len(self._items)


class TimelineResult(Struct, frozen=True):
    """The timelines of producer ids, with the scan they came from; `omitted`: how many more an engine counted and did not list.

    `histories`: partition replicas in the scan's order, producer ids ascending; can be read again.
    """

    scan: ScanResult
    histories: "Iterable[Histories]"
    omitted: int = 0
