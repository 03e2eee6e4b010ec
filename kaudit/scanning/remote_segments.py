"""Segments in remote storage as the first segments of their partitions: one log, whatever part of it lies where (--remote)."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.sidefiles.segment_manifest import Chunk
from kaudit.model.damage import LogDamage, PlacedDamage
from kaudit.reading.log_tail import position_of
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.remote_choice import RemoteInput, RemotePartition, choose_remote
from kaudit.source.bytes import READ_AT_ONCE_BYTES
from kaudit.source.layout import Layout, PartitionDirectory, RemoteFault, SegmentFile, with_replicas
from kaudit.source.remote_storage import RemoteFiles, RemoteSegmentFile, as_read
from kaudit.source.schemes import open_segment, segment_object
from kaudit.source.segment_object import INDEXES, LOG, MANIFEST, SegmentObject
from kaudit.source.uri import Uri

_MOST_CHUNKS = 64
"""Chunks of one damaged place that are decoded again."""
_REQUESTS = {MANIFEST: 6, INDEXES: 12}
"""A manifest is read up to three times, and each of four indexes by itself."""


def with_remote(layout: Layout, remote: RemoteInput) -> Layout:
    """Return the layout with the chosen segments as the first ones of their partitions."""
    completed: dict[str, PartitionDirectory] = {}
    added: list[PartitionDirectory] = []
    for each in remote.partitions:
        partition = _joined(each, remote)
        if each.local is None:
            added.append(partition)
        else:
            completed[each.local.directory] = partition
    partitions = [completed.get(entry.directory, entry) for entry in layout.partitions]
    return replace(
        layout,
        partitions=sorted(
            [*partitions, *with_replicas(added)], key=lambda entry: (entry.topic, entry.partition, entry.directory)
        ),
        unreadable=[*layout.unreadable, *remote.unreadable],
        skipped=[*layout.skipped, *remote.skipped],
    )


def _joined(each: RemotePartition, remote: RemoteInput) -> PartitionDirectory:
    chain = [*as_read(each.segments, remote.key_files)]
    if all(segment.stop is None for segment in each.segments):
        chain = _without_covered(chain)
    local = each.local or _new_directory(chain[0].origin, remote.location)
    segments: list[SegmentFile] = []
    side_files: dict[str, SegmentFile] = {}
    faults: list[RemoteFault] = []
    nexts = [other.log.base_offset for other in chain[1:]]
    for number, (own, following) in enumerate(zip(chain, [*nexts, each.first_local], strict=True)):
        stop = min((offset for offset in (following, own.origin.stop) if offset is not None), default=None)
        log = _until(own, stop)
        segments.append(log)
        faults += [replace(fault, segment=number) for fault in own.faults]
        side_files |= {file.name: file for file in own.side_files}
        end = own.end_offset + 1 if own.end_offset is not None else stop if log == own.log else None
        if own.snapshot is not None and end is not None:
            name = f"{end:020d}.snapshot"
            side_files[name] = replace(own.snapshot, name=name)
    side_files |= {file.name: file for file in local.side_files}
    return replace(
        local,
        segments=(*segments, *local.segments),
        side_files=[side_files[name] for name in sorted(side_files)],
        remote_segments=len(segments),
        remote_faults=faults,
    )


def _without_covered(chain: Sequence[RemoteSegmentFile]) -> list[RemoteSegmentFile]:
    """Leave out the segments all of whose offsets an earlier one has too: it was copied again after a change of leaders."""
    found: list[RemoteSegmentFile] = []
    covered = -1
    for own in chain:
        if own.end_offset is None or own.end_offset > covered:
            found.append(own)
            covered = max(covered, -1 if own.end_offset is None else own.end_offset)
    return found


def _until(own: RemoteSegmentFile, stop: int | None) -> SegmentFile:
    """Return a copied segment up to the offset with which the next one begins, as brokers read it (RemoteLogMetadataCache)."""
    if stop is None or (own.end_offset is not None and own.end_offset < stop):
        return own.log
    try:
        size = position_of(own.log, open_segment, stop)
        return own.log if size == own.log.size else replace(own.log, size=size, is_cut=True)
    except OSError:
        return own.log  # whoever reads it says why it cannot be read


def _new_directory(origin: RemoteFiles, location: Uri) -> PartitionDirectory:
    """Return a partition that only remote storage has."""
    return PartitionDirectory(
        topic=origin.topic,
        partition=origin.partition,
        replica="",
        log_dir=str(location),
        directory=str(origin.directory),
        relative=origin.directory.relative_to(location),
        segments=(),
        topic_id=origin.topic_id,
    )


def chunk_faults(directory: PartitionDirectory, damages: Iterable[PlacedDamage]) -> Iterator[RemoteFault]:
    """Yield the chunks of remote objects that damage is in, each once: those that cannot be decoded, or else the one in which it begins."""
    known: set[tuple[int, int]] = set()
    for placed in damages:
        if placed.segment >= directory.remote_segments:
            continue
        segment = directory.segments[placed.segment]
        try:
            files = segment_object(Uri.parse(segment.path))
            found = [] if files is None else _damaged_chunks(files, segment, placed.damage)
        except OSError:
            continue  # the segment is listed as unreadable
        for chunk, problem in found:
            if (placed.segment, chunk.number) not in known:
                known.add((placed.segment, chunk.number))
                yield _chunk_fault(segment, placed.segment, chunk, problem)


def _damaged_chunks(files: SegmentObject, segment: SegmentFile, damage: LogDamage) -> list[tuple[Chunk, str]]:
    """Return the chunks among those of damage that cannot be decoded, and why; the first, without a reason, if all can."""
    first = files.chunk_at(damage.position, segment.key_files)
    found, at = [first], first[0].start + first[0].size
    while at < min(damage.end, files.manifest.chunks.file_size) and len(found) < _MOST_CHUNKS:
        found.append(files.chunk_at(at, segment.key_files))
        at += found[-1][0].size
    return [each for each in found if each[1]] or [first]


def _chunk_fault(segment: SegmentFile, number: int, chunk: Chunk, problem: str) -> RemoteFault:
    of_object = f"bytes {chunk.object_start:,} to {chunk.object_start + chunk.object_size:,} of the object"
    held = (
        f"chunk {chunk.number}, {of_object}, holds bytes {chunk.start:,} to {chunk.start + chunk.size:,} of the segment"
    )
    detail = f"{held} and cannot be decoded: {problem}" if problem else f"{held}, in which batches are damaged"
    return RemoteFault(segment.path.removesuffix("!"), detail, chunk.object_start, number)


class PlannedObject(Struct, frozen=True):
    """An object that an audit reads: its bytes, and about how many requests that takes of a store, more rather than fewer."""

    topic: str
    partition: int
    path: str
    bytes: int
    requests: int


def planned_objects(options: ScanOptions, layout: Layout) -> tuple[list[PlannedObject], RemoteInput]:
    """Return what an audit with --remote reads there, by names and sizes alone, and what else is known of the location.

    Raises as `choose_remote`.
    """
    assert options.remote is not None, "the caller has looked"
    remote = choose_remote(options.remote, options, layout)
    objects = [
        PlannedObject(segment.topic, segment.partition, file.path, file.size, _requests(suffix, file.size))
        for partition in remote.partitions
        for segment in partition.segments
        for suffix, file in segment.files.items()
    ]
    return objects, remote


def _requests(suffix: str, size: int) -> int:
    """Return how many requests reading an object takes: opening it is one or two, and a read of the log has 8 MiB."""
    if suffix == LOG:
        return 4 + 2 * -(-size // READ_AT_ONCE_BYTES)
    return _REQUESTS.get(suffix, 3)
