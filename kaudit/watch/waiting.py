"""Which findings may still be withdrawn by what comes next, and how long they wait before they are reported.

- What lies at the end of a log where no valid batch follows - a batch being written looks like a torn one - waits until
  one does, until the next segment begins, or until the file has not been written for `SETTLE_SECONDS`.
- An open transaction waits until its timeout is over by the times that a scan measures with: the one its coordinator states,
  else it is idle for the longest that brokers allow unless configured otherwise. A client's timestamp shows neither.
- What compares files or partitions that were read one after the other - coordinators' logs, indexes, checkpoints,
  snapshots, blocks of producer ids - waits until it has been found, in the same words, for `SETTLE_SECONDS`.
- So does what becomes part of another finding when more of its kind follow, and so do notes, which are folded.

All others are reported when they are found: nothing that is appended withdraws them.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kaudit.checks.check import Withdrawal
from kaudit.checks.registry import CHECKS
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS, TransactionStanding
from kaudit.model.finding import Finding, Severity

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
            key = key_of(finding)
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


def key_of(finding: Finding) -> str:
    """Return the key of a finding. It has the log directory, because two replicas of a partition may show the same."""
    return f"{finding.fingerprint} {finding.log_dir or ''}"


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
