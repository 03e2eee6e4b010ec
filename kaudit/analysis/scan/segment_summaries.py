"""A row for each segment file of a partition replica: what was read, and what could not be."""

from collections.abc import Iterable, Sequence

from kaudit.model.result import SegmentSummary
from kaudit.source.layout import PartitionDirectory, Unreadable


def segment_rows(directory: PartitionDirectory, unreadable: Sequence[Unreadable]) -> Iterable[SegmentSummary]:
    """Yield a row for each segment of a partition replica."""
    failed = {entry.path: entry.reason for entry in unreadable}
    for segment in directory.segments:
        status = "unreadable" if segment.path in failed else "read" if segment.size else "empty"
        yield SegmentSummary(
            topic=directory.topic,
            partition=directory.partition,
            replica=directory.replica,
            segment=segment.name,
            path=segment.path,
            base_offset=segment.base_offset,
            bytes=segment.size,
            modified=segment.modified_ms,
            status=status,
            reason=failed.get(segment.path),
        )
