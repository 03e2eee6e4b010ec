"""Owners of open transactions: whose they are, who was told of a commit, what a checkpoint holds, what aborting costs."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.checks.transactions.endings import owner_of, siblings_of
from kaudit.checks.transactions.open_transactions import hanging_transaction, open_transaction
from kaudit.model.coordinator import (
    ApplicationState,
    CommitDecision,
    CoordinatorEntry,
    CoordinatorView,
    MemberState,
    TopicPartitions,
    TransactionStatus,
)
from tests.checks.facts import reported, versions
from tests.checks.transactions.test_transaction_facts import AT, MINUTE, context, opened, state

HERE = (TopicPartitions("orders", (0,)),)
FLINK = "sink-1-4"


def view(value, name=FLINK, members: dict[str, MemberState] | None = None, **fields: Any):
    """What the coordinator has of producer 7 as this id, and of the members of application `sink`."""
    applications = {"sink": ApplicationState(members or {}, fields.pop("sends_offsets", False))}
    return CoordinatorView(
        {7: CoordinatorEntry(name, value, 9)}, True, True, applications=applications, names={7: name}, **fields
    )


def found_with(coordinator: CoordinatorView, check=open_transaction, now=AT + MINUTE, **fields: Any):
    here = replace(context(now=now), coordinator=coordinator)
    (found,) = reported(check, opened(**fields), context=here)
    return found


# Owners


@pytest.mark.parametrize(
    ("members", "naming"),
    [
        ({"sink-1-*": MemberState(commits=3, highest=1)}, "pooled"),
        ({"sink-0-*": MemberState(commits=3, highest=1), "sink-1-*": MemberState(highest=0)}, "pooled"),
        ({"sink-1-*": MemberState(commits=3, highest=17)}, "incrementing"),
        ({"sink-1-*": MemberState(commits=1, highest=17)}, None),
        ({}, None),
    ],
    ids=["pooled", "a sibling's", "incrementing", "one commit", "no record"],
)
def test_how_flink_numbers_its_ids(members, naming):
    """TransactionNamingStrategyImpl: POOLING takes the least number that is free, INCREMENTING one more at each checkpoint."""
    owner = owner_of(view(state(), members=members), FLINK)
    assert owner is not None
    assert (owner.program, owner.application, owner.role) == ("Flink KafkaSink", "sink", "subtask 1")
    assert owner.naming == naming


def test_faust_commits_offsets_in_its_transactions_and_a_sink_of_flink_never_does():
    owner = owner_of(view(state(), sends_offsets=True), FLINK)
    assert owner is not None
    assert (owner.program, owner.role, owner.naming) == ("Faust", "partition", None)


@pytest.mark.parametrize("name", ["prod-jdbc-3", "prod-jdbc-2-3"])
def test_tasks_of_connect_are_known_by_the_leader_of_their_group(name):
    owner = owner_of(view(state(), connect_groups=["other", "prod"]), name)
    assert owner is not None
    assert (owner.program, owner.role) == ("Kafka Connect task", "task 3")
    assert owner.application == name.removesuffix("-3")
    assert owner_of(view(state(), connect_groups=["prod"]), "shop") is None


def test_which_siblings_went_on():
    members = {
        "sink-1-*": MemberState(committed_ms=AT + 90),
        "sink-0-*": MemberState(committed_ms=AT + 20),
        "sink-2-*": MemberState(committed_ms=AT + 6),
        "sink-3-*": MemberState(committed_ms=AT + 5),
        "sink-4-*": MemberState(started_ms=AT + 50),
    }
    known = view(state(), members=members)
    siblings = siblings_of(known, FLINK, AT + 5)
    assert siblings is not None
    assert (siblings.transactional_ids, siblings.count) == (["sink-0-*", "sink-2-*"], 2)
    assert siblings.committed_timestamp == AT + 20
    assert siblings_of(known, FLINK, AT + 20) is None
    assert siblings_of(known, "shop", 0) is None
    found = found_with(known)
    assert found.evidence.siblings == siblings
    assert (
        "sink-0-* and sink-2-* went on, the last commit at 2023-11-14 22:13:20 UTC" in found.evidence.remarks["owner"]
    )


def test_more_siblings_than_are_named():
    members = {f"sink-{number}-*": MemberState(committed_ms=AT + 10 + number) for number in range(2, 9)}
    found = found_with(view(state(), members=members))
    assert found.evidence.siblings is not None
    assert found.evidence.siblings.count == 7
    assert "sink-8-*, sink-7-*, sink-6-* and 4 more went on" in found.evidence.remarks["owner"]


# Who was told of a commit

COMMITTED = CommitDecision(4, HERE, AT + 2 * MINUTE, 31)


@pytest.mark.parametrize(
    ("decision", "fields", "acknowledged"),
    [
        (COMMITTED, {"began_after_marker": False}, "decided"),
        (replace(COMMITTED, producer_epoch=5), {"began_after_marker": False}, "decided"),
        (replace(COMMITTED, producer_epoch=6), {"began_after_marker": False}, "possible"),
        (replace(COMMITTED, partitions=()), {"began_after_marker": False}, "possible"),
        (replace(COMMITTED, decided_ms=AT - 1), {"began_after_marker": False}, "possible"),
        (COMMITTED, {}, "decided"),
        (replace(COMMITTED, decided_ms=AT + 20), {}, "possible"),
        (replace(COMMITTED, decided_ms=AT - 2), {"marker_timestamp": AT - 1}, "possible"),
    ],
    ids=["its own", "version 2", "later epoch", "elsewhere", "before it", "well after the marker", "near it", "marker's own"],
)  # fmt: skip
def test_a_decision_to_commit_whose_marker_is_missing(decision, fields, acknowledged):
    ended = state(TransactionStatus.COMPLETE_COMMIT, last_update_timestamp=AT + 2 * MINUTE)
    found = found_with(view(ended, commits={7: [decision]}), hanging_transaction, **fields)
    assert found.evidence.commit_acknowledged == acknowledged
    aborts = [index for index, command in enumerate(found.next) if " abort " in command]
    assert found.next[aborts[0] - 1].startswith("# CAREFUL: destroys 3 records from offset 40 on, whose commit")
    assert found.next[0] == "kaudit inspect --records --producer-id 7 --offset 40..99 /logs/orders-0"


@pytest.mark.parametrize(
    ("value", "acknowledged"),
    [
        (state(TransactionStatus.COMPLETE_COMMIT, last_update_timestamp=AT), "no"),
        (state(TransactionStatus.COMPLETE_COMMIT, last_update_timestamp=AT + 1), "possible"),
        (state(TransactionStatus.COMPLETE_ABORT, last_update_timestamp=AT + 1), "no"),
        (state(TransactionStatus.EMPTY, producer_epoch=5), "possible"),
    ],
    ids=["nothing since", "commit since", "abort since", "started again"],
)
def test_what_the_newest_state_says_of_a_transaction_that_hangs(value, acknowledged):
    found = found_with(view(value), hanging_transaction)
    assert found.evidence.commit_acknowledged == acknowledged
    warned = [command for command in found.next if command.startswith("# CAREFUL")]
    assert len(warned) == 1
    assert ("may have been acknowledged: copy them first" in warned[0]) == (acknowledged == "possible")
    assert ("kaudit inspect" in found.next[0]) == (acknowledged == "possible")


@pytest.mark.parametrize(
    ("status", "acknowledged"),
    [(TransactionStatus.PREPARE_COMMIT, "decided"), (TransactionStatus.PREPARE_ABORT, "no")],
    ids=["commit", "abort"],
)
def test_a_decision_whose_marker_is_on_its_way(status, acknowledged):
    found = found_with(view(state(status)))
    assert found.evidence.commit_acknowledged == acknowledged


def test_a_coordinator_that_lost_its_log_after_the_transaction_began():
    """incidents/commit-marker-really-lost: the log of __transaction_state begins anew, the client was told COMMITTED."""
    anew = CoordinatorView({}, True, True, begun={0: AT + 2 * MINUTE, 1: AT - MINUTE})
    found = found_with(anew, hanging_transaction, began_after_marker=False)
    assert found.evidence.commit_acknowledged == "possible"
    assert found.evidence.remarks["commit"].startswith(
        "__transaction_state-0 has nothing from before 2023-11-14 22:15:20 UTC, when the transaction was open already: "
    )
    known = replace(anew, begun={1: AT - MINUTE})
    found = found_with(known, hanging_transaction, began_after_marker=False)
    assert found.evidence.remarks["commit"].startswith("no record of __transaction_state says how it ended: ")


def test_without_its_coordinator_nothing_is_said_of_one_that_may_still_end():
    found = found_with(CoordinatorView())
    assert found.evidence.remarks == {}
    late = found_with(CoordinatorView(), hanging_transaction, now=AT + 30 * MINUTE)
    assert late.evidence.remarks["commit"].startswith("what its coordinator decided is not among the inputs: ")


# Checkpoints of Flink


@pytest.mark.parametrize(
    ("started", "name", "holds"),
    [
        (AT + 1, FLINK, "likely"),
        (AT, FLINK, "possible"),
        (-1, FLINK, "possible"),
        (AT + 1, "sink-0_1", None),
        (AT + 1, "shop", None),
    ],
    ids=["a later one", "the newest", "not known", "streams", "no form"],
)
def test_a_subtask_that_went_on_flushed_it_for_a_checkpoint(started, name, holds):
    """ExactlyOnceKafkaWriter: prepareCommit flushes, snapshotState begins the next transaction."""
    members = {"sink-1-*": MemberState(started_ms=started)}
    found = found_with(view(state(), name, members), now=AT + MINUTE + 1)
    assert found.evidence.in_checkpoint == holds
    told = "transactional id sink-1-4, producer id 7, epoch 4" in found.evidence.remarks.get("commit", "")
    assert told == (holds is not None)
    careful = next(command for command in found.next if command.startswith("# CAREFUL"))
    assert ("lost for good if a checkpoint of Flink holds them" in careful) == (holds is not None)
    terminate = found.next.index(careful) + 1
    assert "forceTerminateTransaction" in found.next[terminate]
    assert found.next[terminate + 1].startswith("# with older tools: a producer that calls initTransactions()")


def test_when_its_coordinator_aborts_it():
    found = found_with(view(state(timeout_ms=15 * MINUTE)))
    assert found.evidence.aborted_at_timestamp == AT + 15 * MINUTE
    assert found.evidence.remarks["abort"].startswith("its coordinator does it at 2023-11-14 22:28:20 UTC; ")
    assert found_with(view(state(start_timestamp=-1))).evidence.aborted_at_timestamp is None


def test_what_else_an_abort_destroys():
    elsewhere = state(partitions=(TopicPartitions("orders", (0, 1)), TopicPartitions("audit", (3,))))
    found = found_with(view(elsewhere))
    assert "3 records from offset 40 on, and what it has in 2 other partitions" in found.evidence.remarks["abort"]


def test_before_brokers_describe_transactions_their_log_is_read():
    """DescribeTransactions and ListTransactions are of 3.0 (KIP-664)."""
    here = replace(versions("2.5.0", "2.8.2"), coordinator=view(state()), clock=context().clock, log_end_offset=100)
    (found,) = reported(open_transaction, opened(), context=here)
    assert found.next[1].startswith("kafka-dump-log.sh --transaction-log-decoder")
