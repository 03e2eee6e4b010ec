"""Records of __consumer_offsets, as a group coordinator writes them (OffsetCommitKey, OffsetCommitValue)."""

import struct
from collections.abc import Sequence

from tests.logs import BASE_TIMESTAMP, Batch, Log, record, sealed_records

Commit = tuple[str, str, int, int | None, int]
"""Group, topic, partition, offset (None: a tombstone), leader epoch of the last record consumed."""


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _value(offset: int, leader_epoch: int, topic_id: bytes | None) -> bytes:
    if topic_id is None:
        return struct.pack(">hqi", 3, offset, leader_epoch) + _text("") + struct.pack(">q", BASE_TIMESTAMP)
    # version 4: compact strings, and since 4.1 the topic's id as tag 0
    tags = b"\1\0\x10" + topic_id
    return struct.pack(">hqi", 4, offset, leader_epoch) + b"\1" + struct.pack(">q", BASE_TIMESTAMP) + tags


def commit_batch(batch: Batch, commits: Sequence[Commit], topic_id: bytes | None = None) -> bytes:
    """The bytes of a batch of commits; `batch` says who writes it, and where it begins."""
    records = []
    for delta, (group, topic, partition, offset, epoch) in enumerate(commits):
        key = struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", partition)
        records.append(record(delta, key, None if offset is None else _value(offset, epoch, topic_id)))
    return sealed_records(batch, records)


def commit_log(*batches: Sequence[Commit]) -> bytes:
    """A segment of batches of commits."""
    log, content = Log(), b""
    for commits in batches:
        content += commit_batch(log.append(Batch(count=len(commits))), commits)
    return content
