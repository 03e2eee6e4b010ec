import json
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.metadata_records import (
    UNKNOWN_NAME,
    FeatureLevel,
    MetadataRecord,
    ProducerIds,
    parse_metadata_record,
)
from kaudit.formats.internal_topics.record_schemas import schemas
from kaudit.formats.log.records import read_records
from kaudit.model.internal_topics import CLUSTER
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches


def frame(api_key, body, frame_version=1, version=0):
    return b"".join(map(encoders.unsigned_varint, (frame_version, api_key, version))) + body


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@quick
def test_producer_ids_round_trip(broker_id, broker_epoch, next_producer_id):
    body = struct.pack(">iqq", broker_id, broker_epoch, next_producer_id) + encoders.tagged({})
    content = ProducerIds(broker_id, broker_epoch, next_producer_id)
    assert parse_metadata_record(frame(15, body)) == MetadataRecord(15, 0, content)


@given(
    st.text(max_size=30), st.integers(-(2**15), 2**15 - 1), st.dictionaries(st.integers(0, 3), st.binary(max_size=3))
)
@quick
def test_feature_levels_round_trip(name, level, tags):
    body = encoders.compact_string(name) + struct.pack(">h", level) + encoders.tagged(tags)
    assert parse_metadata_record(frame(12, body)).content == FeatureLevel(name, level)


def test_what_we_do_not_decode_is_named_or_unknown():
    found = parse_metadata_record(frame(3, b"anything", version=2))
    assert (found, found.name) == (MetadataRecord(3, 2, None), "PartitionRecord")
    assert parse_metadata_record(frame(999, b"")).name == UNKNOWN_NAME
    assert parse_metadata_record(frame(15, b"of the future", version=1)).content is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.TRUNCATED),
        (b"", Reason.TRUNCATED),
        (b"\x02\x0f\x00", Reason.VERSION),
        (b"\x01\xff\xff\xff\xff\x7f", Reason.VARINT),
        (frame(15, bytes(19)), Reason.TRUNCATED),
        (frame(15, bytes(22)), Reason.TRAILING),
        (frame(12, b"\x00" + bytes(3)), Reason.LENGTH),
    ],
)
def test_broken_records(value, reason):
    with pytest.raises(WireError) as caught:
        parse_metadata_record(value)
    assert caught.value.reason is reason


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_every_record_equals_that_versions_own_dump(evidence, version):
    root, dumped = evidence.oracle(version, "logdir"), {}
    text = (evidence.oracle(version, "dumps") / "cluster-metadata-pid1.txt").read_text()
    for line in text.splitlines():
        if found := re.match(r"\| offset: (\d+) .*? payload: (\{.*\})$", line):
            dumped[int(found[1])] = json.loads(found[2])
    compared, content = 0, 0
    (log,) = (root / "pid1" / "__cluster_metadata-0").glob("*.log")
    for _, raw in batches(log.read_bytes()):
        if raw[22] & 0x20:
            continue
        for record in read_records(raw):
            parsed, expected = parse_metadata_record(record.value), dumped[record.offset]
            assert re.sub(r"(?<!^)([A-Z])", r"_\1", parsed.name).upper() == expected["type"]
            assert parsed.version == expected["version"]
            data = expected["data"]
            if isinstance(parsed.content, ProducerIds):
                assert (parsed.content.broker_id, parsed.content.next_producer_id) == (
                    data["brokerId"],
                    data["nextProducerId"],
                )
                assert parsed.content.broker_epoch == data["brokerEpoch"]
                content += 1
            elif isinstance(parsed.content, FeatureLevel):
                assert (parsed.content.name, parsed.content.level) == (data["name"], data["featureLevel"])
                content += 1
            compared += 1
    assert compared == len(dumped)
    assert compared > 30
    assert content > 3


SAMPLES = [frame(15, bytes(21)), frame(12, encoders.compact_string("metadata.version") + b"\x00\x1d\x00")]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    _, error = outcome(parse_metadata_record, data)
    assert error is None or 0 <= error.position <= len(data)


def test_records_have_the_names_of_their_schemas():
    """The apiKey of each file of Kafka's metadata/src/main/resources/common/metadata."""
    names = [
        "0",
        "RegisterBroker",
        "1",
        "UnregisterBroker",
        "2",
        "Topic",
        "3",
        "Partition",
        "4",
        "Config",
        "5",
        "PartitionChange",
        "7",
        "FenceBroker",
        "8",
        "UnfenceBroker",
        "9",
        "RemoveTopic",
        "10",
        "DelegationToken",
        "11",
        "UserScramCredential",
        "12",
        "FeatureLevel",
        "14",
        "ClientQuota",
        "15",
        "ProducerIds",
        "17",
        "BrokerRegistrationChange",
        "18",
        "AccessControlEntry",
        "19",
        "RemoveAccessControlEntry",
        "20",
        "NoOp",
        "21",
        "ZkMigrationState",
        "22",
        "RemoveUserScramCredential",
        "23",
        "BeginTransaction",
        "24",
        "EndTransaction",
        "25",
        "AbortTransaction",
        "26",
        "RemoveDelegationToken",
        "27",
        "RegisterController",
        "28",
        "ClearElr",
        "29",
        "UnregisterController",
    ]
    found = {key: schema.name for (topic, key), schema in schemas().items() if topic == CLUSTER}
    assert [f"{key} {name}" for key, name in sorted(found.items())] == [
        f"{key} {name}Record" for key, name in zip(names[::2], names[1::2], strict=True)
    ]
