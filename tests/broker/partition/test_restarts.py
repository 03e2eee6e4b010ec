"""What a restart brings back."""

import pytest

from tests.broker.client import PartitionClient


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_batch_is_cut_off_at_the_start(clean):
    """Half of a batch at the tail is no batch: LogSegment.recover cuts it, and a clean start does not find it."""
    client = PartitionClient("3.9.1")
    assert [client.produce(sequence) for sequence in range(3)] == [0, 1, 2]
    client.restart(clean=clean, tamper={"torn_batch_offset": 2})
    assert client.describe()["high_watermark"] == 2
    assert client.produce(2) == 2


@pytest.mark.parametrize(("clean", "end"), [(True, 3), (False, 2)])
def test_a_corrupt_batch_is_cut_off_only_where_segments_are_read(clean, end):
    client = PartitionClient("3.9.1")
    for sequence in range(3):
        client.produce(sequence)
    client.restart(clean=clean, tamper={"corrupted_batch_offset": 2})
    assert client.describe()["high_watermark"] == end


class TestLogStartCheckpoint:
    """A killed broker comes back with the log start of its checkpoint (LogManager.checkpointLogStartOffsets)."""

    @pytest.mark.parametrize("version", ["0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.3.1"])
    def test_before_the_first_one_deleted_records_are_back_and_with_them_the_producer(self, version):
        client = PartitionClient(version)
        assert [client.produce(0), client.code("delete_records", before_offset=1)] == [0, 0]
        client.wait(1_500)
        client.kill()
        client.wait(8_500)
        assert client.describe()["log_start_offset"] == 0
        assert client.produce(0) == (0,)

    @pytest.mark.parametrize(("waits", "log_start"), [(29_900, 0), (30_100, 1)])
    def test_the_first_one_is_30_s_after_the_start(self, waits, log_start):
        client = PartitionClient("3.9.1")
        client.produce(0)
        client.code("delete_records", before_offset=1)
        client.wait(waits)
        client.kill()
        assert client.describe()["log_start_offset"] == log_start

    @pytest.mark.parametrize(
        ("config", "log_start"), [({}, 0), ({"log.flush.start.offset.checkpoint.interval.ms": "5"}, 1)]
    )
    def test_later_ones_come_at_an_interval(self, config, log_start):
        client = PartitionClient("3.9.1", config)
        client.produce(0)
        client.wait(31_000)
        client.code("delete_records", before_offset=1)
        client.wait(20)
        client.kill()
        assert client.describe()["log_start_offset"] == log_start

    def test_a_clean_stop_writes_it(self):
        client = PartitionClient("3.9.1")
        client.produce(0)
        client.code("delete_records", before_offset=1)
        client.restart()
        client.kill()
        assert client.describe()["log_start_offset"] == 1

    def test_attempts_may_say_what_it_was(self):
        client = PartitionClient("3.9.1")
        for sequence in range(3):
            client.produce(sequence)
        client.code("delete_records", before_offset=2)
        client.kill(log_start_offset=2)
        assert client.describe()["log_start_offset"] == 2


def test_a_killed_broker_writes_the_transaction_index_again():
    """Recorded on 4.1.1: first offsets are those the state knows that was rebuilt from the log."""
    client = PartitionClient("4.1.1")
    transaction = {"is_transactional": True, "transactional_id": "x"}
    producer = {"producer_id": 0, "producer_epoch": 0, "transactional_id": "x"}
    client.ask("init_producer_id", transactional_id="x", api_version=1)
    client.ask("add_partitions", **producer)
    assert [client.produce(sequence, pid=0, **transaction) for sequence in (0, 1)] == [0, 1]
    # without any snapshot a clean start reads nothing: the open transaction is forgotten, then goes on at offset 2
    client.restart(tamper={"deleted": [f"{2:020d}.snapshot"]})
    assert client.produce(2, pid=0, **transaction) == 2
    client.ask("end_txn", commit=False, **producer)
    assert client.describe()["aborted"] == [{"producer_id": 0, "first_offset": 2}]
    client.kill()
    assert client.describe()["aborted"] == [{"producer_id": 0, "first_offset": 0}]


@pytest.mark.parametrize("clean", [True, False])
def test_idle_producers_are_looked_for_between_stop_and_answer(clean):
    config = {"producer.id.expiration.ms": "3000", "producer.id.expiration.check.interval.ms": "1000"}
    client = PartitionClient("4.1.0", config)
    client.produce(0)
    assert [row["producer_id"] for row in client.restart(clean, started_at=client.at + 2_000)["producers"]] == [900001]
    client.at += 2_000
    assert client.restart(clean, started_at=client.at + 2_000)["producers"] == []


@pytest.mark.parametrize(("version", "answer"), [("2.0.1", 59), ("2.8.2", 1)])
def test_a_follower_takes_over_its_leaders_log_start_and_forgets_what_its_release_forgets(version, answer):
    """ReplicaFetcherThread.processPartitionData, ProducerStateManager.truncateHead: until 2.4 a producer goes with its data."""
    client = PartitionClient(version)
    assert [client.produce(0), client.code("delete_records", before_offset=1)] == [0, 0]
    client.ask("leader_change", how="kill9", old_leader=1, new_leader=2)
    assert client.produce(1) == answer


@pytest.mark.parametrize("clean", [True, False])
def test_a_batch_without_records_makes_the_next_start_forget_its_producer(clean):
    """It has no timestamp in the log (LogValidator), so its producer seems idle since 1970; recorded on 0.11.0.0."""
    client = PartitionClient("0.11.0.0")
    assert client.produce(0, count=3) == 0
    assert client.mark(0, coordinator_epoch=1) == 0
    assert client.produce(3, count=0) == 4
    assert client.mark(0, coordinator_epoch=0) == 52
    client.restart(clean=clean)
    assert client.mark(1, coordinator_epoch=0) == 0


def test_a_time_of_append_is_a_time_even_without_records():
    client = PartitionClient("0.11.0.0", topic_config={"message.timestamp.type": "LogAppendTime"})
    assert client.produce(0, count=3) == 0
    assert client.produce(3, count=0) == 3
    client.restart()
    assert client.produce(0) == 45
