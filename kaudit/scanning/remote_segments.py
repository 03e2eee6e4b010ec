"""Segments in remote storage as the first segments of their partitions: one log, whatever part of it lies where (--remote)."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.formats.sidefiles.segment_manifest import Chunk
from kaudit.model.damage import LogDamage, PlacedDamage
from kaudit.reading.log_tail import position_of
from kaudit.scanning.options import ScanOptions
from kaudit.source.bytes import READ_AT_ONCE_BYTES
from kaudit.source.layout import Layout, PartitionDirectory, RemoteFault, SegmentFile, Unreadable, with_replicas
from kaudit.source.listing import failure
from kaudit.source.remote_storage import RemoteFiles, RemoteSegmentFile, as_read, find_remote
from kaudit.source.schemes import open_segment, segment_object
from kaudit.source.segment_object import INDEXES, LOG, MANIFEST, SegmentObject, decryption
from kaudit.source.uri import Uri, UrlError

_MOST_CHUNKS = 64
"""Chunks of one damaged place that are decoded again."""
_REQUESTS = {MANIFEST: 6, INDEXES: 12}
"""A manifest is read up to three times, and each of four indexes by itself."""
_PartitionKey = tuple[str, str, int]
"""Topic, topic id and partition."""


class RemotePartition(Struct, frozen=True):
    """The copied segments to read of one partition, by offset, and the replica that they are read before; None without one."""

    segments: Sequence[RemoteFiles]
    local: PartitionDirectory | None

    @property
    def first_local(self) -> int | None:
        """The offset from which on the replica has the log itself."""
        return self.local.segments[0].base_offset if self.local is not None and self.local.segments else None


class RemoteInput(Struct, frozen=True):
    """What of a location is read: partitions with segments, and what is not read and why. `key_files` as of `as_read`."""

    location: Uri
    partitions: Sequence[RemotePartition]
    unreadable: Sequence[Unreadable] = ()
    skipped: Sequence[Unreadable] = ()
    key_files: Sequence[str] = ()


def choose_remote(location: str, options: ScanOptions, layout: Layout) -> RemoteInput:
    """Choose what to read of a location, by names alone: what the partitions of `layout` lack, or all of it without other inputs.

    Local segments win: of offsets that a replica has itself no copy is read. Of several replicas the one whose log begins first is
    completed. Raises UsageError where there is no such location, or no segment in it, or a key file is none.
    """
    place = Uri.parse(location)
    _require_keys(options.remote_keys)
    try:
        found = find_remote(place)
    except FileNotFoundError as error:
        raise UsageError(f"--remote {location}: no such file or directory") from error
    except UrlError as error:
        raise UsageError(f"--remote {error}") from error
    except OSError as error:
        return RemoteInput(place, (), [Unreadable(location, failure(error))])
    if not found.segments and not found.unreadable:
        known = "known are the layouts of Kafka's LocalTieredStorage and of Aiven's plugin"
        raise UsageError(f"--remote {location}: no copied segment was found ({known})")
    by_partition: dict[_PartitionKey, list[RemoteFiles]] = {}
    for segment in found.segments:
        if options.asks_for(segment.topic, segment.partition):
            by_partition.setdefault((segment.topic, segment.topic_id, segment.partition), []).append(segment)
    chosen: list[RemotePartition] = []
    alone: set[_PartitionKey] = set()
    renewed: set[str] = set()
    taken: dict[str, str] = {}
    # where nothing here says which topic it is, it is the one that was copied last
    for key, segments in sorted(by_partition.items(), key=lambda entry: -max(map(_newest, entry[1]))):
        local = _completed(key, layout.partitions)
        if local is None and options.paths:
            alone.add(key)
            renewed |= {
                _renewed(entry, key, entry.topic_id)
                for entry in layout.partitions
                if entry.topic == key[0] and entry.partition == key[2]
            }
            continue
        if local is not None and (other := taken.setdefault(local.directory, key[1])) != key[1]:
            renewed.add(_renewed(local, key, other))
            continue
        chosen.append(RemotePartition(_needed(segments, local), local))
    return RemoteInput(
        place,
        [each for each in chosen if each.segments],
        found.unreadable,
        [*_alone(location, alone), *(Unreadable(location, text) for text in sorted(renewed))],
        options.remote_keys,
    )


def _require_keys(files: Sequence[str]) -> None:
    for file in files:
        try:
            decryption("private_key")(file)
        except OSError as error:
            raise UsageError(f"--remote-key {file}: {failure(error)}") from error


def _newest(segment: RemoteFiles) -> int:
    return max(file.modified_ms for file in segment.files.values())


def _renewed(entry: PartitionDirectory, key: _PartitionKey, topic_id: str | None) -> str:
    return (
        f"{entry.name} there has topic id {key[1]} too, and the one that was read {topic_id}: the topic was made anew"
    )


def _alone(location: str, partitions: set[_PartitionKey]) -> Iterator[Unreadable]:
    if partitions:
        reason = f"{len(partitions):,} partitions there are not among the inputs and were not read: give --remote without PATH to read all"
        yield Unreadable(location, reason)


def _completed(key: _PartitionKey, partitions: Sequence[PartitionDirectory]) -> PartitionDirectory | None:
    """Return the replica whose log begins first; a topic that was made anew has another id."""
    topic, topic_id, number = key
    own = [
        entry
        for entry in partitions
        if entry.partition == number
        and (entry.topic_id == topic_id if entry.topic_id is not None else entry.topic == topic)
        and entry.whole_directory
        and not entry.is_fetched
    ]
    return min(own, key=lambda entry: entry.segments[0].base_offset if entry.segments else -1, default=None)


def _needed(segments: Iterable[RemoteFiles], local: PartitionDirectory | None) -> list[RemoteFiles]:
    """Return the segments that begin before the replica's own, by offset; of those that begin alike the longest.

    A segment is not needed where the next one begins at or before the log start.
    """
    longest: dict[int, RemoteFiles] = {}
    for segment in sorted(segments, key=lambda each: (each.base_offset, each.bytes)):
        longest[segment.base_offset] = segment
    first = None if local is None or not local.segments else local.segments[0].base_offset
    found = [segment for base, segment in longest.items() if first is None or base < first]
    start = 0 if local is None or local.log_start_offset is None else local.log_start_offset
    begun = sum(segment.base_offset <= start for segment in found)
    return found[max(begun - 1, 0) :]


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
    chain = _without_covered([*as_read(each.segments, remote.key_files)])
    local = each.local or _new_directory(chain[0].origin, remote.location)
    segments: list[SegmentFile] = []
    side_files: dict[str, SegmentFile] = {}
    faults: list[RemoteFault] = []
    nexts = [other.log.base_offset for other in chain[1:]]
    for number, (own, stop) in enumerate(zip(chain, [*nexts, each.first_local], strict=True)):
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
