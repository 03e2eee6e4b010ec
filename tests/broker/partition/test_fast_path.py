"""Which requests need no check one by one: those, and no others; and what lies in the log of them."""

import pytest
from msgspec.structs import replace

from kaudit.broker.attempts import Produce, SentBatch
from kaudit.broker.attempts.produce_request import valid_batch
from kaudit.broker.config import TopicLimits
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.formats.log.codecs import Codec
from tests.logs import BASE_TIMESTAMP, Batch, data

NOW, END, LAST = BASE_TIMESTAMP, 50, 2**31 - 1
LIMITS = TopicLimits()
DESCRIBED = Produce(
    topic="t", partition=0, producer_id=7, producer_epoch=2, base_sequence=5, record_count=3, timestamp=NOW - 1
)
SENT = data(7, 2, 5, 3, timestamp=NOW - 1)
EXPECTED = DataBatch(7, 2, 5, 7, END, END + 2, NOW - 1, is_transactional=False)


def as_bytes(batch: Batch, **more) -> Produce:
    return Produce(topic="t", partition=0, records_hex=batch.encode().hex(), **more)


def valid(attempt, limits=LIMITS):
    return valid_batch(attempt, limits, NOW, END)


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_batch_by_its_fields_and_by_its_bytes(acks):
    assert valid(replace(DESCRIBED, acks=acks)) == valid(as_bytes(SENT, acks=acks)) == EXPECTED
    assert valid(replace(DESCRIBED, acks=acks, is_transactional=True)) == replace(EXPECTED, is_transactional=True)
    transactional = data(7, 2, 5, 3, timestamp=NOW - 1, transactional=True)
    assert valid(as_bytes(transactional, acks=acks)) == replace(EXPECTED, is_transactional=True)


@pytest.mark.parametrize("acks", [0, -2, 2])
def test_other_acks_are_checked(acks):
    assert valid(replace(DESCRIBED, acks=acks)) is valid(as_bytes(SENT, acks=acks)) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"producer_id": 0}, replace(EXPECTED, producer_id=0)),
        ({"producer_epoch": 0}, replace(EXPECTED, producer_epoch=0)),
        ({"producer_epoch": -1}, replace(EXPECTED, producer_epoch=-1)),
        ({"base_sequence": 0}, replace(EXPECTED, base_sequence=0, last_sequence=2)),
        ({"base_sequence": LAST - 2}, replace(EXPECTED, base_sequence=LAST - 2, last_sequence=LAST)),
        ({"base_sequence": LAST - 1}, replace(EXPECTED, base_sequence=LAST - 1, last_sequence=0)),
        ({"record_count": 1}, replace(EXPECTED, last_sequence=5, last_offset=END)),
        ({"producer_id": -1}, None),
        ({"base_sequence": -1}, None),
        ({"record_count": 0}, None),
        ({"record_count": -1}, None),
    ],
)
def test_bounds_of_the_fields(fields, expected):
    assert valid(replace(DESCRIBED, **fields)) == expected
    names = {"producer_epoch": "epoch", "base_sequence": "sequence", "record_count": "count"}
    if fields.get("record_count", 1) > 0:
        sent = Batch(**{**vars(SENT), **{names.get(name, name): value for name, value in fields.items()}})
        assert valid(as_bytes(sent)) == expected


@pytest.mark.parametrize("missing", ["producer_id", "producer_epoch", "base_sequence", "record_count"])
def test_a_batch_that_is_not_described_in_full(missing):
    assert valid(replace(DESCRIBED, **{missing: None})) is None


def test_without_a_timestamp():
    limits = TopicLimits(ahead_ms=-(2**60))
    assert valid(replace(DESCRIBED, timestamp=None), limits) == replace(EXPECTED, max_timestamp=-1)
    assert valid(replace(DESCRIBED, timestamp=-1), limits) == replace(EXPECTED, max_timestamp=-1)


@pytest.mark.parametrize(("ahead", "good"), [(0, True), (1000, True), (1001, False), (-(10**9), True)])
def test_a_timestamp_ahead_of_the_broker(ahead, good):
    attempt = replace(DESCRIBED, timestamp=NOW + ahead)
    expected = replace(EXPECTED, max_timestamp=NOW + ahead)
    assert valid(attempt, TopicLimits(ahead_ms=1000)) == (expected if good else None)
    assert valid(attempt) == expected
    assert valid(attempt, TopicLimits(ahead_ms=1000, log_append_time=True)) == replace(EXPECTED, max_timestamp=NOW)


@pytest.mark.parametrize(
    "limits", [TopicLimits(behind_ms=10**9), TopicLimits(codec=Codec.GZIP), TopicLimits(codec=Codec.NONE)]
)
def test_topics_that_check_more(limits):
    assert valid(DESCRIBED, limits) is valid(as_bytes(SENT), limits) is None


@pytest.mark.parametrize("setting", ["max_message_bytes", "segment_bytes"])
def test_sizes(setting):
    size = len(SENT.encode())
    for limit, good in ((size, True), (size - 1, False)):
        assert valid(as_bytes(SENT), replace(LIMITS, **{setting: limit})) == (EXPECTED if good else None)
    assert valid(DESCRIBED, replace(LIMITS, **{setting: 1})) == EXPECTED


def test_keys_of_a_compacted_topic_are_looked_for():
    assert valid(as_bytes(SENT), TopicLimits(compacted=True)) is None
    assert valid(DESCRIBED, TopicLimits(compacted=True)) == EXPECTED


WHOLE = SENT.encode()


@pytest.mark.parametrize(
    "raw",
    [
        "zz",
        "0",
        "",
        WHOLE[:60].hex(),
        WHOLE[:-1].hex(),
        (WHOLE + b"\0").hex(),
        (b"\0" * 7 + b"\1" + WHOLE[8:]).hex(),  # a base offset
        (WHOLE[:16] + b"\1" + WHOLE[17:]).hex(),  # another magic
        (WHOLE[:17] + bytes([WHOLE[17] ^ 1]) + WHOLE[18:]).hex(),  # the CRC
        (WHOLE[:-1] + bytes([WHOLE[-1] ^ 1])).hex(),
        (WHOLE + WHOLE).hex(),
        Batch(**{**vars(SENT), "attributes": 0x08}).encode().hex(),
        Batch(**{**vars(SENT), "attributes": 0x20}).encode().hex(),
        Batch(**{**vars(SENT), "attributes": 0x01}).encode().hex(),
        Batch(**{**vars(SENT), "kept": 2}).encode().hex(),
    ],
)
def test_bytes_that_are_not_one_intact_batch(raw):
    assert valid(replace(DESCRIBED, records_hex=raw)) is None


def test_several_batches():
    assert valid(replace(DESCRIBED, batches=[SentBatch()])) is None
