"""Records of __consumer_offsets, as a group coordinator writes them (OffsetCommitValue, GroupMetadataValue)."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.logs import BASE_TIMESTAMP, TRANSACTIONAL, Batch, Log, marker, record, sealed_records

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


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _assignment(places: Sequence[tuple[str, int]]) -> bytes:
    """ConsumerProtocolAssignment of version 0, one entry for each partition."""
    entries = (_text(topic) + struct.pack(">ii", 1, partition) for topic, partition in places)
    return struct.pack(">hi", 0, len(places)) + b"".join(entries) + struct.pack(">i", -1)


def group_value(generation: int, members: Mapping[str, Sequence[tuple[str, int]]]) -> bytes:
    """GroupMetadataValue of version 3: members with what they are assigned."""
    none = struct.pack(">h", -1)
    return b"".join(
        [
            struct.pack(">h", 3) + _text("consumer") + struct.pack(">i", generation),
            (_text("range") + _text(next(iter(members))) if members else none + none),
            struct.pack(">qi", BASE_TIMESTAMP, len(members)),
            *(
                _text(name)
                + none
                + _text(f"client-{name}")
                + _text("/10.0.0.1")
                # rebalance and session timeout, subscription, assignment
                + struct.pack(">ii", 60_000, 45_000)
                + _bytes(b"")
                + _bytes(_assignment(places))
                for name, places in members.items()
            ),
        ]
    )


class GroupLog:
    """Writes a partition of __consumer_offsets as a coordinator does, a millisecond for each batch unless it waits."""

    def __init__(self) -> None:
        self.log = Log()
        self.content = b""
        self.leader_epoch = 0

    def commit(
        self,
        group: str,
        *offsets: int | None,
        epoch: int = 0,
        producer: tuple[int, int] | None = None,
        outcome: bool | None = True,
    ) -> "GroupLog":
        """Commits of orders-0, one batch each; of a producer: each in a transaction of this outcome, None: not yet."""
        for offset in offsets:
            who = (-1, -1, -1) if producer is None else (*producer, 0)
            flags = 0 if producer is None else TRANSACTIONAL
            batch = self.log.append(Batch(*who, attributes=flags, leader_epoch=self.leader_epoch))
            self.content += commit_batch(batch, [(group, "orders", 0, offset, epoch)])
            if producer is not None and outcome is not None:
                self.end(*producer, commit=outcome)
        return self

    def end(self, producer_id: int, epoch: int, *, commit: bool = True) -> "GroupLog":
        """The marker of a transaction."""
        self.content += self.log.append(marker(producer_id, epoch, commit=commit)).encode()
        return self

    def members(self, group: str, generation: int, *names: str) -> "GroupLog":
        """The group is stable; the first member has orders-0. Without members it is empty."""
        places = {name: [("orders", 0)] if name == names[0] else [] for name in names}
        return self._metadata(group, group_value(generation, places))

    def ended(self, group: str) -> "GroupLog":
        """A tombstone of the group."""
        return self._metadata(group, None)

    def _metadata(self, group: str, value: bytes | None) -> "GroupLog":
        batch = self.log.append(Batch(leader_epoch=self.leader_epoch))
        self.content += sealed_records(batch, [record(0, struct.pack(">h", 2) + _text(group), value)])
        return self

    def wait(self, milliseconds: int) -> "GroupLog":
        """Let time pass."""
        self.log.clock += milliseconds
        return self

    def compacted(self, offsets: int) -> "GroupLog":
        """Leave offsets out, as the log cleaner does."""
        self.log.skip(offsets)
        return self

    def moved(self) -> "GroupLog":
        """The partition gets another leader: the coordinator moves."""
        self.leader_epoch += 1
        return self

    def write(self, directory: Path, number: int = 0) -> Path:
        """Write the partition below `directory`."""
        partition = directory / f"__consumer_offsets-{number}"
        partition.mkdir(parents=True)
        (partition / f"{0:020d}.log").write_bytes(self.content)
        return directory


TOPIC_ID = bytes(range(16))
Shared = tuple[int, int, int, int]
"""First and last offset, delivery state (0 available, 1 acquired, 2 acknowledged, 4 archived), deliveries."""


def share_log(*states: tuple[int, int, Sequence[Shared]]) -> bytes:
    """A segment of __share_group_state: a snapshot of group workers, then updates: state epoch, start offset, batches.

    A state epoch of -1 is that of an update, which has none (ShareSnapshotValue, ShareUpdateValue, version 0).
    """
    log, content = Log(), b""
    for epoch, start, shared in states:
        batches = [struct.pack(">qqbh", *each) + b"\0" for each in shared]
        value = (
            struct.pack(">hi", 0, 0) + (b"" if epoch < 0 else struct.pack(">i", epoch)) + struct.pack(">iq", 0, start)
        )
        value += b"" if epoch < 0 else struct.pack(">qq", BASE_TIMESTAMP, BASE_TIMESTAMP)
        value += bytes([len(batches) + 1]) + b"".join(batches) + b"\0"
        key = struct.pack(">h", 1 if epoch < 0 else 0) + _text("workers") + TOPIC_ID + struct.pack(">i", 0)
        content += sealed_records(log.append(Batch()), [record(0, key, value)])
    return content
