import json
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.transaction_state import (
    coordinator_partition,
    parse_transaction_key,
    parse_transaction_record,
    parse_transaction_value,
)
from kaudit.formats.log.records import read_records
from kaudit.model.coordinator import TopicPartitions, TransactionStatus, TransactionValue
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches

int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int16 = st.integers(-(2**15), 2**15 - 1)
partitions = st.none() | st.lists(
    st.builds(TopicPartitions, st.text(max_size=9), st.lists(int32, max_size=4).map(tuple)), max_size=3
).map(tuple)
NAMES = {
    "Empty": 0,
    "Ongoing": 1,
    "PrepareCommit": 2,
    "PrepareAbort": 3,
    "CompleteCommit": 4,
    "CompleteAbort": 5,
    "Dead": 6,
    "PrepareEpochFence": 7,
}


def key_of(transactional_id, version=0):
    return struct.pack(">h", version) + encoders.string(transactional_id)


def encode(value):
    """Field by field from TransactionLogValue.json."""
    out = struct.pack(
        ">hqhib", value.version, value.producer_id, value.producer_epoch, value.timeout_ms, value.status_id
    )
    flexible = value.version == 1
    if value.partitions is None:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
    else:
        count = len(value.partitions)
        out += encoders.unsigned_varint(count + 1) if flexible else struct.pack(">i", count)
        for topic in value.partitions:
            ids = b"".join(struct.pack(">i", partition) for partition in topic.partitions)
            if flexible:
                size = encoders.unsigned_varint(len(topic.partitions) + 1)
                out += encoders.compact_string(topic.topic) + size + ids + encoders.tagged({})
            else:
                out += encoders.string(topic.topic) + struct.pack(">i", len(topic.partitions)) + ids
    out += struct.pack(">qq", value.last_update_timestamp, value.start_timestamp)
    if flexible:
        tags = dict(value.unknown_tags)
        for tag, layout, field in (
            (0, ">q", value.previous_producer_id),
            (1, ">q", value.next_producer_id),
            (2, ">h", value.client_transaction_version),
            (3, ">h", value.next_producer_epoch),
        ):
            if field is not None:
                tags[tag] = struct.pack(layout, field)
        out += encoders.tagged(tags)
    return out


@st.composite
def values(draw):
    version = draw(st.integers(0, 1))
    status_id = draw(st.integers(-128, 127))
    tags = [draw(st.none() | field) for field in (int64, int64, int16, int16)] if version else [None] * 4
    unknown = draw(st.dictionaries(st.integers(4, 2**32 - 1), st.binary(max_size=5), max_size=2)) if version else {}
    return TransactionValue(
        version,
        draw(int64),
        draw(int16),
        draw(int32),
        TransactionStatus(status_id if 0 <= status_id <= 7 else -1),
        status_id,
        draw(partitions),
        draw(int64),
        draw(int64),
        tags[0],
        tags[1],
        tags[2],
        tags[3],
        tuple(sorted(unknown.items())),
    )


@given(values(), st.text(max_size=20))
@quick
def test_round_trip(value, transactional_id):
    record = parse_transaction_record(key_of(transactional_id), encode(value))
    assert record.transactional_id == transactional_id
    assert record.value == value


def test_a_tombstone_has_no_value():
    assert parse_transaction_record(key_of("tx"), None).value is None


def _records(root, dump):
    """(record, key text, payload text) of every record the dump names."""
    lines = dump.read_text().splitlines()
    files: dict[Path, dict[int, tuple[str, str]]] = {}
    for line in lines:
        if line.startswith("Dumping "):
            path = root / line.removeprefix("Dumping ")
            files[path] = {}
        elif found := re.match(r"(?:\| )?offset: (\d+) .* key: (.*?) payload: (.*)$", line):
            files[path][int(found[1])] = (found[2], found[3])
    for path, texts in files.items():
        records = {r.offset: r for _, raw in batches(path.read_bytes()) for r in read_records(raw)}
        assert records.keys() == texts.keys()
        for offset, record in records.items():
            yield (path, record, *texts[offset])


def _old_text(value):
    names = {number: name for name, number in NAMES.items()}
    found = sorted(f"{topic.topic}-{p}" for topic in value.partitions or () for p in topic.partitions)
    return (
        value.producer_id,
        value.producer_epoch,
        names[value.status_id],
        found,
        value.last_update_timestamp,
        value.timeout_ms,
    )


