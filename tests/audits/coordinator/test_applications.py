"""What records of __transaction_state show of producers and of their applications, record by record."""

from typing import Any

import pytest

from kaudit.audits.coordinator import applications as module
from kaudit.audits.coordinator.applications import Applications, AskedProducers
from kaudit.model.coordinator import (
    ApplicationState,
    CommitDecision,
    MemberState,
    TopicPartitions,
    TransactionRecord,
    TransactionStatus,
    TransactionValue,
)

S = TransactionStatus
ORDERS, OFFSETS = TopicPartitions("orders", (0,)), TopicPartitions("__consumer_offsets", (4,))


def record(name: str, status: TransactionStatus = S.EMPTY, **fields: Any) -> TransactionRecord:
    known = {"producer_id": 7, "producer_epoch": 3, "partitions": None, "updated": 500, "started": -1} | fields
    value = TransactionValue(
        0, known["producer_id"], known["producer_epoch"], 60_000, status, int(status), known["partitions"],
        known["updated"], known["started"],
    )  # fmt: skip
    return TransactionRecord(name, value)


def asked(*taken: tuple[int, int, int, TransactionRecord]) -> AskedProducers:
    """Of producer 7: partition, offset, time and record."""
    found = AskedProducers(frozenset({7}))
    for each in taken:
        found.take(*each)
    return found


def test_names_decisions_and_beginnings():
    found = asked(
        (0, 0, 900, record("a", S.ONGOING, partitions=(ORDERS,))),
        (0, 1, 901, record("a", S.PREPARE_COMMIT, partitions=(ORDERS,), updated=600)),
        (0, 2, 902, record("a", S.COMPLETE_COMMIT)),
        (0, 3, 903, record("b", S.PREPARE_COMMIT, producer_id=8)),
        (0, 4, 904, TransactionRecord("a", None)),
        (0, 5, 905, record("a", S.PREPARE_ABORT)),
        (0, 6, 906, record("a", S.PREPARE_COMMIT, producer_epoch=4, updated=700)),
        (1, 0, 800, record("c", producer_id=8)),
        # another replica of partition 0 says the same, and begins earlier by its clock
        (0, 0, 850, record("a")),
        (0, 1, 851, record("a", S.PREPARE_COMMIT, partitions=(ORDERS,), updated=600)),
        (1, 0, 950, TransactionRecord("c", None)),
        (2, 7, 100, record("d", producer_id=9)),
    )
    assert found.names == {7: "a"}
    assert found.commits == {7: [CommitDecision(3, (ORDERS,), 600, 1), CommitDecision(4, (), 700, 6)]}
    assert found.begun == {0: 850, 1: 800}


def test_the_last_eight_decisions_are_kept():
    found = asked(*((0, at, at, record("a", S.PREPARE_COMMIT, updated=at)) for at in range(10)))
    assert [each.offset for each in found.commits[7]] == list(range(2, 10))


def test_the_newest_id_of_a_producer_names_it():
    assert asked((0, 0, 0, record("a")), (0, 1, 1, record("b"))).names == {7: "b"}


def members(*records: TransactionRecord, partitions: tuple[int, ...] = (0,)) -> dict[str, ApplicationState]:
    """The applications, of as many replicas of partitions with the same records."""
    found = Applications()
    for partition in partitions:
        found.enter(partition)
        for each in records:
            found.take(each)
    return dict(found.of(["sink-0-0", "app-1-1", "nobody"]))


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([record("sink-0-5")], MemberState(-1, -1, 0, 5)),
        ([record("sink-0-5"), record("sink-0-3")], MemberState(-1, -1, 0, 5)),
        (
            [record("sink-0-3", S.ONGOING, started=400), record("sink-0-4", S.ONGOING, started=300)],
            MemberState(-1, 400, 0, 4),
        ),
        ([record("sink-0-0", S.PREPARE_COMMIT, updated=500)], MemberState(500, -1, 1, 0)),
        (
            [record("sink-0-0", S.PREPARE_COMMIT, updated=500), record("sink-0-0", S.COMPLETE_COMMIT, updated=501)],
            MemberState(501, -1, 1, 0),
        ),
        (
            [record("sink-0-0", S.COMPLETE_COMMIT, updated=501), record("sink-0-0", S.PREPARE_COMMIT, updated=500)],
            MemberState(501, -1, 1, 0),
        ),
        ([record("sink-0-0", S.PREPARE_ABORT), record("sink-0-0", S.COMPLETE_ABORT)], MemberState(-1, -1, 0, 0)),
        ([record("sink-0-0"), TransactionRecord("sink-0-9", None), record("nobody")], MemberState(-1, -1, 0, 0)),
    ],
)
def test_members(records, state):
    assert members(*records) == {"sink": ApplicationState({"sink-0-*": state})}


@pytest.mark.parametrize(("partitions", "commits"), [((0,), 1), ((0, 0), 1), ((0, 1), 2), ((0, 1, 0, 1), 2)])
def test_replicas_of_a_partition_count_once(partitions, commits):
    (application,) = members(record("sink-0-0", S.PREPARE_COMMIT), partitions=partitions).values()
    assert application.members["sink-0-*"].commits == commits


@pytest.mark.parametrize(
    ("partitions", "sends"), [(None, False), ((), False), ((ORDERS,), False), ((ORDERS, OFFSETS), True)]
)
def test_applications_that_commit_offsets_in_their_transactions(partitions, sends):
    first = record("sink-0-0", S.ONGOING, partitions=partitions)
    assert members(first, record("sink-0-0"))["sink"].sends_offsets is sends


def test_members_of_several_applications_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(module, "_MOST_MEMBERS", 2)
    found = Applications()
    for name in ("sink-0-0", "app-1-1", "sink-1-0", "sink-0-4"):
        found.take(record(name))
    own = found.of(["sink-9-9", "app-1-1", "other-1-1", "nobody"])
    assert {name: list(each.members) for name, each in own.items()} == {"sink": ["sink-0-*"], "app": ["app-1-*"]}
    assert own["sink"].members["sink-0-*"].highest == 4


def test_the_groups_of_connect_whose_leaders_write_in_transactions():
    found = Applications()
    for name in ("connect-cluster-prod", "connect-cluster-prod", "connect-cluster-test", "sink-0-0"):
        found.take(record(name))
    assert found.connect_groups == ["prod", "test"]
