"""Who committed, by the records of groups of the next protocol, whose assignments have the ids of topics."""

import pytest

from kaudit.audits.coordinator import group_members as module
from kaudit.audits.coordinator.group_log import GroupRecord
from kaudit.audits.coordinator.group_members import Group, GroupMembers
from kaudit.formats.internal_topics.record_schemas import InternalRecord
from kaudit.model.group_commits import Committer

SUBSCRIBED = {"clientId": "client", "clientHost": "/10.0.0.1"}
NAMED = ("ConsumerGroupPartitionMetadata", {"groupId": "g"}, {"topics": [{"topicId": "id", "topicName": "orders"}]})


def entry(offset, name, key, value):
    return GroupRecord(offset, 1000 + offset, 0, InternalRecord(name, 0, 0, key, value))


def members(*taken):
    """The state after records: name, key, value."""
    found = GroupMembers()
    for offset, record in enumerate(taken):
        found.take(entry(offset, *record))
    return found.groups["g"]


def subscribed(*topics, regex=""):
    value = {**SUBSCRIBED, "subscribedTopicNames": list(topics), "subscribedTopicRegex": regex}
    return "ConsumerGroupMemberMetadata", {"groupId": "g", "memberId": "m"}, value


def assigned(*partitions, revoked=()):
    places = [[{"topicId": "id", "partitions": list(some)}] for some in (partitions, revoked)]
    value = dict(zip(("assignedPartitions", "partitionsPendingRevocation"), places, strict=True))
    return "ConsumerGroupCurrentMemberAssignment", {"groupId": "g", "memberId": "m"}, value


@pytest.mark.parametrize(
    ("taken", "topic_id", "member"),
    [
        ((subscribed("orders"), assigned(0)), None, "m"),
        ((subscribed("orders"), assigned(1, revoked=[0])), None, "m"),
        ((subscribed("orders"), assigned(1)), None, None),
        ((subscribed("orders", "bills"), assigned(0)), None, None),
        ((subscribed("orders", "bills"), assigned(0)), "id", "m"),
        ((NAMED, subscribed("orders", "bills"), assigned(0)), None, "m"),
        ((subscribed("orders", regex="or.*"), assigned(0)), None, None),
    ],
    ids=["one-topic", "not-given-up-yet", "given-up", "two-topics", "commit-has-the-id", "names-are-known", "pattern"],
)
def test_the_member_that_has_the_partition(taken, topic_id, member):
    assert members(*taken).committer("orders", topic_id, 0).member_id == member


def classic(generation, *members):
    """GroupMetadataValue; members are (id, partitions of orders)."""
    value = {
        "generation": generation,
        "members": [
            {
                "memberId": name,
                "clientId": f"client-{name}",
                "clientHost": f"/{name}",
                "assignment": b""
                if partitions is None
                else {"assignedPartitions": [{"topic": "orders", "partitions": list(partitions)}]},
            }
            for name, partitions in members
        ],
    }
    return "GroupMetadata", {"group": "g"}, value


def joined(name, *, streams=False):
    value = {**SUBSCRIBED, "clientId": f"client-{name}"} | ({} if streams else {"subscribedTopicNames": ["orders"]})
    kind = "StreamsGroupMemberMetadata" if streams else "ConsumerGroupMemberMetadata"
    return kind, {"groupId": "g", "memberId": name}, value


def left(name):
    return "ConsumerGroupMemberMetadata", {"groupId": "g", "memberId": name}, None


def epoch(number, name="ConsumerGroupMetadata"):
    return name, {"groupId": "g"}, None if number is None else {"epoch": number}


def given(name, *partitions):
    value = {"assignedPartitions": [{"topicId": "id", "partitions": list(partitions)}]}
    return "ConsumerGroupCurrentMemberAssignment", {"groupId": "g", "memberId": name}, value


