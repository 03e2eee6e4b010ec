"""The coordinator's epoch after restarts: its partition's leader epoch, as live brokers told it."""

import pytest

from tests.broker.client import PartitionClient

KRAFT = {"process.roles": "broker,controller"}


@pytest.mark.parametrize(
    ("version", "clean", "killed"),
    [
        ("3.3.2", 3, 3),
        ("3.4.1", 3, 3),
        ("3.5.2", 3, 3),
        ("3.7.2", 2, 2),
        ("3.8.1", 2, 2),
        ("4.1.0", 2, 4),
        ("4.4.0", 2, 4),
    ],
)
def test_restarts_raise_the_coordinators_epoch(version, clean, killed):
    """Recorded with KRaft: by three until 3.5, by two from 3.6 on; a kill -9 raises it from 4.0 on only."""
    client = PartitionClient(version, KRAFT)

    def epoch_of_next_marker():
        owner = {"transactional_id": "x", "producer_id": granted["producer_id"]}
        owner["producer_epoch"] = granted["producer_epoch"]
        client.ask("add_partitions", **owner)
        client.ask("end_txn", **owner, commit=True)
        (producer,) = client.describe()["producers"]
        return producer["coordinator_epoch"]

    granted = client.ask("init_producer_id", transactional_id="x")
    assert epoch_of_next_marker() == 0
    client.restart()
    client.wait(5000)
    assert epoch_of_next_marker() == clean
    client.kill()
    client.wait(5000)
    assert epoch_of_next_marker() == killed
