"""Rounds of a watch: list what changed, read what was appended, audit it, and return the findings to report.

What a watch shows, gathered after each round.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.model.severity import Status
from kaudit.model.transactions import OpenTransaction
from kaudit.model.watch_status import ReportedAt, WatchedPartition, WatchStatus
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.partition.open_at_end import last_stable_offset, remembered
from kaudit.reading.chunk_plan import OpenSource
from kaudit.results.selection import count
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import audit_needs, plan_jobs
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.watch.findings import Due, LiveAudit
from kaudit.watch.memory import SETTLE_SECONDS, Memory, Waiting, place_of
from kaudit.watch.partition_follower import PartitionFollower, segments_of

AUDIT_SHARE = 0.5
"""Share of the time that auditing all partitions may take."""
CLOSE_SHARE = 0.1
"""Share of the time that looking for repeats in one partition may take: it reads parts of it again."""
IDLE_MS = 60_000
"""As long as the newest batch is younger, it says what time it is."""
TRY_AGAIN_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 60.0
"""After so long the clock alone may have made a transaction overdue, and checkpoints may have changed."""


class Logs(Protocol):
    """Where the partitions are that a watch follows."""

    layout: Layout | None
    """As of the last look; None as long as there is nothing to audit."""
    open_source: OpenSource
    """Opens segments and the files beside them."""

    def look(self, *, thoroughly: bool = False) -> list[PartitionDirectory]:
        """Return the partitions that may have changed since the last look, all of them at the first."""


Decide = Callable[[ScanResult], ScanResult]
"""Applies a team's decisions to a result: what is left out, how severe the rest is, what is known."""


class Round(Struct):
    """What one round found. `changed`: the number of partitions in which more was read; `result` is None until all were audited once."""

    new: Sequence[Finding]
    changed: int
    result: ScanResult | None


