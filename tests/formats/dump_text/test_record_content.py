"""Records of internal topics as kafka-dump-log's decoders print them: every field, and the range of every number."""

import json

import pytest

from kaudit.formats.dump_text.record_content import NOT_PRINTED, parse_printed_metadata, parse_printed_transaction
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.metadata_records import FeatureLevel, MetadataRecord, ProducerIds
from kaudit.model.coordinator import TopicPartitions, TransactionRecord, TransactionStatus, TransactionValue

INT8, INT16, INT32, INT64 = ((-(2**bits), 2**bits - 1) for bits in (7, 15, 31, 63))
KEY = b"transaction_metadata::transactionalId=my=id"
STATES = {
    "Empty": 0,
    "Ongoing": 1,
    "PrepareCommit": 2,
    "PrepareAbort": 3,
    "CompleteCommit": 4,
    "CompleteAbort": 5,
    "Dead": 6,
    "PrepareEpochFence": 7,
}


def printed(state="Ongoing", partitions="", **numbers):
    """A value as TransactionLog.formatRecordKeyAndValue of 2.8 prints it."""
    numbers = {"id": 7, "epoch": 3, "updated": 1000, "timeout": 60000} | numbers
    return (
        f"producerId:{numbers['id']},producerEpoch:{numbers['epoch']},state={state},partitions=HashSet({partitions}),"
        f"txnLastUpdateTimestamp={numbers['updated']},txnTimeoutMs={numbers['timeout']}"
    ).encode()


def refused(parse, *arguments):
    with pytest.raises(WireError) as caught:
        parse(*arguments)
    assert caught.value.reason is Reason.VALUE


@pytest.mark.parametrize("state", STATES)
def test_a_transaction_as_text(state):
    status = TransactionStatus(STATES[state])
    record = parse_printed_transaction(KEY, printed(state, "a.b-0, c-d-12, a.b-3"))
    partitions = (TopicPartitions("a.b", (0, 3)), TopicPartitions("c-d", (12,)))
    expected = TransactionValue(0, 7, 3, 60000, status, STATES[state], partitions, 1000, NOT_PRINTED)
    assert record == TransactionRecord("my=id", expected)


def test_without_partitions_and_without_a_value():
    value = parse_printed_transaction(b"transactionalId=x", printed(partitions=" ")).value
    assert value is not None
    assert value.partitions is None
    assert parse_printed_transaction(b"transactionalId=x", None) == TransactionRecord("x", None)
    assert parse_printed_transaction(KEY, printed() + b"\r").value == parse_printed_transaction(KEY, printed()).value


@pytest.mark.parametrize(
    ("name", "field", "bounds"),
    [
        ("id", "producer_id", INT64),
        ("epoch", "producer_epoch", INT16),
        ("timeout", "timeout_ms", INT32),
        ("updated", "last_update_timestamp", INT64),
    ],
)
def test_numbers_of_a_text_have_their_fields_range(name, field, bounds):
    for number in bounds:
        assert getattr(parse_printed_transaction(KEY, printed(**{name: number})).value, field) == number
    for number in (bounds[0] - 1, bounds[1] + 1):
        refused(parse_printed_transaction, KEY, printed(**{name: number}))


@pytest.mark.parametrize(
    ("key", "payload"),
    [
        (b"id=x", printed()),
        (KEY, b""),
        (KEY, printed("Unknown")),
        (KEY, printed(partitions="a-0, b")),
        (KEY, printed(partitions="a-0,, b-1")),
        (KEY, printed(partitions="a-2147483648")),
        (KEY, printed() + b"0x"),
        (KEY, b"\xff" + printed()),
    ],
)
def test_what_the_decoder_does_not_print(key, payload):
    refused(parse_printed_transaction, key, payload)


def test_a_record_without_a_key():
    with pytest.raises(WireError) as caught:
        parse_printed_transaction(None, printed())
    assert caught.value.reason is Reason.TRUNCATED


JSON_KEY = json.dumps({"type": "0", "data": {"transactionalId": "x"}}).encode()
DATA = {
    "producerId": 7,
    "producerEpoch": 3,
    "transactionTimeoutMs": 60000,
    "transactionStatus": 1,
    "transactionPartitions": [{"topic": "a", "partitionIds": [0, 2]}, {"topic": "b", "partitionIds": []}],
    "transactionLastUpdateTimestampMs": 1000,
    "transactionStartTimestampMs": 900,
}
TAGGED = {"previousProducerId": 5, "nextProducerId": 8, "clientTransactionVersion": 2, "nextProducerEpoch": 4}


