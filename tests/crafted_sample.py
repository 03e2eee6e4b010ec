"""Writes samples/crafted: anomalies no broker of ours left on disk, made by hand. Run: python -m tests.crafted_sample."""

import shutil
import struct
from pathlib import Path

import crc32c

from tests.logs import BASE_TIMESTAMP, Log, data, marker

DAY_MS = 86_400_000
TARGET = Path(__file__).parents[1] / "samples" / "crafted"


def old_duplicate() -> Log:
    """A batch from before the window of five is sent again."""
    log = Log()
    sent = [log.append(data(1, 0, sequence, payload=b"order %d" % sequence)) for sequence in range(8)]
    log.append(sent[1], keep_time=True)
    log.append(data(1, 0, 8, payload=b"order 8"))
    return log


def overlap() -> Log:
    """A client regroups records it had sent before."""
    log = Log()
    log.append(data(2, 0, 0, 4, payload=b"a"))
    log.append(data(2, 0, 2, 4, payload=b"b"))
    log.append(data(2, 0, 6, 1, payload=b"c"))
    return log


def step_mismatch() -> Log:
    """A client adds one too many to its sequence after each batch (tulios/kafkajs#598)."""
    log = Log()
    for number in range(6):
        log.append(data(3, 0, number * 3, 2, payload=b"message %d" % number))
    return log


def coordinator_regression() -> Log:
    """A marker of an old coordinator comes after one of its successor."""
    log = Log()
    log.append(data(4, 0, 0, 2, transactional=True))
    log.append(marker(4, 0, coordinator_epoch=7))
    log.append(data(4, 0, 2, 2, transactional=True))
    log.append(marker(4, 0, coordinator_epoch=5))
    return log


def outside_transaction() -> Log:
    """A producer writes outside its own open transaction."""
    log = Log()
    log.append(data(5, 0, 0, 2, transactional=True))
    log.append(data(5, 0, 2, 1))
    log.append(marker(5, 0, coordinator_epoch=0))
    return log


def expired() -> Log:
    """A producer comes back after ten days, forgotten by then, and starts again at 0."""
    log = Log(clock=BASE_TIMESTAMP - 10 * DAY_MS)
    for sequence in range(3):
        log.append(data(6, 0, sequence, payload=b"before %d" % sequence))
    log.clock = BASE_TIMESTAMP
    log.append(data(6, 0, 0, payload=b"after 0"))
    log.append(data(6, 0, 1, payload=b"after 1"))
    return log


def evicted() -> Log:
    """With the log start at 3, producer 7 is forgotten on brokers before 2.4; its retry is then appended again."""
    log = Log()
    sent = log.append(data(7, 0, 0, payload=b"retried"))
    log.append(data(8, 0, 0, 2, payload=b"other"))
    log.append(data(8, 0, 2, 1, payload=b"other"))
    log.append(sent, keep_time=True)
    return log


def leader_change() -> Log:
    """A new leader lacks the end of the log: producer 10 is refused and raises its epoch, 11 goes on in sequence."""
    log = Log()
    for sequence in range(4):
        log.append(data(10, 0, sequence, payload=b"payment %d" % sequence))
    log.append(data(11, 0, 0, payload=b"heartbeat 0"))
    log.clock += 4_000
    log.append(data(10, 1, 0, leader_epoch=1, payload=b"payment 9"))
    log.append(data(11, 0, 1, leader_epoch=1, payload=b"heartbeat 1"))
    log.append(data(10, 1, 1, leader_epoch=1, payload=b"payment 10"))
    return log


def snapshot_disagrees() -> Log:
    """The snapshot at the log's end says sequence 7 where the log says 2; SNAPSHOT is its bytes."""
    log = Log()
    for sequence in range(3):
        log.append(data(9, 0, sequence, payload=b"entry %d" % sequence))
    return log


def snapshot(rows: list[tuple[int, ...]]) -> bytes:
    """Encode a producer snapshot: entries in file order."""
    entries = b"".join(struct.pack(">qhiqiqiq", *row) for row in rows)
    covered = struct.pack(">i", len(rows)) + entries
    return struct.pack(">hI", 1, crc32c.crc32c(covered)) + covered


SNAPSHOT = (
    "snapshot-disagrees-0/00000000000000000003.snapshot",
    snapshot([(9, 0, 7, 2, 0, BASE_TIMESTAMP + 3, -1, -1)]),
)

PARTITIONS = {
    "old-duplicate-0": old_duplicate,
    "overlap-0": overlap,
    "step-mismatch-0": step_mismatch,
    "coordinator-regression-0": coordinator_regression,
    "outside-transaction-0": outside_transaction,
    "expired-0": expired,
    "evicted-0": evicted,
    "leader-change-0": leader_change,
    "snapshot-disagrees-0": snapshot_disagrees,
}


def write(target: Path) -> None:
    """Write every partition below `target`."""
    for name, build in PARTITIONS.items():
        shutil.rmtree(target / name, ignore_errors=True)
        build().write(target / name)
    name, content = SNAPSHOT
    (target / name).write_bytes(content)


if __name__ == "__main__":
    write(TARGET)