class Watcher:
    """Follows partitions. `memory` is what a state file keeps; `stopping` is asked between partitions."""

    def __init__(
        self,
        options: ScanOptions,
        logs: Logs,
        memory: Memory,
        decide: Decide,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.logs = logs
        self.memory = memory
        self.waiting = Waiting()
        self.result: ScanResult | None = None
        self.followers: dict[str, PartitionFollower] = {}
        self._options = options
        self._open = logs.open_source
        self._decide = decide
        self._stopping = stopping
        self._audit = LiveAudit(options, logs.open_source)
        self._auditing = Due(AUDIT_SHARE)
        self._parts: dict[str, PartitionAudit] = {}
        self._closing: dict[str, Due] = {}
        self._unclosed: set[str] = set()
        self._unaudited = False
        self._goes_on_from = memory.grown_ms
        self._audited_at = self._looked_at = self._try_again_at = time.monotonic()

    @property
    def parts(self) -> list[PartitionAudit]:
        """What is known of each partition, in order."""
        return [self._parts[path] for path in sorted(self._parts)]

    @property
    def clock_ms(self) -> int:
        """The time that idleness is measured against, ms since the epoch; 0 before the first audit."""
        clock = None if self.result is None else self.result.clock
        return 0 if clock is None else replace(clock, quiet_ms=self._idle_ms()).latest_ms

    def round(self, *, last: bool = False) -> Round:
        """List, read, audit. `last`: nothing waits for its time, and everything is audited as it is now."""
        now = time.monotonic()
        thoroughly = last or now - self._looked_at >= LOOK_AGAIN_SECONDS
        changed = self.logs.look(thoroughly=thoroughly)
        if thoroughly:
            self._looked_at = now
        layout = self.logs.layout
        if layout is None:
            self._drop_all()
            return Round((), 0, None)
        grown = self._read(layout, [*changed, *self._to_be_tried_again(layout, changed, now)])
        self._drop_deleted(layout)
        self._unaudited = self._unaudited or bool(changed)
        overdue = bool(self.waiting.held) or now - self._audited_at >= LOOK_AGAIN_SECONDS
        if self._stopping() or not (
            last or ((self._unaudited or self._unclosed or overdue) and self._auditing.is_now())
        ):
            return Round((), grown, self.result)
        with self._auditing:
            return Round(self._new_findings(layout, last=last), grown, self.result)

    def _to_be_tried_again(
        self, layout: Layout, changed: Sequence[PartitionDirectory], now: float
    ) -> Sequence[PartitionDirectory]:
        """Return the partitions that could not be read on, now and then: a broker may be back by now."""
        failed = {path for path, follower in self.followers.items() if follower.failed and follower.needs_reading}
        if not failed or now < self._try_again_at:
            return ()
        self._try_again_at = now + TRY_AGAIN_SECONDS
        known = {entry.directory for entry in changed}
        return [entry for entry in layout.partitions if entry.directory in failed - known]

    def _read(self, layout: Layout, changed: Sequence[PartitionDirectory]) -> int:
        """Read on in these partitions; return how many bytes were new to."""
        grown = 0
        for job in self._jobs(layout, changed):
            path = job.directory.directory
            follower = self.followers.get(path)
            if follower is None:
                follower = self.followers[path] = PartitionFollower(job, self._open)
            before, restarts = follower.read_bytes, follower.restarts
            follower.visit(job, self._stopping)
            if follower.read_bytes > before:
                grown += 1
                self.memory.read_bytes += follower.read_bytes - before
            self.memory.repeated_readings += follower.restarts - restarts
            self._unclosed.add(path)
            if self._stopping():
                break
        if grown:
            self.memory.grown_ms = self._appended_at(layout)
        return grown

    def _appended_at(self, layout: Layout) -> int:
        """When what was just read was appended, ms since the epoch; what a watch goes on from was there before it began."""
        since, self._goes_on_from = self._goes_on_from, None
        if since is None:
            return time.time_ns() // 1_000_000
        return max(since, layout.latest_modification)

    def _jobs(self, layout: Layout, changed: Sequence[PartitionDirectory]) -> Sequence[Job]:
        if not changed:
            return ()
        needs = audit_needs(self._options, layout, self._audit.histories)
        return plan_jobs(self._options, replace(layout, partitions=changed, unchosen=()), needs)

    def _new_findings(self, layout: Layout, *, last: bool) -> Sequence[Finding]:
        self._audit.read_blocks(layout, at_once=last)
        needs = audit_needs(self._options, layout, self._audit.histories)
        for path, follower in self.followers.items():
            if follower.ask_for(needs(follower.directory)):
                self._unclosed.add(path)
        for path in sorted(self._unclosed):
            due = self._closing.setdefault(path, Due(CLOSE_SHARE))
            if last or due.is_now():
                with due:
                    part = self._parts[path] = self.followers[path].close()
                    self._audit.prepare(part)
                self._unclosed.discard(path)
        known = [entry for entry in layout.partitions if entry.directory in self._parts]
        parts = [self._parts[entry.directory] for entry in known]
        audited = self._audit.result(replace(layout, partitions=known), parts, idle_ms=self._idle_ms(), at_once=last)
        self._audited_at, self._unaudited = time.monotonic(), False
        directories = {_place(part.directory): part.directory for part in parts}
        there = [finding for finding in audited.findings if _is_there(finding, directories.get(place_of(finding)))]
        result = self._decide(replace(audited, findings=there, summary=replace(audited.summary, findings=count(there))))
        self.result = result
        settle = max(SETTLE_SECONDS, self._audit.slowest)
        ready = self.waiting.due(result.findings, self._is_settled(directories), self._audited_at, settle)
        if last:
            ready, self.waiting.held = list(result.findings), []
        self.memory.forget({entry.directory: _first_offset(entry) for entry in known}, ())
        return self.memory.take(ready, {place: entry.directory for place, entry in directories.items()})

    def _idle_ms(self) -> int:
        """For how long nothing has been appended, where that is longer than the directory's clock may lag behind."""
        since = self.memory.grown_ms
        idle = 0 if since is None else time.time_ns() // 1_000_000 - since
        return idle if idle > IDLE_MS else 0

    def _is_settled(self, directories: Mapping[tuple[object, ...], PartitionDirectory]) -> Callable[[Finding], bool]:
        now_ms = time.time_ns() // 1_000_000

        def is_settled(finding: Finding) -> bool:
            directory = directories.get(place_of(finding))
            if directory is None or not directory.segments:
                return True
            quiet = now_ms - directory.segments[-1].modified_ms >= SETTLE_SECONDS * 1000
            return quiet or self.followers[directory.directory].is_settled(finding.segment, finding.position)

        return is_settled

    def _drop_deleted(self, layout: Layout) -> None:
        """Forget partitions that are gone from a log directory that is still there."""
        there = {entry.directory for entry in layout.partitions}
        gone = [path for path in self.followers if path not in there]
        for path in gone:
            self._drop(path)
        if gone:
            self._unaudited = True
            log_dirs = {entry.log_dir for entry in layout.partitions}
            deleted = {known.directory for known in self.memory.findings.values()} - there
            self.memory.forget(
                {}, {path for path in deleted if any(path.startswith(f"{place}/") for place in log_dirs)}
            )

    def _drop_all(self) -> None:
        for path in list(self.followers):
            self._drop(path)
        self.result = None

    def _drop(self, path: str) -> None:
        del self.followers[path]
        self._parts.pop(path, None)
        self._closing.pop(path, None)
        self._unclosed.discard(path)


def _place(directory: PartitionDirectory) -> tuple[object, ...]:
    return directory.log_dir, directory.topic, directory.partition


def _first_offset(directory: PartitionDirectory) -> int:
    there = segments_of(directory)
    if not there:
        return 0
    fetched = there[0].fetched
    return there[0].base_offset if fetched is None else fetched.readable_from


def _is_there(finding: Finding, directory: PartitionDirectory | None) -> bool:
    """Whether what a finding is about has not been deleted from the front of the log."""
    if directory is None or not any(segment.deleted or segment.fetched for segment in directory.segments):
        return True
    offset = finding.last_offset if finding.last_offset is not None else finding.offset
    if offset is not None:
        return offset >= _first_offset(directory)
    return finding.segment is None or finding.segment in {segment.name for segment in segments_of(directory)}


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
