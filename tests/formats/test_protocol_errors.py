"""The table of errors has every error of Kafka and every name of the clients; expected values are from their own code."""

import csv
import json
from pathlib import Path

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.formats.protocol_errors import described_in, error_key, error_named, error_numbered, protocol_errors

RECORDED = Path(__file__).parents[1] / "data" / "protocol-errors"
OF_KAFKA = list(csv.DictReader((RECORDED / "kafka-4.4.0.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"))
OF_CLIENTS = json.loads((RECORDED / "clients.json").read_text(encoding="utf-8"))


def test_codes_names_classes_and_retries_are_those_of_kafka():
    table = [error for error in protocol_errors() if error.program is None]
    assert [(error.code, error.name, error.exception or "", error.retriable) for error in table] == [
        (int(row["code"]), row["name"], row["exception"], row["retriable"] == "true") for row in OF_KAFKA
    ]


@pytest.mark.parametrize("client", OF_CLIENTS)
def test_every_name_of_a_client_is_known(client):
    names = OF_CLIENTS[client]
    assert len(names) > 70
    assert {name: getattr(error_named(name), "code", None) for name in names} == names


def test_the_broker_model_has_the_same_codes():
    assert {error.name: getattr(error_named(error.name), "code", None) for error in KafkaError} == {
        error.name: error.value for error in KafkaError
    }


@pytest.mark.parametrize("error", [error for error in KafkaError if error is not KafkaError.NONE])
def test_what_the_broker_model_answers_is_explained_for_producers(error):
    told = error_named(error.name)
    assert told is not None
    assert all((told.brokers, told.clients, told.advice))


@pytest.mark.parametrize(
    "written",
    [
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "out_of_order_sequence_number",
        "kerr.OutOfOrderSequenceNumber",
        "kafka.errors.OutOfOrderSequenceNumberError",
        "sarama.ErrOutOfOrderSequenceNumber",
        "RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER",
        "ERR_OUT_OF_ORDER_SEQUENCE_NUMBER",
        "RDKafkaErrorCode::OutOfOrderSequenceNumber",
        "org.apache.kafka.common.errors.OutOfOrderSequenceException",
    ],
)
def test_one_error_in_many_writings(written):
    assert error_named(written) is error_numbered(45)


def test_errors_of_librdkafka_itself_are_told_from_words():
    own = error_named("_FENCED")
    assert own is not None
    assert own is error_named("RD_KAFKA_RESP_ERR__FENCED") is error_named("KafkaError._FENCED")
    assert (own.program, own.code) == ("librdkafka", -144)
    assert error_named("fenced") is None
    assert error_named("Local_MsgTimedOut") is error_named("ERR__MSG_TIMED_OUT") is error_numbered(-192)


def test_descriptions_of_librdkafka_are_whole():
    assert error_named("Local: Fatal error") is error_named("_FATAL")
    assert error_named("Local: Message timed out") is error_named("_MSG_TIMED_OUT")
    assert error_named("Local: Message") is None
    assert [error.name for error in described_in("x (Local: Queue full), Local: Timed out; Local: nothing")] == [
        "_TIMED_OUT",
        "_QUEUE_FULL",
    ]


def test_keys_are_of_one_error_each():
    keys = [(error_key(name), error.name) for error in protocol_errors() for name in error.names]
    assert len({key for key, _ in keys}) == len(set(keys))
