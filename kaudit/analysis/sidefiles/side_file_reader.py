"""Reading a partition's side files and holding them against what its log says."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct, field

from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.rows import Rows
from kaudit.checks.checkpoints import check_checkpoint, unparsable_checkpoint
from kaudit.checks.indexes import (
    IndexedSegment,
    Probe,
    check_offset_index,
    check_time_index,
    missing_indexes,
)
from kaudit.checks.leader_epochs import LEADER_EPOCH_CHECKPOINT, EpochStretch, check_leader_epochs
from kaudit.checks.sidefiles import SideFileFact
from kaudit.checks.snapshots import corrupt_snapshot
from kaudit.checks.txnindex import Abort, check_transaction_index
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import (
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    PREFIX_SIZE,
    base_offset_of,
    batch_size,
    plausible_length,
)
from kaudit.formats.sidefiles.checkpoints import (
    OffsetCheckpoint,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kaudit.formats.sidefiles.indexes import OffsetIndex, parse_offset_index, parse_time_index
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot
from kaudit.formats.sidefiles.transaction_index import TransactionIndex, parse_transaction_index
from kaudit.model.batch_fields import ABORT_MARKER, NO_OFFSET
from kaudit.model.continuity import MissingCause, MissingOffsets, PlacedDamage
from kaudit.model.finding import Finding
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable

MAX_SIDE_FILE = 256 << 20
"""Larger side files are not read: no broker's default makes one of a tenth of that."""
MAX_SEGMENT_OFFSETS = 2**31
"""Rows hold offsets relative to the segment's in 32 bits: LogSegment.canConvertToRelativeOffset."""
MAX_PROBES = 256
"""Rows of an offset index looked up in the log, spread evenly."""
_BASE_DIGITS = 20


class LogFacts(Struct, frozen=True):
    """What the side files are held against: a partition as it was read.

    `ended` are its markers (pipeline.transactions.ENDED), None if not all could be kept; `epoch_steps` its leader epoch
    steps in offset order.
    """

    directory: PartitionDirectory
    damages: Sequence[PlacedDamage]
    missing: Sequence[MissingOffsets]
    compacted: bool
    first_offset: int | None
    log_end_offset: int | None
    has_legacy: bool
    epoch_regressions: bool
    epoch_steps: Rows
    ended: Rows | None
    unread: bool


class SideFileReader(Struct):
    """Reads side files; what cannot be read is listed."""

    open_source: OpenSource
    unreadable: list[Unreadable] = field(default_factory=list)

    def read(self, file: SegmentFile) -> bytes | None:
        """Return the file's bytes, None where it is gone or unreadable (then it is listed)."""
        try:
            source = self.open_source(file)
            try:
                size = source.size()
                if size > MAX_SIDE_FILE:
                    self.unreadable.append(Unreadable(file.path, f"side file of {size} bytes, more than is read"))
                    return None
                buffer = bytearray(size)
                return bytes(buffer[: source.read_into(0, memoryview(buffer))])
            finally:
                source.close()
        except FileNotFoundError:
            return None  # brokers delete side files while we look
        except OSError as error:
            self.unreadable.append(Unreadable(file.path, error.strerror or type(error).__name__))
            return None


class CheckpointAudit(Struct):
    """Holds the offset checkpoints of log directories, each read once, against their partitions."""

    files: SideFileReader
    _checkpoints: dict[str, OffsetCheckpoint | None] = field(default_factory=dict)
    _findings: list[Finding] = field(default_factory=list)

    def facts(self, log: LogFacts) -> Iterator[SideFileFact]:
        """Yield what is wrong with the rows of one partition."""
        end = log.log_end_offset
        ends_in_damage = any(damage.segment == len(log.directory.segments) - 1 for damage in log.damages)
        for file in log.directory.checkpoints:
            checkpoint = self._checkpoint(file, log.directory.log_dir)
            if checkpoint is None or end is None or ends_in_damage or log.unread:
                continue
            for row in checkpoint.rows:
                if (row.topic, row.partition) == (log.directory.topic, log.directory.partition):
                    fact = check_checkpoint(file.name, row.offset, end)
                    if fact is not None:
                        yield fact

    def directory_findings(self) -> list[Finding]:
        """Findings of files that belong to no partition; to be asked last."""
        return list(self._findings)

    def _checkpoint(self, file: SegmentFile, log_dir: str) -> OffsetCheckpoint | None:
        if file.path not in self._checkpoints:
            data = self.files.read(file)
            checkpoint = None if data is None else parse_offset_checkpoint(data)
            self._checkpoints[file.path] = checkpoint
            if checkpoint is not None and checkpoint.damage:
                self._findings.append(unparsable_checkpoint(log_dir, file.name, checkpoint.damage[0]))
        return self._checkpoints[file.path]