def _parse_old(text):
    pattern = r"producerId:(-?\d+),producerEpoch:(-?\d+),state=(\w+),partitions=(?:Set\(|\[)(.*?)[)\]],txnLastUpdateTimestamp=(-?\d+),txnTimeoutMs=(-?\d+)"
    match = re.fullmatch(pattern, text)
    assert match is not None
    pid, epoch, state, parts, updated, timeout = match.groups()
    found = sorted(re.split(r", ?", parts)) if parts else []
    return int(pid), int(epoch), state, found, int(updated), int(timeout)


def _new_text(value):
    data = {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.timeout_ms,
        "transactionStatus": value.status_id,
        "transactionPartitions": value.partitions
        if value.partitions is None
        else [{"topic": topic.topic, "partitionIds": list(topic.partitions)} for topic in value.partitions],
        "transactionLastUpdateTimestampMs": value.last_update_timestamp,
        "transactionStartTimestampMs": value.start_timestamp,
        "previousProducerId": value.previous_producer_id,
        "nextProducerId": value.next_producer_id,
        "clientTransactionVersion": value.client_transaction_version,
        "nextProducerEpoch": value.next_producer_epoch,
    }
    return {
        "version": str(value.version),
        "data": {name: field for name, field in data.items() if field is not None or name == "transactionPartitions"},
    }


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0"])
def test_every_record_equals_that_versions_own_dump(evidence, version):
    root, seen, tagged = evidence.oracle(version, "logdir") / "main", 0, set()
    for path, record, key, payload in _records(root, evidence.oracle(version, "dumps") / "txnstate.txt"):
        parsed = parse_transaction_record(record.key, record.value)
        if payload.startswith("{"):
            assert json.loads(key) == {"type": "0", "data": {"transactionalId": parsed.transactional_id}}
            assert json.loads(payload) == _new_text(parsed.value)
            tagged |= {name for name in json.loads(payload)["data"] if name.startswith(("prev", "next", "client"))}
        else:
            assert key.split("transactionalId=")[1] == parsed.transactional_id
            assert _parse_old(payload) == _old_text(parsed.value)
        # Those brokers ran with two partitions: where a record lies is where its coordinator was.
        assert path.parent.name == f"__transaction_state-{coordinator_partition(parsed.transactional_id, 2)}"
        seen += 1
    assert seen > 90
    assert ("clientTransactionVersion" in tagged) == (version == "4.2.0")


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("€", 8364), ("😀", 1772899)],
)
def test_java_hash_codes(transactional_id, code):
    """Codes as `jshell> "hello".hashCode()` prints them; -2^31 has no absolute value and counts as 0."""
    expected = 0 if code == -(2**31) else abs(code)
    assert coordinator_partition(transactional_id, 2**31 - 1) == expected
    assert coordinator_partition(transactional_id) == expected % 50


GOOD = TransactionValue(
    1, 5, 0, 60_000, TransactionStatus.ONGOING, 1, (TopicPartitions("t", (0, 1)),), 9, 8, 4, None, 2, None, ()
)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, Reason.TRUNCATED),
        (key_of("tx", version=1), None, Reason.VERSION),
        (key_of("tx")[:-1], None, Reason.TRUNCATED),
        (key_of("tx") + b"x", None, Reason.TRAILING),
        (key_of(None), None, Reason.LENGTH),
        (b"\x00\x00\x00\x01\xff", None, Reason.TEXT),
        (key_of("tx"), b"", Reason.TRUNCATED),
        (key_of("tx"), b"\x00\x02" + encode(GOOD)[2:], Reason.VERSION),
        (key_of("tx"), encode(GOOD)[:-1], Reason.TRUNCATED),
        (key_of("tx"), encode(GOOD) + b"\x00", Reason.TRAILING),
        (key_of("tx"), encode(GOOD)[:17] + b"\x02\x02t\x00", Reason.COUNT),
        (key_of("tx"), encode(GOOD)[:17] + b"\xff\xff\xff\xff\x0f", Reason.COUNT),
        (key_of("tx"), encode(GOOD)[:17] + b"\x00" + bytes(16) + b"\x01\x00\x04abcd", Reason.LENGTH),
        (key_of("tx"), encode(GOOD)[:17] + b"\x00" + bytes(16) + b"\x02\x05\x00\x05\x00", Reason.ORDER),
    ],
)
def test_what_is_no_record(key, value, reason):
    with pytest.raises(WireError) as caught:
        parse_transaction_record(key, value)
    assert caught.value.reason is reason


SAMPLES = [encode(GOOD), b"\x00\x00" + encode(GOOD)[2:17] + bytes(20), key_of("transaction")]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    for parse in (parse_transaction_key, parse_transaction_value):
        _, error = outcome(parse, data)
        assert error is None or 0 <= error.position <= len(data)
