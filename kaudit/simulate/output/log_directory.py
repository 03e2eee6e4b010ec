"""What a run leaves in its output directory: the log directory of each broker, attempts, answers, blocks, the truth."""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kaudit.broker.releases.profile import Profile
from kaudit.formats.sidefiles.checkpoints import (
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
)
from kaudit.formats.sidefiles.indexes import ABORTED_TXN, ABORTED_TXN_VERSION, OFFSET_ENTRY, TIME_ENTRY
from kaudit.formats.sidefiles.producer_snapshot import producer_snapshot
from kaudit.simulate.cluster.broker import BrokerServer
from kaudit.simulate.cluster.brokers import ProcessState
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.replica_log import ReplicaLog, StoredBatch
from kaudit.simulate.encoding import placed
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.simulation import Simulation
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT

INDEX_INTERVAL_BYTES = 4096
"""index.interval.bytes: at least this many bytes lie between two index rows."""
_INDEX_ROW = OFFSET_ENTRY.struct()
_TIME_ROW = TIME_ENTRY.struct()
_TRANSACTION_ROW = ABORTED_TXN.struct()
_NO_TIMESTAMP = -1


class SegmentFiles(NamedTuple):
    """One segment: its base offset and the contents of its files, `transactions` empty where there is no .txnindex."""

    base_offset: int
    log: bytes
    offsets: bytes
    times: bytes
    transactions: bytes


def segments_of(log: ReplicaLog) -> Iterator[SegmentFiles]:
    """Yield a replica's segments in order."""
    bounds = [*log.segments, log.log_end]
    for base, following in pairwise(bounds):
        batches = log.batches[log.position(base) : log.position(following)]
        content, offsets, times = _indexed(base, batches)
        rows = b"".join(
            _TRANSACTION_ROW.pack(
                ABORTED_TXN_VERSION, row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset
            )
            for row in log.memory.producers.aborted
            if base <= row.last_offset < following
        )
        yield SegmentFiles(base, content, offsets, times, rows)


def _indexed(base: int, batches: list[StoredBatch]) -> tuple[bytes, bytes, bytes]:
    content: list[bytes] = []
    offsets, times = bytearray(), bytearray()
    position = since_row = 0
    latest, latest_offset, indexed = _NO_TIMESTAMP, base, _NO_TIMESTAMP
    for batch in batches:
        if batch.max_timestamp > latest:
            latest, latest_offset = batch.max_timestamp, batch.last_offset
        if since_row > INDEX_INTERVAL_BYTES:
            offsets += _INDEX_ROW.pack(batch.last_offset - base, position)
            if latest > indexed:
                times += _TIME_ROW.pack(latest, latest_offset - base)
                indexed = latest
            since_row = 0
        content.append(placed(batch.data, batch.base_offset, batch.leader_epoch))
        position += len(batch.data)
        since_row += len(batch.data)
    if latest > indexed:
        # A segment that is closed gets its greatest timestamp as the last row.
        times += _TIME_ROW.pack(latest, latest_offset - base)
    return b"".join(content), bytes(offsets), bytes(times)


_TOPIC_IDS_SINCE = (2, 8)
_EPOCH_IN_SHUTDOWN_FILE_SINCE = (3, 7)
_LOG_DIRECTORY_IDS_SINCE = (3, 7, 0)