class PartitionFiles(Struct):
    """Audits what lies beside one partition's segments."""

    files: SideFileReader

    def facts(self, log: LogFacts) -> list[SideFileFact]:
        """Return what is wrong with the side files of one partition."""
        files = {file.name: file for file in log.directory.side_files}
        found: list[SideFileFact] = []
        found += self._snapshots(log, files)
        if any(name.endswith((".index", ".timeindex")) for name in files):
            found += self._indexes(log, files)
            found += self._transaction_indexes(log, files)
        found += self._leader_epochs(log, files)
        return found

    def _snapshots(self, log: LogFacts, files: dict[str, SegmentFile]) -> Iterator[SideFileFact]:
        sound: str | None = None
        for name in sorted(name for name in files if name.endswith(".snapshot") and _base(name) is not None):
            data = self.files.read(files[name])
            if data is None:
                continue
            try:
                parse_producer_snapshot(data)
            except WireError as error:
                yield corrupt_snapshot(name, _segment_at(log, _base(name) or 0), len(data), error, sound)
            else:
                sound = name

    def _indexes(self, log: LogFacts, files: dict[str, SegmentFile]) -> Iterator[SideFileFact]:
        absent: dict[str, list[tuple[str, int]]] = {"KA503": [], "KA504": []}
        for number, segment in enumerate(log.directory.segments):
            name = f"{segment.base_offset:0{_BASE_DIGITS}d}"
            for code, suffix in (("KA503", "index"), ("KA504", "timeindex")):
                file = files.get(f"{name}.{suffix}")
                if file is None:
                    if segment.size == 0:
                        continue  # made with the first append
                    absent[code].append((f"{name}.{suffix}", number))
                    continue
                data = self.files.read(file)
                if data is None:
                    continue
                place = _indexed(log, number)
                if code == "KA504":
                    fact = check_time_index(file.name, parse_time_index(data), place)
                else:
                    index = parse_offset_index(data)
                    fact = check_offset_index(file.name, index, *self._probed(log, number, place, index))
                if fact is not None:
                    yield fact
        for code, missing in absent.items():
            if missing:
                yield missing_indexes(code, missing)

    def _probed(
        self, log: LogFacts, number: int, place: IndexedSegment, index: OffsetIndex
    ) -> tuple[IndexedSegment, list[Probe]]:
        """The segment as it is now, with what lies where some of the rows point."""
        count = len(index.positions)
        # they ascend, so neighbours tell repeats; np.unique would import numpy.ma, a seventh of a small scan
        rows = np.linspace(0, max(count - 1, 0), min(count, MAX_PROBES)).astype(np.int64)
        rows = rows[np.diff(rows, prepend=-1) > 0]
        if place.size is None or not len(rows):
            return place, []
        probes: list[Probe] = []
        try:
            source = self.files.open_source(log.directory.segments[number])
        except OSError:
            return place, []  # reported when the segment itself was read
        try:
            # a live log grows, and its index with it, after its size was noted
            place = IndexedSegment(place.index, place.base_offset, place.end_offset, max(place.size, source.size()))
            head = bytearray(PREFIX_SIZE)
            for row in rows.tolist():
                position = int(index.positions[row])
                if position < 0 or source.read_into(position, memoryview(head)) < PREFIX_SIZE:
                    continue  # beyond the end: the index itself shows it
                starts = plausible_length(head[MAGIC_OFFSET], batch_size(head) - LOG_OVERHEAD)
                base = base_offset_of(head)
                stop = place.base_offset + MAX_SEGMENT_OFFSETS if place.end_offset is None else place.end_offset
                probes.append(Probe(row, base if starts and place.base_offset <= base < stop else None))
        finally:
            source.close()
        return place, probes

    def _transaction_indexes(self, log: LogFacts, files: dict[str, SegmentFile]) -> Iterator[SideFileFact]:
        known = not (log.damages or log.compacted or log.unread or log.ended is None) and not any(
            gap.cause is not MissingCause.LOG_START for gap in log.missing
        )
        ended = log.ended if log.ended is not None else np.empty(0, dtype=[("type", np.int8), ("segment", np.int32)])
        aborted = ended[ended["type"] == ABORT_MARKER]
        start = max(log.directory.log_start_offset or 0, log.first_offset or 0)
        for number, segment in enumerate(log.directory.segments):
            name = f"{segment.base_offset:0{_BASE_DIGITS}d}.txnindex"
            file = files.get(name)
            own = aborted[aborted["segment"] == number]
            if file is None and not len(own):
                continue
            data = b"" if file is None else self.files.read(file)
            if data is None:
                continue
            aborts = [_abort(row) for row in own] if known else []
            index = parse_transaction_index(data) if data else TransactionIndex((), ())
            fact = check_transaction_index(name, number, index, aborts, start, rows_known=known)
            if fact is not None:
                yield fact

    def _leader_epochs(self, log: LogFacts, files: dict[str, SegmentFile]) -> Iterator[SideFileFact]:
        file = files.get(LEADER_EPOCH_CHECKPOINT)
        data = self.files.read(file) if file is not None else None
        if data is None:
            return
        reliable = not (log.epoch_regressions or log.unread or log.has_legacy)
        fact = check_leader_epochs(
            parse_leader_epoch_checkpoint(data), len(data), _stretches(log) if reliable else None
        )
        if fact is not None:
            yield fact


