"""Records of the __consumer_offsets topic: offset commits, and groups as far as transactions need them.

Source of the format: Kafka's GroupMetadataManager (to 3.x) and the group coordinator's OffsetCommitKey / Value and
GroupMetadataKey / Value schemas. Keys of version 3 and up belong to the newer group protocols and stay raw.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer, Reader
from kaudit.formats.errors import Reason, WireError

_OFFSET_COMMIT_KEY_VERSIONS: Final = (0, 1)
_GROUP_METADATA_KEY_VERSION: Final = 2
_FIRST_FLEXIBLE_VERSION: Final = 4
_GROUP_EPOCH_KEY_VERSIONS: Final = (3, 11, 17)  # CoordinatorRecordType: consumer, share and Streams group metadata
_VALUE_VERSIONS: Final = range(5)
_VERSION_WITH_EXPIRY: Final = 1
_FIRST_VERSION_WITH_STATE_TIMESTAMP: Final = 2
_FIRST_VERSION_WITH_LEADER_EPOCH: Final = 3
_FIRST_VERSION_WITH_INSTANCE_ID: Final = 3
_FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
_MIN_MEMBER_BYTES: Final = 9  # five empty flexible fields and one timeout


class OffsetCommitValue(Struct, frozen=True):
    """A committed offset. What its version does not carry is None; sentinels (-1) stay as written.

    `leader_epoch` (version 3+) is of the last consumed record, -1 unknown; times are ms since 1970, `expire_timestamp`
    in version 1 only. `tags` keeps (tag, raw bytes) of version 4.
    """

    version: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    tags: tuple[tuple[int, bytes], ...]


class OffsetCommit(Struct, frozen=True):
    """One offset commit; `value` is None for a tombstone (expired or deleted)."""

    key_version: int
    group: str
    topic: str
    partition: int
    value: OffsetCommitValue | None


class GroupMember(Struct, frozen=True):
    """One member of a classic group, without its protocol bytes."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str


class GroupMetadataValue(Struct, frozen=True):
    """State of a classic group. `state_timestamp` ms since 1970 (version 2+), -1 unknown, None where not carried."""

    version: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp: int | None
    members: tuple[GroupMember, ...]


class GroupMetadata(Struct, frozen=True):
    """One group record; `value` is None for a tombstone (the group is gone)."""

    key_version: int
    group: str
    value: GroupMetadataValue | None


class UnknownGroupRecord(Struct, frozen=True):
    """A record of a newer protocol or an unknown value version, kept as it is."""

    key_version: int
    key: bytes
    value: bytes | None


class GroupEpoch(NamedTuple):
    """The epoch of a group under the protocols of KIP-848 (consumers), KIP-932 (share) and KIP-1071 (Streams)."""

    group: str
    epoch: int


GroupRecord = OffsetCommit | GroupMetadata | UnknownGroupRecord


def parse_group_record(key: Buffer | None, value: Buffer | None) -> GroupRecord:
    """Decode one record of __consumer_offsets.

    Raises WireError for a null key and for broken bytes of a known version; unknown versions come back raw.
    """
    if key is None:
        raise WireError(0, Reason.TRUNCATED, "a record of __consumer_offsets without a key")
    reader = Reader(key)
    key_version = reader.int16("key version")
    known_value = value is None or Reader(value).int16("value version") in _VALUE_VERSIONS
    if key_version in _OFFSET_COMMIT_KEY_VERSIONS and known_value:
        group, topic, partition = reader.string("group"), reader.string("topic"), reader.int32("partition")
        reader.expect_end()
        commit = None if value is None else _offset_commit_value(value)
        return OffsetCommit(key_version, group, topic, partition, commit)
    if key_version == _GROUP_METADATA_KEY_VERSION and known_value:
        group = reader.string("group")
        reader.expect_end()
        return GroupMetadata(key_version, group, None if value is None else _group_metadata_value(value))
    return UnknownGroupRecord(key_version, bytes(key), None if value is None else bytes(value))


def parse_group_epoch(key: Buffer, value: Buffer) -> GroupEpoch | None:
    """Decode a group's epoch, which comes first in the value; None for other records; raises WireError for broken bytes."""
    reader = Reader(key)
    if reader.int16("key version") not in _GROUP_EPOCH_KEY_VERSIONS:
        return None
    group, content = reader.string("group"), Reader(value)
    content.int16("value version")
    return GroupEpoch(group, content.int32("epoch"))


def _offset_commit_value(value: Buffer) -> OffsetCommitValue:
    reader = Reader(value)
    version = reader.int16("value version")
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    offset = reader.int64("offset")
    leader_epoch = reader.int32("leader epoch") if version >= _FIRST_VERSION_WITH_LEADER_EPOCH else None
    metadata = reader.compact_string("metadata") if flexible else reader.string("metadata")
    commit_timestamp = reader.int64("commit timestamp")
    expire_timestamp = reader.int64("expire timestamp") if version == _VERSION_WITH_EXPIRY else None
    tags = reader.tagged_fields() if flexible else {}
    reader.expect_end()
    return OffsetCommitValue(
        version, offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, tuple(tags.items())
    )


def _group_metadata_value(value: Buffer) -> GroupMetadataValue:
    reader = Reader(value)
    version = reader.int16("value version")
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    nullable = reader.compact_nullable_string if flexible else reader.nullable_string
    protocol_type = reader.compact_string("protocol type") if flexible else reader.string("protocol type")
    generation = reader.int32("generation")
    protocol, leader = nullable("protocol"), nullable("leader")
    state_timestamp = reader.int64("state timestamp") if version >= _FIRST_VERSION_WITH_STATE_TIMESTAMP else None
    start = reader.position
    count = (reader.compact_array_count if flexible else reader.array_count)("members", _MIN_MEMBER_BYTES)
    if count is None:
        raise WireError(start, Reason.COUNT, "the members must not be null")
    members = tuple(_member(reader, version) for _ in range(count))
    if flexible:
        reader.tagged_fields()
    reader.expect_end()
    return GroupMetadataValue(version, protocol_type, generation, protocol, leader, state_timestamp, members)


def _member(reader: Reader, version: int) -> GroupMember:
    flexible = version >= _FIRST_FLEXIBLE_VERSION
    text = reader.compact_string if flexible else reader.string
    nullable = reader.compact_nullable_string if flexible else reader.nullable_string
    member_id = text("member id")
    instance_id = nullable("group instance id") if version >= _FIRST_VERSION_WITH_INSTANCE_ID else None
    member = GroupMember(member_id, instance_id, text("client id"), text("client host"))
    if version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
        reader.int32("rebalance timeout")
    reader.int32("session timeout")
    for what in ("subscription", "assignment"):
        start = reader.position
        size = reader.unsigned_varint(what) - 1 if flexible else reader.int32(what)
        if size < 0:
            raise WireError(start, Reason.LENGTH, f"{what} of length {size}")
        reader.raw(size, what)
    if flexible:
        reader.tagged_fields()
    return member
