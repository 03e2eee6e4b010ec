"""Which segments in remote storage are read (--remote): those in which brokers look up what the partitions on disks lack."""

import functools
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.sidefiles.leader_epoch_audit import lineage_of
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.audits.tiered.boundary import MAX_OFFSET, LocalLog, joined, looked_up, parts_in_lineage, without
from kaudit.checks.texts import first_of
from kaudit.errors import UsageError
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.remote_segments import RemoteLog, RemoteSegment
from kaudit.scanning.group_log_reading import read_group_log
from kaudit.scanning.group_logs import GroupLogQuestion
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory, Unreadable, furthest_replicas
from kaudit.source.listing import failure
from kaudit.source.remote_storage import FoundRemote, RemoteFiles, find_remote
from kaudit.source.schemes import open_segment
from kaudit.source.segment_object import decryption
from kaudit.source.uri import Uri, UrlError

_PartitionKey = tuple[str, str, int]
"""Topic, topic id and partition."""
_BY_NAME = (
    f"the segments of {{}} were chosen by their names, as no record of {REMOTE_LOG} names them: copies that never finished, segments that "
    "are deleted and those of other leader epochs cannot be recognised"
)


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
    """Choose what to read of a location, without reading there: what the partitions of `layout` lack, or all of it without other inputs.

    Local segments win: of offsets that a replica has itself no copy is read. Of several replicas the one whose log begins first is
    completed, with the segments in which its broker looks offsets up by __remote_log_metadata; by names where that names none of the
    partition. Raises UsageError where there is no such location, or no segment in it, or a key file is none.
    """
    place = Uri.parse(location)
    _require_keys(options.remote_keys)
    try:
        found = _listed(place, location)
    except OSError as error:
        return RemoteInput(place, (), [Unreadable(location, failure(error))])
    logs = {key: known for key, known in _remote_logs(layout).items() if _completed(key, layout.partitions) is not None}
    by_partition: dict[_PartitionKey, list[RemoteFiles]] = {key: [] for key in logs}
    for segment in found.segments:
        if options.asks_for(segment.topic, segment.partition):
            by_partition.setdefault((segment.topic, segment.topic_id, segment.partition), []).append(segment)
    chosen: list[RemotePartition] = []
    alone: set[_PartitionKey] = set()
    notes: set[tuple[str, str]] = set()
    taken: dict[str, str] = {}
    by_name: list[str] = []
    # where nothing here says which topic it is, it is the one that was copied last
    for key, segments in sorted(by_partition.items(), key=lambda entry: -max(map(_newest, entry[1]), default=0)):
        local = _completed(key, layout.partitions)
        if local is None and options.paths:
            alone.add(key)
            same = [each for each in layout.partitions if (each.topic, each.partition) == key[::2]]
            notes |= {(location, _renewed(each, key, each.topic_id)) for each in same}
        elif local is not None and (other := taken.setdefault(local.directory, key[1])) != key[1]:
            notes.add((location, _renewed(local, key, other)))
        elif local is None or key not in logs:
            by_name.append(f"{key[0]}-{key[2]}")
            chosen.append(RemotePartition(_needed(segments, local), local))
        else:
            lookup = _Lookup(place, segments, local, *logs[key])
            chosen.append(RemotePartition(lookup.chosen(), local))
            notes |= {(local.name, text) for text in lookup.notes()}
    return RemoteInput(
        place,
        [each for each in chosen if each.segments],
        found.unreadable,
        [*_alone(location, alone), *_by_name(location, by_name), *(Unreadable(*note) for note in sorted(notes))],
        options.remote_keys,
    )


def _require_keys(files: Sequence[str]) -> None:
    for file in files:
        try:
            decryption("private_key")(file)
        except OSError as error:
            raise UsageError(f"--remote-key {file}: {failure(error)}") from error


def _listed(place: Uri, location: str) -> FoundRemote:
    """List a location that must hold copied segments."""
    try:
        found = find_remote(place)
    except FileNotFoundError as error:
        raise UsageError(f"--remote {location}: no such file or directory") from error
    except UrlError as error:
        raise UsageError(f"--remote {error}") from error
    if not found.segments and not found.unreadable:
        known = "known are the layouts of Kafka's LocalTieredStorage and of Aiven's plugin"
        raise UsageError(f"--remote {location}: no copied segment was found ({known})")
    return found