def _base(name: str) -> int | None:
    digits = name[:_BASE_DIGITS]
    return int(digits) if len(digits) == _BASE_DIGITS and digits.isdecimal() else None


def _segment_at(log: LogFacts, offset: int) -> int | None:
    """Index of the segment a snapshot of this offset was written for: the one it begins, else the last."""
    bases = [segment.base_offset for segment in log.directory.segments]
    if offset in bases:
        return bases.index(offset)
    return len(bases) - 1 if bases else None


def _indexed(log: LogFacts, number: int) -> IndexedSegment:
    """A segment as its indexes should see it; where its log is damaged or lacks offsets they cannot be judged by it."""
    segments = log.directory.segments
    segment = segments[number]
    hurt = {damage.segment for damage in log.damages} | {gap.segment for gap in log.missing}
    hurt |= {gap.segment - 1 for gap in log.missing if gap.cause is not MissingCause.UNKNOWN or gap.position == 0}
    if log.unread or (number in hurt and not log.compacted):
        return IndexedSegment(number, segment.base_offset, None, None)
    end = segments[number + 1].base_offset if number + 1 < len(segments) else None
    return IndexedSegment(number, segment.base_offset, end, segment.size)


def _abort(row: Rows) -> Abort:
    first, stable = int(row["first_offset"]), int(row["stable_offset"])
    return Abort(
        int(row["producer_id"]),
        None if first == NO_OFFSET else first,
        int(row["marker_offset"]),
        None if stable == NO_OFFSET else stable,
    )


def _stretches(log: LogFacts) -> list[EpochStretch]:
    steps = log.epoch_steps
    if not len(steps) or log.log_end_offset is None:
        return []
    ends = np.append(steps["base_offset"][1:] - 1, log.log_end_offset - 1)
    start = log.directory.log_start_offset or 0
    return [
        EpochStretch(
            int(step["leader_epoch"]),
            max(int(step["base_offset"]), start),
            # where offsets are missing, the next epoch may have begun before its first batch that is left
            int(step["last_offset"]) if log.compacted or log.missing else end,
            int(step["segment"]),
        )
        for step, end in zip(steps, ends.tolist(), strict=True)
        if step["leader_epoch"] >= 0 and end >= start and step["last_offset"] >= start
    ]
