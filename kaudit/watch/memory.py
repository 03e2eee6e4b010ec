"""The findings that a watch has reported, for itself and, in a state file, for the watch that continues from it.

Which findings may still be withdrawn by what comes next, and how long they wait before they are reported.

- What lies at the end of a log where no valid batch follows - a batch being written looks like a torn one - waits until
  one does, until the next segment begins, or until the file has not been written for `SETTLE_SECONDS`.
- An open transaction waits until its timeout is over by the times that a scan measures with: the one its coordinator states,
  else it is idle for the longest that brokers allow unless configured otherwise. A client's timestamp shows neither.
- What compares files or partitions that were read one after the other - coordinators' logs, indexes, checkpoints,
  snapshots, blocks of producer ids - waits until it has been found, in the same words, for `SETTLE_SECONDS`.
- So does what becomes part of another finding when more of its kind follow, and so do notes, which are folded.

All others are reported when they are found: nothing that is appended withdraws them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from kaudit.checks.check import Withdrawal
from kaudit.checks.registry import CHECKS
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS, TransactionStanding
from kaudit.model.finding import Finding
from kaudit.model.severity import Severity, Status

SETTLE_SECONDS = 10.0


class _Seen(Struct):
    """Since when a finding has been there in these words, in seconds of a monotonic clock."""

    since: float
    message: str


class Waiting:
    """Holds findings back until they are certain to stay."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self.held: list[Finding] = []

    def due(
        self, findings: Sequence[Finding], is_settled: Callable[[Finding], bool], now: float, settle: float
    ) -> list[Finding]:
        """Return those of `findings`, all there are now, that need not wait; `held` are the others.

        `is_settled`: whether a place in a log can no longer change; `now` and `settle` are seconds.
        """
        seen: dict[str, _Seen] = {}
        ready: list[Finding] = []
        self.held = []
        for finding in findings:
            key = finding.key
            before = self._seen.get(key)
            if before is None or before.message != finding.message:
                before = _Seen(now, finding.message)
            seen[key] = before
            stood = now - before.since >= settle
            if is_settled(finding) and (_is_overdue(finding) if _may_end(finding) else stood or not _settles(finding)):
                ready.append(finding)
            else:
                self.held.append(finding)
        self._seen = seen
        return ready


def _may_end(finding: Finding) -> bool:
    return CHECKS[finding.code].withdrawn_by is Withdrawal.END_OF_TRANSACTION


def _is_overdue(finding: Finding) -> bool:
    """Whether the timeout of a transaction is over."""
    evidence = finding.evidence
    if evidence.coordinator == TransactionStanding.ONGOING.value:
        return finding.severity is not Severity.NOTE  # the coordinator states the timeout
    return evidence.idle_ms is not None and evidence.idle_ms >= MAX_TRANSACTION_TIMEOUT_MS


def _settles(finding: Finding) -> bool:
    """Whether it must be found for some time before it is reported."""
    return finding.severity is Severity.NOTE or CHECKS[finding.code].withdrawn_by is Withdrawal.NEXT_READING


class Reported(Struct, frozen=True):
    """A reported finding and its place; it is forgotten when the log no longer has that place.

    `last_offset` is None for one about no offset.
    """

    code: str
    severity: str
    directory: str
    last_offset: int | None


class Memory(Struct):
    """`findings` by key, as long as the log may show them; `totals` of new ones by `CODE severity`, never reduced.

    `read_bytes` and `repeated_readings` count over all runs. `grown_ms`: wall clock when something was last appended, ms
    since the epoch.
    """

    findings: dict[str, Reported] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    read_bytes: int = 0
    repeated_readings: int = 0
    grown_ms: int | None = None

    def take(self, findings: Iterable[Finding], directory_of: Mapping[tuple[object, ...], str]) -> list[Finding]:
        """Return those not reported before, and remember them; `directory_of` by place."""
        new: list[Finding] = []
        for finding in findings:
            key = finding.key
            if key in self.findings:
                continue
            offset = finding.last_offset if finding.last_offset is not None else finding.offset
            place = directory_of.get(place_of(finding), "")
            self.findings[key] = Reported(finding.code, finding.severity.value, place, offset)
            if finding.status is Status.NEW:
                total = f"{finding.code} {finding.severity.value}"
                self.totals[total] = self.totals.get(total, 0) + 1
            new.append(finding)
        return new

    def forget(self, start_offsets: Mapping[str, int], deleted: Collection[str]) -> None:
        """Forget findings below the first offset there is of a directory, and those about directories that are gone.

        What is no longer in the log cannot be found again, so memory is bounded by the log.
        """
        gone = [
            key
            for key, known in self.findings.items()
            if known.directory in deleted
            or (known.last_offset is not None and known.last_offset < start_offsets.get(known.directory, 0))
        ]
        for key in gone:
            del self.findings[key]

    def by_check(self) -> dict[tuple[str, str], int]:
        """Return how many findings were reported and new by (code, severity)."""
        return {(code, severity): number for (code, severity), number in self._totals()}

    def _totals(self) -> Iterator[tuple[tuple[str, str], int]]:
        for total, number in self.totals.items():
            code, _, severity = total.partition(" ")
            yield (code, severity), number

    def by_severity(self) -> Counter[str]:
        """Return how many findings of each severity were reported and new."""
        counts: Counter[str] = Counter()
        for (_, severity), number in self._totals():
            counts[severity] += number
        return counts


def place_of(finding: Finding) -> tuple[object, ...]:
    """Return log directory, topic and partition."""
    return finding.log_dir, finding.topic, finding.partition
