"""Records of internal topics by their schemas, beside what kafka-dump-log prints of recordings of real brokers."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.byte_reader import Reader
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics import record_schemas
from kaudit.formats.internal_topics.record_schemas import (
    CONTROL_TYPES,
    Field,
    InternalRecord,
    parse_control_record,
    parse_framed_record,
    parse_keyed_record,
    printed_control_record,
    printed_record,
    schemas,
)
from kaudit.formats.log.records import read_records
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches

RECORDED = Path(__file__).parents[2] / "data" / "internal-topics"
PRINTED = re.compile(r"^\| offset: (\d+) .*?(?: key: (\{.*?\}))? payload: (.*)$", re.MULTILINE)
KEYED = [("4.4.0", f"{GROUPS}-0"), ("4.4.0", f"{SHARE_STATE}-0"), ("4.1.0", f"{SHARE_STATE}-2")]
IMPLICIT: tuple[object, ...] = (None, 0, -1, -2, False, [], "AAAAAAAAAAAAAAAAAAAAAA")
"""Defaults of tagged fields, which the tool leaves out."""


def recorded(release: str, directory: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value by offset."""
    raw = (RECORDED / release / directory / "00000000000000000000.log").read_bytes()
    data = [batch for _, batch in batches(raw) if not batch[22] & 0x20]
    return {record.offset: (record.key, record.value) for batch in data for record in read_records(batch)}


def printed(release: str, directory: str) -> dict[int, tuple[str, str]]:
    """Key and payload as the tool printed them, by offset."""
    text = (RECORDED / release / f"{directory}.txt").read_text(encoding="utf-8")
    return {int(offset): (key, payload) for offset, key, payload in PRINTED.findall(text)}


def as_printed(value: object, fields: tuple[Field, ...]) -> Any:
    """A record's fields with the numbers of states, as the tool prints them."""
    assert isinstance(value, dict)
    names = {field.name: field for field in fields}
    return {name: _as_printed(item, names[name]) for name, item in value.items()}


def _as_printed(value: object, field: Field) -> Any:
    if isinstance(value, list):
        return [as_printed(item, field.fields) if field.fields else item for item in value]
    if field.fields and value is not None:
        return as_printed(value, field.fields)
    numbers = {name: number for number, name in (field.names or {}).items()}
    return numbers.get(str(value), value)


def assert_same(ours: Any, theirs: Any) -> None:
    """Everything printed is equal, and what is not printed is a default."""
    if isinstance(theirs, dict):
        assert set(theirs) <= set(ours)
        for name, value in ours.items():
            if name in theirs:
                assert_same(value, theirs[name])
            else:
                assert value in IMPLICIT, name
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for own, other in zip(ours, theirs, strict=True):
            assert_same(own, other)
    else:
        assert ours == theirs


def without_members(record: InternalRecord, payload: dict[str, Any]) -> tuple[Any, Any]:
    """A classic group's fields but for its members' protocol, whose printed form has another nesting."""
    own: dict[str, Any] = dict(record.value or {})
    other = dict(payload)
    members = [
        [{name: value for name, value in member.items() if name not in ("subscription", "assignment")} for member in each["members"]]
        for each in (own, other)
    ]  # fmt: skip
    return own | {"members": members[0]}, other | {"members": members[1]}


@pytest.mark.parametrize(("release", "directory"), KEYED)
def test_keyed_records_are_as_the_tool_prints_them(release, directory):
    topic = directory.rpartition("-")[0]
    records, told = recorded(release, directory), printed(release, directory)
    assert len(records) == len(told) >= 4
    for offset, (key, value) in records.items():
        record = parse_keyed_record(topic, key, value)
        spoken = json.loads(told[offset][0])
        schema = schemas()[topic, record.type]
        assert record.key is not None
        assert (str(record.type), record.key) == (spoken["type"], spoken["data"])
        if told[offset][1] == "<DELETE>":
            assert (record.value, record.version) == (None, None)
            continue
        payload = json.loads(told[offset][1])
        assert str(record.version) == payload["version"]
        if record.name == "GroupMetadata":
            assert_same(*without_members(record, payload["data"]))
        else:
            assert_same(as_printed(record.value, schema.value), payload["data"])


def test_every_kind_of_group_was_recorded():
    names = {parse_keyed_record(GROUPS, *record).name for record in recorded("4.4.0", f"{GROUPS}-0").values()}
    assert {
        "OffsetCommit", "GroupMetadata", "ConsumerGroupMemberMetadata", "ConsumerGroupRegularExpression",
        "ConsumerGroupCurrentMemberAssignment", "ShareGroupMemberMetadata", "ShareGroupStatePartitionMetadata",
        "StreamsGroupMemberMetadata", "StreamsGroupTopology", "StreamsGroupCurrentMemberAssignment",
    } <= names  # fmt: skip


