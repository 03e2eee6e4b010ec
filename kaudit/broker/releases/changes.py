"""The releases of Apache Kafka since producer ids exist, and the change each switch of a profile came with.

Data only; profile.py documents the switches. A change lists every release that first had it, line by line:
("2.1.1", "2.2.0") means from 2.1.1 on the 2.1 line and from 2.2.0 on.
"""

from typing import Any

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version

_LINES: tuple[tuple[str, range], ...] = (
    ("0.11.0", range(4)),
    ("1.0", range(3)),
    ("1.1", range(2)),
    ("2.0", range(2)),
    ("2.1", range(2)),
    ("2.2", range(3)),
    ("2.3", range(2)),
    ("2.4", range(2)),
    ("2.5", range(2)),
    ("2.6", range(4)),
    ("2.7", range(3)),
    ("2.8", range(3)),
    ("3.0", range(3)),
    ("3.1", range(3)),
    ("3.2", range(4)),
    ("3.3", range(3)),
    ("3.4", range(2)),
    ("3.5", range(3)),
    ("3.6", range(3)),
    ("3.7", range(3)),
    ("3.8", range(2)),
    ("3.9", range(3)),
    ("4.0", range(3)),
    ("4.1", range(3)),
    ("4.2", range(2)),
    ("4.3", range(2)),
)

RELEASES: tuple[Version, ...] = tuple(Version.parse(f"{line}.{patch}") for line, patches in _LINES for patch in patches)


class Change(Struct, frozen=True):
    """From the releases `since` on, `switch` has `value`; `source` is the ticket, KIP or class it came with."""

    since: tuple[Version, ...]
    switch: str
    value: Any
    source: str


def _change(since: str, switch: str, value: Any, source: str) -> Change:  # noqa: ANN401 - a switch is a bool, int, str or code
    return Change(tuple(Version.parse(part) for part in since.split(",")), switch, value, source)


SEVEN_DAYS_MS = 7 * 24 * 3600 * 1000
ONE_DAY_MS = 24 * 3600 * 1000
ONE_HOUR_MS = 3600 * 1000

