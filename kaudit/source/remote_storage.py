"""Segments that brokers have copied to remote storage (KIP-405), found by the names of their files or objects.

Two layouts are known: that of Kafka's LocalTieredStorage (`TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log`, .index, ...; classes
RemoteTopicPartitionDirectory and RemoteLogSegmentFileset) and that of Aiven's plugin (`TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log`,
.indexes and .rsm-manifest; class ObjectKeyFactory), each below a prefix that anybody may choose.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.formats.sidefiles.segment_manifest import SegmentManifest
from kaudit.model.limits import DIRECTORY_DEPTH
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import RemoteFault, SegmentFile, Unreadable
from kaudit.source.listing import Listed, Listing, failure, many_at_a_time, sized
from kaudit.source.schemes import filesystem
from kaudit.source.segment_object import (
    INDEXES,
    LOG,
    MANIFEST,
    index_files,
    object_name,
    read_manifest,
    require_readable,
)
from kaudit.source.uri import Uri

_TOPIC = r"(?P<topic>[a-zA-Z0-9._-]{1,249})"
_ID = "[a-zA-Z0-9_-]{22}"
_TOPIC_DIRECTORY: Final = re.compile(rf"{_TOPIC}-(?P<id>{_ID})")
_PARTITION_DIRECTORY: Final = re.compile(rf"{_TOPIC}-(?P<partition>0|[1-9][0-9]{{0,9}})-(?P<id>{_ID})")
_PARTITION: Final = re.compile("0|[1-9][0-9]{0,9}")
_EPOCHS, _SNAPSHOT, _ABORTED = "leader_epoch_checkpoint", "snapshot", "txnindex"
_SUFFIXES: Final = (LOG, "index", "timeindex", _ABORTED, _SNAPSHOT, _EPOCHS)
"""RemoteLogSegmentFileType; a segment without aborted transactions has no index of them."""
_FILE: Final = re.compile(rf"([0-9]{{1,20}})-({_ID})\.({'|'.join(_SUFFIXES)})")


class RemoteFiles(Struct, frozen=True):
    """The files or objects of one copied segment, by suffix; none where they are missing. `is_chunked`: they are those of Aiven's plugin.

    `end_offset` (inclusive) is what __remote_log_metadata says, None where it names no such segment; it is read as far as the offset
    `stop` (exclusive), None where nothing says that another segment goes on before its end.
    """

    topic: str
    topic_id: str
    partition: int
    base_offset: int
    segment_id: str
    directory: Uri
    files: Mapping[str, SegmentFile]
    is_chunked: bool
    end_offset: int | None = None
    stop: int | None = None

    @property
    def name(self) -> str:
        """The segment's name in a log directory."""
        return f"{self.base_offset:020d}.{LOG}"

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(file.size for file in self.files.values())


class RemoteSegmentFile(Struct, frozen=True):
    """A copied segment as it is read: its log, the files beside it under a broker's names, and what is wrong already.

    `end_offset` (inclusive, also by __remote_log_metadata) and `leader_epochs` (epoch and its first offset, ascending) are what the manifest says, None and empty
    without one. `snapshot`: the producer snapshot at its end, where nothing says which offset that is.
    """

    origin: RemoteFiles
    log: SegmentFile
    side_files: Sequence[SegmentFile] = ()
    faults: Sequence[RemoteFault] = ()
    end_offset: int | None = None
    leader_epochs: Sequence[tuple[int, int]] = ()
    snapshot: SegmentFile | None = None


class FoundRemote(Struct):
    """What a location holds: copied segments, and directories and files that cannot be listed."""

    segments: list[RemoteFiles] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


def find_remote(location: Uri) -> FoundRemote:
    """List a location, by names alone: nothing is read.

    Raises:
        UrlError: kaudit reads no such store.
        FileNotFoundError: there is no such location.

    """
    filesystem(location).status(location)
    found = FoundRemote()
    listing = Listing(location, PARTITION_METADATA)
    visited: set[object] = set()

    def visit(listed: Listed, depth: int) -> None:
        if listed.error is not None:
            found.unreadable.append(Unreadable(str(listed.directory), failure(listed.error)))
        if listed.identity in visited:
            return
        visited.add(listed.identity)
        _take_directory(found, listed)
        below = [listed.directory / entry.name for entry in listed.entries if entry.is_directory]
        if depth < DIRECTORY_DEPTH:
            for inner in listing.below(below):
                visit(inner, depth + 1)

    visit(listing.first(), 0)
    return found


def is_copied_segment(directory: Uri, name: str) -> bool:
    """Return whether a file is of a segment that was copied to remote storage, by its name and its directory's."""
    return _named_in(directory, name) is not None


def _named_in(directory: Uri, name: str) -> tuple[int, str, str] | None:
    """Return offset, segment id and suffix in the name of a file that lies where such a name means that; None for any other."""
    directory = directory.absolute()
    if _PARTITION.fullmatch(directory.last):
        return object_name(name) if _TOPIC_DIRECTORY.fullmatch(directory.parent.last) else None
    file = _FILE.fullmatch(name) if _PARTITION_DIRECTORY.fullmatch(directory.last) else None
    return None if file is None else (int(file[1]), file[2], file[3])


def _take_directory(found: FoundRemote, listed: Listed) -> None:
    directory = listed.directory
    held: dict[tuple[int, str], dict[str, FileStatus]] = {}
    for entry in listed.entries:
        named = _named_in(directory, entry.name)
        if named is not None and not entry.is_directory:
            held.setdefault(named[:2], {})[named[2]] = entry
    for (base, segment_id), entries in sorted(held.items()):
        files: dict[str, SegmentFile] = {}
        for suffix, entry in entries.items():
            try:
                files[suffix] = sized(directory / entry.name, base, entry)
            except FileNotFoundError:
                continue  # deleted meanwhile
            except OSError as error:
                found.unreadable.append(Unreadable(str(directory / entry.name), failure(error)))
        if files:
            found.segments.append(_files(directory, base, segment_id, files))