def document(version="1", **data):
    return json.dumps({"version": version, "data": {**DATA, **data}}).encode()


def test_a_transaction_as_json():
    partitions = (TopicPartitions("a", (0, 2)), TopicPartitions("b", ()))
    plain = TransactionValue(1, 7, 3, 60000, TransactionStatus.ONGOING, 1, partitions, 1000, 900)
    assert parse_printed_transaction(JSON_KEY, document()) == TransactionRecord("x", plain)
    tagged = parse_printed_transaction(JSON_KEY, document(**TAGGED)).value
    assert tagged == TransactionValue(1, 7, 3, 60000, TransactionStatus.ONGOING, 1, partitions, 1000, 900, 5, 8, 2, 4)
    unknown = parse_printed_transaction(JSON_KEY, document(transactionStatus=9, transactionPartitions=None)).value
    assert unknown is not None
    assert (unknown.status, unknown.status_id, unknown.partitions) == (TransactionStatus.UNKNOWN, 9, None)
    assert parse_printed_transaction(JSON_KEY, None) == TransactionRecord("x", None)


@pytest.mark.parametrize(
    ("name", "field", "bounds"),
    [
        ("producerId", "producer_id", INT64),
        ("producerEpoch", "producer_epoch", INT16),
        ("transactionTimeoutMs", "timeout_ms", INT32),
        ("transactionStatus", "status_id", INT8),
        ("transactionLastUpdateTimestampMs", "last_update_timestamp", INT64),
        ("transactionStartTimestampMs", "start_timestamp", INT64),
        ("previousProducerId", "previous_producer_id", INT64),
        ("nextProducerId", "next_producer_id", INT64),
        ("clientTransactionVersion", "client_transaction_version", INT16),
        ("nextProducerEpoch", "next_producer_epoch", INT16),
    ],
)
def test_numbers_of_json_have_their_fields_range(name, field, bounds):
    for number in bounds:
        assert getattr(parse_printed_transaction(JSON_KEY, document(**{name: number})).value, field) == number
    for wrong in (bounds[0] - 1, bounds[1] + 1, "7", 7.0, True, None):
        refused(parse_printed_transaction, JSON_KEY, document(**{name: wrong}))


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"[]",
        b"{}",
        document(version="-1"),
        document(version=1),
        document(transactionPartitions={}),
        document(transactionPartitions=["a-0"]),
        document(transactionPartitions=[{"topic": "a", "partitionIds": ["0"]}]),
        document(transactionPartitions=[{"topic": 5, "partitionIds": [0]}]),
        document(transactionPartitions=[{"topic": "a", "partitionIds": [True]}]),
        document(transactionPartitions=[{"topic": "a", "partitionIds": [2**31]}]),
    ],
)
def test_json_of_another_form(payload):
    refused(parse_printed_transaction, JSON_KEY, payload)


def metadata(kind, data, version=0):
    return json.dumps({"type": kind, "version": version, "data": data}).encode()


IDS = {"brokerId": 1, "brokerEpoch": 5, "nextProducerId": 2000}


def test_metadata_records():
    assert parse_printed_metadata(metadata("PRODUCER_IDS_RECORD", IDS)) == MetadataRecord(
        15, 0, ProducerIds(1, 5, 2000)
    )
    level = parse_printed_metadata(metadata("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 20}))
    assert level.content == FeatureLevel("metadata.version", 20)
    for kind, version in (("PRODUCER_IDS_RECORD", 1), ("FEATURE_LEVEL_RECORD", 1), ("TOPIC_RECORD", 0), ("NEW", 0)):
        assert parse_printed_metadata(metadata(kind, {}, version)).content is None
    assert parse_printed_metadata(metadata("NEW", {})).api_key == -1


@pytest.mark.parametrize(("name", "bounds"), [("brokerId", INT32), ("brokerEpoch", INT64), ("nextProducerId", INT64)])
def test_numbers_of_metadata_have_their_fields_range(name, bounds):
    for number in bounds:
        parse_printed_metadata(metadata("PRODUCER_IDS_RECORD", {**IDS, name: number}))
    for number in (bounds[0] - 1, bounds[1] + 1):
        refused(parse_printed_metadata, metadata("PRODUCER_IDS_RECORD", {**IDS, name: number}))
