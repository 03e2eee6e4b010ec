"""What a reconstruction is made of: one replica of each partition, topics that a broker can have, events that are about them."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.model.application_logs import LogEventKind
from kaudit.model.internal_topics import TRANSACTIONS
from kaudit.replay.reconstruction.account import LeftOut
from kaudit.replay.reconstruction.broker_logs import BrokerSettings
from kaudit.replay.reconstruction.reconstruct import (
    Evidence,
    Reconstruction,
)
from kaudit.source.layout import furthest_replicas

REFUSED, OTHER = LogEventKind.OUT_OF_ORDER_SEQUENCE, LogEventKind.BECAME_LEADER


def directory(topic: str, partition: int, replica: str, *segments: tuple[int, int]) -> Any:
    """A replica of a partition with segments (base offset, size)."""
    own = [SimpleNamespace(base_offset=base, size=size) for base, size in segments]
    return SimpleNamespace(topic=topic, partition=partition, replica=replica, segments=own)


def reconstruction(partitions: list[Any], **topics: dict[str, str]) -> Reconstruction:
    settings = BrokerSettings()
    settings.topics = topics
    return Reconstruction(Evidence(partitions, [], [], settings, "3.9.1"), lambda _: pytest.fail("nothing is read"))


def event(kind: LogEventKind, topic: str | None, partition: int | None, origin: str = "server") -> Any:
    return SimpleNamespace(event=kind, topic=topic, partition=partition, origin=origin, path="server.log", line=1)


def test_refusals_about_partitions_that_are_not_there_are_named_and_those_of_clients_counted():
    made = reconstruction([directory("orders", 0, "b1", (0, 1))])
    made._evidence.events = [
        event(REFUSED, "orders", 0),
        event(REFUSED, "orders", 1),
        event(REFUSED, "orders", 1),
        event(REFUSED, "payments", 0),
        event(REFUSED, None, None),
        event(OTHER, "payments", 7),
        event(REFUSED, "payments", 8, "client"),
        event(REFUSED, None, None, "client"),
        event(REFUSED, "orders", 0, "client"),
        event(OTHER, "orders", 0, "client"),
    ]
    made._count_events()
    assert made.account.other_partitions == {"orders-1", "payments-0", "payments-8"}
    assert made.account.left_out == {LeftOut.NO_PARTITION: {REFUSED: 2}, LeftOut.OF_CLIENTS: {REFUSED: 1}}


def test_topics_that_are_there_and_configured_are_set_up_in_their_order():
    there = [directory(name, number, "b1", (0, 1)) for name, number in (("b", 0), ("a", 1), ("a", 0), ("d", 0))]
    made = reconstruction(
        there, b={"segment.bytes": "7"}, a={"cleanup.policy": "compact"}, c={"cleanup.policy": "compact"}, d={}
    )
    assert list(made._topics()) == [
        {"topic": "a", "partition": 0, "config": {"cleanup.policy": "compact"}},
        {"topic": "b", "partition": 0, "config": {"segment.bytes": "7"}},
    ]


def test_a_configuration_that_no_broker_takes_is_named_and_left_out():
    made = reconstruction([])
    start = {"op": "broker", "broker_version": "3.9.1"}
    good = {"topic": "orders", "partition": 0, "config": {"max.message.bytes": "100"}}
    assert made._is_read(start, good)
    assert made.account.unreadable == []
    assert not made._is_read(start, good | {"config": {"max.message.bytes": "many"}})
    (said,) = made.account.unreadable
    assert said.startswith("configuration of topic orders in the server logs: expected ")


@pytest.mark.parametrize(
    ("segments", "furthest"),
    [
        ([[(0, 9)], [(0, 10)]], 1),
        ([[(0, 10)], [(0, 9)]], 0),
        ([[(0, 10)], [(0, 10)]], 0),  # the first of two alike
        ([[(0, 99)], [(0, 10), (5, 1)]], 1),
        ([[(0, 10), (5, 1)], [(6, 1)]], 1),
        ([[], [(0, 0)]], 1),
        ([[(0, 0)], []], 0),
    ],
)
def test_of_a_partition_the_replica_that_reaches_furthest_is_taken(segments, furthest):
    replicas = [directory("orders", 0, str(number), *own) for number, own in enumerate(segments)]
    other = directory("orders", 1, "b1", (0, 1))
    empty = directory("orders", 2, "b1")
    assert furthest_replicas([*replicas, other, empty]) == [replicas[furthest], other]


def test_of_the_transactions_topic_alone():
    own = [directory("__transaction_state", number, "b1", (0, 1)) for number in range(2)]
    longer = directory("__transaction_state", 1, "b2", (0, 2))
    logs = [directory("orders", 0, "b1", (0, 1)), *own, longer]
    assert furthest_replicas(logs, (TRANSACTIONS,)) == [own[0], longer]
