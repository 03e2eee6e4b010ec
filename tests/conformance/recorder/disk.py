"""What a scenario does to a partition's files while the broker is down, and how an attempt states it."""

import base64
from pathlib import Path

from tests.conformance.recorder.batches import Sent
from tests.conformance.recorder.topic import Producer, Step, Topic, clock
from tests.live_brokers.jvm import Broker

CHECKPOINT = "log-start-offset-checkpoint"


def change(broker: Broker, topic: Topic, partition: int, step: Step) -> Step:
    """Do to a partition's files what a restart's step says; return what the attempt states of it."""
    done: Step = {"log_start_offset": checkpointed_log_start(broker.logs, topic.name, partition)}
    if partition != step.get("partition", 0):
        return done
    segment = broker.segments(topic.name, partition)[-1]
    found = []
    for each in step.get("inject", []):
        producer, count = topic.producer(each), each["count"]
        found.append(inject(segment, topic.ends[partition], producer, each))
        topic.wrote(partition, producer, each["seq"], count)
        topic.ends[partition] += count
    if found:
        done["found_on_disk"] = found
    changed = tamper(step.get("tamper", {}), segment, broker.snapshots(topic.name, partition))
    return {**done, "tamper": changed} if changed else done


def tamper(step: Step, segment: Path, snapshots: list[Path]) -> Step:
    """Do to the newest segment and the producer snapshots what the step says; return the attempt's `tamper`."""
    positions = positions_of(segment)
    if "truncate_batches" in step and positions:
        position, offset = positions[-min(step["truncate_batches"], len(positions))]
        _truncate(segment, position)
        return {"truncated_to_offset": offset}
    if step.get("tear_last") and positions:
        position, offset = positions[-1]
        _truncate(segment, (position + end_of(segment)) // 2)
        return {"torn_batch_offset": offset}
    if step.get("corrupt_last") and positions:
        position, offset = positions[-1]
        data = bytearray(segment.read_bytes())
        data[position + 70] ^= 1
        segment.write_bytes(data)
        return {"corrupted_batch_offset": offset}
    if step.get("delete_snapshots"):
        for path in snapshots:
            path.unlink()
        return {"deleted": [path.name for path in snapshots]}
    if step.get("corrupt_snapshots"):
        for path in snapshots:
            data = bytearray(path.read_bytes())
            data[-1] ^= 0xFF
            path.write_bytes(data)
        return {"corrupted": [path.name for path in snapshots]}
    return {}


def inject(segment: Path, offset: int, producer: Producer, step: Step) -> Step:
    """Put a batch behind the log's end, as if it had come from elsewhere; return the attempt's `found_on_disk`."""
    more = {**step, "base_offset": offset, "ple": 0}
    now = clock()
    data = Sent(*producer, step["seq"], step["count"], now, more).encode()
    end = end_of(segment)
    with segment.open("r+b") as log:
        log.truncate(end)
        log.seek(end)
        log.write(data)
    return {
        "base_offset": offset,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "base_sequence": step["seq"],
        "record_count": step["count"],
        "timestamp": now,
        **({"is_transactional": True} if step.get("txn") else {}),
    }


def positions_of(segment: Path) -> list[tuple[int, int]]:
    """(position, base offset) of every batch of a segment."""
    data = segment.read_bytes()
    at, found = 0, []
    while at + 12 <= len(data):
        offset, size = int.from_bytes(data[at : at + 8], "big"), int.from_bytes(data[at + 8 : at + 12], "big")
        if size == 0:
            break
        found.append((at, offset))
        at += 12 + size
    return found


def end_of(segment: Path) -> int:
    """Where a segment's last batch ends; zeros allocated in advance may follow."""
    positions = positions_of(segment)
    if not positions:
        return 0
    at, _ = positions[-1]
    return at + 12 + int.from_bytes(segment.read_bytes()[at + 8 : at + 12], "big")


def checkpointed_log_start(directory: Path, topic: str, partition: int) -> int:
    """The log start a broker's directory has on record for a partition, 0 where it has none."""
    checkpoint = directory / CHECKPOINT
    if not checkpoint.exists():
        return 0
    rows = (line.rsplit(" ", 2) for line in checkpoint.read_text().splitlines()[2:])
    starts = {(row[0], int(row[1])): int(row[2]) for row in rows}
    return starts.get((topic, partition), 0)


def topic_id(directory: Path, topic: str) -> bytes:
    """The id a broker's directory has on record for a topic, zeros where it has none."""
    stated = directory / f"{topic}-0" / "partition.metadata"
    encoded = stated.read_text().rpartition("topic_id: ")[2].strip() if stated.exists() else ""
    return base64.urlsafe_b64decode(f"{encoded}==") if encoded else bytes(16)


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as data:
        data.truncate(size)
