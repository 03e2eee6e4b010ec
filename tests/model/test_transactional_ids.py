"""Forms of transactional ids, as the classes of each program build them."""

import pytest

from kaudit.model.transactional_ids import FORMATS, parse_name

UUID = "6787a3f2-d5b6-4bde-9ef9-0c3bc7cbb1d8"
HASH = "7df19f87deec5680128845fd9a6ca18d"


@pytest.mark.parametrize(
    ("transactional_id", "program", "application", "member", "ids"),
    [
        # transactionalIdPrefix-subtaskId-checkpointOffset
        ("orders-sink-1-0", "Flink KafkaSink", "orders-sink", "1", "orders-sink-1-*"),
        ("a-12-1234567", "Flink KafkaSink", "a", "12", "a-12-*"),
        # taskName-operatorUniqueID-n, as in streamnative/kop#1333
        (
            f"Source: Custom Source -> Sink: Unnamed-{HASH}-1", "Flink FlinkKafkaProducer",
            f"Source: Custom Source -> Sink: Unnamed-{HASH}", "1", f"Source: Custom Source -> Sink: Unnamed-{HASH}-1",
        ),
        # applicationId-taskId; a named topology is a part of the task
        ("enricher-0_3", "Kafka Streams, exactly_once", "enricher", "0_3", "enricher-0_3"),
        ("my-app-2_11", "Kafka Streams, exactly_once", "my-app", "2_11", "my-app-2_11"),
        ("my-app-sales__2_11", "Kafka Streams, exactly_once", "my-app", "sales__2_11", "my-app-sales__2_11"),
        # applicationId-processId-threadIdx
        (f"enricher-{UUID}-1", "Kafka Streams, exactly_once_v2", "enricher", f"{UUID}-1", f"enricher-{UUID}-1"),
        (
            f"_confluent-ksql-default_query_CTAS_T_5-{UUID}-4", "ksqlDB query", "_confluent-ksql-default_query_CTAS_T_5",
            f"{UUID}-4", f"_confluent-ksql-default_query_CTAS_T_5-{UUID}-4",
        ),
        (
            "_confluent-ksql-default_query_CSAS_S_3-0_1", "ksqlDB query", "_confluent-ksql-default_query_CSAS_S_3",
            "0_1", "_confluent-ksql-default_query_CSAS_S_3-0_1",
        ),
        ("default_-migration-producer", "ksqlDB command topic", "default", "migration-producer", None),
        ("connect-cluster-prod", "Kafka Connect leader", "prod", "connect-cluster", None),
        (f"coordinator-txn-{UUID}-0", "Iceberg Kafka Connect sink", "coordinator", f"{UUID}-0", None),
        (f"ice-worker-txn-{UUID}-3", "Iceberg Kafka Connect sink", "ice-worker", f"{UUID}-3", None),
        ("producer_4_for_sink", "Beam KafkaIO", "sink", "producer_4", None),
        # prefix + group.topic.partition
        ("tx-billing.orders.v1.3", "Spring listener", "tx-billing", "orders.v1.3", None),
        # prefix + n
        ("tx-7", "numbered producer, such as Spring's or a Connect task", "tx", "7", None),
        ("tx7", "numbered producer, such as Spring's or a Connect task", "tx", "7", None),
    ],
    ids=lambda value: None if value is None else value[:24],
)  # fmt: skip
def test_each_form_is_told_by_its_source(transactional_id, program, application, member, ids):
    name = parse_name(transactional_id)
    assert name is not None
    assert (name.format.program, name.application, name.member) == (program, application, member)
    assert name.ids == (transactional_id if ids is None else ids)


@pytest.mark.parametrize("transactional_id", ["", "t", "7", "shop", "a\nb", UUID[:-1], "é-x"])
def test_other_ids_are_nobodys(transactional_id):
    assert parse_name(transactional_id) is None


def test_the_number_of_a_member_is_read():
    assert parse_name("a-3-0017") == parse_name("a-3-0017")
    name = parse_name("a-3-0017")
    assert name is not None
    assert (name.number, name.ids) == (17, "a-3-*")


def test_every_form_names_its_source():
    assert all(known.source and known.role and known.program for known in FORMATS)
