"""Logs as bugs leave them that no recording shows, written by hand: one function for each, by its ticket.

Each writes what the ticket describes below a directory, and returns what a scan of it is asked beside the directory.
"""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.checks.transactions.coordinator_log import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    state,
    write_partition,
    write_states,
)
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, marker, record, sealed_records

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
Options = Mapping[str, object]
Make = Callable[[Path], Options]


def not_added(root: Path) -> Options:
    """KAFKA-14402: the transaction in progress is of another partition."""
    write_states(root, [state("t", ONGOING, [("payments", 0)])])
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True))
    log.write(root / "orders-0")
    return {}


def late_write(root: Path) -> Options:
    """KAFKA-12671: a batch of the transaction stands behind its marker."""
    write_states(root, [state("t", COMPLETE_ABORT)])
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True))
    late = replace(data(7, 0, 2, 2, transactional=True), timestamp=log.clock)
    log.append(marker(7, 0, commit=False))
    log.append(late, keep_time=True)
    log.write(root / "orders-0")
    return {}


def forgotten_coordinator(root: Path) -> Options:
    """KAFKA-9144: a transaction is aborted when its data is older than producers are remembered for."""
    log = Log(clock=BASE_TIMESTAMP - 8 * DAY_MS)
    log.append(data(7, 0, 0, 2, transactional=True))
    log.clock = BASE_TIMESTAMP
    log.append(marker(7, 1, commit=False, coordinator_epoch=7))
    log.append(marker(7, 1, commit=False, coordinator_epoch=5))
    log.write(root / "orders-0")
    return {}


def block_migrated_twice(root: Path) -> Options:
    """KAFKA-15552: KRaft's first record of producer ids names the block that ZooKeeper had granted last."""
    log = Log()
    log.append(data(3004, 0, 0, 2))
    log.write(root / "orders-0")
    blocks = root / "blocks.jsonl"
    lines = []
    for version, broker, start in ((1, 1, 0), (2, 2, 1000), (3, 1, 2000), (4, 2, 3000)):
        block = {"version": 1, "broker": broker, "block_start": str(start), "block_end": str(start + 999)}
        at = BASE_TIMESTAMP - DAY_MS + version * HOUR_MS
        lines.append({"data": json.dumps(block), "version": version, "mzxid": 100 + version, "mtime": at})
    blocks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    migrated, granted = (2, -1, 3000), (2, 11, 4000)
    metadata = root / "__cluster_metadata-0"
    metadata.mkdir()
    raw = b""
    for offset, fields in enumerate((migrated, granted)):
        value = bytes((1, 15, 0)) + struct.pack(">iqq", *fields) + b"\0"
        raw += sealed_records(Batch(base_offset=offset, timestamp=BASE_TIMESTAMP + offset), [record(0, None, value)])
    (metadata / f"{0:020d}.log").write_bytes(raw)
    return {"blocks": str(blocks), "metadata": str(root)}


def offset_assigned_again(root: Path) -> Options:
    """KAFKA-7866: the abort marker's row could not be written to the transaction index."""
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True))
    aborted = log.append(marker(7, 0, commit=False))
    log.next_offset = aborted.base_offset
    log.append(data(8, 0, 0, 3))
    log.append(data(8, 0, 3, 3))
    directory = log.write(root / "orders-0")
    (directory / f"{0:020d}.txnindex").touch()
    return {}


