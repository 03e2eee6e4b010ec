import io
import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.record_schemas import InternalRecord, parse_keyed_record
from kaudit.formats.log.records import read_records
from kaudit.model.internal_topics import GROUPS
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches, segments


class OffsetCommitValue(NamedTuple):
    """A committed offset as it is encoded here; None where its version has no such field."""

    version: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    tags: tuple[tuple[int, bytes], ...]

    def fields(self) -> dict[str, object]:
        """By Kafka's names; tags that no schema knows keep their bytes."""
        found = {"offset": self.offset, "metadata": self.metadata, "commitTimestamp": self.commit_timestamp}
        found |= {"leaderEpoch": self.leader_epoch} if self.version >= 3 else {}
        found |= {"expireTimestamp": self.expire_timestamp} if self.version == 1 else {}
        found |= {"topicId": None} if self.version == 4 else {}
        return found | {f"tagged{tag}": data for tag, data in self.tags}


class GroupMember(NamedTuple):
    """A member as it is encoded here."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str


class GroupMetadataValue(NamedTuple):
    """A classic group as it is encoded here."""

    version: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp: int | None
    members: tuple[GroupMember, ...]

    def fields(self, subscription: bytes, assignment: bytes) -> dict[str, object]:
        """By Kafka's names."""
        found: dict[str, object] = {
            "protocolType": self.protocol_type, "generation": self.generation, "protocol": self.protocol, "leader": self.leader,
        }  # fmt: skip
        found |= {"currentStateTimestamp": self.state_timestamp} if self.version >= 2 else {}
        found["members"] = [
            {"memberId": member.member_id}
            | ({"groupInstanceId": member.group_instance_id} if self.version >= 3 else {})
            | {"clientId": member.client_id, "clientHost": member.client_host}
            | ({"rebalanceTimeout": 300} if self.version >= 1 else {})
            | {"sessionTimeout": 10, "subscription": subscription, "assignment": assignment}
            for member in self.members
        ]
        return found


def parse_group_record(key, value):
    return parse_keyed_record(GROUPS, key, value)


int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
text = st.text(max_size=9)


def commit_key(group, topic, partition, version=1):
    return struct.pack(">h", version) + encoders.string(group) + encoders.string(topic) + struct.pack(">i", partition)


def encode_commit(v):
    out = struct.pack(">hq", v.version, v.offset)
    out += struct.pack(">i", v.leader_epoch) if v.version >= 3 else b""
    out += encoders.compact_string(v.metadata) if v.version == 4 else encoders.string(v.metadata)
    out += struct.pack(">q", v.commit_timestamp)
    out += struct.pack(">q", v.expire_timestamp) if v.version == 1 else b""
    return out + (encoders.tagged(dict(v.tags)) if v.version == 4 else b"")


def encode_group(v, subscription=b"sub", assignment=b"", tags=None):
    flexible = v.version == 4
    string = encoders.compact_string if flexible else encoders.string
    out = struct.pack(">h", v.version) + string(v.protocol_type) + struct.pack(">i", v.generation)
    out += string(v.protocol) + string(v.leader)
    out += struct.pack(">q", v.state_timestamp) if v.version >= 2 else b""
    out += encoders.unsigned_varint(len(v.members) + 1) if flexible else struct.pack(">i", len(v.members))
    for m in v.members:
        out += string(m.member_id) + (string(m.group_instance_id) if v.version >= 3 else b"")
        out += string(m.client_id) + string(m.client_host)
        out += struct.pack(">i", 300) if v.version >= 1 else b""
        out += struct.pack(">i", 10)
        for raw in (subscription, assignment):
            out += (encoders.unsigned_varint(len(raw) + 1) if flexible else struct.pack(">i", len(raw))) + raw
        out += encoders.tagged({}) if flexible else b""
    return out + (encoders.tagged(tags or {}) if flexible else b"")


@st.composite
def commits(draw):
    version = draw(st.integers(0, 4))
    return OffsetCommitValue(
        version,
        draw(int64),
        draw(int32) if version >= 3 else None,
        draw(text),
        draw(int64),
        draw(int64) if version == 1 else None,
        tuple(sorted(draw(st.dictionaries(st.integers(1, 9), st.binary(max_size=4), max_size=2)).items()))
        if version == 4
        else (),
    )


@st.composite
def groups(draw):
    version = draw(st.integers(0, 4))
    instance = st.none() | text if version >= 3 else st.none()
    return GroupMetadataValue(
        version,
        draw(text),
        draw(int32),
        draw(st.none() | text),
        draw(st.none() | text),
        draw(int64) if version >= 2 else None,
        draw(st.lists(st.builds(GroupMember, text, instance, text, text), max_size=3).map(tuple)),
    )


@given(text, text, int32, st.none() | commits(), st.integers(0, 1))
@quick
def test_offset_commits_round_trip(group, topic, partition, value, key_version):
    raw = None if value is None else encode_commit(value)
    name = "OffsetCommit" if key_version else "LegacyOffsetCommit"
    identity = {"group": group, "topic": topic, "partition": partition}
    expected = (None, None) if value is None else (value.version, value.fields())
    found = parse_group_record(commit_key(group, topic, partition, key_version), raw)
    assert found == InternalRecord(name, key_version, expected[0], identity, expected[1])


@given(text, st.none() | groups(), st.binary(max_size=20))
@quick
def test_groups_round_trip(group, value, blob):
    raw = None if value is None else encode_group(value, blob, blob)
    expected = (None, None) if value is None else (value.version, value.fields(blob, blob))
    found = parse_group_record(b"\x00\x02" + encoders.string(group), raw)
    assert found == InternalRecord("GroupMetadata", 2, expected[0], {"group": group}, expected[1])