def test_members_of_a_classic_group_with_their_subscription():
    groups = [parse_keyed_record(GROUPS, *record) for record in recorded("4.4.0", f"{GROUPS}-0").values()]
    members = [
        member for group in groups if group.name == "GroupMetadata" and group.value for member in group.value["members"]  # type: ignore[attr-defined]
    ]  # fmt: skip
    assert members
    for member in members:
        assert member["subscription"]["topics"] == ["queue"]
        assert member["assignment"]["assignedPartitions"] == [{"topic": "queue", "partitions": [0]}]


def test_delivery_states_are_named():
    """Offsets 5, 16, 27, 38 and 49 were rejected: archived, and never delivered again."""
    states = {}
    for _, value in recorded("4.4.0", f"{SHARE_STATE}-0").values():
        record = parse_keyed_record(SHARE_STATE, _, value)
        assert record.value is not None
        for batch in record.value["stateBatches"]:  # type: ignore[attr-defined]
            for offset in range(batch["firstOffset"], batch["lastOffset"] + 1):
                states[offset] = batch["deliveryState"]
    assert {offset for offset, state in states.items() if state == "ARCHIVED"} >= {5, 16, 27, 38, 49}
    assert set(states.values()) <= {"AVAILABLE", "ACKNOWLEDGED", "ARCHIVED"}
    assert set(states) == set(range(50))


def test_metadata_records_are_as_the_tool_prints_them():
    records, told = recorded("4.4.0", f"{CLUSTER}-0"), printed("4.4.0", f"{CLUSTER}-0")
    assert len(set(records) & set(told)) > 100
    seen = set()
    for offset in set(records) & set(told):
        record = parse_framed_record(CLUSTER, records[offset][1])
        payload = json.loads(told[offset][1])
        assert payload["type"] == re.sub(r"(?<!^)(?=[A-Z])", "_", record.name).upper()
        assert record.version == payload["version"]
        assert_same(as_printed(record.value, schemas()[CLUSTER, record.type].value), payload["data"])
        seen.add(record.name)
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "PartitionChangeRecord", "ConfigRecord"} <= seen


def test_records_as_the_tool_prints_them_are_read_to_the_same():
    for release, directory in KEYED:
        topic = directory.rpartition("-")[0]
        for offset, (key, payload) in printed(release, directory).items():
            own = parse_keyed_record(topic, *recorded(release, directory)[offset])
            if own.name != "GroupMetadata":
                told = None if payload == "<DELETE>" else json.loads(payload)
                assert plain(printed_record(topic, json.loads(key), told)) == plain(own)
    for offset, (_, payload) in printed("4.4.0", f"{CLUSTER}-0").items():
        own = parse_framed_record(CLUSTER, recorded("4.4.0", f"{CLUSTER}-0")[offset][1])
        assert plain(printed_record(CLUSTER, None, json.loads(payload))) == plain(own)


def plain(record: InternalRecord) -> Any:
    """A record without the zero ids that stand for none."""
    return json.loads(json.dumps([record.name, record.version, record.key, record.value], default=bytes.hex).replace('"AAAAAAAAAAAAAAAAAAAAAA"', "null"))  # fmt: skip


def java_text(record: InternalRecord) -> dict[str, Any]:
    """What `toString` of the class says of a record, by the names that it uses."""
    value: dict[str, Any] = dict(record.value or {})
    of = value.get("remoteLogSegmentId", value)
    place = of["topicIdPartition"]
    said = {
        "topicIdPartition": f"{place['id']}:{place['name']}-{place['partition']}",
        "state": value.get("remoteLogSegmentState", value.get("remotePartitionDeleteState")),
        "eventTimestampMs": str(value["eventTimestampMs"]),
        "brokerId": str(value["brokerId"]),
    }
    if "remoteLogSegmentId" in value:
        said["id"] = of["id"]
        custom = value["customMetadata"]
        said["customMetadata"] = (
            "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"
        )
    if "startOffset" in value:
        epochs = ", ".join(f"{each['leaderEpoch']}={each['offset']}" for each in value["segmentLeaderEpochs"])
        said |= {
            name: str(value[name]) for name in ("startOffset", "endOffset", "maxTimestampMs", "segmentSizeInBytes")
        }
        said |= {"segmentLeaderEpochs": f"{{{epochs}}}", "txnIdxEmpty": str(value["txnIndexEmpty"]).lower()}
    return said


