"""Partitions that texts of kafka-dump-log show, put together from all the texts given."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import PurePosixPath

from msgspec import Struct, field

from kaudit.source.file_kinds import PartitionName, parse_partition_name, segment_base_offset
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.schemes import filesystem
from kaudit.source.text import Section, find_sections, first_offset
from kaudit.source.uri import Uri


class TextPartitions(Struct):
    """What was found in texts, and what could not be used."""

    partitions: list[PartitionDirectory] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    skipped: list[Unreadable] = field(default_factory=list)


def partitions_of_texts(texts: Iterable[tuple[Uri, FileStatus]]) -> TextPartitions:
    """Read the texts once and list their partitions: the segments of one directory are one partition.

    A segment shown twice is of another replica (texts of several brokers name the same paths), or shown again by a
    deeper dump: both are audited, each by itself. Lines before any `Dumping` header show a segment without a name.
    """
    found = TextPartitions()
    replicas: dict[PurePosixPath, list[_Segments]] = {}
    for path, entry in texts:
        try:
            with closing(filesystem(path).open(path)) as source:
                for section in find_sections(source):
                    segment = _segment(path, entry, section, first_offset(source, section))
                    if segment is not None:
                        _sort_in(replicas.setdefault(segment[0], []), path, segment[1])
        except OSError as error:
            found.unreadable.append(Unreadable(str(path), error.strerror or type(error).__name__))
    for directory, groups in replicas.items():
        name = parse_partition_name(directory.name)
        if name is not None and name.moved is not None:
            reason = f"is a dump of {directory}, which a broker had renamed ({name.moved})"
            paths = {segment.path for group in groups for segment in group.segments.values()}
            found.skipped += [Unreadable(path, reason) for path in sorted(paths)]
            continue
        found.partitions += [_partition(directory, name, group, alone=len(groups) == 1) for group in groups]
    return found


class _Segments(Struct):
    """Segments of one replica by name, and the text that shows its first."""

    text: str
    segments: dict[str, SegmentFile] = field(default_factory=dict)


def _sort_in(groups: list[_Segments], path: Uri, segment: SegmentFile) -> None:
    for group in groups:
        if segment.name not in group.segments:
            group.segments[segment.name] = segment
            return
    groups.append(_Segments(path.name, {segment.name: segment}))


def _segment(
    path: Uri, entry: FileStatus, section: Section, first: int | None
) -> tuple[PurePosixPath, SegmentFile] | None:
    """Directory and segment of one section, None for side files and for lines that show no batch."""
    named = PurePosixPath(section.path) if section.path is not None else PurePosixPath(path.absolute().path)
    base = segment_base_offset(named.name)
    offset = first if base is None else base
    if offset is None:
        return None  # an index, a snapshot, or text around the rows
    size = section.range.end - section.range.start
    segment = SegmentFile(str(path), named.name, offset, size, entry.modified_ms or 0, section.range)
    # a relative path says where the tool ran, which nobody knows: texts from different places are kept apart
    return PurePosixPath(path.absolute().parent.path) / named.parent, segment


def _partition(
    directory: PurePosixPath, name: PartitionName | None, group: _Segments, *, alone: bool
) -> PartitionDirectory:
    segments = sorted(group.segments.values(), key=lambda segment: segment.base_offset)
    return PartitionDirectory(
        topic=name.topic if name is not None else directory.name or PurePosixPath(segments[0].name).stem,
        partition=name.partition if name is not None else 0,
        replica="" if alone else group.text,
        log_dir=str(directory.parent),
        directory=str(directory),
        relative="",
        segments=tuple(segments),
        whole_directory=False,
        named=name is not None,
    )
