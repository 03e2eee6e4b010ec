"""Attempts: what a broker was asked and what happened to it, one Struct per `op` of a line of attempts.

This is the one schema of the format: reading (kaudit/replay/attempt_lines.py), its error messages and writing
(kaudit/simulate/cluster/attempt_recorder.py) derive from it. A field without a default is required; unknown fields are ignored,
except in `tamper`, where ignoring one would answer for a log that is not there.
Times are ms; `at` is the broker's clock, None where it is unknown.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Int8 = Annotated[int, Meta(ge=0, le=2**7 - 1)]
Int16 = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
ApiVersion = Annotated[int, Meta(ge=0, le=2**15 - 1)]
PartitionNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
OffsetOrEnd = Annotated[int, Meta(ge=-1, le=2**63 - 1)]
"""An offset, -1 for the log's end."""
BatchOffset = Annotated[int, Meta(ge=0, le=2**62)]
"""Leaves room for the batches that follow."""
RecordCount = Annotated[int, Meta(ge=1, le=2**31 - 1)]
LeaderChangeKind = Literal["clean", "kill9", "unclean", "paused"]

NO_INDEX = -1
BATCH_FIELDS = ("producer_id", "producer_epoch", "base_sequence", "record_count")
"""The fields that describe a batch instead of its bytes."""


class _Attempt(Struct, tag_field="op", kw_only=True, omit_defaults=True, gc=False):
    index: Natural = NO_INDEX
    """Joins attempts and answers; where a line has none, its number among the attempts from 0."""


class StartBroker(_Attempt, tag="broker", kw_only=True):
    """A new broker answers from here on; `config` is its configuration."""

    broker_version: str
    config: dict[str, Any] = {}
    at: Int64 | None = None
    """When it started; where absent, the first time any attempt has."""


class _PartitionAttempt(_Attempt, kw_only=True):
    topic: str
    partition: PartitionNumber
    at: Int64 | None = None


class ConfigureTopic(_PartitionAttempt, tag="topic", kw_only=True):
    """A topic's configuration."""

    config: dict[str, Any] = {}


class SentBatch(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One of several batches of a request: as bytes, or described by its four fields, which are then all there."""

    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    base_sequence: Int32 | None = None
    record_count: Int32 | None = None
    is_transactional: bool = False
    timestamp: Int64 | None = None
    records_hex: str | None = None


class SentElsewhere(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What a produce request holds for another partition than the attempt's own: the same fields as there."""

    partition: PartitionNumber
    topic: str | None = None
    """Where absent, the attempt's own."""
    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    base_sequence: Int32 | None = None
    record_count: Int32 | None = None
    is_transactional: bool = False
    timestamp: Int64 | None = None
    records_hex: str | None = None
    batches: list[SentBatch] | None = None


class Produce(_PartitionAttempt, tag="produce", kw_only=True):
    """A produce request: one batch as bytes (`records_hex`) or described by its four fields, or several `batches`."""

    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    base_sequence: Int32 | None = None
    record_count: Int32 | None = None
    is_transactional: bool = False
    timestamp: Int64 | None = None
    records_hex: str | None = None
    batches: list[SentBatch] | None = None
    other_partitions: list[SentElsewhere] | None = None
    """What the same request holds for more partitions."""
    transactional_id: str | None = None
    acks: Int16 = -1
    api_version: ApiVersion = 8


class InitProducerId(_PartitionAttempt, tag="init_producer_id", kw_only=True):
    """InitProducerId; `producer_id` and `producer_epoch` are what the client has (KIP-360), None where it has none."""

    transactional_id: str | None = None
    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    timeout_ms: Int32 = 60_000
    granted_producer_id: Int64 | None = None
    """What the allocator is known to have given."""
    api_version: ApiVersion = 0


class AddPartitions(_PartitionAttempt, tag="add_partitions", kw_only=True):
    """AddPartitionsToTxn of this partition."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    api_version: ApiVersion = 0


class EndTxn(_PartitionAttempt, tag="end_txn", kw_only=True):
    """EndTxn."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    commit: bool
    granted_producer_id: Int64 | None = None
    """What the allocator is known to have given for the next transaction (transaction version 2)."""
    api_version: ApiVersion = 0


class TxnOffsetCommit(_PartitionAttempt, tag="txn_offset_commit", kw_only=True):
    """TxnOffsetCommit, in the partition of __consumer_offsets that holds the group; its members are not checked."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    record_count: RecordCount = 1
    """How many offsets are committed."""
    api_version: ApiVersion = 0


class WriteMarker(_PartitionAttempt, tag="write_marker", kw_only=True):
    """WriteTxnMarkers of one marker."""

    producer_id: Int64
    producer_epoch: Int16
    commit: bool
    coordinator_epoch: Int32
    transaction_version: Int8 = 0
    api_version: ApiVersion = 0


class DeleteRecords(_PartitionAttempt, tag="delete_records", kw_only=True):
    """DeleteRecords up to an offset."""

    before_offset: OffsetOrEnd


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
    """What was done to a partition's files while the broker was down; `deleted` and `corrupted` are file names."""

    truncated_to_offset: Natural | None = None
    corrupted_batch_offset: Natural | None = None
    torn_batch_offset: Natural | None = None
    """The batch of which only a part was written."""
    deleted: list[str] = []
    corrupted: list[str] = []


class Restart(_PartitionAttempt, tag="restart", kw_only=True):
    """The broker stopped and started again."""

    clean: bool
    found_on_disk: list[FoundBatch] = []
    tamper: Tamper | None = None
    log_start_offset: Natural | None = None
    """The log start in the broker's checkpoint when it came back; where absent, as its clock says."""
    started_at: Int64 | None = None
    """When it answered again, by the broker's clock; where absent, taken to be `at`, when it stopped."""


class LeaderChange(_PartitionAttempt, tag="leader_change", kw_only=True):
    """Another replica leads; it lacks what lies from `lost_from_offset` on."""

    how: LeaderChangeKind
    lost_from_offset: Natural | None = None
    old_leader: Int32 | None = None
    new_leader: Int32 | None = None
    via: str | None = None


class FollowerRestart(_PartitionAttempt, tag="follower_restart", kw_only=True):
    """A replica that follows was restarted: `replica`, or the one that leads next."""

    clean: bool = True
    replica: Int32 | None = None
    log_end_offset: Natural | None = None


class Wait(_PartitionAttempt, tag="wait", kw_only=True):
    """Time passes."""

    ms: Natural


class ExpireProducers(_PartitionAttempt, tag="expire_producers", kw_only=True):
    """The broker dropped producers that were idle; for when its clock or configuration do not say so."""

    producer_ids: list[Int64] | None = None
    """Which; where absent, all that are idle for too long at `at`. Open transactions never expire."""


class Describe(_PartitionAttempt, tag="describe", kw_only=True):
    """The partition's offsets, aborted transactions and producers are asked for."""


PartitionAttempt = (
    Produce
    | InitProducerId
    | AddPartitions
    | EndTxn
    | TxnOffsetCommit
    | WriteMarker
    | DeleteRecords
    | Restart
    | LeaderChange
    | FollowerRestart
    | Wait
    | ExpireProducers
    | Describe
)
"""What one partition was asked, or what happened to it."""
Attempt = StartBroker | ConfigureTopic | PartitionAttempt


def op_of(attempt: Attempt) -> str:
    """Return the `op` of an attempt's line."""
    return str(attempt.__struct_config__.tag)
