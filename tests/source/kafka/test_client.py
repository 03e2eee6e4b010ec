"""Requests of the client and what it takes from answers: those of a sound broker, of a failing and of a hostile one."""

import logging
import struct
import tracemalloc
from types import SimpleNamespace
from typing import NamedTuple
from uuid import UUID

import kafka.errors as errors
import pytest
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kaudit.cli.app import run
from kaudit.cli.exits import ExitCode
from kaudit.source.kafka import connections
from kaudit.source.kafka.answers import (
    ActiveProducer,
    BrokerFeatures,
    DescribedTransaction,
    Fetched,
    ListedTransaction,
    Node,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from kaudit.source.kafka.client import EARLIEST, LATEST, READ_COMMITTED, KafkaClient
from kaudit.source.kafka.command_config import settings_of
from kaudit.source.kafka.connections import parse_servers
from kaudit.source.kafka.failures import (
    OffsetOutOfRangeError,
    RetriableError,
    UnknownTopicError,
    broker_error,
)
from kaudit.source.kafka.fetched_segment import FETCH_BYTES, NO_ABORTS, BrokerError, FetchedSegment
from kaudit.source.kafka.options import TopicUrl
from kaudit.source.layout import FetchedRange
from kaudit.source.uri import Uri, UrlError
from tests.logs import data
from tests.source.kafka.fake_broker import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    FETCH,
    LIST_OFFSETS,
    LIST_TRANSACTIONS,
    METADATA,
    VERSIONS,
    FakeBroker,
    framed,
)

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
    assert (client.list_offset(ORDERS, EARLIEST), client.list_offset(ORDERS, LATEST)) == (2, 5)


def test_aborted_transactions_come_with_the_batches(broker, client):
    from kafka.protocol.consumer import FetchResponse

    one = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction(producer_id=7, first_offset=2)
    broker.scripts[FETCH] = lambda request: broker.fetched(request, aborted_transactions=[one])
    assert client.fetch(ORDERS, 0).aborted == {(7, 2)}


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


SAID = {
    "negative length": "the answer claims a length of -5 bytes: not a Kafka broker, or a batch larger than kaudit reads",
    "huge length": "the answer claims a length of 2147483647 bytes: not a Kafka broker, or a batch larger than kaudit reads",
    "HTTP": "an HTTP server answers, not a Kafka broker",
    "TLS": "the port speaks TLS: security.protocol=SSL or SASL_SSL in --command-config",
}
# its first field is an error code, and -1 is UNKNOWN_SERVER_ERROR
SAID_OF_API_VERSIONS = {"varint without end": "An unexpected server error."}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("key", [API_VERSIONS, METADATA])
def test_hostile_answers_end_in_one_sentence_soon(key, name):
    with FakeBroker({("orders", 0): batches()}, {key: lambda _: HOSTILE[name]}) as broker:
        with KafkaClient(broker.address, retry_seconds=1) as client, pytest.raises(OSError) as raised:
            client.describe_topics(["orders"])
        assert isinstance(raised.value, BrokerError | UnknownTopicError)
        assert "\n" not in str(raised.value)
        assert raised.value.strerror == {**SAID, **(SAID_OF_API_VERSIONS if key == API_VERSIONS else {})}.get(
            name, "the answer cannot be decoded: not a Kafka broker, or a release kaudit does not know"
        )


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


def topics_changed(change):
    def changed(answer):
        answer.topics = change(*answer.topics)

    return changed


def first_changed(**values):
    def changed(answer):
        for name, value in values.items():
            setattr(answer.topics[0], name, value)

    return changed


def partition_changed(**values):
    def changed(answer):
        for name, value in values.items():
            setattr(answer.topics[0].partitions[0], name, value)

    return changed


def broker_changed(**values):
    def changed(answer):
        for name, value in values.items():
            setattr(answer.brokers[0], name, value)

    return changed


