"""The broker stops and starts again."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from kaudit.broker.attempts.base import BatchOffset, Int16, Int32, Int64, Natural, PartitionAttemptBase, RecordCount
from kaudit.broker.attempts.describe import described_producers
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.replica import SNAPSHOT_SUFFIX, Tampering
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.broker.response import Answer, Response, TopicPartition
from kaudit.model.sequence import add as add_sequence


class FoundBatch(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A batch that lies in the log although no broker validated it; a marker if it has `commit`."""

    base_offset: BatchOffset
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32 = 0
    record_count: RecordCount = 1
    is_transactional: bool = False
    timestamp: Int64 | None = None
    commit: bool | None = None
    coordinator_epoch: Int32 = 0


class Tamper(Struct, kw_only=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Changes to a partition's files while the broker was down; `deleted` and `corrupted` are file names."""

    truncated_to_offset: Natural | None = None
    corrupted_batch_offset: Natural | None = None
    torn_batch_offset: Natural | None = None
    """The batch that was written only in part."""
    deleted: list[str] = []
    corrupted: list[str] = []


class Restart(PartitionAttemptBase, tag="restart", kw_only=True):
    """The broker stopped and started again."""

    clean: bool
    found_on_disk: list[FoundBatch] = field(default_factory=list)
    tamper: Tamper | None = None
    log_start_offset: Natural | None = None
    """The log start in the broker's checkpoint when it came back; where absent, as its clock says."""
    started_at: Int64 | None = None
    """When it answered again, by the broker's clock; where absent, taken to be `at`, when it stopped."""


def answer(attempt: Restart, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Load the log as it was left, with what was found in it."""
    clean = attempt.clean
    tamper = attempt.tamper or Tamper()
    tampering = Tampering(
        tamper.truncated_to_offset,
        tamper.corrupted_batch_offset,
        tamper.torn_batch_offset,
        _snapshot_offsets(tamper.deleted),
        _snapshot_offsets(tamper.corrupted),
    )
    partition.come_back_from(broker.log_start_checkpointed_at(now), attempt.log_start_offset, clean=clean)
    started_at = attempt.at if attempt.started_at is None else attempt.started_at
    found = [_found(batch, now) for batch in attempt.found_on_disk]
    broker.clocks[key] = up = now if started_at is None else max(now, started_at)
    partition.restart(up, found, tampering, clean=clean)
    partition.sweep_since(now, up)
    now = up
    broker.epochs.restarted(key, started_at, clean=clean)
    broker.coordinator.reload(key, now)
    fields: dict[str, Any] = {"outcome": "ok"}
    if broker.profile.describes_producers:
        fields["producers"] = described_producers(partition)
    kind = "a clean restart" if clean else "an unclean restart"
    return Response(attempt.index, fields, f"{kind}: {len(partition.producers.states)} producers are remembered")


def _snapshot_offsets(names: Sequence[str]) -> frozenset[int]:
    """Return the offsets of producer snapshot files by name; other files do not matter here."""
    stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    return frozenset(int(stem) for stem in stems if stem.isdecimal())


def _found(batch: FoundBatch, now: int) -> DataBatch | MarkerBatch:
    """Return a batch that lay on the disk; where its time is unknown it is the clock's."""
    timestamp = now if batch.timestamp is None else batch.timestamp
    base_offset = batch.base_offset
    if batch.commit is not None:
        return MarkerBatch(
            batch.producer_id, batch.producer_epoch, batch.coordinator_epoch, base_offset, timestamp, batch.commit
        )
    delta = batch.record_count - 1
    return DataBatch(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        add_sequence(batch.base_sequence, delta),
        base_offset,
        base_offset + delta,
        timestamp,
        batch.is_transactional,
    )
