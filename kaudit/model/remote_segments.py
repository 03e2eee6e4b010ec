"""Segments that brokers copied to remote storage, as __remote_log_metadata has them (KIP-405)."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.json_record import JsonRecord

MOST_SEGMENTS = 1 << 17
"""Segments followed in one partition of __remote_log_metadata."""


MOST_SHOWN = 10
"""Segments listed in one finding."""


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

    @property
    def epoch_ranges(self) -> Iterator[tuple[int, int, int]]:
        """Each leader epoch in it, and the first and the last offset of that (RemoteLogMetadataCache.highestOffsetForEpoch)."""
        for (epoch, start), (_, following) in pairwise([*self.leader_epochs, (-1, self.end_offset + 1)]):
            yield epoch, start, following - 1


class RemoteLog(Struct, frozen=True):
    """The copies of one partition's segments, in the order in which they were begun; those that were deleted again are among them.

    `lookup`: for each leader epoch the segments in which brokers look up its offsets, as pairs of the first offset of the epoch in
    the segment and the segment's id, ascending: a later copy may have replaced an earlier one. `unknown_updates`: records about segments whose first record is not in the log.
    `newest_timestamp`: the newest event, ms.
    """

    topic: str
    topic_id: str
    partition: int
    segments: Sequence[RemoteSegment]
    lookup: Mapping[int, Sequence[tuple[int, str]]] = {}
    unknown_updates: int = 0
    newest_timestamp: int = -1

    @property
    def readable(self) -> list[RemoteSegment]:
        """The segments that consumers are given records of, by their first offset."""
        return sorted((each for each in self.segments if each.is_readable), key=lambda each: each.start_offset)


class SegmentSummary(JsonRecord, frozen=True, gc=False):
    """A segment in remote storage as findings list it; offsets are inclusive, `size` in bytes, `event_timestamp` in ms.

    `record_offset`: its newest record in its partition of __remote_log_metadata.
    """

    segment_id: str
    start_offset: int
    end_offset: int
    state: RemoteState
    broker_id: int
    event_timestamp: int
    record_offset: int
    size: int


def summaries(segments: Sequence[RemoteSegment]) -> list[SegmentSummary]:
    """Return the first MOST_SHOWN of these as findings list them."""
    names = SegmentSummary.__struct_fields__
    return [SegmentSummary(*(getattr(segment, name) for name in names)) for segment in segments[:MOST_SHOWN]]


class HoleCause(enum.Enum):
    """Why no readable segment has offsets that no disk has either."""

    NEVER_COPIED = "no copy of them was ever begun"
    UNFINISHED = "no copy of them ever finished"
    REPLACED = "a shorter copy finished after the one that has them, and brokers look them up in that"
    DELETED = "their segments in remote storage were deleted"


class RemoteHole(JsonRecord, frozen=True, gc=False, tag=True):
    """Offsets, both inclusive, at or above the log start that are neither on the disk of a replica nor in a readable remote segment.

    `is_certain`: False where __remote_log_metadata may have been copied before the log, or lacks records. `elsewhere` are the replicas
    that have them on their disks. `copied_before`: the last offset below them in a readable segment, None without one; the log on the
    disk begins at `local_start_offset`, and has no markers of transactions if `only_records`. `segments` are the first of `segment_count` copies that are no longer, or never were, readable.
    """

    first_offset: int
    last_offset: int
    cause: HoleCause
    is_certain: bool
    elsewhere: Sequence[str]
    copied_before: int | None
    local_start_offset: int
    only_records: bool
    segment_count: int
    segments: Sequence[SegmentSummary]


class NotCopied(JsonRecord, frozen=True, gc=False, tag=True):
    """Of the offsets between these two (inclusive) so many that only disks have, though `copied_to` is copied; `ranges` are the first."""

    first_offset: int
    last_offset: int
    offsets: int
    ranges: Sequence[tuple[int, int]]
    copied_to: int


class UnfinishedCopies(JsonRecord, frozen=True, gc=False, tag=True):
    """Copies that were begun and never finished, `size` bytes together, of offsets between these two; of `alone` no other copy is readable."""

    first_offset: int
    last_offset: int
    segment_count: int
    size: int
    alone: int
    segments: Sequence[SegmentSummary]


class OrphanKind(enum.Enum):
    """Why nobody reads segments that are in remote storage."""

    OTHER_LINEAGE = "the log has other leader epochs at their offsets"
    BELOW_LOG_START = "they lie below the log start offset"
    AT_LOCAL_START = "they lie below the log start offset, which is where the log on the disk begins"
    """A broker that took the log start from its disk will delete them, though nobody asked for that."""
    DELETE_UNFINISHED = "their deletion was begun and not finished"
    FORMER_TOPIC = "their topic was deleted; one of the same name was created since"


class OrphanedSegments(JsonRecord, frozen=True, gc=False, tag=True):
    """Segments in remote storage that nobody is given records of, `size` bytes together, of offsets between these two."""

    kind: OrphanKind
    first_offset: int
    last_offset: int
    segment_count: int
    size: int
    segments: Sequence[SegmentSummary]


class OverlappingSegments(JsonRecord, frozen=True, gc=False, tag=True):
    """Pairs of readable segments that both have offsets of the log's lineage: `offsets` of those between these two."""

    first_offset: int
    last_offset: int
    offsets: int
    pairs: int
    segments: Sequence[SegmentSummary]


class FailingCopies(Struct, frozen=True, kw_only=True):
    """Copies of a partition that fail one after another, or one that does not end, as lines of its brokers say.

    `failures` in a row, 0 where one does not end; `first` is the first failure, or the line of the copy that does not end, and `last` the last failure, or the last line
    of its broker. `offset`: where the segment begins that is not copied, None where no line says it. `copied`: the line of the last copy that
    succeeded, `copied_to` the furthest offset that was in remote storage by a line, each None without one.
    """

    topic: str
    partition: int
    brokers: Sequence[str]
    failures: int
    offset: int | None
    first: EventEvidence
    last: EventEvidence
    copied: EventEvidence | None
    copied_to: int | None
    shown: ShownEvents


RemoteLogFault = RemoteHole | NotCopied | UnfinishedCopies | OrphanedSegments | OverlappingSegments


class RemoteAccount(JsonRecord, frozen=True, gc=False):
    """What of a partition is in remote storage by __remote_log_metadata, for the account of its offsets.

    `segments` and `size` (bytes) are of readable segments, whose offsets are `first_offset` to `last_offset`, None without any;
    `also_local`: how many offsets are on the disk too. `local_start_offset`: where the log on the disk begins. `holes`: how many
    offsets below it are in none of them. `pending` copies had begun and not finished.
    """

    segments: int
    size: int
    first_offset: int | None
    last_offset: int | None
    local_start_offset: int
    also_local: int
    holes: int
    pending: int
