"""The table of broker switches: every behaviour in which releases of Apache Kafka differ, and what changed it.

One field of Switches is one switch. Its annotation holds the sentence that `kaudit explain --broker-version` and
docs/broker-rules.md print, and its changes, oldest first; its default is the behaviour of 0.11.0.0. A new rule of a
broker is a switch here and the code that reads it. A switch no code of kaudit reads is marked Informative.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.table import Change, Informative, Switch, rows_of

ONE_HOUR_MS = 3600 * 1000
ONE_DAY_MS = 24 * ONE_HOUR_MS
SEVEN_DAYS_MS = 7 * ONE_DAY_MS


class Switches(Struct, frozen=True, kw_only=True):
    """What a broker does, switch by switch. The defaults are the behaviour of 0.11.0.0."""

    # -- what is remembered of a producer ----------------------------------------------------------------------------
    window: Annotated[
        int,
        "how many batches are remembered per producer id, and so how far back a retry is recognised as a duplicate",
        Change("1.0.0", 5, "KAFKA-5494", recorded="1.0.0"),
    ] = 1
    marker_replaces_last_batch: Annotated[
        bool,
        "a marker of the same epoch overwrites the remembered batch, so a retry of that batch may be rejected",
        Change("1.0.0", False, "KAFKA-5494", recorded="1.0.0"),
    ] = True
    offset_delta_from_sequences: Annotated[
        bool,
        "a duplicate of a batch that wraps past sequence 2147483647 is answered with an offset 2^31 too high",
        Change("2.1.1, 2.2.0", False, "KAFKA-7692", recorded="2.4.1"),
    ] = True
    marker_sets_timestamp: Annotated[
        bool,
        "a marker's timestamp renews the time until its producer id expires",
        Change("1.0.0", False, "KAFKA-5494", recorded="2.4.0"),
        Change("2.4.1", True, "KAFKA-9144", recorded="2.4.1"),
    ] = True
    marker_only_snapshot_loads_a_batch: Annotated[
        bool,
        "a producer id known only from a marker comes back from a snapshot with a batch of sequence -1",
        Change("1.0.0", True, "KAFKA-5494"),
        Change("2.4.1", False, "KAFKA-9144"),
    ] = False

    # -- sequences and epochs of client appends ----------------------------------------------------------------------
    accepts_unknown_nonzero: Annotated[
        bool,
        "a producer id the broker does not know may start at any sequence",
        Change("2.5.0", True, "KIP-360, KAFKA-8710", recorded="2.5.1"),
    ] = False
    unknown_producer_error: Annotated[
        KafkaError,
        "the error for an unknown producer id that does not start at sequence 0, where that is rejected",
        Change("1.0.0", KafkaError.UNKNOWN_PRODUCER_ID, "KAFKA-5793", recorded="1.0.0"),
    ] = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    marker_only_nonzero_error: Annotated[
        KafkaError,
        "the error for a sequence other than 0 when only a marker of the current epoch is remembered",
        Change("2.0.1, 2.1.0", KafkaError.UNKNOWN_PRODUCER_ID, "KAFKA-7298", recorded="2.0.1"),
        Change("2.5.0", KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "KIP-360, KAFKA-8710", recorded="2.5.1"),
    ] = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    old_duplicate_error: Annotated[
        KafkaError,
        "the error for a retry of a batch older than the remembered ones; where it is 46 this is looked for before "
        "the next sequence is, so that after a wrap the next batch may be rejected",
        Change("1.0.0", KafkaError.DUPLICATE_SEQUENCE_NUMBER, "KAFKA-5494", recorded="1.0.0"),
        Change("1.0.2, 1.1.0", KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "KAFKA-6683", recorded="1.0.2"),
    ] = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    no_epoch_skips_validation: Annotated[
        bool,
        "a batch with a producer id and epoch -1 is appended whatever its sequence is",
        Change("0.11.0.2, 1.0.0", False, "KAFKA-6003, ProducerAppendInfo.append", recorded="0.11.0.2"),
    ] = True
    refused_batch_is_remembered: Annotated[
        bool,
        "a batch rejected with 48 for coming between a transaction's is remembered as if it had been written: its "
        "retry is a duplicate, and waits in vain for an offset that is not there",
        Change("1.0.0", True, "KAFKA-5494, ProducerAppendInfo.append"),
        Change("1.0.2, 1.1.0", False, "KAFKA-6683", recorded="1.0.2"),
    ] = False
    offset_commit_checks_epoch: Annotated[
        bool,
        "offsets committed in a transaction with a fenced epoch are rejected; otherwise they are written",
        Change("0.11.0.2, 1.0.0", False, "KAFKA-6003", recorded="0.11.0.3"),
        Change("2.4.1", True, "KAFKA-9144, ProducerAppendInfo.maybeValidateDataBatch", recorded="2.5.1"),
    ] = True
    replicas_validate_like_leaders: Annotated[
        bool,
        "followers check sequences as a leader does, and stop replicating at a batch that fails",
        Change("0.11.0.2, 1.0.0", False, "KAFKA-6003"),
        Informative("kaudit never refuses what a leader wrote"),
    ] = True
    tv2_starts_at_zero: Annotated[
        bool,
        "under transaction version 2 a producer id without remembered batches must start at sequence 0",
        Change("4.1.0", True, "KAFKA-18202", recorded="4.1.0"),
    ] = False
    client_epoch_bump: Annotated[
        bool,
        "idempotent Java clients of this release raise their own epoch after an error and start again at sequence 0; "
        "earlier ones ask for a new producer id",
        Change("2.5.0", True, "KIP-360, KAFKA-8710"),
        Informative("the client decides, not the broker"),
    ] = False

    # -- markers -----------------------------------------------------------------------------------------------------
    marker_checks_bind_replicas: Annotated[
        bool,
        "a marker with a lower producer or coordinator epoch fails on followers and while a log is loaded",
        Change("2.4.1", False, "KAFKA-9144"),
    ] = True
    tv2_marker_must_exceed_epoch: Annotated[
        bool,
        "a marker of transaction version 2 must raise the epoch of an open transaction",
        Change("4.2.0", True, "KAFKA-19446, KAFKA-19999"),
    ] = False
    tv2_marker_may_repeat_last_epoch: Annotated[
        bool,
        "a marker of transaction version 2 may repeat epoch 32767, the last one",
        Change("4.3.0", True, "ProducerAppendInfo.checkProducerEpoch"),
    ] = False
    empty_marker_completes_transaction: Annotated[
        bool,
        "a marker without an open transaction counts as a transaction: an abort enters the transaction index",
        Change("2.8.0", False, "KAFKA-10702", recorded="2.8.2"),
    ] = True
    empty_control_batch_is_fatal: Annotated[
        bool,
        "a control batch whose record the log cleaner removed stops the broker from loading the log",
        Change("2.0.1, 2.1.0", False, "KAFKA-7467"),
    ] = True
    index_lso_excludes_own_transaction: Annotated[
        bool,
        "the last stable offset written to the transaction index considers other transactions only",
        Change("2.2.1, 2.3.0", True, "KAFKA-7866"),
        Informative("the check of transaction indexes (KA305) accepts either offset"),
    ] = False

    # -- forgetting --------------------------------------------------------------------------------------------------
    forgets_on_log_start_advance: Annotated[
        bool,
        "producer ids whose data was deleted (retention, DeleteRecords) are forgotten at once",
        Change("2.4.0", False, "KAFKA-7190", recorded="2.4.0"),
    ] = True
    expiration_config: Annotated[
        str,
        "the configuration that limits how long an idle producer id is remembered",
        Change("3.4.0", "producer.id.expiration.ms", "KIP-854", recorded="3.4.1"),
    ] = "transactional.id.expiration.ms"
    expiration_default_ms: Annotated[
        int,
        "the default of that configuration, in ms",
        Change("3.4.0", ONE_DAY_MS, "KIP-854", recorded="3.6.2"),
    ] = SEVEN_DAYS_MS

    # -- transactions ------------------------------------------------------------------------------------------------
    transaction_check_is_configured: Annotated[
        bool,
        "how often transactions are looked for that timed out is "
        "transaction.abort.timed.out.transaction.cleanup.interval.ms; otherwise every minute",
        Change("0.11.0.2, 1.0.0", True, "KAFKA-6119, TransactionCoordinator.startup", recorded="0.11.0.2"),
    ] = False
    transaction_check_default_ms: Annotated[
        int,
        "the default of that configuration, in ms",
        Change("2.5.0", 10_000, "KAFKA-9417"),
    ] = 60_000
    timeout_bumps_epoch: Annotated[
        bool,
        "the coordinator raises the epoch when it aborts a transaction that timed out, which fences its producer",
        Change("0.11.0.2, 1.0.0", True, "KAFKA-6119", recorded="0.11.0.2"),
    ] = False
    coordinator_epoch_bump: Annotated[
        bool,
        "InitProducerId accepts the caller's producer id and epoch and raises the epoch",
        Change("2.5.0", True, "KIP-360, KAFKA-8710", recorded="2.5.1"),
    ] = False
    coordinator_fenced_error: Annotated[
        KafkaError,
        "the coordinator's error for a fenced producer",
        Change("2.7.0", KafkaError.PRODUCER_FENCED, "KIP-588, KAFKA-9910", recorded="2.7.2"),
    ] = KafkaError.INVALID_PRODUCER_EPOCH
    end_txn_needs_exact_epoch: Annotated[
        bool,
        "EndTxn with too high an epoch is rejected before the decision is logged; otherwise it is rejected "
        "afterwards, and the transaction never ends",
        Change("0.11.0.2, 1.0.0", False, "KAFKA-6119", recorded="0.11.0.3"),
        Change("2.6.0", True, "TransactionCoordinator.endTransaction", recorded="2.8.2"),
    ] = True
    fence_keeps_last_epoch: Annotated[
        bool,
        "after InitProducerId aborted an open transaction, a retry with the old epoch still succeeds",
        Change("2.5.0", True, "TransactionCoordinator.handleEndTransaction", recorded="2.5.1"),
        Change("2.6.0", False, "TransactionCoordinator.endTransaction", recorded="2.8.2"),
        Change("4.0.1, 4.1.0", True, "KAFKA-19367", recorded="4.0.2"),
    ] = False
    checks_pending_transition_first: Annotated[
        bool,
        "while markers are being written, AddPartitionsToTxn is answered 51 before owner and epoch are checked",
        Change("4.0.0", True, "KIP-890 part 2, TransactionCoordinator", recorded="4.0.0"),
    ] = False
    fence_bumps_twice: Annotated[
        bool,
        "an abort by the coordinator raises the epoch by two",
        Change("4.0.0", True, "KIP-890 part 2", recorded="4.0.0"),
        Change("4.0.1, 4.1.0", False, "KAFKA-19367", recorded="4.0.1"),
    ] = False
    kraft: Annotated[
        bool,
        "clusters are assumed to run without ZooKeeper, where a clean restart of the only replica raises leader "
        "epochs, and so coordinator epochs, by two",
        Change("3.3.0", True, "KIP-833", recorded="3.6.2"),
    ] = False
    unclean_restart_raises_leader_epochs: Annotated[
        bool,
        "an unclean restart of the only replica raises leader epochs by two",
        Change("4.0.0", True, "KIP-966", recorded="4.0.0"),
    ] = False
    isr_shrink_raises_leader_epochs: Annotated[
        bool,
        "with KRaft a replica that leaves the ISR raises the leader epoch, so a clean restart of the only replica does by "
        "three, not by two",
        Change("3.6.0", False, "KAFKA-15021", recorded="3.6.2"),
    ] = True
    failed_fence_uses_epoch: Annotated[
        bool,
        "a fence that could not be written still uses up an epoch",
        Change("2.7.0", False, "KAFKA-9666"),
        Informative("attempts cannot say that the coordinator's write failed"),
    ] = True
    empty_read_lists_aborted: Annotated[
        bool,
        "a read_committed fetch that returns no record because of an open transaction still lists aborted transactions",
        Change("2.5.1, 2.6.0", False, "KAFKA-9838", recorded="2.5.1"),
    ] = True
    last_stable_offset_is_batch_base: Annotated[
        bool,
        "if the log starts inside a batch and a transaction opened before it, the last stable offset is that batch's "
        "base offset",
        Change("4.0.0", True, "UnifiedLog.convertToOffsetMetadataOrThrow", recorded="4.0.0"),
    ] = False
    cut_replica_keeps_log_start: Annotated[
        bool,
        "a replica that led before, lost its tail and leads again before anything was appended has the log start it left "
        "with: a fetch that only says where the logs part brings no other",
        Change("2.7.0", True, "KIP-595", recorded="2.7.2"),
    ] = False
    verifies_transactions: Annotated[
        bool,
        "the first batch of a transaction is verified with the coordinator",
        Change("3.6.0", True, "KIP-890 part 1, KAFKA-14884", recorded="3.6.2"),
    ] = False
    verification_remembers_lowest_sequence: Annotated[
        bool,
        "a verification in progress remembers the lowest sequence seen and rejects higher ones",
        Change("3.6.0", True, "KAFKA-14920", recorded="3.6.2"),
    ] = False
    verifies_coordinator_appends: Annotated[
        bool,
        "offset commits inside a transaction are verified too",
        Change("3.7.0", True, "KIP-890 part 1, VerificationGuard", recorded="3.9.2"),
    ] = False
    one_epoch_per_request: Annotated[
        bool,
        "transactional batches of one producer id, but several epochs, in one request are rejected with 49; otherwise all its "
        "partitions are verified with the epoch of one of them: the first by Scala's order of hashes",
        Change("3.8.0", True, "KAFKA-15987, ReplicaManager.handleProduceAppend", recorded="3.9.2"),
    ] = False
    verifies_before_acks: Annotated[
        bool,
        "a number of acks other than -1, 0 and 1 is refused after the transaction was verified and begun, not before",
        Change("3.8.0", True, "KAFKA-15987, ReplicaManager.handleProduceAppend", recorded="3.8.1"),
    ] = False
    abortable_error: Annotated[
        bool,
        "a failed verification is answered with 120 TRANSACTION_ABORTABLE if the request's version supports it",
        Change("3.8.0", True, "KIP-890, KAFKA-16314", recorded="3.8.1"),
    ] = False
    transaction_version2: Annotated[
        bool,
        "every transaction has its own epoch: markers carry the data's epoch + 1 (transaction version 2)",
        Change("4.0.0", True, "KIP-890 part 2", recorded="4.0.0"),
    ] = False
    verification_is_per_epoch: Annotated[
        bool,
        "an open transaction of another epoch does not spare a batch its verification",
        Change("4.0.0", True, "KIP-890 part 2, KAFKA-18575", recorded="4.0.0"),
    ] = False
    verification_survives_tv2_marker: Annotated[
        bool,
        "a marker of transaction version 2 keeps the verification of the transaction that follows it",
        Change("4.0.0", True, "KAFKA-18654"),
    ] = False
    stale_epoch_before_verification: Annotated[
        bool,
        "a fenced epoch is rejected before the verification is checked",
        Change("4.1.0", True, "KAFKA-19690", recorded="4.1.0"),
    ] = False

    # -- requests ----------------------------------------------------------------------------------------------------
    min_in_sync_is_at_most_replicas: Annotated[
        bool,
        "min.insync.replicas above a topic's number of replicas counts as that number; otherwise nothing is appended with "
        "acks=all, and no marker: 19",
        Change("3.7.0", True, "KAFKA-15583, Partition.effectiveMinIsr", recorded="3.7.2"),
    ] = False
    writes_older_formats: Annotated[
        bool,
        "message.format.version below 0.11 makes the broker write batches in an older format, which has no producer ids",
        Change("3.0.0", False, "KIP-724", recorded="3.6.2"),
    ] = True
    invalid_record_error: Annotated[
        KafkaError,
        "the error for a batch that fails validation",
        Change("2.4.0", KafkaError.INVALID_RECORD, "KAFKA-8729", recorded="2.4.0"),
    ] = KafkaError.CORRUPT_MESSAGE
    bad_record_set_closes_connection: Annotated[
        bool,
        "a request that does not hold exactly one batch of magic 2 closes the connection",
        Change("2.1.1, 2.2.0", False, "KAFKA-7549", recorded="2.1.1"),
    ] = True
    sets_are_uniform: Annotated[
        bool,
        "a record set of Produce below version 3 has one magic only, and where that is 2 or anything is compressed, one batch only",
        Change("2.4.0", True, "KAFKA-8106, KAFKA-8428, LogValidator.validateBatch"),
    ] = False
    unreadable_records_close_connection: Annotated[
        bool,
        "a request whose first batch cannot be found closes the connection",
        Change("2.8.0", False, "RequestUtils.flag", recorded="2.8.2"),
    ] = True
    needs_transactional_id: Annotated[
        bool,
        "transactional batches in a request without a transactional id are rejected with 53",
        Change("2.1.0", True, "KafkaApis.handleProduceRequest", recorded="2.1.1"),
    ] = False
    supports_zstd: Annotated[
        bool,
        "records may be compressed with zstd; until then it is an unknown codec, answered with -1",
        Change("2.1.0", True, "KIP-110", recorded="2.4.1"),
    ] = False
    checks_delete_policy_first: Annotated[
        bool,
        "DeleteRecords on a topic that is only compacted is rejected with 44 before the log start moves, not after",
        Change("1.1.0", True, "Partition.deleteRecordsOnLeader", recorded="1.1.1"),
    ] = False
    rejects_empty_batch: Annotated[
        bool,
        "a batch without records is rejected",
        Change("0.11.0.1", True, "LogValidator.validateBatch", recorded="0.11.0.3"),
    ] = False
    cannot_report_records_before_v8: Annotated[
        bool,
        "what is wrong with single records (no key on a compacted topic, their timestamp) is answered with -1 before "
        "Produce version 8: the field for it cannot be written",
        Change("2.4.0", True, "ProduceResponse.toStruct", recorded="2.4.0"),
        Change("2.4.1, 2.5.0", False, "ProduceResponse.toStruct", recorded="2.5.0"),
    ] = False
    validates_offset_range: Annotated[
        bool,
        "a batch's last offset delta must agree with its record count; until then such a batch was written, at "
        "offsets counted back from its end",
        Change("1.1.0", True, "LogValidator.validateBatch", recorded="1.1.1"),
    ] = False
    timestamp_after_max_ms: Annotated[
        int | None,
        "how far ahead of the broker's clock a record's timestamp may be, in ms",
        Change("4.0.0", ONE_HOUR_MS, "KIP-1030", recorded="4.0.0"),
    ] = None
    takes_append_time_from_clients: Annotated[
        bool,
        "a client's batch may have timestamp type LogAppendTime where the topic keeps its clients' timestamps",
        Change("3.6.0", True, "KIP-937, LogValidator.validateTimestamp", recorded="3.6.2"),
    ] = False
    fences_stale_leader_append: Annotated[
        bool,
        "a log whose disk failed rejects further appends until it is reloaded",
        Change("2.8.0", True, "KAFKA-10778"),
        Informative("attempts cannot say that a disk failed"),
    ] = False

    # -- files -------------------------------------------------------------------------------------------------------
    snapshot_may_run_ahead: Annotated[
        bool,
        "a producer snapshot may hold state from beyond its offset",
        Change("1.0.2, 1.1.0", False, "KAFKA-6683"),
    ] = True
    snapshots_are_synced: Annotated[
        bool,
        "producer snapshots are flushed to disk when they are written",
        Change("2.8.0", True, "KAFKA-9892"),
        Informative("whether a snapshot was lost is seen from the file"),
    ] = False
    writes_delete_horizon: Annotated[
        bool,
        "the log cleaner writes into a batch when its markers and tombstones may be removed",
        Change("3.1.0", True, "KAFKA-8522"),
    ] = False
    cleaner_keeps_last_batch_by_offset: Annotated[
        bool,
        "the log cleaner finds a producer's last batch by offset, not by sequence",
        Change("2.2.1, 2.3.0", True, "KAFKA-8335"),
        Informative("kaudit does not model the log cleaner"),
    ] = False
    migration_repeats_a_block: Annotated[
        bool,
        "a migration from ZooKeeper to KRaft hands out one block of producer ids twice",
        Change("3.5.2, 3.6.1", False, "KAFKA-15552"),
        Informative("KA402 reports a block allocated twice on any release"),
    ] = True
    describes_producers: Annotated[
        bool,
        "DescribeProducers shows the remembered state of a partition's producers",
        Change("2.8.0", True, "KIP-664", recorded="2.8.2"),
    ] = False


def switches() -> Mapping[str, Switch]:
    """Return the table by name, in the order of Switches."""
    return rows_of(Switches)
