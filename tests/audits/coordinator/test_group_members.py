"""Who committed, by the records of groups of the next protocol, whose assignments have the ids of topics."""

import pytest

from kaudit.audits.coordinator.group_log import GroupRecord
from kaudit.audits.coordinator.group_members import GroupMembers
from kaudit.formats.internal_topics.record_schemas import InternalRecord

SUBSCRIBED = {"clientId": "client", "clientHost": "/10.0.0.1"}
NAMED = ("ConsumerGroupPartitionMetadata", {"groupId": "g"}, {"topics": [{"topicId": "id", "topicName": "orders"}]})


def members(*taken):
    """The state after records: name, key, value."""
    found = GroupMembers()
    for offset, (name, key, value) in enumerate(taken):
        found.take(GroupRecord(offset, 1000 + offset, 0, InternalRecord(name, 0, 0, key, value)))
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
