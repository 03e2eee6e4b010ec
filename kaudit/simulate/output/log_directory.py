"""A broker's log directory: partitions, checkpoints and what identifies it.

Source: LogManager, CheckpointFile, MetaProperties, PartitionMetadataFile, CleanShutdownFileHandler.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

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
from kaudit.simulate.cluster.broker import BrokerServer, ProcessState
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.replica_log import ReplicaLog
from kaudit.simulate.encode.snapshot import producer_snapshot
from kaudit.simulate.output.segments import segments_of
from kaudit.source.file_kinds import LEADER_EPOCH_CHECKPOINT

_TOPIC_IDS_SINCE = (2, 8)
_EPOCH_IN_SHUTDOWN_FILE_SINCE = (3, 7)
_LOG_DIRECTORY_IDS_SINCE = (3, 7)


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
