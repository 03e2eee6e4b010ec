"""Clients other than the Java one: where their answers to errors and their defaults differ from it.

All else - how batches are filled, drained and ordered - is simulated as the Java release in `like` does it.
"""

from collections.abc import Mapping

from msgspec import Struct

from kaudit.broker.releases.table import Change
from kaudit.simulate.producer.releases.switches import ACKS_ALL, FRANZ_GO, LIBRDKAFKA, NO_LIMIT

_MOST_IN_FLIGHT = 100
"""The most requests in flight a scenario can have; librdkafka's default is a million."""


class OtherClient(Struct, frozen=True):
    """A client library: its first release here, the Java release whose rules fill the rest, and its own switches."""

    first: str
    like: str
    changes: Mapping[str, tuple[Change, ...]]


OTHER_CLIENTS: Mapping[str, OtherClient] = {
    "librdkafka": OtherClient(
        "1.0.0",
        "3.6.0",
        {
            "default_acks": (Change("1.0.0", ACKS_ALL, "rdkafka_conf.c: request.required.acks"),),
            "default_idempotence": (Change("1.0.0", False, "rdkafka_conf.c: enable.idempotence"),),
            "default_retries": (
                Change("1.0.0", 2, "rdkafka_conf.c: message.send.max.retries"),
                Change("1.6.0", NO_LIMIT, "rdkafka_conf.c: message.send.max.retries"),
            ),
            "default_max_in_flight": (
                Change("1.0.0", _MOST_IN_FLIGHT, "rdkafka_conf.c: max.in.flight.requests.per.connection"),
            ),
            "default_linger_ms": (
                Change("1.0.0", 0, "rdkafka_conf.c: queue.buffering.max.ms"),
                Change("1.5.0", 5, "rdkafka_conf.c: queue.buffering.max.ms"),
            ),
            "default_delivery_timeout_ms": (Change("1.0.0", 300_000, "rdkafka_conf.c: message.timeout.ms"),),
            "default_retry_backoff_max_ms": (
                Change("1.0.0", None, "rdkafka_conf.c: retry.backoff.ms"),
                Change("2.3.0", 1000, "KIP-580"),
            ),
            "conflict_disables_idempotence": (Change("1.0.0", False, "rdkafka_conf.c: rd_kafka_conf_finalize"),),
            "checks_delivery_timeout": (Change("1.0.0", False, "rdkafka_conf.c: rd_kafka_conf_finalize"),),
            "init_producer_id_version": (
                Change("1.0.0", 1, "rdkafka_request.c: rd_kafka_InitProducerIdRequest"),
                Change("1.7.0", 4, "KIP-360"),
            ),
            "add_partitions_version": (Change("1.0.0", 0, "rdkafka_request.c: rd_kafka_AddPartitionsToTxnRequest"),),
            "end_txn_version": (Change("1.0.0", 1, "rdkafka_request.c: rd_kafka_EndTxnRequest"),),
            "produce_version": (
                Change("1.0.0", 7, "rdkafka_msgset_writer.c"),
                Change("2.5.0", 10, "rdkafka_msgset_writer.c: rd_kafka_ProduceRequest_max_version"),
            ),
            "recovery": (Change("1.0.0", LIBRDKAFKA, "rdkafka_request.c: rd_kafka_handle_idempotent_Produce_error"),),
            "fenced_produce_is_fatal": (Change("1.0.0", True, "rdkafka_request.c: rd_kafka_handle_Produce_error"),),
        },
    ),
    "franz-go": OtherClient(
        "1.0.0",
        "4.1.0",
        {
            "default_retries": (Change("1.0.0", NO_LIMIT, "config.go: recordRetries"),),
            "default_max_in_flight": (Change("1.0.0", 1, "config.go: maxProduceInflight"),),
            "default_linger_ms": (
                Change("1.0.0", 0, "config.go: linger"),
                Change("1.20.0", 10, "config.go: linger"),
            ),
            "default_delivery_timeout_ms": (Change("1.0.0", NO_LIMIT, "config.go: recordTimeout"),),
            "default_retry_backoff_ms": (Change("1.0.0", 250, "config.go: retryBackoff"),),
            "default_retry_backoff_max_ms": (Change("1.0.0", 5000, "config.go: retryBackoff"),),
            "conflict_disables_idempotence": (Change("1.0.0", False, "config.go: validate"),),
            "checks_delivery_timeout": (Change("1.0.0", False, "config.go: validate"),),
            "transaction_version2": (
                Change("1.0.0", False, "txn.go"),
                Change("1.18.0", True, "KIP-890, txn.go"),
            ),
            "recovery": (Change("1.0.0", FRANZ_GO, "sink.go: handleReqRespBatch"),),
        },
    ),
}