def remote_records() -> list[tuple[bytes, str]]:
    records, told = recorded("4.4.0", f"{REMOTE_LOG}-0"), printed("4.4.0", f"{REMOTE_LOG}-0")
    serde = (RECORDED / "4.4.0" / "remote-log-serde.tsv").read_text(encoding="utf-8").splitlines()
    made = [(bytes.fromhex(line.split("\t")[0]), line.split("\t")[1]) for line in serde]
    return [*((value, told[offset][1]) for offset, (_, value) in records.items() if value is not None), *made]


def test_remote_segments_are_as_their_classes_print_them():
    names = set()
    for value, text in remote_records():
        record = parse_framed_record(REMOTE_LOG, value)
        assert text.startswith(f"{record.name}{{")
        for name, said in java_text(record).items():
            spoken = f"{name}={said}" if name != "topicIdPartition" else said
            assert spoken in text, (record.name, name)
        names.add((record.name, java_text(record)["state"]))
    assert len(names) == 3 + 4 + 4
    assert ("RemotePartitionDeleteMetadata", "DELETE_PARTITION_FINISHED") in names


def test_custom_metadata_is_kept():
    found = [parse_framed_record(REMOTE_LOG, value).value or {} for value, _ in remote_records()]
    assert {b"bucket/1024", b"bucket/7", b"\xff\x00\x01"} <= {value["customMetadata"] for value in found if "customMetadata" in value}  # fmt: skip


def control_records() -> list[tuple[int, bytes, Any]]:
    """Type, value, and the fields as Kafka's JsonConverter writes them."""
    lines = (RECORDED / "4.4.0" / "control-records.tsv").read_text(encoding="utf-8").splitlines()
    return [(int(number), bytes.fromhex(value), json.loads(told)) for number, _, value, told in (line.split("\t") for line in lines)]  # fmt: skip


def test_control_records_of_kraft_are_as_kafka_writes_them():
    assert {number for number, _, _ in control_records()} == CONTROL_TYPES
    for number, value, told in control_records():
        record = parse_control_record(number, value)
        assert_same(record.value, told)
        assert plain(printed_control_record(number, told)) == plain(record)
    with pytest.raises(WireError, match="version 7 of KRaftVersionRecord"):
        parse_control_record(5, b"\0\7\0\0\0")
    with pytest.raises(WireError, match="without a value"):
        parse_control_record(3, None)


SHARE_KEY = struct.pack(">h", 0) + encoders.string("g") + bytes(16) + struct.pack(">i", 3)
SHARE_VALUE = struct.pack(">hiiiq", 0, 1, 2, 3, 7) + struct.pack(">qq", 1, 2) + b"\x01" + b"\0"


def test_tagged_fields_that_are_not_known_are_kept():
    value = SHARE_VALUE[:-1] + encoders.tagged({0: struct.pack(">i", 5), 9: b"new"})
    content = parse_keyed_record(SHARE_STATE, SHARE_KEY, value).value
    assert content is not None
    assert (content["deliveryCompleteCount"], content["tagged9"]) == (5, b"new")
    known = parse_keyed_record(SHARE_STATE, SHARE_KEY, SHARE_VALUE).value
    assert known is not None
    assert (known["deliveryCompleteCount"], known["startOffset"], known["stateBatches"]) == (-1, 7, [])


def test_a_state_without_a_name_stays_a_number():
    batch = struct.pack(">qqbh", 0, 1, 9, 1) + b"\0"
    value = SHARE_VALUE[:-2] + b"\x02" + batch + b"\0"
    content = parse_keyed_record(SHARE_STATE, SHARE_KEY, value).value
    assert content is not None
    assert content["stateBatches"] == [{"firstOffset": 0, "lastOffset": 1, "deliveryState": 9, "deliveryCount": 1}]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (lambda: parse_keyed_record(SHARE_STATE, SHARE_KEY, b"\0\1" + SHARE_VALUE[2:]), "version 1 of ShareSnapshot, known is 0"),
        (lambda: parse_keyed_record(SHARE_STATE, b"\0\7" + SHARE_KEY[2:], SHARE_VALUE), "record type 7 of __share_group_state"),
        (lambda: parse_keyed_record(GROUPS, b"\0\x30", None), "record type 48 of __consumer_offsets is not known"),
        (lambda: parse_framed_record(REMOTE_LOG, b"\1\x09\0"), "record type 9 of __remote_log_metadata"),
        (lambda: parse_framed_record(REMOTE_LOG, b"\1\0\5"), "version 5 of RemoteLogSegmentMetadata"),
        (lambda: parse_framed_record(CLUSTER, b"\5\0\0"), "frame version 5"),
        (lambda: parse_framed_record(CLUSTER, b"\1\3\x09"), "version 9 of PartitionRecord, known is 0 to 2"),
    ],
)  # fmt: skip
def test_unknown_types_and_versions_are_named(parse, text):
    with pytest.raises(WireError, match=re.escape(text)) as caught:
        parse()
    assert caught.value.reason is Reason.VERSION


