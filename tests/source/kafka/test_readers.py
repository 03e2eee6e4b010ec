"""Record sets through the clients of this process: what is asked for, what an error means, how fast bytes may come."""

import time

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse

from kaudit.source.kafka import partitions as readers
from kaudit.source.kafka.client import READ_COMMITTED, READ_UNCOMMITTED, KafkaClient
from kaudit.source.kafka.failures import AccessDeniedError, OffsetOutOfRangeError
from kaudit.source.kafka.fetched_segment import RemovedByRetentionError, Throttle
from kaudit.source.kafka.partitions import client_of, open_fetched, try_again
from kaudit.source.layout import FetchedRange
from tests.logs import data
from tests.source.kafka.fake_broker import FETCH, OFFSET_OUT_OF_RANGE, FakeBroker

KEY, OTHER = ("orders", 0), ("orders", 1)
AUTHORIZATION_FAILED = 29


def batches():
    return [data(7, 0, number * 2, 2).at(number * 2).encode() for number in range(3)]


@pytest.fixture
def broker():
    try_again()
    with FakeBroker({KEY: batches(), OTHER: batches()}) as running:
        yield running
    try_again()


def opened(broker, key=KEY, **fields):
    topic, partition = key
    return open_fetched(FetchedRange(broker.address, topic, partition, 0, 0, 6, **fields))


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where somebody sleeps; a list of one number of seconds."""
    now = [1000.0]

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("offset", "isolation"), [(0, READ_COMMITTED), (3, READ_COMMITTED), (4, READ_UNCOMMITTED), (5, READ_UNCOMMITTED)]
)
def test_aborted_transactions_are_asked_for_below_the_last_stable_offset(broker, offset, isolation):
    one = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction(producer_id=7, first_offset=2)
    broker.scripts[FETCH] = lambda request: broker.fetched(
        request, aborted_transactions=[one] if request.isolation_level else None
    )
    segment = opened(broker, stable_offset=4)
    assert segment.records(offset, 70_000) == b"".join(batches()[offset // 2 :])
    assert segment.aborted == ({(7, 2)} if isolation == READ_COMMITTED else set())
    (request,) = broker.asked(FetchRequest)
    (asked,) = request.topics[0].partitions
    assert (request.isolation_level, request.max_bytes, asked.fetch_offset) == (isolation, 70_000, offset)


@pytest.mark.parametrize(("log_start", "removed"), [(2, False), (3, True), (5, True)])
def test_an_offset_that_is_gone_was_removed_or_cut_off(broker, log_start, removed):
    broker.log_start[KEY] = log_start
    broker.scripts[FETCH] = lambda request: broker.fetched(request, error_code=OFFSET_OUT_OF_RANGE)
    with pytest.raises(OSError) as caught:
        opened(broker).records(2)
    if removed:
        assert isinstance(caught.value, RemovedByRetentionError)
        assert (caught.value.log_start, caught.value.filename) == (log_start, "orders-0")
        assert caught.value.strerror == f"the log begins at offset {log_start} by now"
    else:
        assert isinstance(caught.value, OffsetOutOfRangeError)
        assert caught.value.strerror == "offset 2 is beyond the log end: the log became shorter while it was read"
    # what is gone is no reason to ask for nothing more
    del broker.scripts[FETCH], broker.log_start[KEY]
    broker.scripts[FETCH] = broker.fetched
    assert opened(broker).records(4) == batches()[2]


def test_a_partition_that_cannot_be_read_is_not_asked_for_again_until_somebody_tries(broker):
    def refused(request):
        own = request.topics[0].partitions[0].partition
        return broker.fetched(request, error_code=AUTHORIZATION_FAILED if own == 0 else 0)

    broker.scripts[FETCH] = refused
    for _ in range(3):
        with pytest.raises(AccessDeniedError, match="not authorised"):
            opened(broker).records(0)
    assert len(broker.asked(FetchRequest)) == 1
    assert opened(broker, OTHER).records(4) == batches()[2]
    try_again()
    broker.scripts[FETCH] = broker.fetched
    assert opened(broker).records(4) == batches()[2]


def test_one_client_a_cluster_and_property_file(broker, tmp_path):
    (tmp_path / "a").write_text("client.id=a\n")
    client = client_of(broker.address, None)
    assert isinstance(client, KafkaClient)
    assert client_of(broker.address, None) is client
    assert client_of(broker.address, str(tmp_path / "a")) is not client
    assert client_of("127.0.0.1:1", None) is not client


def test_ranges_of_a_cluster_share_a_throttle_of_one_rate(broker, monkeypatch):
    spent = []
    monkeypatch.setattr(Throttle, "spend", lambda self, count: spent.append((self, count)))
    size = len(batches()[2])
    for key, rate in ((KEY, None), (KEY, 1000), (OTHER, 1000), (KEY, 2000)):
        assert opened(broker, key, max_bytes_per_second=rate).records(4) == batches()[2]
    assert [count for _, count in spent] == [size] * 3
    first, second, third = (throttle for throttle, _ in spent)
    assert first is second
    assert first is not third
    assert first._rate == 1000
    assert readers._throttle(FetchedRange("x:1", *KEY, 0, 0, 6)) is None


def test_bytes_come_no_faster_than_they_may_and_in_bursts_of_a_second(clock):
    throttle = Throttle(1000)
    throttle.spend(10)  # within what need not be waited for
    assert clock == [1000.0]
    throttle.spend(990)
    assert clock[0] == pytest.approx(1001, abs=0.03)
    throttle.spend(2500)
    assert clock[0] == pytest.approx(1003.5, abs=0.03)
    clock[0] += 60  # who did not read for a minute has a second's bytes saved, no more
    throttle.spend(1000)
    assert clock[0] == pytest.approx(1063.5, abs=0.03)
    throttle.spend(1000)
    assert clock[0] == pytest.approx(1064.5, abs=0.03)
