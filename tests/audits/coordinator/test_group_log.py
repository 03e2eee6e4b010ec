"""Entries of __consumer_offsets: by columns, one by one and as kafka-dump-log prints them, they are the same."""

import errno
import gzip
import struct
from dataclasses import replace
from pathlib import Path

import crc32c
import pytest

from kaudit.audits.coordinator import group_log as module
from kaudit.audits.coordinator.group_log import (
    CommitRecord,
    GroupLogEntry,
    GroupLogReader,
    GroupRecord,
    MissingRecords,
    TransactionEnd,
)
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.commits import commit_batch, group_value
from tests.logs import BASE_TIMESTAMP, TRANSACTIONAL, Batch, marker, record, sealed_records, varint

RECORDED = Path(__file__).parents[2] / "data" / "internal-topics" / "4.4.0"
KEY = "g", "orders", 3
TOPIC_ID = bytes(range(16))


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def commit_key(version: int = 1, group: str = "g") -> bytes:
    return struct.pack(">h", version) + text(group) + text("orders") + struct.pack(">i", 3)


def value(version: int, metadata: str = "") -> bytes:
    """OffsetCommitValue of each version: offset 50, leader epoch 6 where it has one."""
    head = struct.pack(">hq", version, 50) + (struct.pack(">i", 6) if version == 3 else b"")
    tail = struct.pack(">q", BASE_TIMESTAMP) + (struct.pack(">q", -1) if version == 1 else b"")
    return head + text(metadata) + tail


def flexible(metadata: bytes, tags: bytes) -> bytes:
    """OffsetCommitValue of version 4; `metadata` begins with its length and one."""
    return struct.pack(">hqi", 4, 50, 6) + metadata + struct.pack(">q", BASE_TIMESTAMP) + tags


def with_headers(batch: Batch, records: list[bytes]) -> bytes:
    """The same records, each with a header."""
    header = varint(1) + varint(1) + b"h" + varint(1) + b"v"
    longer = []
    for each in records:
        size = 1 if each[0] < 0x80 else 2
        content = each[size:-1] + header
        longer.append(varint(len(content)) + content)
    return sealed_records(batch, longer)


def gzipped(batch: Batch, records: list[bytes]) -> bytes:
    plain = sealed_records(replace(batch, attributes=batch.attributes | 1), records)
    body = plain[21:61] + gzip.compress(b"".join(records))
    return plain[:8] + struct.pack(">i", 9 + len(body)) + plain[12:17] + struct.pack(">I", crc32c.crc32c(body)) + body


ENCODINGS = {"by columns": sealed_records, "compressed": gzipped, "with headers": with_headers}
GROUP_KEY = struct.pack(">h", 2) + text("g")
RECORDS: dict[str, tuple[Batch, list[tuple[bytes | None, bytes | None]], list[GroupLogEntry]]] = {
    "plain": (
        Batch(leader_epoch=5),
        [(commit_key(), value(3)), (commit_key(group="h"), value(3, "metadata"))],
        [
            CommitRecord(7, BASE_TIMESTAMP, 5, -1, -1, KEY, 50, 6),
            CommitRecord(8, BASE_TIMESTAMP, 5, -1, -1, ("h", "orders", 3), 50, 6),
        ],
    ),
    "in a transaction": (
        Batch(4000, 2, attributes=TRANSACTIONAL, leader_epoch=5),
        [(commit_key(), value(3))],
        [CommitRecord(7, BASE_TIMESTAMP, 5, 4000, 2, KEY, 50, 6)],
    ),
    "of a producer, in no transaction": (
        Batch(4000, 2),
        [(commit_key(), value(3))],
        [CommitRecord(7, BASE_TIMESTAMP, 0, -1, -1, KEY, 50, 6)],
    ),
    "removed": (Batch(), [(commit_key(), None)], [CommitRecord(7, BASE_TIMESTAMP, 0, -1, -1, KEY, None)]),
    "of older brokers": (
        Batch(),
        [(commit_key(0), value(0)), (commit_key(1), value(1)), (commit_key(1), value(2, "m"))],
        [CommitRecord(7 + number, BASE_TIMESTAMP, 0, -1, -1, KEY, 50) for number in range(3)],
    ),
    "of newer brokers": (
        Batch(),
        [
            (commit_key(), flexible(b"\1", b"\0")),
            (commit_key(), flexible(b"\4abc", b"\1\0\x10" + TOPIC_ID)),
            (commit_key(), flexible(b"\1", b"\1\0\x10" + bytes(16))),
            # metadata whose length takes two bytes, and a tag of a release to come
            (commit_key(), flexible(b"\x81\1" + b"m" * 128, b"\1\0\x10" + TOPIC_ID)),
            (commit_key(), flexible(b"\1", b"\1\7\1x")),
        ],
        [
            CommitRecord(7 + number, BASE_TIMESTAMP, 0, -1, -1, KEY, 50, 6, topic_id)
            for number, topic_id in enumerate((None, "AAECAwQFBgcICQoLDA0ODw", None, "AAECAwQFBgcICQoLDA0ODw", None))
        ],
    ),
}