def _remote_logs(layout: Layout) -> dict[_PartitionKey, tuple[RemoteLog, bool]]:
    """Return what __remote_log_metadata among the inputs says of each partition's segments, and whether none of its records is missing."""
    read = [
        read_group_log(GroupLogQuestion(directory, {}), open_segment)
        for directory in furthest_replicas(layout.everything, (REMOTE_LOG,))
    ]
    return {
        (log.topic, log.topic_id, log.partition): (log, known.remote_complete) for known in read for log in known.remote
    }


class _Lookup(Struct, frozen=True, dict=True):
    """The segments of one partition in a location, and its segments by __remote_log_metadata."""

    place: Uri
    there: Sequence[RemoteFiles]
    local: PartitionDirectory
    log: RemoteLog
    complete: bool

    @functools.cached_property
    def _replica(self) -> LocalLog:
        first = self.local.segments[0].base_offset if self.local.segments else MAX_OFFSET
        lineage = lineage_of(self.local, SideFileReader(open_segment))
        return LocalLog(self.local.replica, self.local.log_start_offset, first, first, first, lineage)

    @functools.cached_property
    def _unnamed(self) -> list[RemoteFiles]:
        """Segments that no record names, in the place of which none is named, if records are missing or older than they."""
        named = {each.segment_id for each in self.log.segments}
        covered = list(joined((each.start_offset, each.end_offset) for each in self.log.segments))
        since = covered[-1][1] + 1 if covered and self.complete else 0
        newer = [each for each in self.there if each.segment_id not in named and each.base_offset >= since]
        alone = [each for each in newer if list(without((each.base_offset, each.base_offset), covered))]
        return _needed(alone, self.local)

    def chosen(self) -> list[RemoteFiles]:
        """Return the segments in which brokers look up what the replica lacks, by offset; what is missing there has no files."""
        files = {each.segment_id: each for each in self.there}
        found: dict[str, RemoteFiles] = {}
        for (low, high), segment in looked_up(self.log, self._replica):
            is_needed = high >= (self._replica.log_start_offset or 0) and low < self._replica.start_offset
            # one whose first records are of another lineage cannot be read from its beginning
            if is_needed and parts_in_lineage(segment, self._replica)[0][0] == segment.start_offset:
                own = files.get(segment.segment_id) or self._missing(segment)
                found[segment.segment_id] = replace(own, end_offset=segment.end_offset, stop=high + 1)
        return sorted([*found.values(), *self._unnamed], key=lambda each: each.base_offset)

    def _missing(self, segment: RemoteSegment) -> RemoteFiles:
        """Return a segment without files; they would lie beside those of others."""
        directory, is_chunked = self.place, False
        for other in self.there:
            directory, is_chunked = other.directory, other.is_chunked
        own = segment.topic, segment.topic_id, segment.partition, segment.start_offset, segment.segment_id
        return RemoteFiles(*own, directory, {}, is_chunked)

    def notes(self) -> Iterator[str]:
        """Yield what else is there, and what was read without a record of it."""
        there = {each.segment_id for each in self.there}
        own = [each for each in self.log.segments if each.segment_id in there]
        gone = [each for each in own if not each.is_readable]
        unfinished = sum(each.copied_timestamp is None for each in gone)
        counts = {
            "whose copies have not finished": unfinished,
            "that were deleted": len(gone) - unfinished,
            "of other leader epochs": sum(
                each.is_readable and not parts_in_lineage(each, self._replica) for each in own
            ),
            "that no record names": len(there) - len(own) - len(self._unnamed),
        }
        left = ", ".join(f"{number:,} {text}" for text, number in counts.items() if number)
        if left:
            yield f"segments in {self.place} are not its log by {REMOTE_LOG} and were not read: {left}"
        if self._unnamed:
            yield (
                f"{len(self._unnamed):,} segments in {self.place} that no record of {REMOTE_LOG} names were chosen by their names: they "
                "are newer, or records are missing"
            )


def _newest(segment: RemoteFiles) -> int:
    return max((file.modified_ms for file in segment.files.values()), default=0)


def _renewed(entry: PartitionDirectory, key: _PartitionKey, topic_id: str | None) -> str:
    return (
        f"{entry.name} there has topic id {key[1]} too, and the one that was read {topic_id}: the topic was made anew"
    )


def _by_name(location: str, names: Sequence[str]) -> Iterator[Unreadable]:
    if names:
        yield Unreadable(location, _BY_NAME.format(first_of(names)))


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
