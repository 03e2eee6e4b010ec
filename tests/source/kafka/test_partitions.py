"""From a topic on brokers to what is read of it: ranges, where the first batch begins, bytes for each offset."""

from dataclasses import replace as changed

import pytest
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.consumer import FetchRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from kaudit.source.discover import discover
from kaudit.source.kafka.answers import Node
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.options import ClusterOptions, TopicUrl
from kaudit.source.kafka.partitions import _heads, find_partitions
from kaudit.source.layout import FetchedRange, FoundPartitions, Unreadable
from kaudit.source.uri import UrlError
from tests.formats.encoders import message
from tests.logs import data, sealed_records
from tests.source.kafka.fake_broker import DESCRIBE_CONFIGS, FETCH, LIST_OFFSETS, METADATA, FakeBroker

KEY = ("orders", 0)
COUNT, OFFSETS = 50, 4
SIZE = len(data(7, 0, 0, OFFSETS).encode())
END = COUNT * OFFSETS
AUTHORIZATION_FAILED = 29


def log(first=0):
    """Fifty batches of four records, from offset `first` on."""
    return [data(7, 0, number * OFFSETS, OFFSETS).at(first + number * OFFSETS).encode() for number in range(COUNT)]


@pytest.fixture
def broker():
    with FakeBroker({KEY: log()}) as running:
        yield running


def found(broker, partition=None, **options):
    return find_partitions(TopicUrl(broker.address, "orders", partition), ClusterOptions(**options))


def directory(broker, **options):
    (one,) = found(broker, **options).partitions
    return one


def times(broker, offsets):
    """Let ListOffsets know offsets by timestamp, and the last stable offset."""

    def answer(request):
        (topic,) = request.topics
        (own,) = topic.partitions
        stable = own.timestamp == -1 and request.isolation_level == 1
        offset = offsets["stable" if stable else own.timestamp]
        partition = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
            partition_index=own.partition_index, error_code=0, timestamp=-1, offset=offset, leader_epoch=0
        )
        return ListOffsetsResponse(
            topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=[partition])]
        )

    broker.scripts[LIST_OFFSETS] = answer


def test_all_that_is_known_of_a_partition(broker):
    times(broker, {-2: 6, -1: 190, "stable": 150})
    broker.log_start[KEY] = 6
    one = directory(broker)
    place = f"kafka://{broker.address}/orders/0"
    assert (one.topic, one.partition, one.replica, one.log_dir) == (
        "orders",
        0,
        broker.address,
        f"kafka://{broker.address}",
    )
    assert (one.directory, one.relative, one.has_checkpoints, one.whole_directory) == (place, "", True, False)
    assert (one.log_start_offset, one.first_dirty_offset) == (6, None)
    (segment,) = one.segments
    # the batch that holds the log start begins before it
    per_offset = SIZE // OFFSETS
    assert segment.fetched == FetchedRange(
        servers=broker.address, topic="orders", partition=0, first_offset=4, readable_from=6, end_offset=190,
        stable_offset=150, bytes_per_offset=per_offset, max_bytes_per_second=64 << 20, whole=True,
    )  # fmt: skip
    assert (segment.path, segment.name, segment.base_offset) == (place, "00000000000000000004.log", 4)
    assert segment.size == (190 - 4) * per_offset


@pytest.mark.parametrize(
    ("options", "first", "end"),
    [
        ({}, 8, 200),
        ({"from_offset": 7}, 8, 200),
        ({"from_offset": 20}, 20, 200),
        ({"to_offset": 30}, 8, 30),
        ({"to_offset": 999}, 8, 200),
        ({"from_offset": 20, "to_offset": 20}, 20, 20),
        ({"from_offset": 20, "to_offset": 10}, 20, 20),
        ({"from_offset": 500}, 200, 200),
        ({"from_ms": 100}, 40, 200),
        ({"from_ms": 1}, 8, 200),
        ({"from_ms": 999}, 200, 200),
        ({"to_ms": 100}, 8, 40),
        ({"to_ms": 999}, 8, 200),
        ({"to_ms": 1}, 8, 8),
        ({"from_ms": 100, "from_offset": 60}, 60, 200),
        ({"from_ms": 100, "from_offset": 20}, 40, 200),
        ({"to_ms": 100, "to_offset": 20}, 8, 20),
        ({"to_ms": 100, "to_offset": 60}, 8, 40),
    ],
)
def test_the_offsets_that_were_asked_for(broker, options, first, end):
    """At 1 ms the offset of a removed record, at 100 ms offset 40, behind all records none (-1)."""
    times(broker, {-2: 8, -1: 200, "stable": 200, 1: 0, 100: 40, 999: -1})
    fetched = directory(broker, **options).segments[0].fetched
    assert (fetched.readable_from, fetched.end_offset) == (first, end)
    assert fetched.stable_offset == end
    assert fetched.first_offset <= first


