"""Shapes of public reports that no recording has: other loggers, applications that print what they were told."""

import pytest

from kaudit.formats.application_log.reader import read_events

CASES = {
    "Streamiz, streamiz#385": (
        ("[09:59:31:149 ERR] Failed to process stream task 4-6 due to the following error: <s:TaskManager>\n"
        "Streamiz.Kafka.Net.Errors.StreamsException: Error encountered trying to send record to topic t [stream-task[4|6] ] : "
        "Local: This instance has been fenced by a newer instance\n   at Streamiz.Kafka.Net.Kafka.Internal.RecordCollector.Send()"),
        ("librdkafka", "fenced_producer", "PRODUCER_FENCED", None, None),
    ),
    "librdkafka in another logger, librdkafka#3003": (
        ("19:08:27.215617745 [Error ] [KAFKA_PRODUCER] [anonymous] [0] [FATAL] [thrd:main]: Fatal error: Broker: Producer attempted an "
        "operation with an old epoch: Failed to add offsets to transaction: Broker: Producer attempted an operation with an old epoch"),
        ("librdkafka", "fatal_error", "INVALID_PRODUCER_EPOCH", None, None),
    ),
    ".NET's compact JSON": (
        ('{"@t":"2026-03-01T10:00:00.1230000Z","@mt":"Produce failed","@l":"Error","@x":"Confluent.Kafka.ProduceException`2[System.String,'
        'System.String]: Local: Message timed out\\n   at Confluent.Kafka.Producer`2.ProduceAsync(TopicPartition tp)"}'),
        ("librdkafka", "delivery_timeout", "_MSG_TIMED_OUT", None, None),
    ),
    "an application's members": (
        ('{"timestamp":"2026-03-01T10:00:00.123Z","level":"error","msg":"delivery failed","topic":"orders","partition":"3",'
        '"error":"kafka server: The broker received an out of order sequence number"}'),
        ("sarama", "out_of_order_sequence", "OUT_OF_ORDER_SEQUENCE_NUMBER", "orders", 3),
    ),
    "Spring's wrapper and its cause": (
        ("2026-03-01 10:00:00.123 [kafka-producer-network-thread | p-1] ERROR c.e.OrderPublisher - could not publish to orders\n"
        "org.springframework.kafka.core.KafkaProducerException: Failed to send\n\tat a.B.c(B.java:1)\n"
        "Caused by: org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer"),
        ("java", "fenced_producer", "PRODUCER_FENCED", None, None),
    ),
    "what clients of 0.10 write, scala-kafka-client#108": (
        ("19:11:04.002 [dispatcher-2] ERROR c.kafka.akka.KafkaProducerActor - Failed to send message to Kafka!\n"
        "org.apache.kafka.common.errors.TimeoutException: Expiring 69 record(s) for mytopic-0 due to 30001 ms has passed since batch creation "
        "plus linger time"),
        ("java", "delivery_timeout", "REQUEST_TIMED_OUT", "mytopic", 0),
    ),
    "a failed send in Connect": (
        ("[2026-03-01 10:00:00,123] ERROR [s|task-0] WorkerSourceTask{id=s-0} failed to send record to orders:  "
        "(org.apache.kafka.connect.runtime.AbstractWorkerSourceTask:434)\n"
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out of order sequence number."),
        ("java", "out_of_order_sequence", "OUT_OF_ORDER_SEQUENCE_NUMBER", "orders", None),
    ),
    "a topic's placeholder, confluent-kafka-dotnet#1943": (
        ("%3|1668238507.285|ERROR|<APP>#producer-1|: Fatal error: Broker: Broker received an out of order sequence number: ProduceRequest for "
        "<TOPIC_NAME> [38] with 1 message(s) failed due to sequence desynchronization with broker 1 (PID{Id:22181,Epoch:0}, base seq 0, idemp "
        "state change 8184098ms ago, last partition error NO_ERROR (actions , base seq 0..0, base msgid 0, -1ms ago)"),
        ("librdkafka", "out_of_order_sequence", "OUT_OF_ORDER_SEQUENCE_NUMBER", "<TOPIC_NAME>", 38),
    ),
    "what librdkafka sends, confluent-kafka-python#1128": (
        ("%7|1621945644.003|PRODUCE|rdkafka#producer-1| [thrd:10.0.0.8:9092/bootstrap]: 10.0.0.8:9092/3: alerts [8]: Produce MessageSet with 1 "
        "message(s) (1456 bytes, ApiVersion 7, MsgVersion 2, MsgId 205, BaseSeq 204, PID{Id:1000,Epoch:0}, uncompressed)"),
        ("librdkafka", "sequence_assigned", None, "alerts", 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_report_shows(name: str) -> None:
    text, expected = CASES[name]
    (event,) = read_events([text.encode()], "client", path="app.log")
    assert (event.client, event.event, event.error, event.topic, event.partition) == expected


def test_a_transactional_id_in_quotes_is_what_stands_in_them() -> None:
    """Flink prints its producer like that (FlinkKafkaInternalProducer.toString); quoted again, it named nobody."""
    text = (
        "2026-10-01 10:15:32,123 WARN  org.apache.flink.runtime.taskmanager.Task [] - Failed to send data to Kafka orders-3@-1 with "
        "FlinkKafkaInternalProducer{transactionalId='orders-0-17', inTransaction=true, closed=false}\n"
        "Caused by: org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch."
    )
    (event,) = read_events([text.encode()], "client", path="app.log")
    assert (event.transactional_id, event.topic, event.partition) == ("orders-0-17", "orders", 3)