@pytest.mark.parametrize(
    ("taken", "generation", "clients", "owners"),
    [
        ([classic(3, ("m", [0, 2]), ("n", [1]))], 3, "mn", {0: "m", 2: "m", 1: "n"}),
        ([classic(3, ("m", [0])), classic(4, ("n", [1]))], 4, "n", {1: "n"}),
        ([classic(3, ("m", None))], 3, "m", {}),
        ([classic(3, ("m", [0])), ("GroupMetadata", {"group": "g"}, None)], 3, "", {}),
        ([epoch(7), joined("m"), given("m", 0, 1)], 7, "m", {0: "m", 1: "m"}),
        ([epoch(7), epoch(8)], 8, "", {}),
        ([epoch(7), epoch(None)], 7, "", {}),
        ([epoch(9, "StreamsGroupMetadata"), joined("m", streams=True)], 9, "m", {}),
        ([joined("m"), joined("n"), given("m", 0, 1), given("n", 2), given("m", 1)], -1, "mn", {1: "m", 2: "n"}),
        ([joined("m"), joined("n"), given("m", 0), given("n", 2), left("m")], -1, "n", {2: "n"}),
        ([left("m")], -1, "", {}),
        ([joined("m"), given("m", 0), ("ConsumerGroupCurrentMemberAssignment", given("m")[1], None)], -1, "m", {}),
    ],
)
def test_members_and_what_each_has(taken, generation, clients, owners):
    group = members(*taken)
    assert (group.seen, group.generation, group.changes) == (True, generation, len(taken))
    assert group.changed_ms == 1000 + len(taken) - 1
    assert {name: member.client_id for name, member in group.members.items()} == {
        one: f"client-{one}" for one in clients
    }
    assert group.owners == {("orders", partition): name for partition, name in owners.items()}


def test_who_commits():
    group = members(classic(3, ("m", [0]), ("n", [])))
    assert group.committer("orders", None, 0) == Committer(None, None, "m", "client-m", "/m", 3, 2)
    assert group.committer("orders", None, 1) == Committer(generation=3, members=2)
    assert group.committer("bills", None, 0) == Committer(generation=3, members=2)
    assert Group().committer("orders", None, 0) == Committer()


def test_a_group_that_had_members_once():
    assert [members(*taken).had_members for taken in ([epoch(1)], [joined("m")], [joined("m"), left("m")])] == [
        False,
        True,
        True,
    ]


def test_records_that_are_of_no_group():
    found = GroupMembers()
    assert found.take(entry(0, *NAMED)) is None
    shared = {
        "initializingTopics": [{"topicId": "i", "topicName": "one"}],
        "initializedTopics": [{"topicId": "j", "topicName": "two"}],
    }
    for value in (shared, None):
        assert found.take(entry(1, "ShareGroupStatePartitionMetadata", {"groupId": "s"}, value)) is None
    assert found.topic_names == {"id": "orders", "i": "one", "j": "two"}
    assert found.groups == {}
    assert found.take(entry(2, *classic(1))) == "g"


def test_names_and_members_beyond_the_limits_are_not_known(monkeypatch):
    monkeypatch.setattr(module, "_MOST_NAMES", 1)
    monkeypatch.setattr(module, "_MOST_MEMBERS", 2)
    found = GroupMembers()
    records = [
        NAMED,
        (NAMED[0], NAMED[1], {"topics": [{"topicId": "other", "topicName": "bills"}]}),
        joined("a"),
        joined("b"),
        joined("c"),
        left("a"),
        joined("d"),
        joined("e"),
        left("b"),
    ]
    for offset, record in enumerate(records):
        found.take(entry(offset, *record))
    assert found.topic_names == {"id": "orders"}
    assert list(found.groups["g"].members) == ["d"]
    found.take(entry(9, *classic(1, ("x", [0]), ("y", [1]), ("z", [2]))))
    assert list(found.groups["g"].members) == ["x", "y"]
