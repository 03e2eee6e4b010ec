"""Offsets that consumer groups committed beyond the ends of logs, as the newest records of __consumer_offsets say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.record_schemas import InternalRecord, parse_keyed_record
from kaudit.formats.log.control import parse_marker
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.coordinator import Committed, LogEnd
from kaudit.model.internal_topics import GROUPS
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.content_rows import read_batch
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory, SegmentFile

_TAIL_BYTES = 1 << 20
"""Read of each partition at most: its newest records."""
_READ_BYTES = 4 << 20
"""Read of all partitions together, about: a second of decoding."""
_COMMIT = 1
_COMMIT_KEYS = (b"\0\0", b"\0\1")
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Commits name their topic's id since 4.1."""

TopicPartition = tuple[str, int]
_Key = tuple[str, str, int]
"""Group, topic and partition of a commit."""


def commits_beyond(
    directories: Iterable[PartitionDirectory], ends: Mapping[TopicPartition, LogEnd], open_source: OpenSource
) -> dict[TopicPartition, list[Committed]]:
    """Return the newest commits of groups that lie beyond these ends, of partitions of __consumer_offsets.

    Of each partition the replica that goes furthest is read, its last MiB. A commit counts until the same group commits again, or
    a tombstone removes it (it has expired, or the topic was deleted); one in a transaction, when its marker commits it. Files that
    cannot be read are left out: whoever opens them notes that.
    """
    furthest: dict[int, PartitionDirectory] = {}
    for directory in directories:
        known = furthest.get(directory.partition)
        if known is None or _length(known) < _length(directory):
            furthest[directory.partition] = directory
    found: dict[TopicPartition, list[Committed]] = {}
    room = min(_TAIL_BYTES, _READ_BYTES // max(len(furthest), 1))
    for _, directory in sorted(furthest.items()):
        beyond: dict[_Key, Committed] = {}
        for key, commit in _commits(directory, room, open_source):
            known_end = ends.get(key[1:])
            if known_end is None:
                continue
            beyond.pop(key, None)
            if commit is not None and commit[0].offset > known_end.offset and _is_same(commit[1], known_end.topic_id):
                beyond[key] = commit[0]
        for (_, topic, partition), committed in beyond.items():
            found.setdefault((topic, partition), []).append(committed)
    return found


def _length(directory: PartitionDirectory) -> tuple[int, int]:
    last = directory.segments[-1:]
    return (last[0].base_offset, last[0].size) if last else (-1, 0)


def _is_same(topic_id: str | None, other: str | None) -> bool:
    """Whether two ids may be of one topic: a topic that was deleted and created again has another one."""
    return topic_id is None or other is None or topic_id == other


_Change = tuple[_Key, tuple[Committed, str | None] | None]
"""A commit with the id of its topic where it has one; None: it is removed."""


def _commits(directory: PartitionDirectory, room: int, open_source: OpenSource) -> Iterator[_Change]:
    """Yield what the records in a partition's last `room` bytes change, in order."""
    pending: dict[int, list[_Change]] = {}
    for segment, start in _tail(directory.segments, room):
        try:
            with closing(open_source(segment)) as source:
                begin = boundary_from(source, start, segment.size) if start else 0
                where = ByteRange(begin, segment.size, segment.size)
                for piece in stream_batches(source, where, expected_offset=None):
                    for row in piece.batches[(piece.batches["magic"] >= 2) & (piece.batches["size"] <= _TAIL_BYTES)]:
                        flags, producer_id = int(row["attributes"]), int(row["producer_id"])
                        batch = read_batch(source, int(row["position"]), int(row["size"]))
                        if flags & CONTROL_FLAG:
                            held = pending.pop(producer_id, [])
                            yield from held if _commits_transaction(batch) else ()
                        elif flags & TRANSACTIONAL_FLAG:
                            pending.setdefault(producer_id, []).extend(_changes(batch))
                        else:
                            yield from _changes(batch)
        except (OSError, ValueError):  # noted by whoever opens the files; gone since it was found
            pending.clear()


def _tail(segments: Sequence[SegmentFile], room: int) -> list[tuple[SegmentFile, int]]:
    """Return the last segments, and from which byte on each is read."""
    left, tail = room, list[tuple[SegmentFile, int]]()
    for segment in reversed(segments):
        if left <= 0 or segment.text is not None or segment.fetched is not None:
            break
        if segment.size:
            tail.append((segment, max(segment.size - left, 0)))
        left -= segment.size
    return tail[::-1]


def _changes(batch: memoryview) -> list[_Change]:
    """Return the commits of one batch; what cannot be decoded has none: such batches are reported by themselves."""
    try:
        return [
            _change(parse_keyed_record(GROUPS, record.key, record.value))
            for record in read_records(batch)
            if record.key is not None and bytes(record.key[:2]) in _COMMIT_KEYS
        ]
    except WireError:
        return []


def _change(found: InternalRecord) -> _Change:
    own, value = cast("dict[str, Any]", found.key), cast("dict[str, Any] | None", found.value)
    key = own["group"], own["topic"], own["partition"]
    if value is None:
        return key, None
    topic_id = value.get("topicId", _NO_TOPIC_ID)
    commit = Committed(own["group"], value["offset"], value.get("leaderEpoch", -1))
    return key, (commit, None if topic_id == _NO_TOPIC_ID else topic_id)


def _commits_transaction(batch: memoryview) -> bool:
    try:
        marker = parse_marker(batch)
    except WireError:
        return False
    return marker is not None and marker.type_id == _COMMIT
