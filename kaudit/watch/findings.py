"""Findings about logs that are being read: a scan's, over what was read of every partition so far."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.checks.check import Withdrawal
from kaudit.checks.registry import CHECKS
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.find_repeats import find_repeats
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.audit import Audit
from kaudit.scanning.block_histories import BlockHistories, read_blocks
from kaudit.scanning.group_log_reading import read_group_log
from kaudit.scanning.group_logs import GroupLog, GroupLogQuestion
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory

COORDINATOR_SHARE = GROUPS_SHARE = BLOCKS_SHARE = 0.1
"""Of the time, what reading __transaction_state, __consumer_offsets or the histories of producer id blocks again may take."""
_Signature = tuple[object, ...]


class Due:
    """Says when something that costs time may be done again, so that it takes a share of the time at most."""

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._next = self._started = 0.0
        self.longest = 0.0

    def is_now(self) -> bool:
        """Whether it may be done."""
        return self._clock() >= self._next

    def __enter__(self) -> None:
        self._started = self._clock()

    def __exit__(self, *_: object) -> None:
        ended = self._clock()
        self.longest = max(self.longest, ended - self._started)
        self._next = ended + (ended - self._started) / self._share


class _Coordinators:
    """What partitions of __transaction_state say, read again where they have changed. `stale`: not this time."""

    def __init__(self, open_source: OpenSource, due: Due) -> None:
        self._open = open_source
        self._due = due
        self._known: dict[tuple[str, ...], tuple[_Signature, CoordinatorReader, CoordinatorView]] = {}
        self.stale = False
        self.at_once = False

    def __call__(
        self, directories: Sequence[PartitionDirectory], wanted: Collection[int]
    ) -> tuple[CoordinatorReader, CoordinatorView]:
        place = tuple(entry.directory for entry in directories)
        signature = (frozenset(wanted), *(tuple(entry.segments) for entry in directories))
        known = self._known.get(place)
        if known is not None and known[0] == signature:
            return known[1], known[2]
        if known is not None and not self.at_once and not self._due.is_now():
            self.stale = True
            return known[1], known[2]
        with self._due:
            reader = CoordinatorReader(self._open)
            view = reader.view(directories, wanted)
        self._known[place] = (signature, reader, view)
        return reader, view


class _GroupLogs:
    """What partitions of __consumer_offsets say, read again where they have changed, if it is time."""

    def __init__(self, open_source: OpenSource, due: Due) -> None:
        self._open = open_source
        self._due = due
        self._known: dict[str, tuple[_Signature, GroupLog]] = {}
        self.at_once = False

    def __call__(self, questions: Sequence[GroupLogQuestion]) -> Sequence[GroupLog]:
        again = self.at_once or self._due.is_now()
        return [self._read(question, again=again) for question in questions]

    def _read(self, question: GroupLogQuestion, *, again: bool) -> GroupLog:
        place, signature = question.directory.directory, tuple(question.directory.segments)
        known = self._known.get(place)
        if known is not None and (known[0] == signature or not again):
            return known[1]
        with self._due:
            read = read_group_log(question, self._open)
        self._known[place] = (signature, read)
        return read


SEARCHED_BYTES = 256 << 20
"""Of the log before a session that began, in which its first record is searched for at every look."""


class LiveAudit:
    """Turns what was read of partitions into a scan's result, as often as wanted."""

    def __init__(self, options: ScanOptions, open_source: OpenSource) -> None:
        self._options = options
        self._open = open_source
        self._coordinators_due = Due(COORDINATOR_SHARE)
        self._coordinators = _Coordinators(open_source, self._coordinators_due)
        self._groups_due = Due(GROUPS_SHARE)
        self._groups = _GroupLogs(open_source, self._groups_due)
        self._blocks_due = Due(BLOCKS_SHARE)
        self.histories = BlockHistories()
        self._carried: Sequence[Finding] = ()

    @property
    def slowest(self) -> float:
        """Seconds until what is read now and then has certainly been read again."""
        return max(
            due.longest / COORDINATOR_SHARE for due in (self._coordinators_due, self._groups_due, self._blocks_due)
        )

    def prepare(self, part: PartitionAudit) -> None:
        """Look for repeats in a partition that has grown, which reads some of it again."""
        find_repeats(part, self._open, SEARCHED_BYTES)

    def read_blocks(self, layout: Layout, *, at_once: bool) -> None:
        """Read the histories of producer id blocks again, if it is time."""
        if at_once or self._blocks_due.is_now():
            with self._blocks_due:
                self.histories = read_blocks(self._options, layout, self._open)

    def result(self, layout: Layout, parts: Iterable[PartitionAudit], *, idle_ms: int, at_once: bool) -> ScanResult:
        """Return what a scan of the partitions would; `idle_ms`: for so long nothing has been appended.

        Findings about transactions stay those of the last time unless __transaction_state has been read since it changed;
        `at_once`: it is read now.
        """
        self._coordinators.stale, self._coordinators.at_once = False, at_once
        self._groups.at_once = at_once
        audit = self._audit(layout)
        audit.idle_ms = idle_ms
        for part in parts:
            audit.add_compared(part)
        result = audit.result()
        if self._coordinators.stale:
            kept = [finding for finding in result.findings if not _is_coordinated(finding)]
            findings = sorted([*kept, *self._carried], key=Finding.sort_key)
            return replace(result, findings=findings)
        self._carried = [finding for finding in result.findings if _is_coordinated(finding)]
        return result

    def _audit(self, layout: Layout) -> Audit:
        read = self._coordinators
        return Audit(self._options, layout, self._open, self.histories, read, read_group_logs=self._groups)


def _is_coordinated(finding: Finding) -> bool:
    """Whether it holds what a coordinator says against a partition's log."""
    check = CHECKS[finding.code]
    return check.package.endswith(".transactions") and check.withdrawn_by is not Withdrawal.NOTHING
