"""Segments that brokers copied to remote storage, as __remote_log_metadata has them (KIP-405)."""

import enum
from collections.abc import Sequence

from msgspec import Struct

MOST_SEGMENTS = 1 << 17
"""Segments followed in one partition of __remote_log_metadata."""


class RemoteState(enum.Enum):
    """State of a segment in remote storage (RemoteLogSegmentState); each value is Kafka's name of it."""

    COPY_STARTED = "COPY_SEGMENT_STARTED"
    COPY_FINISHED = "COPY_SEGMENT_FINISHED"
    """Consumers are given records of segments in this state only."""
    DELETE_STARTED = "DELETE_SEGMENT_STARTED"
    DELETE_FINISHED = "DELETE_SEGMENT_FINISHED"


class RemoteSegment(Struct, frozen=True, gc=False):
    """One copy of a segment: offsets `start_offset` to `end_offset`, both inclusive.

    `topic_id` and `segment_id` are 22 characters of base64, as Kafka writes UUIDs and as plugins name objects. `leader_epochs` are
    pairs of an epoch and its first offset in the segment, ascending. `max_timestamp` is that of its records, ms, `size` the bytes of
    the log file. `custom_metadata` is what the plugin returned, None where it returned nothing.

    `state` and `broker_id` are those of its newest record, `event_timestamp` when that was made, ms, and `record_offset` where it lies in
    its partition of __remote_log_metadata. `started_timestamp` and `copied_timestamp`: when the copy began and when it had finished, None
    where it never did.
    """

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    leader_epochs: Sequence[tuple[int, int]]
    max_timestamp: int
    size: int
    state: RemoteState
    custom_metadata: bytes | None
    broker_id: int
    event_timestamp: int
    record_offset: int
    started_timestamp: int
    copied_timestamp: int | None = None

    @property
    def is_readable(self) -> bool:
        """Whether consumers are given its records."""
        return self.state is RemoteState.COPY_FINISHED


class RemoteLog(Struct, frozen=True):
    """The copies of one partition's segments, in the order in which they were begun; those that were deleted again are among them.

    `deletion` is Kafka's name of the state of deleting the whole partition, None where nobody deletes it. `unknown_updates`: records about
    segments whose first record is not in the log. `newest_timestamp`: the newest event, ms.
    """

    topic: str
    topic_id: str
    partition: int
    segments: Sequence[RemoteSegment]
    deletion: str | None = None
    unknown_updates: int = 0
    newest_timestamp: int = -1

    @property
    def readable(self) -> list[RemoteSegment]:
        """The segments that consumers are given records of, by their first offset."""
        return sorted((each for each in self.segments if each.is_readable), key=lambda each: each.start_offset)
