"""What a broker keeps beside its partitions' producers: clocks, names of configuration, what lay on disk, markers refused."""

import pytest

from kaudit.broker.attempts import StartBroker
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from tests.attempts import attempt_of
from tests.broker.client import PartitionClient

CONCURRENT_TRANSACTIONS, FENCED_COORDINATOR, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION, SERVER_ERROR = 51, 52, 1, 44, -1
UNKNOWN_PRODUCER_ID = 59


def test_names_of_configuration_that_nothing_reads():
    config = {"transaction.max.timeout.ms": "900000", "transaction.max.timeout": "1", "log.dirs": "/data"}
    client = PartitionClient("3.9.1", config, {"segment.byte": "5", "cleanup.policy": "delete", "retention.ms": "2"})
    assert client.broker.unread_config == {
        "transaction.max.timeout": "transaction.max.timeout.ms",
        "log.dirs": None,
        "segment.byte": "segment.bytes",
        "retention.ms": None,
    }


def test_what_lay_on_disk_has_the_clocks_time_where_its_own_is_unknown():
    client = PartitionClient("3.9.1")
    batch = {"base_offset": 0, "producer_id": 7, "producer_epoch": 2, "base_sequence": 2**31 - 2, "record_count": 4}
    marker = {"base_offset": 4, "producer_id": 8, "producer_epoch": 3, "commit": True, "coordinator_epoch": 6}
    stamped = {"base_offset": 5, "producer_id": 9, "producer_epoch": 0, "timestamp": client.at - 60_000}
    client.kill(found_on_disk=[batch, {**marker}, {**stamped, "is_transactional": True}])
    first, second, third = client.describe()["producers"]
    assert (first["producer_id"], first["producer_epoch"], first["last_sequence"]) == (7, 2, 1)
    assert first["last_timestamp"] == second["last_timestamp"] == third["last_timestamp"] + 60_001
    assert (second["producer_epoch"], second["last_sequence"], second["coordinator_epoch"]) == (3, -1, 6)
    assert (third["last_sequence"], third["current_txn_start_offset"]) == (0, 5)
    assert client.describe()["high_watermark"] == 6


@pytest.mark.parametrize("refusing", [0, 1])
def test_a_transaction_whose_marker_one_partition_refuses_does_not_end(refusing):
    """TransactionMarkerRequestCompletionHandler: a partition that knows a newer coordinator fences this one."""
    client = PartitionClient("3.9.1")
    granted = client.ask("init_producer_id", transactional_id="x")
    owner = {"transactional_id": "x", "producer_id": granted["producer_id"], "producer_epoch": 0}
    sent = {"pid": granted["producer_id"], "is_transactional": True, "transactional_id": "x"}
    for partition in (0, 1):
        assert client.code("add_partitions", partition=partition, **owner) == 0
        assert client.produce(0, partition=partition, **sent) == 0
    assert client.mark(0, pid=900001, coordinator_epoch=5, partition=refusing) == 0
    assert client.mark(0, pid=granted["producer_id"], coordinator_epoch=5, partition=refusing) == 0
    assert client.code("end_txn", commit=True, **owner) == 0
    assert client.code("add_partitions", **owner) == CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(("version", "policy", "deleted"), [("3.9.1", "delete", 3), ("3.9.1", "compact,delete", 3)])
def test_records_are_deleted_up_to_an_offset_or_the_end(version, policy, deleted):
    client = PartitionClient(version, topic_config={"cleanup.policy": policy})
    for sequence in range(3):
        client.produce(sequence)
    for before, code, start in ((1, 0, 1), (4, OFFSET_OUT_OF_RANGE, 1), (3, 0, 3)):
        assert client.code("delete_records", before_offset=before) == code
        assert client.describe()["log_start_offset"] == start
    client.produce(3)
    assert client.code("delete_records", before_offset=-1) == 0
    assert client.describe()["log_start_offset"] == deleted + 1


