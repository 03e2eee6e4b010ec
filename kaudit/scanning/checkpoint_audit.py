"""The offset checkpoints of log directories compared with the ends of their partitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from kaudit.audits.sidefiles.log_facts import SideFileReader, broken_off_at
from kaudit.formats.sidefiles.checkpoints import parse_offset_checkpoint
from kaudit.model.coverage import EndWitness, OffsetClass, OffsetRange
from kaudit.model.damage import DamageKind
from kaudit.model.grouping import grouped
from kaudit.model.side_files import CheckpointBeyondLogEnd, UnparsableCheckpoint
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.log_tail import end_of
from kaudit.source.file_kinds import CLEAN_SHUTDOWN, HIGH_WATERMARK_CHECKPOINT
from kaudit.source.layout import Layout, PartitionDirectory, SegmentFile

PlaceKey = tuple[str, int, str]
"""Topic, partition and replica."""

_APART_MS = 60_000
"""Files that are written anew with a copy, by tools that keep no times, differ by less, in any order."""

_Offsets = Mapping[tuple[str, int], Sequence[int]]
"""The offsets a checkpoint has for each topic and partition."""


class CheckpointAudit(Struct):
    """Reads each checkpoint once. `unparsable` are files of a log directory; complete once all partitions were compared."""

    files: SideFileReader
    unparsable: list[UnparsableCheckpoint] = field(default_factory=list)
    _checkpoints: dict[str, _Offsets] = field(default_factory=dict)

    def compare(self, part: PartitionAudit) -> Iterator[CheckpointBeyondLogEnd]:
        """Yield the rows of one partition that lie beyond its log's end; its coverage gets what the checkpoints know."""
        directory, end = part.directory, self.end_of(part)
        witnesses = [
            EndWitness(file.name, offset)
            for file in directory.checkpoints
            for offset in self._read(file, directory.log_dir).get((directory.topic, directory.partition), ())
        ]
        if end is not None and any(known.end_offset > end for known in witnesses) and self.has_grown(part):
            witnesses = [known for known in witnesses if known.end_offset <= end]
        if part.coverage is not None:
            part.coverage = part.coverage.with_witnesses(witnesses, end)
        # what a damaged batch at the end claims is reported with it
        claimed = max([end or 0, *(found.last_offset + 1 for found in _damaged(part) if found.last_offset is not None)])
        for known in witnesses:
            if end is not None and known.end_offset > claimed:
                cut = broken_off_at(directory, part.damages)
                records = (
                    known.end_offset - end if cut is not None and not (part.compacted or part.counts.markers) else 0
                )
                not_later = _not_later(directory, known.name, cut)
                yield CheckpointBeyondLogEnd(known.name, known.end_offset, end, not_later, records)

    def has_grown(self, part: PartitionAudit) -> bool:
        """Whether a live log has more than was read of it, so that checkpoints that are read later know more."""
        return any(self.files.size_now(segment) != segment.size for segment in part.directory.segments[-1:])

    def end_of(self, part: PartitionAudit) -> int | None:
        """Return the end of a partition's log (exclusive), None where it is not certain.

        An empty last segment begins at the end. Batches below the log start offset are not audited, but end the log.
        """
        segments = part.directory.segments
        if not segments or part.unreadable or any(each.damage.kind is DamageKind.LEFT_OUT for each in part.damages):
            return None
        if part.directory.is_fetched:
            return part.log_end_offset
        if part.log_end_offset is not None:
            return max(segments[-1].base_offset, part.log_end_offset)
        try:
            return end_of(segments, self.files.open_source)
        except OSError as error:
            self.files.note(next(segment for segment in reversed(segments) if segment.size), error)
            return None

    def offsets(self, directories: Iterable[PartitionDirectory], name: str) -> dict[PlaceKey, int]:
        """Return what the checkpoint of this name says of each partition replica, where it says anything."""
        found: dict[PlaceKey, int] = {}
        for directory in directories:
            for file in directory.checkpoints:
                own = (directory.topic, directory.partition)
                if file.name == name and (stated := self._read(file, directory.log_dir).get(own)):
                    found[directory.topic, directory.partition, directory.replica] = stated[-1]
        return found

    def left_out(self, layout: Layout) -> frozenset[tuple[str, int]]:
        """Return the partitions that brokers had when they wrote their high watermarks, and of which no directory was given."""
        listed: set[tuple[str, int]] = set()
        for directory in layout.everything:
            for file in directory.checkpoints:
                if file.name == HIGH_WATERMARK_CHECKPOINT:
                    listed.update(self._read(file, directory.log_dir))
        for given in layout.everything:
            listed.discard((given.topic, given.partition))
        aside = {(file.topic, file.partition) for file in layout.leftover_files}
        return frozenset(place for place in listed if place not in aside)

    def _read(self, file: SegmentFile, log_dir: str) -> _Offsets:
        if file.path not in self._checkpoints:
            data = self.files.read(file)
            checkpoint = None if data is None else parse_offset_checkpoint(data)
            offsets = grouped(
                ((row.topic, row.partition), row.offset) for row in (() if checkpoint is None else checkpoint.rows)
            )
            self._checkpoints[file.path] = offsets
            if checkpoint is not None and checkpoint.damage:
                damage = checkpoint.damage[0]
                self.unparsable.append(UnparsableCheckpoint(log_dir, file.name, damage.position, damage.detail))
        return self._checkpoints[file.path]


def _not_later(directory: PartitionDirectory, name: str, cut: int | None) -> str | None:
    """Return how it is known that a checkpoint is not younger than the log's last segment, as both were copied. `cut`: `broken_off_at`.

    Offsets of checkpoints are never beyond the log's end as the broker knows it when it writes them, and it writes them when it
    shuts down and after it has truncated a log (ReplicaManager.checkpointHighWatermarks, LogManager.truncateTo).
    """
    if directory.is_stopped:
        return f"{CLEAN_SHUTDOWN} shows that the broker had been shut down"
    if cut is not None:
        return f"the last segment breaks off inside a batch at byte {cut}, where no append ends"
    written = next((file.modified_ms for file in directory.checkpoints if file.name == name), 0)
    last = directory.segments[-1].modified_ms if directory.segments else 0
    if written > 0 and last - written > _APART_MS:
        return f"the last segment was written {(last - written) // 1000:,} s after it"
    return None


def _damaged(part: PartitionAudit) -> list[OffsetRange]:
    ranges = () if part.coverage is None else part.coverage.ranges
    return [found for found in ranges if found.kind is OffsetClass.DAMAGED]