IMPOSSIBLE = {
    "no topic": (topics_changed(lambda _: []), "asked about orders, the broker answers about none"),
    "null topics": (topics_changed(lambda _: None), "asked about orders, the broker answers about none"),
    "a topic twice": (topics_changed(lambda one: [one, one]), "the broker answers about 'orders', 'orders'"),
    "another topic": (first_changed(name="../x\n::error::"), r"the broker answers about '../x\n::error::'"),
    "no name": (first_changed(name=None), "the broker answers about None"),
    "no partitions": (first_changed(partitions=[]), "answers with partitions none"),
    "a negative partition": (partition_changed(partition_index=-1), "answers with partitions -1"),
    "a leader below -1": (partition_changed(leader_id=-9), "answers with leader -9"),
    "a leader that is not listed": (
        partition_changed(leader_id=9),
        "its leader is broker 9, and the cluster lists no broker of this id",
    ),
    "port 0": (broker_changed(port=0), "lists a broker 1 at '127.0.0.1':0"),
    "port -1": (broker_changed(port=-1), "lists a broker 1 at '127.0.0.1':-1"),
    "a large port": (broker_changed(port=70_000), "lists a broker 1 at '127.0.0.1':70000"),
    "no host": (broker_changed(host=""), "lists a broker 1 at '':"),
    "a host of two lines": (broker_changed(host="a\nb"), r"lists a broker 1 at 'a\nb':"),
    "a negative node": (broker_changed(node_id=-5), "lists a broker -5"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize("command", ["client", "scan", "capture"])
def test_metadata_that_no_broker_gives_is_one_line(capsys, tmp_path, command, name):
    change, said = IMPOSSIBLE[name]
    with FakeBroker({("orders", 0): batches()}) as broker:
        usual = broker.scripts[METADATA]

        def script(request):
            answer = usual(request)
            if answer.topics:
                change(answer)
            return answer

        broker.scripts[METADATA] = script
        if command == "client":
            with KafkaClient(broker.address) as client, pytest.raises(BrokerError) as raised:
                client.describe_topics(["orders"])
            assert said in str(raised.value.strerror)
            return
        output = ["-o", str(tmp_path / "captured")] if command == "capture" else []
        code = run([command, f"kafka://{broker.address}/orders", *output])
        printed = capsys.readouterr()
        assert (code, printed.out, printed.err.count("\n")) == (ExitCode.UNREADABLE, "", 1)
        assert said in printed.err
        assert not (tmp_path / "captured").exists()


def test_an_answer_about_another_topic_is_not_taken_for_the_one_asked_for(broker, client):
    usual = broker.scripts[LIST_OFFSETS]

    def script(request):
        answer = usual(request)
        answer.topics[0].name = "payments"
        return answer

    broker.scripts[LIST_OFFSETS] = script
    with pytest.raises(RetriableError, match="the answer does not name the partition"):
        client.list_offset(ORDERS, LATEST)


def test_configurations_of_another_topic_are_refused(broker, client):
    usual = broker.scripts[DESCRIBE_CONFIGS]

    def script(request):
        answer = usual(request)
        answer.results[0].resource_name = "payments"
        return answer

    broker.scripts[DESCRIBE_CONFIGS] = script
    with pytest.raises(BrokerError, match="asked about orders, the broker answers about 'payments'"):
        client.describe_topic_configs(["orders"])


def test_metadata_without_brokers(broker):
    from kafka.protocol.metadata import MetadataResponse

    broker.scripts[METADATA] = lambda _: MetadataResponse(brokers=[], cluster_id="x", controller_id=1, topics=[])
    with KafkaClient(broker.address) as client, pytest.raises(RetriableError, match="lists 0 brokers"):
        client.describe_topics(["orders"])


def test_the_second_bootstrap_server_answers_where_the_first_does_not(broker):
    with KafkaClient(f"127.0.0.1:1,{broker.address}") as client:
        assert client.describe_cluster().cluster_id == "fake"


def test_the_servers_are_those_of_the_property_file_unless_the_url_names_some(broker):
    with KafkaClient("", settings_of({"bootstrap.servers": broker.address})) as client:
        assert client.describe_cluster().cluster_id == "fake"


def test_nobody_listens():
    with KafkaClient("127.0.0.1:1") as client, pytest.raises(RetriableError, match="connection refused"):
        client.describe_cluster()
    # the library has more to say, and users get one sentence
    assert not logging.getLogger("kafka").propagate


def test_an_old_broker_is_named_as_such(broker):
    broker.versions[FETCH] = (0, 3)
    with KafkaClient(broker.address) as client, pytest.raises(BrokerError, match="release does not fit"):
        client.fetch(ORDERS, 0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.KafkaConnectionError("KafkaConnectionError: 111 ECONNREFUSED"), "connection refused"),
        (errors.KafkaConnectionError("DNS Resolution failure for h"), "the host name is not known"),
        (errors.KafkaConnectionError("Something  else\n(_ssl.c:12)"), "something else"),
        (errors.KafkaProtocolError("Invalid frame length: 352518912"), "the port speaks TLS: security.protocol=SSL or SASL_SSL in --command-config"),
        (errors.KafkaProtocolError("Invalid frame length: 1213486160"), "an HTTP server answers, not a Kafka broker"),
        (errors.KafkaProtocolError("Invalid frame length: -5"), "the answer claims a length of -5 bytes: not a Kafka broker, or a batch larger than kaudit reads"),
        (errors.RequestTimedOutError("late"), "no answer in time: late"),
        (errors.LeaderNotAvailableError(), errors.LeaderNotAvailableError.description),
        (ValueError(), "ValueError"),
        (ValueError("x" * 301), "x" * 300 + "..."),
        (ValueError("x" * 300), "x" * 300),
    ],
)  # fmt: skip
def test_what_the_client_library_says_is_one_sentence(error, said):
    assert broker_error("h:1", error).strerror == said


