"""What a watch shows, gathered after each round."""

import time
from collections import Counter, deque
from collections.abc import Sequence

from kaudit.model.finding import Status
from kaudit.model.result import ScanResult
from kaudit.model.transactions import OpenTransaction
from kaudit.model.watch_status import ReportedAt, WatchedPartition, WatchStatus
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.open_at_end import last_stable_offset, remembered
from kaudit.scanning.versions import newest_profile
from kaudit.watch.watcher import Round, Watcher

_NEWEST = 50
_RATE_SECONDS = 10.0


class StatusTracker:
    """Remembers the newest findings, and how much was read lately."""

    def __init__(self, inputs: Sequence[str], watcher: Watcher) -> None:
        self._inputs = inputs
        self._watcher = watcher
        self._started_ms = _now_ms()
        self._newest: deque[ReportedAt] = deque(maxlen=_NEWEST)
        self._reads: deque[tuple[float, int]] = deque()

    def after(self, found: Round, seconds: float) -> WatchStatus:
        """Return where the watch stands after a round that took so long."""
        now_ms, memory, result = _now_ms(), self._watcher.memory, found.result
        self._newest.extend(ReportedAt(finding, now_ms) for finding in found.new)
        findings = () if result is None else result.findings
        present = Counter(
            (finding.code, finding.severity.value) for finding in findings if finding.status is Status.NEW
        )
        reported = {(code, severity): number for (code, severity), number in memory.by_check().items()}
        return WatchStatus(
            inputs=self._inputs,
            started_ms=self._started_ms,
            now_ms=now_ms,
            partitions=self._partitions(result),
            reported=reported,
            present={**dict.fromkeys(reported, 0), **present},
            waiting=len(self._watcher.waiting.held),
            read_bytes=memory.read_bytes,
            read_per_second=self._rate(memory.read_bytes),
            repeated_readings=memory.repeated_readings,
            unreadable=0 if result is None else sum(item.unreadable for item in result.not_audited),
            round_seconds=seconds,
            clock_ms=self._watcher.clock_ms,
            newest=list(self._newest),
        )

    def _rate(self, read_bytes: int) -> float:
        now = time.monotonic()
        self._reads.append((now, read_bytes))
        while now - self._reads[0][0] > _RATE_SECONDS and len(self._reads) > 2:
            self._reads.popleft()
        began, before = self._reads[0]
        return (read_bytes - before) / (now - began) if now > began else 0.0

    def _partitions(self, result: ScanResult | None) -> list[WatchedPartition]:
        newest = None if result is None else newest_profile(result.broker_version)
        return [
            _watched(part, part.opened if newest is None else remembered(part.opened, newest))
            for part in self._watcher.parts
        ]


def _watched(part: PartitionAudit, opened: Sequence[OpenTransaction]) -> WatchedPartition:
    return WatchedPartition(
        topic=part.directory.topic,
        partition=part.directory.partition,
        replica=part.directory.replica,
        log_end_offset=part.log_end_offset,
        last_stable_offset=last_stable_offset(opened, part.log_end_offset),
        producers=part.producers,
        open_transactions=len(opened),
        open_since=min((entry.first_timestamp for entry in opened if entry.first_timestamp >= 0), default=None),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
