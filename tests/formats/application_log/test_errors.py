"""Errors as clients name them, against the tables of two clients' own packages."""

import inspect

import kafka.errors
import pytest
from kafka.errors import BrokerResponseError

from kaudit.broker.errors import KafkaError
from kaudit.formats.application_log.errors import described_error, error_name, exception_in, is_of_writes
from kaudit.formats.application_log.reader import read_events

PYTHON: dict[str, int] = {
    name: number
    for name, each in vars(kafka.errors).items()
    if inspect.isclass(each) and issubclass(each, BrokerResponseError) and (number := getattr(each, "errno", None))
}


@pytest.mark.parametrize("error", [error for error in KafkaError if error is not KafkaError.NONE])
def test_the_brokers_errors_are_known_by_number_and_python_class(error: KafkaError) -> None:
    assert described_error(f"[Error {error.value}] whatever") == error.name
    names = [name for name, number in PYTHON.items() if number == error.value]
    assert {error_name(f"kafka.errors.{name}") for name in names} <= {error.name}
    assert {described_error(f"<class 'aiokafka.errors.{name}'>") for name in names} <= {error.name}


def test_every_class_of_kafka_python_is_known() -> None:
    assert len(PYTHON) > 100
    for name, number in PYTHON.items():
        assert error_name(f"kafka.errors.{name}") == described_error(f"[Error {number}]"), name


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("Broker: Broker received an out of order sequence number", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("kafka server: Tried to send a message to a replica that is not the leader for some partition. Your metadata is out of date", "NOT_LEADER_OR_FOLLOWER"),
        ("NOT_LEADER_FOR_PARTITION: This server is not the leader for that topic-partition.", "NOT_LEADER_OR_FOLLOWER"),
        ("Request Produce(key: 0, version: 7) timed out", "REQUEST_TIMED_OUT"),
        ("read tcp 127.0.0.1:53412->127.0.0.1:9092: i/o timeout", "REQUEST_TIMED_OUT"),
        ("[Error 45] OutOfOrderSequenceNumber", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("InvalidProducerEpoch()", "INVALID_PRODUCER_EPOCH"),
        ("Unknown topic or partition", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("[Error 9999] of later", "[Error 9999] of later"),
        ("Timeout waiting", "Timeout waiting"),
    ],
)  # fmt: skip
def test_words_of_clients(words: str, error: str) -> None:
    assert described_error(words) == error


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.ProducerFencedException: There", "PRODUCER_FENCED"),
        ("org.springframework.kafka.KafkaException: Send failed; nested exception is org.apache.kafka.common.errors.TimeoutException: 3", "REQUEST_TIMED_OUT"),
        ("java.util.concurrent.TimeoutException: null", "TimeoutException"),
        ("kafka.common.KafkaStorageException: disk", "KAFKA_STORAGE_ERROR"),
        ("aiokafka.errors.OutOfOrderSequenceNumber: [Error 45] OutOfOrderSequenceNumber", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("nothing is thrown", None),
    ],
)  # fmt: skip
def test_the_protocols_error_rather_than_its_wrapper(line: str, error: str | None) -> None:
    assert exception_in(line) == error


def test_which_errors_writes_meet() -> None:
    assert is_of_writes("PRODUCER_FENCED")
    assert not is_of_writes("REBALANCE_IN_PROGRESS")
    assert not is_of_writes("IllegalStateException")


def test_an_exception_that_no_write_meets_is_no_event() -> None:
    lines = (
        b"2026-11-22 10:15:30,123 ERROR [main] org.example.App - poll failed\n"
        b"org.apache.kafka.common.errors.RebalanceInProgressException: The group is rebalancing, so a rejoin is needed.\n"
    )
    assert list(read_events([lines], "client", path="app.log")) == []
    (event,) = read_events([lines.replace(b"RebalanceInProgress", b"ProducerFenced")], "client", path="app.log")
    assert (event.event, event.error, event.client, event.line) == ("fenced_producer", "PRODUCER_FENCED", "java", 1)