def record_set(*offsets):
    """Batches of one record."""
    return b"".join(data(7, 0, offset).at(offset).encode() for offset in offsets)


def fetched_segment(end=6, readable_from=0, bytes_per_offset=10):
    """Offsets 0 to 5, every second one a batch, and what is asked of the broker."""
    asked = []

    def fetch(offset, size):
        asked.append((offset, size))
        return record_set(*range(offset + offset % 2, end, 2))[:size], NO_ABORTS

    place = FetchedRange("h:1", "orders", 0, 0, readable_from, end, bytes_per_offset=bytes_per_offset)
    return FetchedSegment(place, fetch), asked


def test_a_range_of_offsets_is_read_like_a_file_and_each_batch_is_asked_for_once():
    segment, asked = fetched_segment()
    whole, size = record_set(0, 2, 4), len(record_set(0))
    assert segment.size() == 60
    for position, batch in ((0, 0), (20, 1), (40, 2)):
        buffer = bytearray(size)
        assert segment.read_into(position, memoryview(buffer)) == size
        assert buffer == whole[batch * size :][:size]
    assert asked == [(0, 64 << 10)]
    buffer = bytearray(2 * size)  # longer than what is held from there on
    assert segment.read_into(40, memoryview(buffer)) == size
    assert asked[1:] == [(4, FETCH_BYTES)]
    assert segment.read_into(60, memoryview(buffer)) == 0
    segment.close()
    assert segment.read_into(0, memoryview(buffer)) == 2 * size
    assert asked[2:] == [(0, 64 << 10)]


def test_offsets_below_the_log_start_are_not_asked_for_nor_those_behind_the_end():
    segment, asked = fetched_segment(end=8, readable_from=3)
    assert segment.records(0, 100 << 20) == record_set(4, 6)
    assert segment.records(8) == b""
    assert asked == [(3, FETCH_BYTES)]


@pytest.mark.parametrize("cut", [1, 16, 17, 30])
def test_a_batch_that_is_cut_off_behind_a_whole_one_is_asked_for_anew(cut):
    whole, size, asked = record_set(0, 2), len(record_set(0)), []

    def fetch(offset, _size):
        asked.append(offset)
        return (whole[: size + cut] if offset == 0 else whole[size:]), NO_ABORTS

    segment = FetchedSegment(FetchedRange("h:1", "orders", 0, 0, 0, 3), fetch)
    for position, batch in ((0, whole[:size]), (2, whole[size:])):
        buffer = bytearray(size)
        assert segment.read_into(position, memoryview(buffer)) == size
        assert buffer == batch
    assert asked == [0, 2]


@pytest.mark.parametrize(
    ("room", "size"), [(1, 64 << 10), (64 << 10, 64 << 10), (100_000, 100_000), (4 << 20, 4 << 20), (5 << 20, 4 << 20)]
)
def test_how_much_is_asked_for(room, size):
    segment, asked = fetched_segment()
    assert segment.records(5, room) == b""
    assert segment.records(6, room) == b""
    assert asked == [(5, size)]