# Later rows win over earlier ones of the same switch.
CHANGES: tuple[Change, ...] = (
    _change("1.0.0", "window", 5, "KAFKA-5494"),
    _change("1.0.0", "unknown_producer_error", KafkaError.UNKNOWN_PRODUCER_ID, "KAFKA-5793"),
    _change("1.0.0", "marker_replaces_last_batch", False, "KAFKA-5494"),
    _change("1.0.0", "old_duplicate_error", KafkaError.DUPLICATE_SEQUENCE_NUMBER, "KAFKA-5494"),
    _change("1.0.0", "marker_only_snapshot_loads_a_batch", True, "KAFKA-5494"),
    _change("1.0.0", "marker_sets_timestamp", False, "KAFKA-5494"),
    _change("0.11.0.2,1.0.0", "replicas_validate_like_leaders", False, "KAFKA-6003"),
    _change("0.11.0.2,1.0.0", "timeout_bumps_epoch", True, "KAFKA-6119"),
    _change("1.0.2,1.1.0", "snapshot_may_run_ahead", False, "KAFKA-6683"),
    _change("1.0.2,1.1.0", "old_duplicate_error", KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "KAFKA-6683"),
    _change("1.1.0", "delete_policy_comes_first", True, "recorded; Partition.deleteRecordsOnLeader"),
    _change("1.1.0", "validates_offset_range", True, "LogValidator.validateBatch"),
    _change("2.0.1,2.1.0", "marker_only_nonzero_error", KafkaError.UNKNOWN_PRODUCER_ID, "KAFKA-7298"),
    _change("2.0.1,2.1.0", "empty_control_batch_is_fatal", False, "KAFKA-7467"),
    _change("2.1.0", "needs_transactional_id", True, "KafkaApis.handleProduceRequest"),
    _change("2.1.0", "knows_zstd", True, "KIP-110"),
    _change("2.1.1,2.2.0", "offset_delta_from_sequences", False, "KAFKA-7692"),
    _change("2.2.0", "bad_record_set_closes_connection", False, "ProduceRequest.validateRecords"),
    _change("2.2.1,2.3.0", "index_lso_excludes_own_transaction", True, "KAFKA-7866"),
    _change("2.2.1,2.3.0", "cleaner_keeps_last_batch_by_offset", True, "KAFKA-8335"),
    _change("2.4.0", "forgets_on_log_start_advance", False, "KAFKA-7190"),
    _change("2.4.0", "invalid_record_error", KafkaError.INVALID_RECORD, "KAFKA-8729"),
    _change("2.4.1", "marker_checks_bind_replicas", False, "KAFKA-9144"),
    _change("2.4.1", "marker_sets_timestamp", True, "KAFKA-9144"),
    _change("2.4.1", "marker_only_snapshot_loads_a_batch", False, "KAFKA-9144"),
    _change("2.5.0", "accepts_unknown_nonzero", True, "KIP-360, KAFKA-8710"),
    _change("2.5.0", "marker_only_nonzero_error", KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "KIP-360, KAFKA-8710"),
    _change("2.5.0", "client_epoch_bump", True, "KIP-360, KAFKA-8710"),
    _change("2.5.0", "coordinator_epoch_bump", True, "KIP-360, KAFKA-8710"),
    _change("2.5.0", "fence_keeps_last_epoch", True, "TransactionCoordinator.handleEndTransaction"),
    _change("2.5.1,2.6.0", "empty_read_tells_of_aborted", False, "KAFKA-9838; recorded on 2.5.0 and 2.5.1"),
    _change("2.6.0", "fence_keeps_last_epoch", False, "TransactionCoordinator.endTransaction"),
    _change("2.6.0", "end_txn_needs_exact_epoch", True, "TransactionCoordinator.endTransaction"),
    _change("2.7.0", "failed_fence_burns_epochs", False, "KAFKA-9666"),
    _change("2.7.0", "coordinator_fenced_error", KafkaError.PRODUCER_FENCED, "KIP-588, KAFKA-9910"),
    _change("2.8.0", "empty_marker_completes_transaction", False, "KAFKA-10702"),
    _change("2.8.0", "snapshots_are_synced", True, "KAFKA-9892"),
    _change("2.8.0", "unreadable_records_close_connection", False, "RequestUtils.flag"),
    _change("2.8.0", "describes_producers", True, "KIP-664"),
    _change("2.8.0", "fences_stale_leader_append", True, "KAFKA-10778"),
    _change("3.1.0", "writes_delete_horizon", True, "KAFKA-8522"),
    _change("3.3.0", "kraft", True, "KIP-833"),
    _change("3.4.0", "expiration_config", "producer.id.expiration.ms", "KIP-854"),
    _change("3.4.0", "expiration_default_ms", ONE_DAY_MS, "KIP-854"),
    _change("3.5.2,3.6.1", "migration_repeats_a_block", False, "KAFKA-15552"),
    _change("3.6.0", "verifies_transactions", True, "KIP-890 part 1, KAFKA-14884"),
    _change("3.6.0", "verification_remembers_lowest_sequence", True, "KAFKA-14920"),
    _change("3.6.0", "takes_append_time_from_clients", True, "KIP-937, LogValidator.validateTimestamp"),
    _change("3.7.0", "verifies_coordinator_appends", True, "KIP-890 part 1, VerificationGuard"),
    _change("3.8.0", "abortable_error", True, "KIP-890, KAFKA-16314"),
    _change("4.0.0", "stable_offset_is_a_batchs", True, "recorded; UnifiedLog.convertToOffsetMetadataOrThrow"),
    _change("4.0.0", "timestamp_after_max_ms", ONE_HOUR_MS, "KIP-1030"),
    _change("4.0.0", "pending_transition_comes_first", True, "KIP-890 part 2, TransactionCoordinator"),
    _change("4.0.0", "fence_bumps_twice", True, "KIP-890 part 2"),
    _change("4.0.0", "unclean_restart_raises_leader_epochs", True, "recorded; KIP-966"),
    _change("4.0.0", "transaction_version2", True, "KIP-890 part 2"),
    _change("4.0.0", "verification_is_per_epoch", True, "KIP-890 part 2, KAFKA-18575"),
    _change("4.0.0", "verification_survives_tv2_marker", True, "KAFKA-18654"),
    _change("4.0.1,4.1.0", "fence_bumps_twice", False, "KAFKA-19367"),
    _change("4.0.1,4.1.0", "fence_keeps_last_epoch", True, "KAFKA-19367"),
    _change("4.0.1,4.1.1,4.2.0", "stale_epoch_before_verification", True, "KAFKA-19690"),
    _change("4.1.0", "tv2_starts_at_zero", True, "KAFKA-18202"),
    _change("4.2.0", "tv2_marker_must_exceed_epoch", True, "KAFKA-19446, KAFKA-19999"),
    _change("4.3.0", "tv2_marker_may_repeat_last_epoch", True, "ProducerAppendInfo.checkProducerEpoch"),
)
