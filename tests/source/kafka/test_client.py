import struct
import tracemalloc

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from kaudit.source.kafka.answers import AbortedTransaction, ListedTransaction, TopicPartition
from kaudit.source.kafka.client import EARLIEST, LATEST, READ_COMMITTED, KafkaClient
from kaudit.source.kafka.connections import parse_servers
from kaudit.source.kafka.failures import BrokerError, OffsetOutOfRangeError, RetriableError, UnknownTopicError
from kaudit.source.uri import UrlError
from tests.logs import data
from tests.source.kafka.fake_broker import API_VERSIONS, FETCH, METADATA, FakeBroker, framed

ORDERS = TopicPartition("orders", 0)
NOT_LEADER = 6


def batches(count: int = 3) -> list[bytes]:
    return [data(7, 0, number * 2, 2).at(number * 2).encode() for number in range(count)]


@pytest.fixture
def broker():
    with FakeBroker({("orders", 0): batches()}) as running:
        yield running


@pytest.fixture
def client(broker):
    with KafkaClient(broker.address, retry_seconds=2) as connected:
        yield connected


def test_a_fetch_returns_the_bytes_that_lie_in_the_log(client):
    answer = client.fetch(ORDERS, 3)
    assert answer.records == b"".join(batches()[1:])
    assert (answer.high_watermark, answer.log_start_offset, answer.node) == (6, 0, 1)


def test_a_fetch_asks_for_no_group_no_session_and_makes_no_topic(broker, client):
    client.fetch(ORDERS, 0, isolation=READ_COMMITTED)
    (request,) = broker.asked(FetchRequest)
    assert (request.replica_id, request.session_id, request.session_epoch, request.isolation_level) == (-1, 0, -1, 1)
    assert not any(asked.allow_auto_topic_creation for asked in broker.asked(MetadataRequest))


def test_offsets_are_listed(broker, client):
    broker.log_start[ORDERS] = 2
    broker.high_watermark[ORDERS] = 5
    assert (client.list_offset(ORDERS, EARLIEST).offset, client.list_offset(ORDERS, LATEST).offset) == (2, 5)


def test_aborted_transactions_come_with_the_batches(broker, client):
    from kafka.protocol.consumer import FetchResponse

    one = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction(producer_id=7, first_offset=2)
    broker.scripts[FETCH] = lambda request: broker.fetched(request, aborted_transactions=[one])
    assert client.fetch(ORDERS, 0).aborted == [AbortedTransaction(7, 2)]


def test_transactions_are_described_by_those_who_listed_them(broker, client):
    own = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 1, "transaction_state": "Ongoing"}
    times = {"transaction_timeout_ms": 1000, "transaction_start_time_ms": 5, "partitions": [("orders", 0)]}
    broker.transactions = [own | times]
    listed = client.list_transactions()
    assert listed == [ListedTransaction("t", 7, "Ongoing", 1)]
    (described,) = client.describe_transactions(listed)
    assert (described.producer_epoch, described.timeout_ms, described.partitions) == (1, 1000, [ORDERS])


def test_a_leader_that_moved_is_looked_for_again(broker, client):
    answers = [NOT_LEADER, NOT_LEADER, 0]
    broker.scripts[FETCH] = lambda request: broker.fetched(request, error_code=answers.pop(0))
    assert client.fetch(ORDERS, 0).records
    assert len(broker.asked(MetadataRequest)) == 3


def test_a_broker_that_hangs_up_is_asked_again(broker, client):
    left = [b""]
    broker.scripts[FETCH] = lambda request: hang_up(broker) if left and left.pop() == b"" else broker.fetched(request)
    assert client.fetch(ORDERS, 0).records


def hang_up(broker: FakeBroker) -> None:
    for connection in broker._connections:
        connection.shutdown(2)


def test_what_does_not_get_better_ends_in_one_sentence(broker, client):
    broker.scripts[FETCH] = lambda request: broker.fetched(request, error_code=NOT_LEADER)
    with pytest.raises(RetriableError, match="orders-0"):
        client.fetch(ORDERS, 0)


def test_what_is_not_there(client):
    with pytest.raises(UnknownTopicError, match="no such topic or partition"):
        client.describe_topics(["payments"])
    with pytest.raises(UnknownTopicError, match="no such partition"):
        client.fetch(TopicPartition("orders", 9), 0)
    with pytest.raises(OffsetOutOfRangeError):
        client.fetch(ORDERS, 99)


HOSTILE = {
    "negative length": struct.pack(">i", -5) + b"x" * 8,
    "huge length": struct.pack(">i", 2**31 - 1) + b"x" * 8,
    "nothing": framed(1, b""),
    "truncated": framed(1, b"\0\0"),
    "wrong correlation id": framed(77, b"\0" * 40),
    "negative counts": framed(1, b"\0\0" + b"\xff" * 4),
    "huge count": framed(1, b"\0\0" + struct.pack(">i", 2**31 - 1) + b"\0" * 20),
    "not utf-8": framed(1, b"\0" * 4 + b"\x02\xfe\xff" * 30),
    "varint without end": framed(1, b"\xff" * 60),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "TLS": b"\x15\x03\x03\x00\x02\x02\x46",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("key", [API_VERSIONS, METADATA])
def test_hostile_answers_end_in_one_sentence_soon(key, answer):
    with FakeBroker({("orders", 0): batches()}, {key: lambda _: answer}) as broker:
        with KafkaClient(broker.address, retry_seconds=1) as client, pytest.raises(OSError) as raised:
            client.describe_topics(["orders"])
        assert isinstance(raised.value, BrokerError | UnknownTopicError)
        assert "\n" not in str(raised.value)


def test_a_frame_full_of_entries_takes_bounded_memory():
    body = b"\0" * 4 + b"\xff\xff\xff\x0f" + b"\0" * (1 << 20)
    with FakeBroker({("orders", 0): batches()}, {METADATA: lambda _: framed(2, b"\0" + body)}) as broker:
        tracemalloc.start()
        try:
            with KafkaClient(broker.address, largest_answer=8 << 20) as client, pytest.raises(OSError):
                client.describe_topics(["orders"])
            assert tracemalloc.get_traced_memory()[1] < 256 << 20
        finally:
            tracemalloc.stop()


def test_metadata_without_brokers(broker):
    from kafka.protocol.metadata import MetadataResponse

    broker.scripts[METADATA] = lambda _: MetadataResponse(brokers=[], cluster_id="x", controller_id=1, topics=[])
    with KafkaClient(broker.address) as client, pytest.raises(RetriableError, match="lists 0 brokers"):
        client.describe_topics(["orders"])


def test_the_second_bootstrap_server_answers_where_the_first_does_not(broker):
    with KafkaClient(f"127.0.0.1:1,{broker.address}") as client:
        assert client.describe_cluster().cluster_id == "fake"


def test_nobody_listens():
    with KafkaClient("127.0.0.1:1") as client, pytest.raises(RetriableError, match="connection refused"):
        client.describe_cluster()


def test_an_old_broker_is_named_as_such(broker):
    broker.versions[FETCH] = (0, 3)
    with KafkaClient(broker.address) as client, pytest.raises(BrokerError, match="release does not fit"):
        client.fetch(ORDERS, 0)


@pytest.mark.parametrize("text", ["", "host", "host:0", "host:x", "host:99999", "::1:9092", "host:1,b"])
def test_servers_that_are_no_host_and_port(text):
    with pytest.raises(UrlError, match="HOST:PORT"):
        parse_servers(text)


def test_servers():
    assert parse_servers("a:1, [::1]:2") == ["a:1", "[::1]:2"]