def test_bytes_that_are_no_batch_are_what_the_position_has():
    place = FetchedRange("h:1", "orders", 0, 0, 0, 6)
    segment = FetchedSegment(place, lambda _offset, _size: (bytes(99), NO_ABORTS))
    buffer = bytearray(50)
    assert (segment.read_into(3, memoryview(buffer)), bytes(buffer)) == (50, bytes(50))


@pytest.mark.parametrize(("text", "read"), [
    ("kafka://h:1/orders", TopicUrl("h:1", "orders")),
    ("kafka://h:1,i:2/orders/12", TopicUrl("h:1,i:2", "orders", 12)),
    ("kafka:///orders", TopicUrl("", "orders")),
    ("kafka://h:1/orders/1/2", None),
    ("kafka://h:1/orders/x", None),
    ("kafka://h:1/orders/\u0663", None),
    ("kafka://h:1/", None),
])  # fmt: skip
def test_a_url_names_brokers_a_topic_and_perhaps_a_partition(text, read):
    if read is None:
        with pytest.raises(UrlError, match=r"kafka://HOST:PORT/TOPIC\[/PARTITION\]"):
            TopicUrl.of(Uri.parse(text))
    else:
        assert TopicUrl.of(Uri.parse(text)) == read


@pytest.mark.parametrize("text", ["", "host", "host:0", "host:x", "host:99999", "::1:9092", "host:1,b"])
def test_servers_that_are_no_host_and_port(text):
    with pytest.raises(UrlError, match="HOST:PORT"):
        parse_servers(text)


def test_servers():
    assert parse_servers("a:1, [::1]:2") == ["a:1", "[::1]:2"]


# -- each field of a request and of its answer


@pytest.fixture
def met(client):
    """A client that knows the cluster's brokers: those it is to ask by number."""
    client.describe_cluster()
    return client


def of_topics(response, **partition):
    """A script that answers one partition of a topic with these fields."""

    def answer(request):
        (topic,) = request.topics
        kind = response.ListOffsetsTopicResponse
        own = kind.ListOffsetsPartitionResponse(partition_index=topic.partitions[0].partition_index, **partition)
        return response(topics=[kind(name=topic.name, partitions=[own])])

    return answer


@pytest.mark.parametrize(("node", "asker"), [(None, -1), (1, -2)])
def test_a_listed_offset_and_who_asks_for_it(broker, client, node, asker):
    """A replica answers its own log end offset only to a debugging consumer (ListOffsetsRequest.DEBUGGING_REPLICA_ID)."""
    broker.scripts[LIST_OFFSETS] = of_topics(ListOffsetsResponse, error_code=0, timestamp=77, offset=4, leader_epoch=3)
    assert client.list_offset(ORDERS, 70, READ_COMMITTED, node) == 4
    (request,) = broker.asked(ListOffsetsRequest)
    (topic,) = request.topics
    (own,) = topic.partitions
    assert (request.replica_id, request.isolation_level) == (asker, 1)
    assert (topic.name, own.partition_index, own.timestamp) == ("orders", 0, 70)


def test_a_fetch_and_its_answer(broker, client):
    broker.scripts[FETCH] = lambda request: broker.fetched(
        request, high_watermark=50, last_stable_offset=40, log_start_offset=2, records=None
    )
    answer = client.fetch(ORDERS, 3, max_bytes=99, max_wait_ms=7, node=1)
    assert answer == Fetched(b"", 50, 40, 2, frozenset(), 1)
    (request,) = broker.asked(FetchRequest)
    (topic,) = request.topics
    (own,) = topic.partitions
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (7, 1, 99, 0)
    assert (topic.topic, own.partition, own.fetch_offset, own.partition_max_bytes) == ("orders", 0, 3, 99)