@pytest.mark.parametrize(
    ("large", "per_offset"),
    [(None, SIZE // OFFSETS), (25, None)],
)
def test_bytes_for_each_offset_are_those_of_the_beginning_and_the_middle(broker, large, per_offset):
    batches = log()
    if large is not None:
        whole = changed(data(7, 0, large * OFFSETS, OFFSETS).at(large * OFFSETS), payload=b"x" * 100_000)
        batches[large] = whole.encode()
        # at the front all batches but those cut off by the 64 KiB of a probe, in the middle that one
        front = (large * SIZE, large * OFFSETS)
        per_offset = (front[0] + len(batches[large])) // (front[1] + OFFSETS)
    broker.logs[KEY] = batches
    assert directory(broker).segments[0].fetched.bytes_per_offset == per_offset


def test_messages_of_old_formats_have_one_offset_each():
    messages = [message(number, 1, value=b"x" * 40) for number in range(10)]
    with FakeBroker({KEY: messages}) as broker:
        fetched = directory(broker).segments[0].fetched
    assert (fetched.first_offset, fetched.end_offset, fetched.bytes_per_offset) == (0, 10, len(messages[0]))


def test_an_empty_partition_is_not_asked_for_batches(broker):
    broker.log_start[KEY] = END
    fetched = directory(broker).segments[0].fetched
    assert (fetched.first_offset, fetched.end_offset, fetched.size, fetched.bytes_per_offset) == (END, END, 0, 1)
    assert not broker.asked(FetchRequest)


def test_a_first_batch_behind_the_offset_asked_for_moves_nothing(broker):
    """Compaction took what was there: reading begins where was asked."""
    broker.logs[KEY] = log()[5:]
    fetched = directory(broker, from_offset=3).segments[0].fetched
    assert (fetched.first_offset, fetched.readable_from) == (3, 3)


@pytest.mark.parametrize(
    ("first", "end", "refused"),
    [(0, 2**62 - 1, False), (0, 2**62, True), (-5, 10, True), (2**62, 2**63 - 1, False), (0, 0, False)],
)
def test_offsets_beyond_what_positions_can_stand_for(broker, first, end, refused):
    """Two to the 62 of them, and here each offset is one position."""
    broker.logs[KEY] = []
    times(broker, {-2: first, -1: end, "stable": end})
    broker.scripts[FETCH] = lambda request: broker.fetched(request, error_code=0)
    result = found(broker)
    assert bool(result.unreadable) is refused
    if refused:
        assert "no log has them" in result.unreadable[0].reason
        assert result.unreadable[0].path == f"kafka://{broker.address}/orders/0"


@pytest.mark.parametrize(
    ("cut", "spans"),
    [
        (0, [(0, 3, SIZE), (4, 7, SIZE), (8, 8, 61)]),  # a batch of a header alone, to the last byte
        (1, [(0, 3, SIZE), (4, 7, SIZE)]),
        (61, [(0, 3, SIZE), (4, 7, SIZE)]),
        (62, [(0, 3, SIZE)]),
    ],
)
def test_whole_batches_of_an_answer(cut, spans):
    records = log()[0] + log()[1] + sealed_records(data(7, 0, 8, 1).at(8), [])
    assert list(_heads(records[: len(records) - cut])) == spans
    assert list(_heads(records[:SIZE] + bytes(SIZE))) == spans[:1]


@pytest.mark.parametrize(
    ("magic", "delta", "last"), [(2, 3, 3), (2, 1 << 24, 1 << 24), (2, 0, 0), (2, -1, 0), (3, 3, 3), (1, 3, 0)]
)
def test_the_last_offset_of_a_batch(magic, delta, last):
    """A hostile delta counts as none; messages of old formats have other bytes there."""
    batch = bytearray(log()[0])
    batch[16], batch[23:27] = magic, delta.to_bytes(4, signed=True)
    assert list(_heads(bytes(batch))) == [(0, last, SIZE)]


@pytest.mark.parametrize(("policy", "dirty"), [("delete", None), ("compact", 8), ("compact,delete", 8), (None, None)])
def test_a_compacted_topic_is_dirty_from_its_start(broker, policy, dirty):
    broker.configs["orders"] = {"cleanup.policy": policy} if policy else {}
    broker.log_start[KEY] = 8
    assert directory(broker).first_dirty_offset == dirty


def test_a_configuration_that_may_not_be_read_is_reported(broker):
    broker.scripts[DESCRIBE_CONFIGS] = _refused
    result = found(broker)
    assert [one.first_dirty_offset for one in result.partitions] == [None]
    (skipped,) = result.skipped
    assert skipped.path == f"kafka://{broker.address}/orders"
    assert skipped.reason.startswith("its configuration is not known: ")
    assert skipped.reason.endswith("--compacted says that its topics are compacted")


def _refused(request):
    result = DescribeConfigsResponse.DescribeConfigsResult
    own = [
        result(
            error_code=AUTHORIZATION_FAILED, error_message="no", resource_type=each.resource_type,
            resource_name=each.resource_name, configs=[],
        )
        for each in request.resources
    ]  # fmt: skip
    return DescribeConfigsResponse(results=own)


def test_one_partition_or_all_of_a_topic():
    with FakeBroker({("orders", number): log() for number in (2, 0, 1)}) as broker:
        assert [one.partition for one in found(broker).partitions] == [0, 1, 2]
        assert [one.partition for one in found(broker, 1).partitions] == [1]
        with pytest.raises(UrlError, match=r"orders/3: the topic has no such partition; there: 0 to 2$"):
            found(broker, 3)
        with pytest.raises(UrlError, match="no such topic"):
            find_partitions(TopicUrl(broker.address, "payments"), ClusterOptions())


def test_a_partition_that_cannot_be_asked_leaves_the_others(monkeypatch):
    monkeypatch.setattr("kaudit.source.kafka.client.RETRY_SECONDS", 0)
    with FakeBroker({("orders", number): log() for number in range(3)}) as broker:
        broker.errors[("orders", 1)] = AUTHORIZATION_FAILED
        result = found(broker)
        assert [one.partition for one in result.partitions] == [0, 2]
        (unreadable,) = result.unreadable
        assert unreadable.path == f"kafka://{broker.address}/orders/1"
        assert unreadable.reason.startswith("orders-1: ")


def leaderless(broker, *numbers):
    """Partitions 0 to 2, of which these have no leader."""
    metadata = MetadataResponse.MetadataResponseTopic

    def answer(_request):
        node = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port, rack=None)
        partitions = [
            metadata.MetadataResponsePartition(
                error_code=0, partition_index=number, leader_id=-1 if number in numbers else 1, leader_epoch=0,
                replica_nodes=[1], isr_nodes=[1], offline_replicas=[],
            )
            for number in range(3)
        ]  # fmt: skip
        topic = metadata(error_code=0, name="orders", topic_id=None, is_internal=False, partitions=partitions)
        return MetadataResponse(brokers=[node], cluster_id="x", controller_id=1, topics=[topic])

    broker.scripts[METADATA] = answer


def test_a_partition_without_a_leader_is_unreadable_and_the_others_are_found(monkeypatch):
    monkeypatch.setitem(KafkaClient.__init__.__kwdefaults__, "retry_seconds", 0)
    with FakeBroker({("orders", number): log() for number in range(3)}) as broker:
        leaderless(broker, 1)
        result = found(broker)
        assert [one.partition for one in result.partitions] == [0, 2]
        assert list(result.unreadable) == [
            Unreadable(
                f"kafka://{broker.address}/orders/1", "orders-1: the partition has no leader: its brokers are down"
            )
        ]
        assert result.broker_versions == {"3.0"}


def test_a_cluster_that_cannot_be_asked_is_unreadable():
    url = TopicUrl("127.0.0.1:1", "orders")
    assert find_partitions(url, ClusterOptions()) == FoundPartitions(
        unreadable=[Unreadable("kafka://127.0.0.1:1/orders", "127.0.0.1:1: connection refused")]
    )


def test_a_url_among_the_inputs(broker):
    """A partition named twice is read once."""
    topic, partition = f"kafka://{broker.address}/orders", f"kafka://{broker.address}/orders/0"
    for paths in ([topic], [partition], [topic, partition], [partition, topic, topic]):
        layout = discover(paths, cluster=ClusterOptions(to_offset=30))
        assert [(one.directory, one.segments[0].size) for one in layout.partitions] == [
            (partition, 30 * (SIZE // OFFSETS))
        ]
        assert (layout.evidence.broker_versions, layout.unreadable, layout.skipped) == (["3.0"], [], [])
        assert layout.partitions[0].is_fetched
    (whole,) = discover([topic]).partitions
    assert whole.log_start_offset == 0
    assert whole.segments[0].size == END * (SIZE // OFFSETS)


def test_an_address_of_version_6_stands_in_brackets():
    assert Node(1, "::1", 9092).address == "[::1]:9092"
    assert Node(1, "broker.example", 9092).address == "broker.example:9092"
    assert Node(1, "10.0.0.1", 9092).address == "10.0.0.1:9092"