def _files(directory: Uri, base: int, segment_id: str, files: Mapping[str, SegmentFile]) -> RemoteFiles:
    own = directory.absolute()
    flat = _PARTITION_DIRECTORY.fullmatch(own.last)
    named = flat or _TOPIC_DIRECTORY.fullmatch(own.parent.last)
    assert named is not None, "the names of its files were looked at"
    partition = int(own.last if flat is None else flat["partition"])
    return RemoteFiles(
        named["topic"], named["id"], partition, base, segment_id, directory, files, is_chunked=flat is None
    )


def as_read(segments: Sequence[RemoteFiles], key_files: Sequence[str] = ()) -> Iterator[RemoteSegmentFile]:
    """Yield how each segment is read, in their order: the manifests of Aiven's plugin are read for that, many at a time.

    `key_files`: those that may hold the private key of one that is encrypted.
    """

    def read(own: RemoteFiles) -> RemoteSegmentFile:
        if not own.files:
            faults = [
                RemoteFault(_path(own, LOG), "it is missing with all files beside it, though its copy had finished")
            ]
            return RemoteSegmentFile(own, _log(own), faults=faults, end_offset=own.end_offset)
        return _of_objects(own, key_files) if own.is_chunked else _of_files(own)

    if not any(filesystem(segment.directory).is_remote for segment in segments):
        yield from map(read, segments)
        return
    yield from many_at_a_time(read, segments)


def _of_files(own: RemoteFiles) -> RemoteSegmentFile:
    """Return a segment of LocalTieredStorage: its files are those of the log directory under other names."""
    side_files = [
        _named(file, LEADER_EPOCH_CHECKPOINT if suffix == _EPOCHS else f"{own.base_offset:020d}.{suffix}")
        for suffix, file in own.files.items()
        if suffix not in {LOG, _SNAPSHOT}
    ]
    missing = [suffix for suffix in _SUFFIXES if suffix != _ABORTED and suffix not in own.files]
    faults = [RemoteFault(_path(own, suffix), "it is missing") for suffix in missing if suffix != LOG]
    return RemoteSegmentFile(own, _log(own), side_files, faults, own.end_offset, snapshot=own.files.get(_SNAPSHOT))


def _of_objects(own: RemoteFiles, key_files: Sequence[str]) -> RemoteSegmentFile:
    """Return a segment of Aiven's plugin: with a manifest that cannot be used, opening its log says why."""
    place = Uri.parse(_path(own, LOG))
    log = _log(own)
    try:
        manifest = read_manifest(filesystem(place), own.directory / f"{_stem(own)}.{MANIFEST}")
        require_readable(manifest, place)
    except OSError:
        return RemoteSegmentFile(own, _named(log, own.name, str(place.content)))
    faults = [*_faults(own, manifest)]
    key_files = () if manifest.encryption is None else key_files
    read = log
    if not manifest.is_plain:
        size = manifest.chunks.file_size
        read = SegmentFile(str(place.content), own.name, own.base_offset, size, log.modified_ms, key_files=key_files)
    side_files = []
    if (indexes := own.files.get(INDEXES)) is not None:
        inside = Uri.parse(indexes.path).content
        side_files = [
            SegmentFile(
                str(inside / name), name, 0, max(size - manifest.overhead, 0), indexes.modified_ms, key_files=key_files
            )
            for name, (position, size) in index_files(own.base_offset, manifest).items()
            if position + size <= indexes.size
        ]
    metadata = manifest.metadata
    if metadata is None:
        return RemoteSegmentFile(own, read, side_files, faults)
    epochs = sorted(metadata.segment_leader_epochs.items())
    return RemoteSegmentFile(own, read, side_files, faults, metadata.end_offset, epochs)


def _faults(own: RemoteFiles, manifest: SegmentManifest) -> Iterator[RemoteFault]:
    """Yield what the sizes of a segment's objects contradict in its manifest."""
    log, stated = own.files.get(LOG), manifest.chunks.object_size
    if log is not None and log.size != stated:
        detail = f"it has {log.size:,} bytes, and its manifest says {stated:,}"
        yield RemoteFault(log.path, detail, min(log.size, stated))
    indexes = own.files.get(INDEXES)
    end = max((position + size for position, size in index_files(own.base_offset, manifest).values()), default=0)
    if indexes is None:
        if end:
            yield RemoteFault(_path(own, INDEXES), "it is missing: it holds the indexes and the producer snapshot")
    elif indexes.size < end:
        detail = f"it has {indexes.size:,} bytes, and its manifest places an index up to {end:,}"
        yield RemoteFault(indexes.path, detail, indexes.size)


def _log(own: RemoteFiles) -> SegmentFile:
    """Return the object or file of the log under its name in a log directory; where it is missing, opening it says so."""
    file = own.files.get(LOG)
    if file is None:
        # a size: nothing is read of an empty segment, and so nothing said
        return SegmentFile(_path(own, LOG), own.name, own.base_offset, 1, 0)
    return _named(file, own.name)


def _named(file: SegmentFile, name: str, path: str | None = None) -> SegmentFile:
    return replace(file, path=path or file.path, name=name)


def _stem(own: RemoteFiles) -> str:
    """Return what the names of a segment's files have in front of their suffixes."""
    for file in own.files.values():
        return Uri.parse(file.path).last.rpartition(".")[0]
    return f"{own.base_offset:020d}-{own.segment_id}"


def _path(own: RemoteFiles, suffix: str) -> str:
    return str(own.directory / f"{_stem(own)}.{suffix}")