COMMIT = OffsetCommitValue(3, 7, 1, "m", 99, None, ())


def test_newer_versions_are_not_guessed():
    key, value = commit_key("g", "t", 0), b"\x00\x05" + encode_commit(COMMIT)[2:]
    with pytest.raises(WireError, match="version 5 of OffsetCommit, known is 0 to 4") as caught:
        parse_group_record(key, value)
    assert caught.value.reason is Reason.VERSION


def test_the_topic_id_of_a_commit():
    value = COMMIT._replace(version=4, tags=((0, bytes(range(16))),))
    content = parse_group_record(commit_key("g", "t", 0), encode_commit(value)).value
    assert content is not None
    assert content["topicId"] == "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, Reason.TRUNCATED),
        (b"\x00", None, Reason.TRUNCATED),
        (commit_key("g", "t", 0)[:-1], None, Reason.TRUNCATED),
        (commit_key("g", "t", 0) + b"x", None, Reason.TRAILING),
        (commit_key(None, "t", 0), None, Reason.LENGTH),
        (commit_key("g", "t", 0), b"", Reason.TRUNCATED),
        (commit_key("g", "t", 0), encode_commit(COMMIT)[:-1], Reason.TRUNCATED),
        (commit_key("g", "t", 0), encode_commit(COMMIT) + b"x", Reason.TRAILING),
        (b"\x00\x02\x00\x01g", b"\x00\x00\x00\x01c" + bytes(4) + b"\xff\xff\xff\xff\xff\xff\xff\xff", Reason.COUNT),
        (b"\x00\x02\x00\x01g", b"\x00\x00\x00\x01c" + bytes(4) + b"\xff\xff\xff\xff\x7f\xff\xff\xff", Reason.COUNT),
    ],
)
def test_broken_records(key, value, reason):
    with pytest.raises(WireError) as caught:
        parse_group_record(key, value)
    assert caught.value.reason is reason


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("size", [-1, -2, -(2**31)])
def test_a_member_without_a_subscription_is_broken(version, size):
    """Both are bytes that cannot be null: int32 length, in version 4 an unsigned varint of length + 1."""
    member = GroupMember("m", "i" if version >= 3 else None, "c", "h")
    value = GroupMetadataValue(version, "consumer", 1, "p", "m", 5 if version >= 2 else None, (member,))
    for what, arguments in (("subscription", (b"SUB", b"")), ("assignment", (b"", b"SUB"))):
        raw = encode_group(value, *arguments)
        sound = b"\x04SUB" if version == 4 else b"\0\0\0\x03SUB"
        broken = raw.replace(sound, (b"\0" if version == 4 else struct.pack(">i", size)) + b"SUB")
        with pytest.raises(WireError) as caught:
            parse_group_record(b"\x00\x02\x00\x01g", broken)
        error = caught.value
        assert (error.reason, error.position) == (Reason.LENGTH, raw.index(sound))
        assert error.detail == f"{what} of length {-1 if version == 4 else size}"


def _text(stream):
    (size,) = struct.unpack(">h", stream.read(2))
    return stream.read(size).decode()


def test_commits_of_transactions_in_a_real_log(evidence):
    """Read again by hand: keys of version 1 and values of version 3, as 2.8.2 writes them."""
    commits = transactional = groups = 0
    for segment in segments(evidence.capture("txn-mix-2.8.2")):
        if segment.parent.name != "__consumer_offsets-0":
            continue
        for _, raw in batches(segment.read_bytes()):
            if raw[22] & 0x20:
                continue
            for record in read_records(raw):
                assert record.key is not None
                parsed = parse_group_record(record.key, record.value)
                assert parsed.key is not None
                if parsed.name == "GroupMetadata":
                    assert parsed.key["group"] == record.key[4:].decode()
                    members = [] if parsed.value is None else parsed.value["members"]
                    assert all(member["clientId"] in member["memberId"] for member in members)
                    groups += 1
                    continue
                assert parsed.name == "OffsetCommit"
                assert parsed.value is not None
                assert record.value is not None
                key = io.BytesIO(record.key[2:])
                assert (parsed.key["group"], parsed.key["topic"]) == (_text(key), _text(key))
                assert struct.pack(">i", parsed.key["partition"]) == key.read()
                version, offset, epoch = struct.unpack_from(">hqi", record.value)
                assert (parsed.version, parsed.value["offset"], parsed.value["leaderEpoch"]) == (version, offset, epoch)
                at = parsed.value["commitTimestamp"]
                assert at == struct.unpack(">q", record.value[-8:])[0]
                assert abs(at - record.timestamp) < 60_000
                commits += 1
                transactional += bool(raw[22] & 0x10)
    assert commits >= 12
    assert transactional >= 12
    assert groups >= 3


GROUP = GroupMetadataValue(3, "consumer", 1, "range", "m-1", 5, (GroupMember("m-1", None, "m", "/127.0.0.1"),))
SAMPLES = [encode_commit(COMMIT), encode_group(GROUP), b"\x00\x04" + encode_group(GROUP)[2:]]


@given(damaged([commit_key("g", "topic", 3), b"\x00\x02\x00\x01g"]), st.none() | damaged(SAMPLES))
@quick
def test_fuzz(key, value):
    _, error = outcome(parse_group_record, key, value)
    assert error is None or 0 <= error.position <= max(len(key), len(value or b""))
