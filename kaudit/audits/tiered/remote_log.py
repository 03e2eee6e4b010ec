"""Follows __remote_log_metadata: what became of each segment, as brokers replay it (RemoteLogMetadataCache)."""

from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.coordinator.group_log import GroupLogEntry, GroupRecord, MissingRecords
from kaudit.model.remote_segments import MOST_SEGMENTS, RemoteLog, RemoteSegment, RemoteState

_PartitionKey = tuple[str, int]
"""Topic id and partition."""


class _EpochState(Struct):
    """The segments in which brokers look up offsets of one leader epoch, by their first offset of it (RemoteLogLeaderEpochState)."""

    starts: dict[int, str] = field(default_factory=dict)
    highest_offset: int = -1

    def copied(self, start: int, segment_id: str, end: int) -> None:
        """Take a segment whose copy has finished; it replaces those that begin no earlier, unless one of them went further."""
        if self.highest_offset <= end:
            for other in [other for other in self.starts if other >= start]:
                del self.starts[other]
        self.starts[start] = segment_id
        self.highest_offset = max(self.highest_offset, end)

    def deleting(self, start: int, segment_id: str) -> None:
        """Look nothing up any more in a segment that is being deleted."""
        if self.starts.get(start) == segment_id:
            del self.starts[start]


class _Partition(Struct):
    topic: str
    segments: dict[str, RemoteSegment] = field(default_factory=dict)
    epochs: dict[int, _EpochState] = field(default_factory=dict)
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
        if segment_id is None:  # no broker deletes partitions by these records
            return
        if "startOffset" in value:
            self._begin(partition, value, entry.offset)
        elif (known := partition.segments.get(segment_id["id"])) is None:
            partition.unknown_updates += 1
        elif (state := _STATES.get(value["remoteLogSegmentState"])) in _FOLLOWING[known.state]:
            self._update(partition, _updated(known, state, value, entry.offset))

    def _begin(self, partition: _Partition, value: dict[str, Any], offset: int) -> None:
        segment = _segment(value, offset)
        known = partition.segments.get(segment.segment_id)
        if value["remoteLogSegmentState"] != segment.state.value or (known is None and self._count >= MOST_SEGMENTS):
            self.not_followed += 1
        elif known is None or known.state in (RemoteState.COPY_STARTED, RemoteState.DELETE_FINISHED):
            self._count += known is None
            partition.segments[segment.segment_id] = segment

    @staticmethod
    def _update(partition: _Partition, segment: RemoteSegment) -> None:
        partition.segments[segment.segment_id] = segment
        for epoch, start, end in segment.epoch_ranges:
            state = partition.epochs.setdefault(epoch, _EpochState())
            if segment.state is RemoteState.COPY_FINISHED:
                state.copied(start, segment.segment_id, end)
            elif segment.state is RemoteState.DELETE_STARTED:
                state.deleting(start, segment.segment_id)

    def logs(self) -> Iterator[RemoteLog]:
        """Yield what is known of each partition, in the order in which they are named first."""
        for (topic_id, number), own in self._partitions.items():
            yield RemoteLog(
                own.topic,
                topic_id,
                number,
                list(own.segments.values()),
                {epoch: sorted(state.starts.items()) for epoch, state in own.epochs.items() if state.starts},
                own.unknown_updates,
                own.newest_timestamp,
            )


_STATES = {state.value: state for state in RemoteState}
_FOLLOWING = {
    RemoteState.COPY_STARTED: (RemoteState.COPY_FINISHED, RemoteState.DELETE_STARTED),
    RemoteState.COPY_FINISHED: (RemoteState.COPY_FINISHED, RemoteState.DELETE_STARTED),
    RemoteState.DELETE_STARTED: (RemoteState.DELETE_STARTED, RemoteState.DELETE_FINISHED),
    RemoteState.DELETE_FINISHED: (),
}
"""The states that brokers take from updates, others they drop (RemoteLogSegmentState.isValidTransition): a repeated one changes nothing."""


def _segment(value: dict[str, Any], offset: int) -> RemoteSegment:
    """Return the segment of a first record, whose copy begins."""
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
        RemoteState.COPY_STARTED,
        value["customMetadata"],
        value["brokerId"],
        value["eventTimestampMs"],
        offset,
        value["eventTimestampMs"],
    )


def _updated(known: RemoteSegment, state: RemoteState, value: dict[str, Any], offset: int) -> RemoteSegment:
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