@pytest.mark.parametrize(
    ("key", "payload"),
    [
        ("x", None),
        ({}, None),
        ({"type": "x"}, None),
        ({"type": "0"}, None),
        ({"type": "0", "data": []}, None),
        ({"type": "0", "data": {}}, {}),
        ({"type": "0", "data": {}}, {"version": "0"}),
        ({"type": "0", "data": {}}, {"version": "0", "data": {"stateBatches": [1]}}),
        ({"type": "99999999999", "data": {}}, {"version": "0", "data": {}}),
    ],
)
def test_other_json_is_refused(key, payload):
    with pytest.raises(WireError):
        printed_record(SHARE_STATE, key, payload)


SEEDS = [value for _, value in recorded("4.4.0", f"{GROUPS}-0").values() if value] + [SHARE_VALUE]


@given(damaged([SHARE_KEY, b"\0\2" + encoders.string("g"), b"\0\x17" + encoders.string("g")]), st.none() | damaged(SEEDS), st.sampled_from([GROUPS, SHARE_STATE]))  # fmt: skip
@quick
def test_fuzz_keyed(key, value, topic):
    _, error = outcome(parse_keyed_record, topic, key, value)
    assert error is None or 0 <= error.position <= max(len(key), len(value or b""))


@given(damaged([value for value, _ in remote_records()]), st.sampled_from([CLUSTER, REMOTE_LOG]))
@quick
def test_fuzz_framed(value, topic):
    _, error = outcome(parse_framed_record, topic, value)
    assert error is None or 0 <= error.position <= len(value)


ONE = (Field("a", "int8"),)
UUID = bytes(range(16))


@pytest.mark.parametrize(
    ("field", "plain", "flexible", "value"),
    [
        (Field("f", "bool"), b"\1", b"\1", True),
        (Field("f", "bool"), b"\0", b"\0", False),
        (Field("f", "int8"), b"\xff", b"\xff", -1),
        (Field("f", "int16"), b"\x80\0", b"\x80\0", -32768),
        (Field("f", "uint16"), b"\xff\xff", b"\xff\xff", 65535),
        (Field("f", "int32"), b"\0\0\1\0", b"\0\0\1\0", 256),
        (Field("f", "int64"), b"\xff" * 8, b"\xff" * 8, -1),
        (Field("f", "float64"), struct.pack(">d", -1.5), struct.pack(">d", -1.5), -1.5),
        (Field("f", "uuid"), UUID, UUID, "AAECAwQFBgcICQoLDA0ODw"),
        (Field("f", "int8", names={1: "ONE"}), b"\1", b"\1", "ONE"),
        (Field("f", "int8", names={1: "ONE"}), b"\2", b"\2", 2),
        (Field("f", "string"), b"\0\2ab", b"\3ab", "ab"),
        (Field("f", "string"), b"\0\0", b"\1", ""),
        (Field("f", "string", nullable=True), b"\xff\xff", b"\0", None),
        (Field("f", "bytes"), b"\0\0\0\2ab", b"\3ab", b"ab"),
        (Field("f", "bytes"), b"\0\0\0\0", b"\1", b""),
        (Field("f", "bytes", nullable=True), b"\xff\xff\xff\xff", b"\0", None),
        (Field("f", "int8", array=True), b"\0\0\0\2\5\6", b"\3\5\6", [5, 6]),
        (Field("f", "int8", array=True), b"\0\0\0\0", b"\1", []),
        (Field("f", "int8", array=True, nullable=True), b"\xff\xff\xff\xff", b"\0", None),
        (Field("f", "int8", array=True, nullable=True), b"\0\0\0\1\5", b"\2\5", [5]),
        (Field("f", "", ONE), b"\5", b"\5\0", {"a": 5}),
        (Field("f", "", ONE, array=True), b"\0\0\0\2\5\6", b"\3\5\0\6\0", [{"a": 5}, {"a": 6}]),
        (Field("f", "", ONE, nullable=True), b"\1\5", b"\1\5\0", {"a": 5}),
        (Field("f", "", ONE, nullable=True), b"\xff", b"\xff", None),
        (Field("f", "", ONE, nullable=True, tag=0), None, b"\1\5\0", {"a": 5}),
        (Field("f", "", ONE, nullable=True, tag=0), None, b"\0", None),
    ],
)
def test_values_of_every_type(field, plain, flexible, value):
    """org.apache.kafka.common.protocol.types.Type, KIP-482 and KIP-893, whose mark stands before a structure that may be null."""
    for data, is_flexible in ((plain, False), (flexible, True)):
        if data is None:
            continue
        reader = Reader(data + b"\xaa")
        assert record_schemas._value(reader, field, 0, flexible=is_flexible) == value
        assert reader.rest() == b"\xaa"
        for cut in range(len(data)):
            with pytest.raises(WireError):
                record_schemas._value(Reader(data[:cut]), field, 0, flexible=is_flexible)


