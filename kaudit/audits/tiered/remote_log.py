"""Follows __remote_log_metadata: what became of each segment, as brokers replay it (RemoteLogMetadataCache)."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.coordinator.group_log import GroupLogEntry, GroupLogReader, GroupRecord, MissingRecords
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.remote_segments import MOST_SEGMENTS, RemoteLog, RemoteSegment, RemoteState
from kaudit.source.layout import PartitionDirectory

_PartitionKey = tuple[str, int]
"""Topic id and partition."""


class _Partition(Struct):
    topic: str
    segments: dict[str, RemoteSegment] = field(default_factory=dict)
    deletion: str | None = None
    unknown_updates: int = 0
    newest_timestamp: int = -1


class RemoteLogHistory(Struct):
    """Follows one partition of __remote_log_metadata, which has all records of the partitions in it.

    `not_followed`: records about more segments than MOST_SEGMENTS; `missing`: offsets that no record has.
    """

    not_followed: int = 0
    missing: int = 0
    _partitions: dict[_PartitionKey, _Partition] = field(default_factory=dict)
    _count: int = 0

    def take(self, entry: GroupLogEntry) -> None:
        """Take the next entry."""
        if isinstance(entry, MissingRecords):
            self.missing += entry.last - entry.first + 1
        if not isinstance(entry, GroupRecord):
            return
        value = cast("dict[str, Any]", entry.record.value)
        segment_id = value.get("remoteLogSegmentId")
        place = value.get("topicIdPartition") if segment_id is None else segment_id["topicIdPartition"]
        if place is None:  # a record of snapshots in files, which names no partition
            self.not_followed += 1
            return
        partition = self._partitions.setdefault((place["id"], place["partition"]), _Partition(place["name"]))
        partition.newest_timestamp = max(partition.newest_timestamp, value["eventTimestampMs"])
        if segment_id is None:
            partition.deletion = str(value["remotePartitionDeleteState"])
        elif "startOffset" in value:
            self._begin(partition, value, entry.offset)
        elif (known := partition.segments.get(segment_id["id"])) is None:
            partition.unknown_updates += 1
        else:
            partition.segments[known.segment_id] = _updated(known, value, entry.offset)

    def _begin(self, partition: _Partition, value: dict[str, Any], offset: int) -> None:
        segment = _segment(value, offset)
        if segment is None or (segment.segment_id not in partition.segments and self._count >= MOST_SEGMENTS):
            self.not_followed += 1
            return
        self._count += segment.segment_id not in partition.segments
        partition.segments[segment.segment_id] = segment

    def logs(self) -> Iterator[RemoteLog]:
        """Yield what is known of each partition, in the order in which they are named first."""
        for (topic_id, number), own in self._partitions.items():
            yield RemoteLog(
                own.topic,
                topic_id,
                number,
                list(own.segments.values()),
                own.deletion,
                own.unknown_updates,
                own.newest_timestamp,
            )


def remote_logs(directories: Iterable[PartitionDirectory], reader: GroupLogReader) -> Iterator[RemoteLog]:
    """Yield the copied segments of each partition, as the given partitions of __remote_log_metadata have them; others are passed over.

    What cannot be read is noted in the reader.
    """
    for directory in directories:
        if directory.topic == REMOTE_LOG:
            history = RemoteLogHistory()
            reader.follow(directory, [history])
            yield from history.logs()


def _segment(value: dict[str, Any], offset: int) -> RemoteSegment | None:
    """Return the segment of a first record; None for a state that no release has."""
    state = _state(value)
    if state is None:
        return None
    own = value["remoteLogSegmentId"]
    place = own["topicIdPartition"]
    return RemoteSegment(
        place["name"],
        place["id"],
        place["partition"],
        own["id"],
        value["startOffset"],
        value["endOffset"],
        sorted((each["leaderEpoch"], each["offset"]) for each in value["segmentLeaderEpochs"]),
        value["maxTimestampMs"],
        value["segmentSizeInBytes"],
        state,
        value["customMetadata"],
        value["brokerId"],
        value["eventTimestampMs"],
        offset,
        value["eventTimestampMs"],
        value["eventTimestampMs"] if state is RemoteState.COPY_FINISHED else None,
    )


def _updated(known: RemoteSegment, value: dict[str, Any], offset: int) -> RemoteSegment:
    state = _state(value)
    if state is None:
        return known
    is_copied = state is RemoteState.COPY_FINISHED
    return replace(
        known,
        state=state,
        custom_metadata=known.custom_metadata if value["customMetadata"] is None else value["customMetadata"],
        broker_id=value["brokerId"],
        event_timestamp=value["eventTimestampMs"],
        record_offset=offset,
        copied_timestamp=value["eventTimestampMs"] if is_copied else known.copied_timestamp,
    )


def _state(value: dict[str, Any]) -> RemoteState | None:
    """Return the state of a record; its number stands in place of a name that is not known."""
    named = {state.value: state for state in RemoteState}
    return named.get(value["remoteLogSegmentState"])
