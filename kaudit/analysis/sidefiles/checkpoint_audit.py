"""The offset checkpoints of log directories compared with the ends of their partitions."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.sidefiles.side_file_reader import SideFileReader
from kaudit.formats.sidefiles.checkpoints import OffsetCheckpoint, parse_offset_checkpoint
from kaudit.model.side_files import CheckpointBeyondLogEnd, UnparsableCheckpoint
from kaudit.source.layout import PartitionDirectory, SegmentFile

PlaceKey = tuple[str, int, str]
"""Topic, partition and replica."""


class CheckpointAudit(Struct):
    """Reads each checkpoint once. `unparsable` are files of a log directory; complete once all partitions were compared."""

    files: SideFileReader
    unparsable: list[UnparsableCheckpoint] = field(default_factory=list)
    _checkpoints: dict[str, OffsetCheckpoint | None] = field(default_factory=dict)

    def compare(self, part: PartitionAudit) -> Iterator[CheckpointBeyondLogEnd]:
        """Yield the rows of one partition that lie beyond its log's end."""
        directory, end = part.directory, part.log_end_offset
        ends_in_damage = any(damage.segment == len(directory.segments) - 1 for damage in part.damages)
        for file in directory.checkpoints:
            checkpoint = self._read(file, directory.log_dir)
            if checkpoint is None or end is None or ends_in_damage or part.unreadable:
                continue
            for row in checkpoint.rows:
                own = (row.topic, row.partition) == (directory.topic, directory.partition)
                if own and row.offset > end:
                    yield CheckpointBeyondLogEnd(file.name, row.offset, end)

    def offsets(self, directories: Iterable[PartitionDirectory], name: str) -> dict[PlaceKey, int]:
        """Return what the checkpoint of this name says of each partition replica, where it says anything."""
        by_file: dict[str, dict[tuple[str, int], int]] = {}
        found: dict[PlaceKey, int] = {}
        for directory in directories:
            for file in directory.checkpoints:
                if file.name != name:
                    continue
                if file.path not in by_file:
                    checkpoint = self._read(file, directory.log_dir)
                    rows = () if checkpoint is None else checkpoint.rows
                    by_file[file.path] = {(row.topic, row.partition): row.offset for row in rows}
                offset = by_file[file.path].get((directory.topic, directory.partition))
                if offset is not None:
                    found[directory.topic, directory.partition, directory.replica] = offset
        return found

    def _read(self, file: SegmentFile, log_dir: str) -> OffsetCheckpoint | None:
        if file.path not in self._checkpoints:
            data = self.files.read(file)
            checkpoint = None if data is None else parse_offset_checkpoint(data)
            self._checkpoints[file.path] = checkpoint
            if checkpoint is not None and checkpoint.damage:
                damage = checkpoint.damage[0]
                self.unparsable.append(UnparsableCheckpoint(log_dir, file.name, damage.position, damage.detail))
        return self._checkpoints[file.path]
