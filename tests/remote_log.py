"""Records of __remote_log_metadata, as brokers write them (RemoteLogMetadataSerde)."""

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.logs import BASE_TIMESTAMP, Batch, Log, record, sealed_records

STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
STARTED, FINISHED, DELETING, DELETED = range(4)
TOPIC_ID = bytes(range(1, 17))


def segment_id(number: int) -> bytes:
    """An id for each number."""
    return bytes(15) + bytes([number])


def named(uuid: bytes) -> str:
    """An id as Kafka writes it."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def begun(
    own_id: bytes,
    offsets: tuple[int, int],
    epochs: Mapping[int, int],
    *,
    topic: tuple[str, bytes, int] = ("orders", TOPIC_ID, 0),
    broker: int = 1,
    times: tuple[int, int] = (BASE_TIMESTAMP, BASE_TIMESTAMP),
    size: int = 1000,
    custom: bytes | None = None,
) -> bytes:
    """The record that a copy begins; `times` are the newest record's and the event's."""
    content = b"\1\0\0" + _id(own_id, topic) + struct.pack(">qqiqq", *offsets, broker, *times)
    content += bytes([len(epochs) + 1]) + b"".join(struct.pack(">iq", *each) + b"\0" for each in epochs.items())
    return (
        content + struct.pack(">i", size) + _bytes(custom) + bytes([STARTED]) + b"\1\0\1\1"
    )  # tag 0: the index of transactions is empty


def updated(
    own_id: bytes,
    state: int,
    *,
    topic: tuple[str, bytes, int] = ("orders", TOPIC_ID, 0),
    broker: int = 1,
    at: int = BASE_TIMESTAMP,
    custom: bytes | None = None,
) -> bytes:
    """The record that a segment is in another state."""
    return b"\1\1\0" + _id(own_id, topic) + struct.pack(">iq", broker, at) + _bytes(custom) + bytes([state, 0])


def _id(own_id: bytes, topic: tuple[str, bytes, int]) -> bytes:
    name, topic_id, partition = topic
    return bytes([len(name) + 1]) + name.encode() + topic_id + struct.pack(">i", partition) + b"\0" + own_id + b"\0"


def _bytes(content: bytes | None) -> bytes:
    return b"\0" if content is None else bytes([len(content) + 1]) + content


def write_records(directory: Path, records: Sequence[bytes]) -> None:
    """Write a partition of __remote_log_metadata with these records."""
    metadata = Log()
    remote = directory / "__remote_log_metadata-0"
    remote.mkdir()
    content = b"".join(sealed_records(metadata.append(Batch()), [record(0, None, value)]) for value in records)
    (remote / "00000000000000000000.log").write_bytes(content)


@dataclass
class TieredLog:
    """A log directory of a broker with remote storage: one partition `orders-0`, and the records about its segments."""

    start: int
    end: int
    records: list[bytes] = field(default_factory=list)
    log_start: int | None = 0
    epochs: Sequence[tuple[int, int]] = ((0, 0),)
    stopped: bool = False
    topic_id: bytes = TOPIC_ID

    def copied(
        self, number: int, first: int, last: int, epochs: Mapping[int, int] | None = None, *states: int
    ) -> "TieredLog":
        """Add a segment that was copied, or is in the last of these states."""
        self.records.append(begun(segment_id(number), (first, last), epochs or {0: first}))
        self.records += [updated(segment_id(number), state) for state in states or (FINISHED,)]
        return self

    def write(self, directory: Path) -> Path:
        """Write it; its batches have one record each, of leader epoch 0 or as `epochs` says."""
        log = Log(next_offset=self.start)
        for offset in range(self.start, self.end):
            epoch = max((epoch for epoch, first in self.epochs if first <= offset), default=0)
            log.append(Batch(leader_epoch=epoch))
        orders = directory / "orders-0"
        orders.mkdir(parents=True)
        (orders / f"{self.start:020d}.log").write_bytes(log.encode())
        rows = "".join(f"{epoch} {first}\n" for epoch, first in self.epochs)
        (orders / "leader-epoch-checkpoint").write_text(f"0\n{len(self.epochs)}\n{rows}")
        (orders / "partition.metadata").write_text(f"version: 0\ntopic_id: {named(self.topic_id)}\n")
        write_records(directory, self.records)
        if self.log_start is not None:
            (directory / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {self.log_start}\n")
            (directory / "remote-log-index-cache").mkdir()
        if self.stopped:
            (directory / ".kafka_cleanshutdown").write_text("{}")
        return directory
