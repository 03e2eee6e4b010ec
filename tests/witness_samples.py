"""Writes samples/{producer-ids,coordinator,side-files,consumed-offsets,committed-offsets,share-groups}: logs that their witnesses contradict, made by hand.

Run: python -m tests.witness_samples.
"""

import json
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.commits import GroupLog, commit_log, share_log
from tests.crafted_sample import DAY_MS, snapshot
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, marker, record, sealed_records

LOG_APPEND_TIME = 0x08
SAMPLES = Path(__file__).parents[1] / "samples"
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)


def _block(version: int, broker: int, start: int) -> dict[str, object]:
    value = json.dumps({"version": 1, "broker": broker, "block_start": str(start), "block_end": str(start + 999)})
    return {
        "data": value,
        "version": version,
        "mzxid": 100 + version,
        "mtime": BASE_TIMESTAMP - DAY_MS + version * 3_600_000,
    }


def producer_ids(target: Path) -> None:
    """A counter that was set back, one near its end, an id nobody granted, one with two writers, and a flood."""
    orders = Log()
    for producer_id in (4, 1003, 900_001):
        # the times of brokers (LogAppendTime) say when an id was in use
        orders.append(
            replace(data(producer_id, 0, 0, 3, payload=b"order of %d" % producer_id), attributes=LOG_APPEND_TIME)
        )
    orders.write(target / "orders-0")
    shared = Log()
    for step in range(5):
        shared.append(data(7, 0, step, payload=b"first writer %d" % step))
        shared.append(data(7, 0, 500 + step, payload=b"second writer %d" % step))
    shared.write(target / "shared-0")
    flood = Log()
    for producer_id in range(1100, 1700):
        flood.append(data(producer_id, 0, 0, payload=b"one"))
    flood.write(target / "flood-0")
    history = [_block(1, 1, 0), _block(2, 2, 1000), _block(3, 1, 2000), _block(4, 2, 0)]
    # Read again an hour after the logs were written: until then nothing more was granted.
    history[-1] = {"at_ms": BASE_TIMESTAMP + 3_600_000, "znode": history[-1]}
    near = [_block(1, 1, 0), _block(2, 2, 2**63 - 1000 - 2000)]
    near.append({"data": "garbage", "version": 3, "mzxid": 103, "mtime": BASE_TIMESTAMP - 1000})
    for name, lines in (("blocks.jsonl", history), ("blocks-near-end.jsonl", near)):
        (target / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _state(name: str, producer_id: int, status: int, topics: Sequence[str] = ()) -> bytes:
    """Encode a value of version 0 as the coordinator writes it (TransactionLog)."""
    key = struct.pack(">hh", 0, len(name)) + name.encode()
    value = struct.pack(">hqhibi", 0, producer_id, 0, 60_000, status, len(topics))
    for topic in topics:
        value += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">ii", 1, 0)
    return record(0, key, value + struct.pack(">qq", BASE_TIMESTAMP, BASE_TIMESTAMP))


def coordinator(target: Path) -> None:
    """Three transactions decided one way and marked another, or decided as no coordinator decides."""
    torn, alone = ("orders", "billing"), ("audit",)
    states = [
        _state("payments-1", 11, ONGOING, torn),
        _state("payments-1", 11, PREPARE_COMMIT, torn),
        _state("payments-1", 11, COMPLETE_COMMIT),
        _state("payments-2", 12, ONGOING, alone),
        _state("payments-2", 12, PREPARE_COMMIT, alone),
        _state("payments-2", 12, COMPLETE_COMMIT),
        _state("payments-3", 13, ONGOING, ("metrics",)),
        _state("payments-3", 13, COMPLETE_COMMIT),
    ]
    directory = target / "__transaction_state-0"
    directory.mkdir(parents=True)
    raw = b"".join(sealed_records(Batch(base_offset=number), [state]) for number, state in enumerate(states))
    (directory / f"{0:020d}.log").write_bytes(raw)
    for topic, producer_id, commit in (
        ("orders", 11, True),
        ("billing", 11, False),
        ("audit", 12, False),
        ("metrics", 13, True),
    ):
        log = Log()
        log.append(data(producer_id, 0, 0, 2, transactional=True, payload=topic.encode()))
        log.append(marker(producer_id, 0, commit=commit))
        log.write(target / f"{topic}-0")


def _plain(batches: int = 4) -> Log:
    log = Log()
    for sequence in range(batches):
        log.append(data(1, 0, sequence, payload=b"entry %d" % sequence))
    return log


