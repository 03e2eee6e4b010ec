"""Markers that the log cleaner removes before the transaction's records."""

import itertools
import string
from collections.abc import Iterable
from pathlib import Path

from tests.bugs.recipe import COORDINATOR, Outcome, outcome_of
from tests.cluster import brokers
from tests.conformance.recorder.disk import end_of, positions_of
from tests.conformance.recorder.topic import Step
from tests.live_brokers.jvm import BrokenStartError

CLEANED_MS = 4_000
"""The cleaner looks twice a second."""
SMALL_INDEXES: dict[str, object] = {"log.index.size.max.bytes": 4096}
"""A broker that is not stopped cleanly leaves its indexes as long as they may become."""
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
COMMIT_KEY = "\0\0\0\1"
DEDUPE_BUFFER = (1 << 20) + 1
"""The least a broker takes."""
REMEMBERED_KEYS = int(DEDUPE_BUFFER // 24 * 0.9)
"""A key takes 24 bytes, and the buffer is filled to nine tenths (log.cleaner.io.buffer.load.factor)."""
BATCH = 5_000
_TRANSACTION: Step = {"pid": "A", "epoch": "A", "txn_id": "payments"}
_BEGIN: tuple[Step, ...] = (
    {"op": "init_pid", "as": "A", "txn_id": "payments"},
    {"op": "add_partitions", **_TRANSACTION},
)
_OTHER: Step = {"op": "produce", "pid": 900_001, "epoch": 0, "seq": "next"}
_CLEANED: Step = {"op": "sleep", "ms": CLEANED_MS}


def in_another_segment(version: str, home: Path) -> Outcome:
    """The commit marker begins a segment, and is cleaned without knowledge of the one before."""
    write = {"op": "produce", **_TRANSACTION, "txn": True, "seq": 0, "keys": ["a"], "value_size": 150}
    end = {"op": "end_txn", **_TRANSACTION, "commit": True}
    others = [({**_OTHER, "keys": [key], "value_size": 150}, _CLEANED) for key in "bcdef"]
    scenario = {
        "name": "orders",
        "topic_config": {**COMPACTED, "segment.bytes": "260"},
        "steps": [*_BEGIN, write, end, *itertools.chain.from_iterable(others)],
    }
    return _play(version, home, scenario, data=0, marker=1)


def key_of_a_marker(version: str, home: Path) -> Outcome:
    """A record has the key that the record of a commit marker has, version 0 and type 1, and is newer."""
    write = {"op": "produce", **_TRANSACTION, "txn": True, "seq": 0, "keys": ["a"], "value_size": 150}
    end = {"op": "end_txn", **_TRANSACTION, "commit": True}
    others = [({**_OTHER, "keys": [key], "value_size": 150}, _CLEANED) for key in (COMMIT_KEY, "b", "c")]
    scenario = {
        "name": "orders",
        "topic_config": {**COMPACTED, "delete.retention.ms": "86400000", "segment.bytes": "260"},
        "steps": [*_BEGIN, write, end, *itertools.chain.from_iterable(others)],
    }
    return _play(version, home, scenario, data=0, marker=1)


def preallocated(version: str, home: Path) -> Outcome:
    """Segments are allocated at their full size, also those that the cleaner writes."""
    steps = [step for key in "aabbcc" for step in ({**_OTHER, "keys": [key], "value_size": 900}, _CLEANED)]
    scenario = {"name": "orders", "topic_config": {**COMPACTED, "segment.bytes": "2100"}, "steps": steps}
    with brokers.live(version, home / "broker", {**SMALL_INDEXES, "log.preallocate": "true"}) as live:
        live.play(scenario)
        live.broker.stop(clean=False)  # a broker that is shut down cuts off what it did not use
        *closed, _ = live.broker.segments("orders", 0)
        zeros = {segment.name: segment.stat().st_size - end_of(segment) for segment in closed}
        found = [
            {"code": "KA004", "topic": "orders", "partition": 0, "file": f"orders-0/{name}"}
            for name, count in zeros.items()
            if count
        ]
        return outcome_of(
            f"the log was compacted on preallocated segments; zeros behind the last batch of those closed: {zeros}",
            *found, happened=bool(found), logs=live.broker.logs, partitions=("orders-0",),
            server_logs={"server.log": live.broker.home / "broker.out"},
        )  # fmt: skip


def in_part_of_a_segment(version: str, home: Path) -> Outcome:
    """The cleaner's map of keys is full before the aborted transaction begins in the same segment."""
    names = ("".join(each) for each in itertools.product(string.ascii_lowercase + string.digits, repeat=3))
    keys = list(itertools.islice(names, REMEMBERED_KEYS + BATCH))
    fill = [{**_OTHER, "keys": chunk, "count": len(chunk), "value_size": 0} for chunk in _chunks(keys)]
    aborted = {"op": "produce", **_TRANSACTION, "txn": True, "seq": 0, "count": 2, "keys": ["A", "B"]}
    end = {"op": "end_txn", **_TRANSACTION, "commit": False}
    roll = {**_OTHER, "keys": ["roll"], "value_size": 700_000}
    more = {**_OTHER, "keys": ["more"], "value_size": 700_000}
    scenario = {
        "name": "orders",
        "topic_config": {**COMPACTED, "segment.bytes": "1000000"},
        "steps": [*_BEGIN, *fill, aborted, end, roll, _CLEANED, more, _CLEANED, {**more, "keys": ["last"]}, _CLEANED],
    }
    return _play(version, home, scenario, data=len(keys), marker=len(keys) + 2)


def empty_marker(version: str, home: Path) -> Outcome:
    """A marker with an epoch of its own is all that is known of a producer, so that its batch is kept without its record."""
    writer: Step = {"pid": "A", "epoch": "A"}
    others = [({**_OTHER, "keys": [key], "value_size": 150}, _CLEANED) for key in "bcdef"]
    steps = [
        {"op": "init_pid", "as": "A"},
        {"op": "produce", **writer, "txn": True, "txn_id": "payments", "seq": 0, "keys": ["a"], "value_size": 150},
        {"op": "write_marker", "pid": "A", "epoch": "A+1", "commit": False, "coord_epoch": 0},
        *itertools.chain.from_iterable(others),
    ]
    scenario = {"name": "orders", "topic_config": {**COMPACTED, "segment.bytes": "260"}, "steps": steps}
    with brokers.live(version, home / "broker", SMALL_INDEXES) as live:
        lines = live.play(scenario)
        live.broker.stop(clean=False)
        for snapshot in live.broker.snapshots("orders", 0):
            snapshot.unlink()
        try:
            live.broker.start()
            started = "it started again"
        except BrokenStartError as error:
            started = str(error)
        live.broker.stop(clean=False)
        return outcome_of(
            f"the log was compacted, the broker killed, its snapshots were deleted: {started}",
            {"code": "KA803", "topic": "orders", "partition": 0, "producer_id": lines[1][1]["producer_id"], "offset": 1},
            happened="NoSuchElement" in started,
            logs=live.broker.logs, partitions=("orders-0",), server_logs={"server.log": live.broker.home / "broker.out"},
        )  # fmt: skip


def _chunks(keys: list[str]) -> Iterable[list[str]]:
    return (keys[at : at + BATCH] for at in range(0, len(keys), BATCH))


def _play(version: str, home: Path, scenario: Step, *, data: int, marker: int) -> Outcome:
    with brokers.live(version, home / "broker", {"log.cleaner.dedupe.buffer.size": DEDUPE_BUFFER}) as live:
        lines = live.play(scenario)
        live.broker.stop(clean=True)
        segments = live.broker.segments(scenario["name"], 0)
        offsets = {offset for segment in segments for _, offset in positions_of(segment)}
        producer_id = next(attempt["producer_id"] for attempt, _ in lines if attempt["op"] == "end_txn")
        return outcome_of(
            f"the transaction at offset {data} ended at offset {marker}; after compaction its records are "
            f"{'there' if data in offsets else 'gone'} and its marker is {'there' if marker in offsets else 'gone'}",
            {"code": "KA301", "topic": scenario["name"], "partition": 0, "producer_id": producer_id, "offset": data},
            happened=data in offsets and marker not in offsets,
            logs=live.broker.logs, partitions=(f"{scenario['name']}-0", COORDINATOR),
        )  # fmt: skip
