"""The members of groups and what they are assigned, as the records of __consumer_offsets say."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct, field

from kaudit.audits.coordinator.group_log import GroupRecord
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.group_commits import Committer

_MOST_MEMBERS = 100_000
"""Members known of all groups together (some 50 MB): of those that join later nothing is known."""
_MOST_NAMES = 10_000
_NAMING = {
    "ConsumerGroupPartitionMetadata": ("topics",),
    "ShareGroupStatePartitionMetadata": ("initializingTopics", "initializedTopics"),
}
"""Records that have topics by id and name, and where."""
_Place = tuple[str, int]
"""A partition of a topic, which is given by its name or, in the consumer protocol, by its id."""


class _Member(Struct, gc=False):
    client_id: str = ""
    client_host: str = ""
    only_topic: str | None = None
    """The one that it subscribes to."""


class Group(Struct):
    """One group. `seen`: there was a record of it; `changed_ms`: when its members or their assignment changed last, -1 before that."""

    seen: bool = False
    generation: int = -1
    changes: int = 0
    changed_ms: int = NO_TIMESTAMP
    had_members: bool = False
    members: dict[str, _Member] = field(default_factory=dict)
    owners: dict[_Place, str] = field(default_factory=dict)
    topic_names: Mapping[str, str] = field(default_factory=dict)

    def committer(self, topic: str, topic_id: str | None, partition: int) -> Committer:
        """Return the member that a partition is assigned to, as far as that is known."""
        owner = self.owners.get((topic, partition)) or self.owners.get((topic_id or "", partition))
        member = self.members.get(owner) if owner is not None else None
        if not self.seen:
            return Committer()
        if member is None:
            return Committer(generation=self.generation, members=len(self.members))
        return Committer(
            None, None, owner, member.client_id, member.client_host, self.generation, members=len(self.members)
        )


class GroupMembers(Struct):
    """Follows the records of groups of one partition."""

    groups: dict[str, Group] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)
    """By id, as far as they are known: commits of most clients name the topic, assignments of the next protocol its id."""
    _count: int = 0

    def take(self, entry: GroupRecord) -> str | None:
        """Take the next record that is no commit; return the group that it changes, None for none."""
        record = entry.record
        naming = _NAMING.get(record.name)
        if naming is not None and record.value is not None and len(self.topic_names) < _MOST_NAMES:
            content = cast("dict[str, Any]", record.value)
            self.topic_names.update({each["topicId"]: each["topicName"] for field in naming for each in content[field]})
        change = _CHANGES.get(record.name)
        if change is None:
            return None
        key, value = cast("dict[str, Any]", record.key), cast("dict[str, Any] | None", record.value)
        name: str = key.get("groupId") or key.get("group") or ""
        group = self.groups.setdefault(name, Group(topic_names=self.topic_names))
        group.seen = True
        before = len(group.members)
        if self._count < _MOST_MEMBERS or value is None or record.name == "GroupMetadata":
            change(group, key, value)
        self._count += len(group.members) - before
        group.had_members |= bool(group.members)
        group.changes += 1
        group.changed_ms = entry.timestamp
        return name


def _classic(group: Group, _: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
    """A classic group: one record has all members and what the leader gave them (GroupMetadataValue)."""
    group.members.clear()
    group.owners.clear()
    if value is None:
        return
    group.generation = value["generation"]
    for member in value["members"][:_MOST_MEMBERS]:
        group.members[member["memberId"]] = _Member(member["clientId"], member["clientHost"])
        for place in _places(member["assignment"], "topic"):
            group.owners[place] = member["memberId"]


def _epoch(group: Group, _: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
    if value is not None:
        group.generation = value["epoch"]


def _member(group: Group, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
    if value is None:
        group.members.pop(key["memberId"], None)
        _release(group, key["memberId"])
    else:
        topics = value.get("subscribedTopicNames", ())
        only = topics[0] if len(topics) == 1 and not value.get("subscribedTopicRegex") else None
        group.members[key["memberId"]] = _Member(value["clientId"], value["clientHost"], only)


def _assigned(group: Group, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
    """What a member has now (ConsumerGroupCurrentMemberAssignmentValue), until it has given it up; tasks of Streams name no partitions."""
    _release(group, key["memberId"])
    if value is not None:
        member = group.members.get(key["memberId"], _Member())
        for assigned in ("assignedPartitions", "partitionsPendingRevocation"):
            for topic_id, partition in _places(value, "topicId", assigned):
                topic = group.topic_names.get(topic_id) or member.only_topic or topic_id
                group.owners[topic, partition] = key["memberId"]


def _release(group: Group, member_id: str) -> None:
    for place in [place for place, owner in group.owners.items() if owner == member_id]:
        del group.owners[place]


def _places(assignment: object, topic: str, assigned: str = "assignedPartitions") -> Iterator[_Place]:
    if isinstance(assignment, dict):  # bytes where the protocol is not that of consumers
        for entry in assignment.get(assigned, ()):
            for partition in entry["partitions"]:
                yield entry[topic], partition


_CHANGES = {
    "GroupMetadata": _classic,
    "ConsumerGroupMetadata": _epoch,
    "ConsumerGroupMemberMetadata": _member,
    "ConsumerGroupCurrentMemberAssignment": _assigned,
    "StreamsGroupMetadata": _epoch,
    "StreamsGroupMemberMetadata": _member,
}
