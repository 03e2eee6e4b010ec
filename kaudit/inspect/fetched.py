"""Batches that brokers send as rows: those of a directory without what says where they lie in files."""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.errors import NothingToAuditError
from kaudit.inspect.file_kinds import FileKind, LogFile
from kaudit.inspect.rows import Row
from kaudit.source.discover import discover
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import FetchedRange, PartitionDirectory
from kaudit.source.uri import Uri

_NEAR_BYTES = 2 << 20
"""About so many on either side of an offset hold its neighbours."""
_OF_FILES = ("segment", "position", "end")


def fetched_files(place: Uri, cluster: ClusterOptions, around: int | None) -> Iterator[LogFile]:
    """Yield a stand-in for a segment of each partition of a topic, of those near an offset if that is given.

    Raises:
        UrlError: the cluster has no such topic or partition.
        NothingToAuditError: it cannot be asked.

    """
    layout = discover([str(place)], cluster=cluster)
    for failed in layout.unreadable:
        raise NothingToAuditError(f"nothing to inspect under {failed.path}: {failed.reason}")
    for entry in layout.partitions:
        yield _file(entry, around)


def _file(entry: PartitionDirectory, around: int | None) -> LogFile:
    (segment,) = entry.segments
    assert segment.fetched is not None
    fetched = segment.fetched if around is None else _near(segment.fetched, around)
    return LogFile(
        path=Uri.parse(segment.path),
        kind=FileKind.SEGMENT,
        topic=entry.topic,
        partition=entry.partition,
        replica=entry.replica,
        base_offset=fetched.first_offset,
        fetched=fetched,
    )


def _near(place: FetchedRange, offset: int) -> FetchedRange:
    distance = max(_NEAR_BYTES // place.bytes_per_offset, 1)
    first = min(max(place.readable_from, offset - distance), place.end_offset)
    # a batch may begin below the first offset that is asked for
    return replace(place, readable_from=first, end_offset=max(min(place.end_offset, offset + distance), first))


def without_places(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows without what only files have."""
    for row in rows:
        yield {**row, **{name: None for name in _OF_FILES if name in row}}
