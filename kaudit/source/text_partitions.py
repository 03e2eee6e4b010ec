"""Texts of kafka-dump-log in place of segments: which lines show which segment, and the partitions that all texts show together."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.formats.dump_text.other_lines import FILE_START
from kaudit.formats.dump_text.partial_rows import ROW_START
from kaudit.formats.dump_text.rows import DumpBatch, DumpCut, DumpRecord, DumpStart
from kaudit.formats.dump_text.text import read_dump
from kaudit.source.bytes import ByteSource
from kaudit.source.file_kinds import PartitionName, parse_partition_name, segment_base_offset
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import FoundPartitions, PartitionDirectory, SegmentFile, TextRange, Unreadable
from kaudit.source.plain_text import plain_text
from kaudit.source.schemes import filesystem
from kaudit.source.text import PROBE_BYTES, pieces_of
from kaudit.source.uri import Uri

_LONGEST_HEADER_BYTES = 1 << 20


class Section(Struct, frozen=True):
    """The lines between two `Dumping` headers. `path` is what the header says, None before the first one."""

    path: str | None
    range: TextRange


def find_sections(source: ByteSource) -> list[Section]:
    """Read a text once and list the files it shows, in order; a text without headers shows one."""
    size = source.size()
    headers: list[tuple[int, int, str]] = []  # where a header begins, where it ends, the path
    lines: list[int] = []  # the number of lines up to and with each header
    at = lines_read = 0
    carried = b""
    for piece in chain(pieces_of(source, 0, size), (b"\n",)):
        text = carried + piece
        end = text.rfind(b"\n") + 1
        for begin, stop, path in _headers(text[:end]):
            headers.append((at + begin, at + stop, path))
            lines.append(lines_read + text.count(b"\n", 0, stop))
        lines_read += text.count(b"\n", 0, end)
        at, carried = at + end, text[end:]
        if len(carried) > _LONGEST_HEADER_BYTES:  # a line of megabytes is not a header: only its end matters
            at, carried = at + len(carried) - 1, carried[-1:]
    first = headers[0][0] if headers else size
    found = [Section(None, TextRange(0, first))] if first else []
    ends = [*(begin for begin, _, _ in headers[1:]), size]
    found += [
        Section(path, TextRange(min(begin, size), end, before))
        for (_, begin, path), end, before in zip(headers, ends, lines, strict=False)
    ]
    return found


def first_offset(source: ByteSource, section: Section) -> int | None:
    """Return the first offset a section shows, None if it shows neither batches nor records."""
    end = min(section.range.end, section.range.start + PROBE_BYTES)
    started: int | None = None
    for row in read_dump(pieces_of(source, section.range.start, end)):
        if isinstance(row, DumpStart):
            started = row.offset
        elif isinstance(row, DumpBatch | DumpRecord | DumpCut):
            if started is not None:
                return started
            known = row.known if isinstance(row, DumpCut) else row._asdict()
            offsets = (known.get(name) for name in ("offset", "base_offset", "last_offset"))
            return next((offset for offset in offsets if offset is not None), 0)
    return None


def _headers(text: bytes) -> Iterator[tuple[int, int, str]]:
    """Header lines of a text of whole lines: where each begins, where the next line does, and its path."""
    at = 0
    while True:
        if not text.startswith(FILE_START, at):
            at = text.find(b"\n" + FILE_START, at) + 1
            if not at:
                return
        end = text.index(b"\n", at) + 1
        yield at, end, text[at + len(FILE_START) : end].rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        at = end


def partitions_of_texts(texts: Iterable[tuple[Uri, FileStatus]]) -> FoundPartitions:
    """Read the texts once and list their partitions: the segments of one directory are one partition.

    A segment shown twice is of another replica (texts of several brokers name the same paths), or shown again by a
    deeper dump: both are audited, each by itself. Lines before any `Dumping` header show a segment without a name.
    """
    found = FoundPartitions()
    replicas: dict[PurePosixPath, list[_Segments]] = {}
    for path, entry in texts:
        try:
            with closing(filesystem(path).open(path)) as source:
                text, form = plain_text(source, ROW_START)
                for section in find_sections(text):
                    segment = _segment(path, entry, section, first_offset(text, section))
                    if segment is not None:
                        found_there = replace(segment[1], text=replace(section.range, form=form))
                        _sort_in(replicas.setdefault(segment[0], []), path, found_there)
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
    # a relative path depends on where the tool ran: texts from different places are kept apart
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
