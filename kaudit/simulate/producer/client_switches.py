"""The table of client switches: every behaviour in which simulated producers differ, and what changed it.

One field is one switch. Its annotation holds its meaning and what releases of the Java client changed, oldest first;
its default is the Java client of 0.11.0.0. What other clients do instead is in client_profile.py.
"""

from typing import Annotated

from msgspec import Struct

from kaudit.broker.releases.table import Change

ACKS_ALL = -1
NO_LIMIT = 2**31 - 1

RESET_PRODUCER_ID = "reset-producer-id"
BUMP_EPOCH = "bump-epoch"
LIBRDKAFKA = "librdkafka"
FRANZ_GO = "franz-go"


class ClientSwitches(Struct, frozen=True, kw_only=True):
    """What a client does, switch by switch; times in ms. The defaults are those of the Java client of 0.11.0.0."""

    # -- defaults of its configuration -------------------------------------------------------------------------------
    default_acks: Annotated[
        int,
        "the default of acks, -1 for all",
        Change("3.0.0", ACKS_ALL, "KIP-679"),
    ] = 1
    default_idempotence: Annotated[
        bool,
        "the default of enable.idempotence; 3.0.0 and 3.1.0 meant to have it and do not",
        Change("3.0.1, 3.1.1, 3.2.0", True, "KIP-679, KAFKA-13598"),
    ] = False
    default_retries: Annotated[
        int,
        "the default of retries without idempotence",
        Change("2.1.0", NO_LIMIT, "KIP-91"),
    ] = 0
    default_max_in_flight: Annotated[
        int,
        "the default of max.in.flight.requests.per.connection without idempotence",
    ] = 5
    default_linger_ms: Annotated[
        int,
        "the default of linger.ms",
        Change("4.0.0", 5, "KIP-1030"),
    ] = 0
    default_delivery_timeout_ms: Annotated[
        int | None,
        "the default of delivery.timeout.ms; None: there is none, and batches that wait expire by request.timeout.ms",
        Change("2.1.0", 120_000, "KIP-91, KAFKA-5886"),
    ] = None
    default_retry_backoff_ms: Annotated[
        int,
        "the default of retry.backoff.ms",
    ] = 100
    default_retry_backoff_max_ms: Annotated[
        int | None,
        "the default of retry.backoff.max.ms, up to which the backoff doubles, give or take 20 percent; None: it is constant",
        Change("3.7.0", 1000, "KIP-580"),
    ] = None

    # -- configuration that is refused -------------------------------------------------------------------------------
    idempotent_max_in_flight: Annotated[
        int,
        "how many requests in flight idempotence allows",
        Change("1.0.0", 5, "KAFKA-5494, KafkaProducer.configureInflightRequests"),
    ] = 1
    conflict_disables_idempotence: Annotated[
        bool,
        "idempotence that is on by default is switched off by retries=0, other acks than all or too many requests in "
        "flight; without it, or where enable.idempotence is set, they are refused",
        Change("3.0.1, 3.1.1, 3.2.0", True, "KAFKA-13598, ProducerConfig.postProcessAndValidateIdempotenceConfigs"),
    ] = False
    refuses_many_in_flight: Annotated[
        bool,
        "too many requests in flight are refused even where idempotence is on by default only",
        Change("4.0.0", True, "ProducerConfig.postProcessAndValidateIdempotenceConfigs"),
    ] = False

    checks_delivery_timeout: Annotated[
        bool,
        "delivery.timeout.ms below linger.ms + request.timeout.ms is refused, and raised to that where it is the default",
        Change("2.1.0", True, "KIP-91, KafkaProducer.configureDeliveryTimeout"),
    ] = False

    # -- requests ----------------------------------------------------------------------------------------------------
    produce_version: Annotated[
        int,
        "the newest version of Produce",
        Change("1.0.0", 5, "ProduceRequest"),
        Change("2.0.0", 6, "KIP-219"),
        Change("2.1.0", 7, "KIP-110"),
        Change("2.4.0", 8, "KIP-467"),
        Change("2.8.0", 9, "KIP-482"),
        Change("3.7.0", 10, "KIP-951"),
        Change("3.8.0", 11, "KIP-890"),
        Change("4.0.0", 12, "KIP-890"),
        Change("4.1.0", 13, "KIP-516"),
    ] = 3
    init_producer_id_version: Annotated[
        int,
        "the newest version of InitProducerId; from 3 on it carries the producer id and epoch the client has",
        Change("2.0.0", 1, "KIP-219"),
        Change("2.4.0", 2, "KIP-482"),
        Change("2.5.0", 3, "KIP-360"),
        Change("2.7.0", 4, "KIP-588"),
        Change("3.8.0", 5, "KIP-890"),
    ] = 0
    add_partitions_version: Annotated[
        int,
        "the newest version of AddPartitionsToTxn that clients send",
        Change("2.0.0", 1, "KIP-219"),
        Change("2.7.0", 2, "KIP-588"),
        Change("2.8.0", 3, "KIP-482"),
    ] = 0
    end_txn_version: Annotated[
        int,
        "the newest version of EndTxn",
        Change("2.0.0", 1, "KIP-219"),
        Change("2.7.0", 2, "KIP-588"),
        Change("2.8.0", 3, "KIP-482"),
        Change("3.8.0", 4, "KIP-890"),
        Change("4.0.0", 5, "KIP-890"),
    ] = 0
    transaction_version2: Annotated[
        bool,
        "producing adds a partition to the transaction, and EndTxn returns the epoch of the next one, where the cluster "
        "has transaction version 2",
        Change("4.0.0", True, "KIP-890"),
    ] = False

    # -- draining ----------------------------------------------------------------------------------------------------
    drain_passes_stopped_partition: Annotated[
        bool,
        "a request that ended at a partition which has to wait is followed by one that begins after that partition; "
        "otherwise the next one begins with it, and ends there again",
        Change("2.1.0", True, "KAFKA-5886, RecordAccumulator.drainBatchesForOneNode"),
    ] = False
    drain_index_per_node: Annotated[
        bool,
        "where the next request begins is remembered for each broker, and is the partition looked at last",
        Change("3.3.0", True, "KAFKA-13834"),
    ] = False
    new_leader_skips_backoff: Annotated[
        bool,
        "a batch is sent again at once when its partition has a new leader",
        Change("3.7.0", True, "KIP-951, KAFKA-15415"),
    ] = False
    halves_split_batches: Annotated[
        bool,
        "a batch that is still too large after being split is halved; before, the same is tried for ever",
        Change("4.2.0", True, "KAFKA-8350"),
    ] = False

    # -- sequences ---------------------------------------------------------------------------------------------------
    tracks_in_flight: Annotated[
        bool,
        "batches in flight are tracked by their sequences: DUPLICATE_SEQUENCE_NUMBER is success, a batch that came too "
        "early is sent again, a batch given up after its last retry keeps its sequences",
        Change("1.0.0", True, "KAFKA-5494"),
    ] = False
    fails_batches_again: Annotated[
        bool,
        "an error for a batch that was given up before (delivery.timeout.ms) breaks the sequences as if the batch had been "
        "refused, although it may have been written; otherwise nothing follows from it",
        Change("3.6.0", False, "KAFKA-14831, Sender.failBatch"),
    ] = True
    recovery: Annotated[
        str,
        "what is done when sequences break: a new producer id, or the next epoch of the same one",
        Change("2.5.0", BUMP_EPOCH, "KIP-360, KAFKA-8710"),
    ] = RESET_PRODUCER_ID
    bump_restarts_idle_partitions: Annotated[
        bool,
        "a new epoch starts at sequence 0 on all partitions; otherwise those without a batch in flight go on with their "
        "old sequences, which brokers refuse",
        Change("2.7.1, 2.8.0", True, "KAFKA-12152"),
    ] = False

    # -- errors that end a transaction or the producer -----------------------------------------------------------------
    fenced_produce_is_fatal: Annotated[
        bool,
        "INVALID_PRODUCER_EPOCH in a produce response is fatal; otherwise the transaction can be aborted",
        Change("2.7.0", False, "KIP-588, KAFKA-9910"),
    ] = True
    illegal_state_is_fatal: Annotated[
        bool,
        "a change of state that the I/O thread may not make is fatal; otherwise it is logged, and the state stays",
        Change("3.6.0", True, "KAFKA-14831"),
    ] = False
    unknown_mapping_is_fatal: Annotated[
        bool,
        "INVALID_PRODUCER_ID_MAPPING from the coordinator is fatal; otherwise the transaction is aborted, without EndTxn, "
        "and the epoch raised",
        Change("2.5.0", False, "KIP-360"),
        Change("4.0.0", True, "KIP-890, TransactionManager"),
    ] = True
    unknown_mapping_on_produce_is_fatal: Annotated[
        bool,
        "INVALID_PRODUCER_ID_MAPPING in a produce response is fatal; otherwise the transaction can be aborted",
        Change("4.0.0", True, "TransactionManager.maybeTransitionToErrorState"),
    ] = False
    knows_transaction_abortable: Annotated[
        bool,
        "TRANSACTION_ABORTABLE is known: the transaction can be aborted; otherwise it is an unknown error",
        Change("3.8.0", True, "KIP-890, KAFKA-16314"),
    ] = False