def test_what_is_known_of_topics(broker, client):
    named, unnamed = UUID(int=7), None
    metadata = MetadataResponse.MetadataResponseTopic
    of = metadata.MetadataResponsePartition

    def answer(request):
        node = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port, rack="r")
        topics = [
            metadata(
                error_code=0, name=name, topic_id=topic_id, is_internal=name == "x",
                partitions=[
                    of(
                        error_code=0, partition_index=number, leader_id=1, leader_epoch=5, replica_nodes=[1, 2, 3],
                        isr_nodes=[1, 2], offline_replicas=[3],
                    )
                    for number in (1, 0)
                ],
            )
            for name, topic_id in (("x", named), ("a", unnamed))
        ]  # fmt: skip
        return MetadataResponse(brokers=[node], cluster_id="lu", controller_id=1, topics=topics)

    broker.scripts[METADATA] = answer
    partitions = [PartitionMetadata(number, 1, 5, (1, 2, 3), (1, 2), (3,)) for number in (0, 1)]
    first, second = client.describe_topics()
    assert (first.topic, first.is_internal, first.partitions) == ("a", False, partitions)
    assert second == TopicMetadata("x", "AAAAAAAAAAAAAAAAAAAABw", True, partitions)
    cluster = client.describe_cluster()
    assert cluster.cluster_id == "lu"
    assert list(cluster.nodes) == [Node(1, "127.0.0.1", broker.port, "r")]


@pytest.mark.parametrize(
    ("node", "versions", "asked"),
    [
        (None, (0, 4), 4),
        (None, (4, 17), 12),
        (None, (13, 17), None),
        (1, (0, 11), 11),
        (1, (0, 10), None),
        (1, (5, 17), 12),
    ],
)
def test_versions_of_fetch(broker, client, node, versions, asked):
    """From 4 on batches come as they lie in the log, from 11 on a follower is asked, and from 13 on topics have ids only."""
    broker.versions[FETCH] = versions
    if asked is None:
        with pytest.raises(BrokerError, match="release does not fit"):
            client.fetch(ORDERS, 0, node=node)
    else:
        assert client.fetch(ORDERS, 0, node=node).records == b"".join(batches())
        (request,) = broker.asked(FetchRequest)
        assert asked == request.API_VERSION