def written(root: Path, content: bytes, topic: str = "__consumer_offsets") -> GroupLogReader:
    """A reader; the partition's one segment has these bytes."""
    directory = root / f"{topic}-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").write_bytes(content)
    return GroupLogReader(open_segment)


def entries(root: Path, content: bytes, topic: str = "__consumer_offsets") -> tuple[list[GroupLogEntry], list[str]]:
    """All entries but where the first offsets are missing, and what is noted."""
    reader = written(root, content, topic)
    (partition,) = discover([str(root)]).partitions
    found = list(reader.entries(partition))
    return found[1:] if found[:1] == [MissingRecords(0, 6)] else found, reader.unreadable


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("case", RECORDS)
def test_commits_in_every_encoding(case, encoding, tmp_path):
    batch, records, expected = RECORDS[case]
    own = replace(batch, base_offset=7, count=len(records))
    content = ENCODINGS[encoding](own, [record(number, *each) for number, each in enumerate(records)])
    assert entries(tmp_path, content) == (expected, [])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_records_and_those_of_releases_to_come(encoding, tmp_path):
    records = [
        (GROUP_KEY, group_value(3, {"m": [("orders", 0)]})),
        (None, b"x"),
        (struct.pack(">h", 99) + text("g"), b"x"),
        (commit_key(), value(3)[:-1]),
        (commit_key()[:-1], value(3)),
        (commit_key(), struct.pack(">h", 9)),
        (GROUP_KEY, None),
    ]
    batch = Batch(base_offset=7, count=len(records), leader_epoch=5)
    content = ENCODINGS[encoding](batch, [record(number, *each) for number, each in enumerate(records)])
    found, notes = entries(tmp_path, content)
    assert found[1] == MissingRecords(8, 12)
    first, last = (each for each in found if isinstance(each, GroupRecord))
    assert (first.offset, first.timestamp, first.coordinator_epoch) == (7, BASE_TIMESTAMP, 5)
    assert first.record.value is not None
    assert (first.record.name, first.record.key, first.record.value["generation"]) == (
        "GroupMetadata",
        {"group": "g"},
        3,
    )
    assert (last.offset, last.record.name, last.record.value) == (13, "GroupMetadata", None)
    assert [note.partition(": ")[0] for note in notes] == [
        f"__consumer_offsets-0 at offset {offset}" for offset in range(8, 13)
    ]


