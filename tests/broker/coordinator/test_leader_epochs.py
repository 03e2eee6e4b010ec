"""The coordinator's epoch after restarts: its partition's leader epoch, as live brokers answered it."""

import pytest

from kaudit.broker.broker_state import RAISED_BY_RESTART, CoordinatorEpochs
from kaudit.broker.releases.profile import profile_for
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


HERE, THERE = ("t", 0), ("t", 1)


def epochs_after(*restarts):
    """Epochs of a 4.1 broker; each restart is of a partition, after a time and answered at another, clean or not."""
    epochs = CoordinatorEpochs(profile_for("4.1.0"))
    for partition, after, answered, clean in restarts:
        epochs.restarted(partition, after, clean=clean)
        epochs.answered(partition, answered)
    return epochs


@pytest.mark.parametrize(
    ("second", "count"),
    [
        ((150, 300, True), 1),
        ((50, 120, True), 1),
        ((120, 180, True), 1),
        ((199, 300, True), 1),
        ((200, 300, True), 2),
        ((50, 101, True), 1),
        ((50, 100, True), 2),
        ((150, 300, False), 2),
    ],
)
def test_what_two_partitions_saw_at_one_time_is_one_restart(second, count):
    """One restart is over before the broker answers anybody, and begins after it answered everybody."""
    epochs = epochs_after((HERE, 100, 200, True), (THERE, *second))
    assert epochs.at(1000) == RAISED_BY_RESTART * count


def test_a_restart_lies_where_both_partitions_saw_it():
    epochs = epochs_after((HERE, 100, 200, True), (THERE, 150, 300, True))
    assert [(epochs.at(now), epochs.restarted_at(now)) for now in (199, 200)] == [(0, None), (RAISED_BY_RESTART, 150)]


def test_two_restarts_of_one_partition_are_two_wherever_they_are_seen():
    epochs = epochs_after()
    for partition in (HERE, THERE):
        epochs.restarted(partition, 100, clean=True)
        epochs.restarted(partition, 150, clean=True)
        epochs.answered(partition, 200)
        assert epochs.at(200) == 2 * RAISED_BY_RESTART


def test_an_attempt_at_the_time_of_the_restart_came_before_it():
    epochs = epochs_after((HERE, 100, 100, True))
    assert (epochs.at(1000), epochs.at(1000, HERE), epochs.at(1000, THERE)) == (0, RAISED_BY_RESTART, 0)
    epochs.answered(HERE, 101)
    assert (epochs.at(1000), epochs.at(1000, HERE)) == (RAISED_BY_RESTART, RAISED_BY_RESTART)


def test_a_restart_without_a_time_before_it_counts_from_its_end():
    epochs = epochs_after((HERE, None, 200, True))
    assert (epochs.restarted_at(199), epochs.restarted_at(200)) == (None, 200)
