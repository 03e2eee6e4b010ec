"""KA817: coordinators that give up writing markers, by their own lines."""

import pytest

from kaudit.checks.broker_state.logged_coordinators import markers_stopped
from tests.checks.broker_state.lines import line, reported


def stopped(
    error: str,
    partition: str = "orders-0",
    name: str = "payments",
    how: str = "permanently failed with error {0} with the",
    second: float = 0,
):
    """What a coordinator says of one marker."""
    return line(
        f"[Transaction Marker Request Completion Handler 1]: Sending {name}'s transaction marker for partition {partition} has "
        f"{how.format('org.apache.kafka.common.errors.' + error)} current coordinator epoch 7; cancel sending any more transaction markers "
        "TxnMarkerEntry{producerId=5, producerEpoch=3, coordinatorEpoch=7, result=COMMIT, partitions=[orders-0]} to the brokers",
        second,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "severity", "says"),
    [
        ("ProducerFencedException", "warning", "its transaction stays open where one is missing"),
        ("InvalidProducerEpochException", "warning", "its transaction stays open where one is missing"),
        ("TransactionCoordinatorFencedException", "note", "its successor writes them"),
    ],
    ids=["fenced", "epoch", "stale"],
)
def test_a_coordinator_that_gives_up_is_told_by_its_transactional_id(tmp_path, error, severity, says):
    (found,) = reported(markers_stopped, tmp_path, server=[stopped(error), stopped(error, second=1)])
    assert (found.severity.value, found.topic, found.partition) == (severity, "orders", 0)
    assert found.message.startswith(
        "a coordinator gave up writing the markers of transactional id payments in orders-0 ("
    )
    assert says in found.message


def test_each_transactional_id_is_one_finding(tmp_path):
    lines = [
        stopped("ProducerFencedException", place, name) for name in ("a", "b") for place in ("orders-0", "orders-1")
    ]
    first, second = reported(markers_stopped, tmp_path, server=lines)
    assert [first.evidence["transactional_id"], second.evidence["transactional_id"]] == ["a", "b"]
    assert first.topic is None


def test_markers_that_are_sent_again_are_silent(tmp_path):
    text = "[Transaction Marker Request Completion Handler 1]: Sending payments's transaction marker for partition orders-0 has failed with error {}, retrying with current coordinator epoch 7"
    assert not reported(markers_stopped, tmp_path, server=[line(text.format("NOT_COORDINATOR"))])