def test_markers_and_what_is_missing(tmp_path):
    batches = [
        Batch(7, 1, base_offset=10, attributes=TRANSACTIONAL),
        marker(7, 1, base_offset=11, coordinator_epoch=9),
        marker(8, 2, base_offset=15, commit=False),
        # a control record that is no end of a transaction
        replace(marker(9, 0, base_offset=16), control=(5, 0)),
        Batch(base_offset=20, count=3),
    ]
    content = b"".join(
        each.encode()
        if each.control
        else commit_batch(each, [("g", "orders", number, 50, 6) for number in range(each.count)])
        for each in batches
    )
    assert entries(tmp_path, content) == (
        [
            MissingRecords(0, 9),
            CommitRecord(10, BASE_TIMESTAMP, 0, 7, 1, ("g", "orders", 0), 50, 6),
            TransactionEnd(11, BASE_TIMESTAMP, 7, 1, commits=True),
            MissingRecords(12, 14),
            TransactionEnd(15, BASE_TIMESTAMP, 8, 2, commits=False),
            MissingRecords(16, 19),
            *(CommitRecord(20 + own, BASE_TIMESTAMP, 0, -1, -1, ("g", "orders", own), 50, 6) for own in range(3)),
        ],
        [],
    )


@pytest.mark.parametrize("limit", [1 << 16, 2, 1])
def test_batches_of_more_records_than_are_decoded_at_once(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_RECORDS", limit)
    batches = [Batch(base_offset=7, count=2), marker(7, 0, base_offset=9), Batch(base_offset=10, count=2)]
    content = b"".join(
        each.encode() if each.control else commit_batch(each, [(*KEY, 50, 6)] * each.count) for each in batches
    )
    found, _ = entries(tmp_path, content)
    assert [each.offset for each in found if not isinstance(each, MissingRecords)] == [7, 8, 9, 10, 11]
    assert [type(each) for each in found] == [CommitRecord, CommitRecord, TransactionEnd, CommitRecord, CommitRecord]


def test_a_batch_that_cannot_be_decoded_leaves_out_what_follows_in_it(tmp_path):
    good = commit_batch(Batch(base_offset=7), [("g", "orders", 3, 50, 6)])
    records = [record(0, commit_key(), value(3)), record(1, commit_key(), value(3))[:-2]]
    bad = sealed_records(Batch(base_offset=8, count=2), records)
    after = commit_batch(Batch(base_offset=10), [("g", "orders", 3, 50, 6)])
    found, notes = entries(tmp_path, good + bad + after)
    assert [each if isinstance(each, MissingRecords) else each.offset for each in found] == [
        7,
        8,
        MissingRecords(9, 9),
        10,
    ]
    assert [note.partition(": ")[0] for note in notes] == ["__consumer_offsets-0 at offset 8"]


def test_twenty_undecodable_records_are_noted(tmp_path):
    batch = Batch(base_offset=7, count=21)
    _, notes = entries(tmp_path, sealed_records(batch, [record(number, None, None) for number in range(21)]))
    assert [note.partition(": ")[0] for note in notes] == [
        f"__consumer_offsets-0 at offset {7 + at}" for at in range(20)
    ]


def test_what_a_broker_wrote_is_what_kafka_dump_log_prints(tmp_path):
    """The tool's text says the same of each record as the broker's log."""
    (log,) = discover([str(RECORDED / "__consumer_offsets-0")]).partitions
    (printed,) = discover([str(RECORDED / "__consumer_offsets-0.txt")]).partitions
    reader = GroupLogReader(open_segment)
    by_log, by_text = list(reader.entries(log)), list(reader.entries(printed))
    assert reader.unreadable == []
    assert len(by_log) > 50
    assert any(isinstance(each, CommitRecord) for each in by_log)

    def brief(entries):
        return [
            (each.offset, each.timestamp, each.coordinator_epoch, each.record.name, each.record.key)
            if isinstance(each, GroupRecord)
            else each
            for each in entries
        ]

    assert brief(by_log) == brief(by_text)


BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: {1} producerEpoch: {2} "
    "partitionLeaderEpoch: 5 isTransactional: {3} isControl: {4} deleteHorizonMs: OptionalLong.empty position: {0}00 "
    "CreateTime: 1000 size: 100 magic: 2 compresscodec: none crc: 1 isvalid: true\n| offset: {0} CreateTime: 1000 "
)
HEAD = "Dumping __consumer_offsets-0/00000000000000000000.log\nLog starting offset: 0\n"
PRINTED_KEY = 'keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] key: {"type":"1","data":{"group":"g","topic":"orders","partition":3}} '
PRINTED_VALUE = 'payload: {"version":"3","data":{"offset":50,"leaderEpoch":6,"metadata":"","commitTimestamp":1}}\n'
MARKER = "keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: {} coordinatorEpoch: 9\n"