def appended_behind_a_torn_batch(root: Path) -> Options:
    """KAFKA-10778: half a batch is in the file, and the next one has its offset."""
    log = Log()
    log.append(data(7, 0, 0, 3))
    torn = data(7, 0, 3, 50, base_offset=3, payload=b"lost" * 10).encode()
    before = log.encode()
    log.append(data(7, 0, 3, 2))
    log.append(data(7, 0, 5, 2))
    directory = log.write(root / "orders-0")
    file = directory / f"{0:020d}.log"
    whole = file.read_bytes()
    file.write_bytes(before + torn[: len(torn) // 2] + whole[len(before) :])
    return {}


def zeros_behind_what_was_cleaned(root: Path) -> Options:
    """KAFKA-5431: a cleaned segment keeps the size it was created with."""
    log = Log()
    for number in range(6):
        log.append(data(7, 0, number, 1, key=b"%d" % number))
    directory = log.write(root / "orders-0", segment_starts=(3,))
    first = directory / f"{0:020d}.log"
    first.write_bytes(first.read_bytes() + bytes(4096))
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    return {}


def half_a_leader_epoch_checkpoint(root: Path) -> Options:
    """KAFKA-16541: a part of the file's content never reached the disk."""
    directory = _three_batches(root)
    (directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n")
    return {}


def empty_snapshot(root: Path) -> Options:
    """KAFKA-5747: the snapshot's content never reached the disk."""
    directory = _three_batches(root)
    (directory / f"{3:020d}.snapshot").touch()
    return {}


def marker_cleaned(status: int) -> Make:
    """KAFKA-8351, KAFKA-13727, KAFKA-14055: the records of a transaction are there, its marker was cleaned."""

    def write(root: Path) -> Options:
        write_states(root, [state("t", status)])
        log = Log()
        log.append(data(7, 0, 0, 2, transactional=True, key=b"a"))
        log.skip(1)
        for number in range(3):
            log.append(data(8, 0, number, 1, key=b"%d" % number))
        log.write(root / "orders-0")
        (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5\n")
        return {}

    return write


def never_completed(status: int) -> Make:
    """KAFKA-9777, KAFKA-16352: the coordinator decided, and its marker never came."""

    def write(root: Path) -> Options:
        write_states(root, [state("t", status, [("orders", 0)])])
        log = Log()
        log.append(data(7, 0, 0, 2, transactional=True))
        log.clock += 2 * HOUR_MS
        log.append(data(8, 0, 0, 2, transactional=True))
        log.append(marker(8, 0))
        log.write(root / "orders-0")
        return {}

    return write


def torn_transaction(root: Path) -> Options:
    """KAFKA-17754: a delayed EndTxn aborts what the transaction had written until then."""
    both = [("orders", 0), ("payments", 0)]
    states = [state("t", ONGOING, both), state("t", PREPARE_COMMIT, both), state("t", COMPLETE_COMMIT)]
    write_states(root, states)
    write_partition(root, "orders", [True])
    write_partition(root, "payments", [False])
    return {}


def emptied_marker(root: Path) -> Options:
    """KAFKA-7467: the cleaner keeps the marker's batch for its producer, without the record."""
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True, key=b"a"))
    log.append(replace(marker(7, 0), kept=0))
    log.append(data(8, 0, 0, 1, key=b"b"))
    log.write(root / "orders-0")
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    return {}


def time_index_removed(root: Path) -> Options:
    """KAFKA-5752: the files of the deleted topic were removed by the new topic's names."""
    log = Log()
    log.append(data(7, 0, 0, 3))
    log.append(data(7, 0, 3, 3))
    directory = log.write(root / "orders-0")
    (directory / f"{0:020d}.index").write_bytes(struct.pack(">ii", 3, len(log.batches[0].encode())))
    return {}


def first_batch_overtaken(root: Path) -> Options:
    """KAFKA-15591: the second request of a producer is the first batch of a new partition."""
    log = Log()
    log.append(data(7, 0, 17, 5))
    log.append(data(7, 0, 22, 3))
    log.write(root / "orders-0")
    return {}


def retry_of_deleted_records(root: Path) -> Options:
    """KAFKA-7190: what was deleted is sent again, and its producer is not known any more."""
    log = Log()
    sent = log.append(data(7, 0, 0, payload=b"retried"))
    log.append(data(8, 0, 0, 2))
    log.append(data(8, 0, 2, 1))
    log.append(sent, keep_time=True)
    log.write(root / "orders-0")
    return {"log_start_offset": 3}


def snapshot_runs_ahead(root: Path) -> Options:
    """KAFKA-6683: the snapshot at offset 1 has the batch of offset 1."""
    from tests.crafted_sample import snapshot

    log = Log()
    for sequence in range(3):
        log.append(data(9, 0, sequence))
    directory = log.write(root / "orders-0", segment_starts=(1,))
    entry = (9, 0, 1, 1, 0, log.batches[1].timestamp, -1, -1)
    (directory / f"{1:020d}.snapshot").write_bytes(snapshot([entry]))
    return {}


def sent_again_under_a_new_epoch(root: Path) -> Options:
    """KAFKA-14034, KAFKA-14397, librdkafka-4953: two batches of epoch 0 begin epoch 1."""
    log = Log()
    for sequence in range(4):
        log.append(data(7, 0, sequence, payload=b"order %d" % sequence))
    for sequence, first in enumerate(log.batches[2:4]):
        again = data(7, 1, sequence, payload=b"order %d" % (sequence + 2), timestamp=first.timestamp, leader_epoch=1)
        log.append(again, keep_time=True)
    log.append(data(7, 1, 2, payload=b"order 4", leader_epoch=1))
    log.write(root / "orders-0")
    return {}


def swapped_after_a_restart(root: Path) -> Options:
    """KAFKA-8483: the batches that are given sequences 0 and 1 were made in the other order."""
    log = Log()
    for sequence in range(3):
        log.append(data(7, 0, sequence, payload=b"order %d" % sequence))
    made = log.clock
    for sequence, number in ((0, 4), (1, 3), (2, 5)):
        payload = b"order %d" % number
        log.append(data(7, 0, sequence, payload=payload, timestamp=made + number), keep_time=True)
    log.write(root / "orders-0")
    return {}


def epochs_used_up(root: Path) -> Options:
    """sarama-2178, librdkafka-3720: the epoch climbs with every failed send."""
    log = Log()
    for epoch in range(32_000, 32_020):
        log.append(data(7, epoch, 0, payload=b"order %d" % epoch))
    log.write(root / "orders-0")
    return {}


def one_sequence_too_high(root: Path) -> Options:
    """kafkajs-598: each batch begins one sequence behind the end of the one before."""
    log = Log()
    for number in range(6):
        log.append(data(7, 0, number * 3, 2, payload=b"message %d" % number))
    log.write(root / "orders-0")
    return {}


def _three_batches(root: Path) -> Path:
    log = Log()
    for sequence in range(3):
        log.append(data(7, 0, sequence))
    return log.write(root / "orders-0")


def diverged(root: Path) -> Sequence[Path]:
    """KAFKA-6361, KAFKA-7415: a follower keeps a batch the leader never had, and goes on fetching behind it."""
    directories = []
    for name, epoch, checkpoint in (("b1", 1, "0 0\n1 6\n3 8\n"), ("b2", 2, "0 0\n2 6\n3 8\n")):
        log = Log()
        for number in range(3):
            log.append(Batch(count=2, payload=b"order %d" % number))
        log.append(Batch(count=2, leader_epoch=epoch, payload=b"only on %s" % name.encode()))
        for number in range(2):
            log.append(Batch(count=2, leader_epoch=3, payload=b"of the last leader %d" % number))
        directory = log.write(root / name / "orders-0")
        (directory / "leader-epoch-checkpoint").write_text(f"0\n3\n{checkpoint}")
        directories.append(root / name)
    return directories


def commit_after_the_timeout(root: Path) -> Options:
    """KAFKA-20785: what a broker 4.1.0 logged."""
    coordinator = "[TransactionCoordinator id=1]"
    logger = "(kafka.coordinator.transaction.TransactionCoordinator)"
    (root / "server.log").write_text(
        f"[2026-11-26 18:48:57,677] INFO {coordinator} Completed rollback of ongoing transaction for transactionalId app due to "
        f"timeout {logger}\n"
        f"[2026-11-26 18:49:02,901] WARN {coordinator} TransactionalId: app's state is COMPLETE_ABORT, but received transaction marker "
        f"result to send: COMMIT {logger}\n"
    )
    return {}


SIMULATED: Mapping[str, Make] = {
    "KAFKA-5431": zeros_behind_what_was_cleaned,
    "KAFKA-5747": empty_snapshot,
    "KAFKA-5752": time_index_removed,
    "KAFKA-6119": late_write,
    "KAFKA-6683": snapshot_runs_ahead,
    "KAFKA-7190": retry_of_deleted_records,
    "KAFKA-7467": emptied_marker,
    "KAFKA-7866": offset_assigned_again,
    "KAFKA-8351": marker_cleaned(COMPLETE_COMMIT),
    "KAFKA-8483": swapped_after_a_restart,
    "KAFKA-9144": forgotten_coordinator,
    "KAFKA-9777": never_completed(PREPARE_COMMIT),
    "KAFKA-10778": appended_behind_a_torn_batch,
    "KAFKA-12671": late_write,
    "KAFKA-13727": marker_cleaned(COMPLETE_ABORT),
    "KAFKA-14034": sent_again_under_a_new_epoch,
    "KAFKA-14055": marker_cleaned(COMPLETE_ABORT),
    "KAFKA-14397": sent_again_under_a_new_epoch,
    "KAFKA-14402": not_added,
    "KAFKA-15552": block_migrated_twice,
    "KAFKA-16352": never_completed(PREPARE_ABORT),
    "KAFKA-16541": half_a_leader_epoch_checkpoint,
    "KAFKA-17754": torn_transaction,
    "KAFKA-20785": commit_after_the_timeout,
    "kafkajs-598": one_sequence_too_high,
    "librdkafka-3720": epochs_used_up,
    "librdkafka-4953": sent_again_under_a_new_epoch,
    "sarama-2178": epochs_used_up,
}
"""Beside those of replicas: `diverged`, which takes two directories."""