def write_log_directory(
    directory: Path, broker: BrokerServer, partitions: Iterable[ReplicatedPartition], profile: Profile
) -> None:
    """Write everything a broker has on its disk into `directory`, which must not hold partitions already."""
    directory.mkdir(parents=True, exist_ok=True)
    mine = [partition for partition in partitions if broker.number in partition.replicas]
    clean = broker.process is ProcessState.STOPPED
    for partition in mine:
        _write_partition(directory / partition.name, partition, partition.logs[broker.number], profile)
    logs = [(partition, partition.logs[broker.number]) for partition in mine]
    _checkpoint(
        directory / "recovery-point-offset-checkpoint",
        [(part.key, log.log_end if clean else log.segments[-1]) for part, log in logs],
    )
    _checkpoint(directory / "replication-offset-checkpoint", [(part.key, log.high_watermark) for part, log in logs])
    _checkpoint(
        directory / "log-start-offset-checkpoint",
        [(part.key, log.log_start) for part, log in logs if log.log_start > log.segments[0]],
    )
    _checkpoint(directory / "cleaner-offset-checkpoint", [])
    (directory / "meta.properties").write_text(_meta_properties(broker.number, profile), encoding="ascii")
    if clean:
        newer = profile.version.numbers >= _EPOCH_IN_SHUTDOWN_FILE_SINCE
        text = json.dumps({"version": 0, "brokerEpoch": broker.incarnation + 1}, separators=(",", ":"))
        (directory / ".kafka_cleanshutdown").write_text(text if newer else "", encoding="ascii")


def _write_partition(directory: Path, partition: ReplicatedPartition, log: ReplicaLog, profile: Profile) -> None:
    directory.mkdir()
    for segment in segments_of(log):
        stem = f"{segment.base_offset:020d}"
        (directory / f"{stem}.log").write_bytes(segment.log)
        (directory / f"{stem}.index").write_bytes(segment.offsets)
        (directory / f"{stem}.timeindex").write_bytes(segment.times)
        if segment.transactions:
            (directory / f"{stem}.txnindex").write_bytes(segment.transactions)
    for offset, entries in log.snapshots.items():
        (directory / f"{offset:020d}.snapshot").write_bytes(producer_snapshot(entries))
    (directory / LEADER_EPOCH_CHECKPOINT).write_text(leader_epoch_checkpoint(log.epochs), encoding="ascii")
    if profile.version.numbers >= _TOPIC_IDS_SINCE:
        text = partition_metadata(PartitionMetadata(0, topic_id(partition.key[0])))
        (directory / "partition.metadata").write_text(text, encoding="ascii")


def topic_id(topic: str) -> str:
    """Return the id every run gives to a topic of this name: 22 characters of base64url."""
    return _uuid(f"topic {topic}")


def _uuid(of: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(of.encode()).digest()[:16]).decode().rstrip("=")


def _checkpoint(path: Path, rows: list[tuple[tuple[str, int], int]]) -> None:
    offsets = [PartitionOffset(topic, partition, offset) for (topic, partition), offset in rows]
    path.write_text(offset_checkpoint(offsets), encoding="utf-8")


def _meta_properties(number: int, profile: Profile) -> str:
    directory_id = None
    if profile.kraft and profile.version.numbers >= _LOG_DIRECTORY_IDS_SINCE:
        directory_id = _uuid(f"directory {number}")
    return meta_properties(MetaProperties(int(profile.kraft), number, _uuid("cluster"), directory_id, ()))


class OccupiedError(ValueError):
    """The output directory holds something already."""


def write_run(directory: Path, simulation: Simulation, truth: Truth) -> None:
    """Write broker-N/ per broker, attempts.jsonl, answers.jsonl, blocks.jsonl and truth.json.

    Raises OccupiedError if `directory` is not empty, and OSError.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise OccupiedError(f"{directory} exists and is not an empty directory")
    directory.mkdir(parents=True, exist_ok=True)
    cluster = simulation.cluster
    for number, broker in cluster.brokers.items():
        write_log_directory(directory / f"broker-{number}", broker, cluster.partitions.values(), cluster.profile)
    recorder = simulation.recorder
    (directory / "attempts.jsonl").write_text(recorder.attempts_text(), encoding="utf-8")
    (directory / "answers.jsonl").write_text(recorder.answers_text(), encoding="utf-8")
    (directory / "blocks.jsonl").write_text(cluster.granted_blocks.text(), encoding="utf-8")
    with (directory / "truth.json").open("w", encoding="utf-8") as out:
        out.writelines(truth.text())