def _indexed(directory: Path, log: Log, *, into: int = 0, fallen: int = 0) -> None:
    """Write the log with both indexes, a row for each batch but the first; `into` and `fallen` spoil the last row."""
    log.write(directory)
    positions, rows, times = 0, [], []
    for batch in log.batches:
        rows.append((batch.base_offset, positions))
        times.append((batch.timestamp, batch.last_offset))
        positions += len(batch.encode())
    rows[-1] = (rows[-1][0], rows[-1][1] + into)
    times[-1] = (times[-1][0] - fallen, times[-1][1])
    base = f"{0:020d}"
    (directory / f"{base}.index").write_bytes(b"".join(struct.pack(">ii", *row) for row in rows[1:]))
    (directory / f"{base}.timeindex").write_bytes(b"".join(struct.pack(">qi", *row) for row in times))


def side_files(target: Path) -> None:
    """A partition for each side file that is wrong, and a checkpoint of the log directory."""
    aborted = Log()
    aborted.append(data(2, 0, 0, 2, transactional=True))
    aborted.append(marker(2, 0, commit=False))
    _indexed(target / "aborted-0", aborted)
    _indexed(target / "offset-index-0", _plain(), into=7)
    _indexed(target / "time-index-0", _plain(), fallen=10)
    _indexed(target / "snapshot-0", _plain())
    whole = snapshot([(1, 0, 3, 3, 0, BASE_TIMESTAMP + 4, -1, -1)])
    (target / "snapshot-0" / f"{4:020d}.snapshot").write_bytes(whole[:20])
    _indexed(target / "leader-epochs-0", _plain())
    (target / "leader-epochs-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n", encoding="utf-8")
    _indexed(target / "ahead-0", _plain())
    (target / "replication-offset-checkpoint").write_text("0\n1\nahead 0 9\n", encoding="utf-8")


def consumed_offsets(target: Path) -> None:
    """A log that lost records a group had consumed, in an unclean election; and one that may only lag."""
    lost = Log()
    lost.append(data(1, 0, 0, 4, payload=b"order"))
    lost.append(data(1, 0, 4, 2, payload=b"order", leader_epoch=5))
    lost.write(target / "orders-0")
    lagging = Log()
    lagging.append(data(2, 0, 0, 3, payload=b"payment"))
    lagging.write(target / "payments-0")
    for number, commits in enumerate(
        ([("billing", "orders", 0, 4, 0), ("billing", "orders", 0, 9, 0)], [("audit", "payments", 0, 5, 0)])
    ):
        directory = target / f"__consumer_offsets-{number}"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(commit_log(commits))


def committed_offsets(target: Path) -> None:
    """Groups whose committed offsets do not only go forward: a consumer that sought back, a zombie, a reset, an expiry."""
    sought = GroupLog().members("billing", 1, "m-1").commit("billing", 100, 200).wait(600_000).commit("billing", 40, 60)
    zombie = GroupLog()
    for own in (105, 110, 118):
        zombie.commit("sink", own, producer=(31, 0)).wait(30_000).commit("sink", 100, producer=(30, 0)).wait(30_000)
    reset = GroupLog().members("reports", 1, "m-1").commit("reports", 500).wait(60_000).members("reports", 2)
    reset.wait(60_000).commit("reports", 0, epoch=-1).wait(60_000).members("reports", 3, "m-1").commit("reports", 120)
    expired = GroupLog().members("nightly", 1, "m-1").commit("nightly", 900).members("nightly", 2).wait(8 * DAY_MS)
    expired.commit("nightly", None).ended("nightly").wait(DAY_MS).members("nightly", 1, "m-2").commit("nightly", 50)
    for number, log in enumerate((sought, zombie, reset, expired)):
        log.write(target, number)
    orders = Log()
    for _ in range(20):
        orders.append(Batch(count=50))
    orders.write(target / "orders-0")
    (target / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n", encoding="utf-8")


def share_groups(target: Path) -> None:
    """A share group that rejected records and released one too often; and one that retention overtook."""
    rejected = share_log(
        (1, 0, []),
        (-1, 0, [(0, 4, 2, 1), (5, 5, 4, 1), (6, 9, 2, 1), (10, 10, 0, 1), (11, 19, 2, 1)]),
        (-1, 10, [(10, 10, 4, 5)]),
    )
    overtaken = share_log((1, 0, []), (-1, 0, [(0, 9, 2, 1)]), (-1, 40, []))
    for number, content in enumerate((rejected, overtaken)):
        directory = target / f"__share_group_state-{number}"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(content)


MAKERS: dict[str, Callable[[Path], None]] = {
    "producer-ids": producer_ids,
    "coordinator": coordinator,
    "side-files": side_files,
    "consumed-offsets": consumed_offsets,
    "committed-offsets": committed_offsets,
    "share-groups": share_groups,
}


def write(samples: Path) -> None:
    """Write the samples below `samples`, leaving their pages alone."""
    for name, make in MAKERS.items():
        for old in (samples / name).glob("*-[0-9]"):
            shutil.rmtree(old)
        make(samples / name)


if __name__ == "__main__":
    write(SAMPLES)