@pytest.mark.parametrize(
    ("field", "plain", "flexible"),
    [
        (Field("f", "string"), b"\xff\xff", b"\0"),
        (Field("f", "bytes"), b"\xff\xff\xff\xff", b"\0"),
        (Field("f", "bytes", nullable=True), b"\xff\xff\xff\xfe", None),
        (Field("f", "int8", array=True), b"\xff\xff\xff\xff", b"\0"),
        (Field("f", "string", array=True, nullable=True), b"\0\0\0\1\xff\xff", b"\2\0"),
        (Field("f", "bytes", array=True, nullable=True), b"\0\0\0\1\xff\xff\xff\xff", b"\2\0"),
        (Field("f", "int8", array=True), b"\0\0\0\3\5\6", b"\4\5\6"),
        (Field("f", "string"), b"\0\1\xff", b"\2\xff"),
    ],
)
def test_values_that_no_schema_allows(field, plain, flexible):
    for data, is_flexible in ((plain, False), (flexible, True)):
        if data is not None:
            with pytest.raises(WireError):
                record_schemas._value(Reader(data), field, 0, flexible=is_flexible)


def test_tagged_fields_have_their_defaults_and_unknown_ones_stay():
    fields = (Field("a", "int8"), Field("t", "int16", tag=3, default=7), Field("later", "int8", versions=range(2, 9)))

    def read(data, version=1, *, flexible=True):
        reader = Reader(data)
        found = record_schemas._structure(reader, fields, version, flexible=flexible)
        reader.expect_end()
        return found

    assert read(b"\5\0") == read(b"\5", flexible=False) == {"a": 5, "t": 7}
    assert read(b"\5\6\0", 2) == {"a": 5, "t": 7, "later": 6}
    assert read(b"\5\1\3\2\0\x09") == {"a": 5, "t": 9}
    assert read(b"\5\2\3\2\0\x09\4\1x") == {"a": 5, "t": 9, "tagged4": b"x"}
    for wrong in (b"\5\1\3\3\0\x09\0", b"\5\1\3\1\0"):
        with pytest.raises(WireError):
            read(wrong)


SUBSCRIPTION = b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2ud"
"""Topics and user data: version 0 of ConsumerProtocolSubscription."""
OWNED = b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\3\0\0\0\4"
BASE = {"topics": ["t"], "userData": b"ud"}
WITH_OWNED = BASE | {"ownedPartitions": [{"topic": "t", "partitions": [3, 4]}]}
WITH_ALL = WITH_OWNED | {"generationId": 5, "rackId": "r"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0\0" + SUBSCRIPTION, BASE),
        (b"\0\1" + SUBSCRIPTION + OWNED, WITH_OWNED),
        (b"\0\2" + SUBSCRIPTION + OWNED + b"\0\0\0\5", WITH_OWNED | {"generationId": 5}),
        (b"\0\3" + SUBSCRIPTION + OWNED + b"\0\0\0\5" + b"\0\1r", WITH_ALL),
        # later versions have more at the end
        (b"\0\4" + SUBSCRIPTION + OWNED + b"\0\0\0\5" + b"\0\1r" + b"more", WITH_ALL),
        (b"\x7f\xff" + SUBSCRIPTION + OWNED + b"\0\0\0\5" + b"\0\1r", WITH_ALL),
        (b"\0\0" + SUBSCRIPTION + b"more", BASE),
    ],
)
def test_subscriptions_of_every_version(data, expected):
    """ConsumerProtocol: a reader takes what it knows of a later version; what does not decode stays bytes."""
    assert record_schemas._of_protocol(0, data) == expected
    for cut in range(len(b"\0\0" + SUBSCRIPTION)):
        assert record_schemas._of_protocol(0, data[:cut]) == data[:cut]
    assert record_schemas._of_protocol(0, None) is None