class ListedBroker(NamedTuple):
    """A broker of an answer, decoded."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


NULLS = SimpleNamespace(
    error_code=0, brokers=[ListedBroker(1, "h", 1)], cluster_id=None, controller_id=-1,
    topics=None, responses=None, results=None, transaction_states=None, api_keys=None, finalized_features=None,
)  # fmt: skip


def with_partition(**fields):
    """An answer whose one partition has these fields, and its lists null."""
    own = SimpleNamespace(partition=0, partition_index=0, error_code=0, **fields)
    topic = SimpleNamespace(
        name="orders", topic="orders", topic_id=None, is_internal=None, error_code=0, partitions=[own]
    )
    return SimpleNamespace(**{**vars(NULLS), "topics": [topic], "responses": [topic]})


def answering(monkeypatch, client, answer):
    """Let every broker answer this, decoded."""
    monkeypatch.setattr(client._connections, "_run", lambda _node, _place, _request: answer)


@pytest.mark.parametrize(
    ("ask", "found"),
    [
        (lambda client: client.describe_topics(), []),
        (lambda client: client.describe_topic_configs([]), {}),
        (lambda client: client.list_transactions(), []),
        (lambda client: client.describe_transactions([ListedTransaction("t", 7, "Ongoing", 1)]), []),
        (lambda client: client.features(1), BrokerFeatures({}, {})),
        (lambda client: client.features(), BrokerFeatures({}, {})),
    ],
)
def test_lists_that_are_null_are_empty(monkeypatch, client, ask, found):
    answering(monkeypatch, client, NULLS)
    client.describe_cluster()
    assert ask(client) == found


@pytest.mark.parametrize("ask", [KafkaClient.describe_topics, KafkaClient.describe_topic_configs])
def test_a_list_that_is_null_does_not_answer_about_a_name(monkeypatch, client, ask):
    answering(monkeypatch, client, NULLS)
    with pytest.raises(BrokerError, match="asked about orders, the broker answers about none"):
        ask(client, ["orders"])


def test_lists_of_a_partition_that_are_null_are_empty(monkeypatch):
    with KafkaClient("h:1", retry_seconds=0) as client:
        own = {"leader_id": 1, "leader_epoch": 3, "replica_nodes": None, "isr_nodes": None, "offline_replicas": None}
        answering(monkeypatch, client, with_partition(**own))
        expected = TopicMetadata("orders", None, False, [PartitionMetadata(0, 1, 3, (), (), ())])
        assert client.describe_topics(["orders"]) == [expected]
        batches = {"records": None, "high_watermark": 4, "last_stable_offset": 3, "log_start_offset": 2}
        answering(monkeypatch, client, with_partition(**own, **batches, aborted_transactions=None))
        assert client.fetch(ORDERS, 3) == Fetched(b"", 4, 3, 2, frozenset(), 1)
        answering(monkeypatch, client, with_partition(**own, active_producers=None))
        assert client.describe_producers(ORDERS) == []
        answering(monkeypatch, client, with_partition(**own, offset=5))
        assert client.high_watermarks([ORDERS]) == {ORDERS: 5}
        for topics in (None, [SimpleNamespace(name="orders", partitions=None)]):
            answering(monkeypatch, client, SimpleNamespace(**{**vars(NULLS), "topics": topics}))
            assert client.high_watermarks([ORDERS]) == {}
            with pytest.raises(RetriableError, match="the answer does not name the partition"):
                client.epoch_end_offset(ORDERS, 3)


def test_a_broker_that_the_cluster_does_not_list(met):
    with pytest.raises(RetriableError, match="the cluster lists no broker of this id") as caught:
        met._connections.ask(9, MetadataRequest(topics=[]))
    assert caught.value.filename == "node 9"
    assert met._connections.address(9) == "node 9"


class Library:
    """The client library's connections and one of them: always about to connect, paused, closed or none of it."""

    connected = True

    def __init__(self, *, delay=0, paused=False, closed=False):
        self.delay, self.paused, self.closed = delay, paused, closed
        self.asked = []

    def connection_delay(self, node):
        self.asked.append(node)
        return self.delay

    def get_connection(self, node, *, refresh_metadata_on_err):
        # metadata is asked for by us alone
        assert not refresh_metadata_on_err
        return self

    async def send_request(self, request):
        return request


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("library", "answered"),
    [
        (Library(), True),
        (Library(closed=True), True),
        (Library(paused=True, closed=True), True),
        (Library(paused=True), False),
        (Library(delay=1), True),
    ],
)
def test_connections_that_are_not_ready_are_waited_for_so_long(monkeypatch, met, library, answered):
    """Sending tells what is wrong with one that is closed, or that cannot be made yet."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(connections, "_LONGEST_THROTTLE_SECONDS", 0.1)
    monkeypatch.setattr(met._connections, "_manager", library)
    try:
        if answered:
            assert met._connections.ask(1, "request") == "request"
        else:
            with pytest.raises(BrokerError, match="throttled by a quota for more than 0 seconds"):
                met._connections.ask(1, "request")
        assert set(library.asked) == {1}
        assert (len(library.asked) > 1) is bool(library.delay)
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize(("epoch", "found"), [(0, (0, 2)), (1, (0, 2)), (2, (2, 4)), (3, (3, 6)), (9, (-1, -1))])
def test_where_a_leader_epoch_ended(broker, client, epoch, found):
    broker.epochs[ORDERS] = [(0, 0), (2, 2), (3, 4)]
    assert client.epoch_end_offset(ORDERS, epoch) == found


def test_configuration_without_what_is_secret_or_unset(broker, met):
    result = DescribeConfigsResponse.DescribeConfigsResult

    def answer(request):
        entries = [
            result.DescribeConfigsResourceResult(
                name=name, value=value, read_only=False, config_source=5, is_sensitive=secret, synonyms=[],
                config_type=2, documentation=None,
            )
            for name, value, secret in (("a", "1", False), ("b", None, False), ("c", "2", True), ("d", None, True))
        ]  # fmt: skip
        return DescribeConfigsResponse(
            results=[
                result(
                    error_code=0, error_message=None, resource_type=each.resource_type,
                    resource_name=each.resource_name, configs=entries,
                )
                for each in request.resources
            ]
        )  # fmt: skip

    broker.scripts[DESCRIBE_CONFIGS] = answer
    assert met.describe_topic_configs(["orders", "x"]) == {"orders": {"a": "1"}, "x": {"a": "1"}}
    assert met.describe_broker_configs(1) == {"a": "1"}
    asked = [
        [(one.resource_type, one.resource_name) for one in request.resources]
        for request in broker.asked(DescribeConfigsRequest)
    ]
    assert asked == [[(2, "orders"), (2, "x")], [(4, "1")]]
    assert not any(request.include_synonyms for request in broker.asked(DescribeConfigsRequest))


@pytest.mark.parametrize("node", [None, 1])
def test_producers_of_a_partition(broker, client, node):
    state = {
        "producer_id": 7, "producer_epoch": 1, "last_sequence": 41, "last_timestamp": 99, "coordinator_epoch": 3,
        "current_txn_start_offset": 5,
    }  # fmt: skip
    broker.producers[ORDERS] = [state]
    assert client.describe_producers(ORDERS, node) == [ActiveProducer(7, 1, 41, 99, 3, 5)]


def test_request_versions_and_feature_levels(broker, met):
    broker.features = {"transaction.version": 2}
    for node in (None, 1):
        found = met.features(node)
        assert (found.api_versions, found.finalized) == (VERSIONS, {"transaction.version": 2})


@pytest.mark.parametrize(("error", "has_acls"), [(0, True), (31, True), (54, False)])
def test_whether_there_are_acls(broker, client, error, has_acls):
    broker.acls_error = error
    assert client.has_authorizer() is has_acls


@pytest.mark.parametrize(("error", "gone"), [(16, True), (105, True), (15, False)])
def test_a_transactional_id_that_is_gone_since_it_was_listed(broker, met, error, gone):
    broker.transactions = [
        {
            "transactional_id": "t", "producer_id": 7, "producer_epoch": 1, "transaction_state": "Ongoing",
            "transaction_timeout_ms": 1000, "transaction_start_time_ms": 5, "error_code": error,
        }
    ]  # fmt: skip
    listed = [ListedTransaction("t", 7, "Ongoing", 1), ListedTransaction("u", 8, "Ongoing", 1)]
    if gone:
        assert met.describe_transactions(listed) == []
    else:
        with pytest.raises(BrokerError) as raised:
            met.describe_transactions(listed)
        assert raised.value.filename == "t"


def test_a_list_that_is_null_holds_nothing(broker, met):
    """Arrays of these answers are not nullable; what a broker sends may be."""
    null = b"\x00"  # of a compact array: its length plus one
    tagged = b"\x00"
    broker.scripts[LIST_TRANSACTIONS] = lambda request: framed(
        request.header.correlation_id, tagged + bytes(4) + bytes(2) + null + null + tagged
    )
    assert met.list_transactions() == []


def test_a_described_transaction(broker, met):
    broker.transactions = [
        {
            "transactional_id": "t", "producer_id": 7, "producer_epoch": 1, "transaction_state": "Ongoing",
            "transaction_timeout_ms": 1000, "transaction_start_time_ms": 5, "partitions": [("orders", 0), ("x", 3)],
        }
    ]  # fmt: skip
    assert met.describe_transactions([ListedTransaction("t", 7, "Ongoing", 1)]) == [
        DescribedTransaction("t", 7, 1, "Ongoing", 1000, 5, [ORDERS, TopicPartition("x", 3)])
    ]


def test_high_watermarks_of_those_that_have_one():
    logs = {(topic, number): batches() for topic in ("orders", "pay") for number in (0, 1)} | {("pay", 2): batches()}
    with FakeBroker(logs) as broker, KafkaClient(broker.address, retry_seconds=0) as client:
        broker.errors[("pay", 1)] = NOT_LEADER
        broker.high_watermark[("orders", 1)] = 4
        wanted = [TopicPartition(*key) for key in logs] + [TopicPartition("none", 0), TopicPartition("orders", 9)]
        expected = {
            TopicPartition("orders", 0): 6, TopicPartition("orders", 1): 4, TopicPartition("pay", 0): 6,
            TopicPartition("pay", 2): 6,
        }  # fmt: skip
        assert client.high_watermarks(wanted) == expected
        (request,) = broker.asked(ListOffsetsRequest)
        asked = [
            (topic.name, own.partition_index, own.timestamp) for topic in request.topics for own in topic.partitions
        ]
        assert asked == [(*key, LATEST) for key in logs]
        assert (request.replica_id, request.isolation_level) == (-1, 0)
        # who was refused is looked for anew
        broker.errors.clear()
        assert client.high_watermarks(wanted)[TopicPartition("pay", 1)] == 6