@pytest.mark.parametrize(("version", "forgets"), [("2.3.1", True), ("2.4.0", False)])
def test_what_the_start_of_the_log_does_to_producers(version, forgets):
    """KAFKA-7190: from 2.4 on they outlive their data."""
    client = PartitionClient(version)
    client.produce(0)
    attempt = {
        "op": "delete_records",
        "index": 2,
        "topic": "t",
        "partition": 0,
        "at": client.at + 1,
        "before_offset": 1,
    }
    answer = client.broker.answer(attempt_of(attempt))
    forgotten = "; producers whose last data lay below it are forgotten on this version" if forgets else ""
    assert answer.why == f"the log starts at 1{forgotten}"
    assert client.produce(1) == (UNKNOWN_PRODUCER_ID if forgets else 1)


def test_records_of_a_compacted_topic_are_not_deleted():
    client = PartitionClient("3.9.1", topic_config={"cleanup.policy": "compact"})
    client.produce(0)
    assert client.code("delete_records", before_offset=1) == POLICY_VIOLATION


def test_a_marker_without_an_epoch_cannot_be_written():
    client = PartitionClient("3.9.1")
    client.produce(0)
    assert [client.mark(-1), client.mark(0)] == [SERVER_ERROR, 0]


def test_ids_are_granted_one_after_the_other():
    client = PartitionClient("3.9.1")
    given = [client.ask("init_producer_id", transactional_id=name)["producer_id"] for name in ("x", "y", "z")]
    assert given == [0, 1, 2]


@pytest.mark.parametrize(("early", "known"), [(1, [1, 2]), (0, [2])])
def test_idle_producers_are_looked_for_every_ten_minutes(early, known):
    """producer.id.expiration.check.interval.ms counts from the first attempt on; the moment itself counts."""
    client = PartitionClient("3.9.1", {"producer.id.expiration.ms": "300000"})
    client.produce(0, pid=1)
    first = client.at
    client.wait(400_000)
    client.produce(0, pid=2)
    client.at = first + 600_000 - 1 - early
    assert [each["producer_id"] for each in client.describe()["producers"]] == known


def test_a_profile_counts_before_the_version_that_attempts_name():
    broker = Broker(profile_for("2.0.1"))
    broker.answer(StartBroker(index=0, broker_version="3.9.1", config={}))
    assert str(broker.profile.version) == "2.0.1"


def test_producers_expire_by_name_or_by_time():
    client = PartitionClient("3.9.1")
    assert [client.produce(0, pid=pid) for pid in (1, 2, 3)] == [0, 1, 2]
    client.ask("expire_producers", producer_ids=[2])
    assert [each["producer_id"] for each in client.describe()["producers"]] == [1, 3]
    client.wait(86_400_000 - 6)
    client.ask("expire_producers")
    assert [each["producer_id"] for each in client.describe()["producers"]] == [3]


def test_a_recreated_topic_is_empty_and_its_transactions_go_on():
    """As live brokers of 2.8.2, 3.9.2 and 4.4.0 did: tests/conformance/recorder, the histories named `recreated`."""
    client = PartitionClient("3.9.2")
    assert [client.produce(sequence) for sequence in (0, 1)] == [0, 1]
    producer = client.ask("init_producer_id", transactional_id="x")["producer_id"]
    who = {"transactional_id": "x", "producer_id": producer, "producer_epoch": 0}
    client.ask("add_partitions", **who)
    assert client.produce(0, pid=producer, transactional_id="x", is_transactional=True) == 2
    client.ask("topic", recreated=True, config={"cleanup.policy": "compact"})
    assert client.describe()["high_watermark"] == 0
    assert client.describe()["producers"] == []
    assert client.produce(1, acks=1) == 0
    assert client.ask("end_txn", commit=True, **who)["outcome"] == "ok"
    assert client.describe()["high_watermark"] == 2
    (marked,) = [each for each in client.describe()["producers"] if each["producer_id"] == producer]
    assert marked["last_sequence"] == -1