def test_printed_transactions(tmp_path):
    lines = [
        BATCH.format(0, 7, 1, "true", "false") + PRINTED_KEY + PRINTED_VALUE,
        BATCH.format(1, 7, 1, "true", "true") + MARKER.format("COMMIT"),
        BATCH.format(2, 8, 2, "true", "true") + MARKER.format("ABORT"),
        BATCH.format(3, 9, 0, "false", "false") + PRINTED_KEY + "payload: <DELETE>\n",
    ]
    (tmp_path / "dump.txt").write_text(HEAD + "".join(lines))
    (partition,) = discover([str(tmp_path / "dump.txt")]).partitions
    reader = GroupLogReader(open_segment)
    assert list(reader.entries(partition)) == [
        CommitRecord(0, 1000, 5, 7, 1, KEY, 50, 6),
        TransactionEnd(1, 1000, 7, 1, commits=True),
        TransactionEnd(2, 1000, 8, 2, commits=False),
        CommitRecord(3, 1000, 5, -1, -1, KEY, None),
    ]
    assert reader.unreadable == []


@pytest.mark.parametrize(
    ("topic", "payload", "noted"),
    [
        (
            "__consumer_offsets",
            "keySize: 1 valueSize: 1 sequence: -1 headerKeys: []\n",
            "--offsets-decoder prints the records",
        ),
        (
            "__share_group_state",
            "keySize: 1 valueSize: 1 sequence: -1 headerKeys: []\n",
            "--share-group-state-decoder prints the records",
        ),
        ("__consumer_offsets", PRINTED_KEY + "payload: 5\n", "--offsets-decoder prints the records"),
        (
            "__remote_log_metadata",
            "keySize: 1 valueSize: 1 sequence: -1 headerKeys: []\n",
            "records are not read from texts of kafka-dump-log",
        ),
    ],
)
def test_texts_without_decoded_records(topic, payload, noted, tmp_path):
    path = tmp_path / "dump.txt"
    path.write_text(HEAD.replace("__consumer_offsets", topic) + BATCH.format(0, -1, -1, "false", "false") + payload)
    (partition,) = discover([str(path)]).partitions
    reader = GroupLogReader(open_segment)
    assert list(reader.entries(partition)) == []
    (note,) = reader.unreadable
    assert note.endswith(noted)
    assert note.startswith(str(path))


def test_a_segment_that_cannot_be_read_is_listed_and_the_others_are_read(tmp_path):
    written(tmp_path, commit_batch(Batch(), [("g", "orders", 3, 50, 6)]))
    later = tmp_path / "__consumer_offsets-0" / f"{5:020d}.log"
    later.write_bytes(commit_batch(Batch(base_offset=5), [("g", "orders", 3, 60, 6)]))
    (partition,) = discover([str(tmp_path)]).partitions

    def opened(segment):
        if segment.base_offset == 0:
            raise FileNotFoundError(errno.ENOENT, "gone")
        return open_segment(segment)

    reader = GroupLogReader(opened)
    assert [each.offset for each in reader.entries(partition) if isinstance(each, CommitRecord)] == [5]
    assert [failed.path for failed in reader.failed] == [partition.segments[0].path]
