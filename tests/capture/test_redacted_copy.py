"""Copies that can be shown to anybody: the findings of their originals, and no name and no content of them."""

import re
import shutil
import struct
from collections import Counter
from pathlib import Path

import pytest

from kaudit.capture.directory import OccupiedError
from kaudit.capture.redacted_contents import RedactedContents
from kaudit.capture.redacted_copy import redacted_copy
from kaudit.capture.redacted_files import moved_index, redacted_file
from kaudit.capture.redacted_segments import Moves
from kaudit.formats.internal_topics.transaction_state import coordinator_partition
from kaudit.library import scan
from kaudit.model.transactional_ids import NUMBERED, application_of, parse_name
from kaudit.results.redaction import Redactor
from tests.formats.encoders import COMPRESS, batch, message, record

SECRET = b"s"
MARK = b"zqMark"
SAMPLES = (
    "zombie",
    "coordinator",
    "consumed-offsets",
    "crafted",
    "side-files",
    "open-transaction",
    "duplicates",
    "retries",
)


def copied(source: Path, target: Path, *more: Path):
    return redacted_copy([str(source), *map(str, more)], str(target), Redactor(SECRET))


def findings(root: Path, names=None):
    """Code, place and producer of each finding; with topics as `names` has them."""
    return Counter(
        (
            found.code,
            found.severity,
            names(found.topic) if names and found.topic else found.topic,
            found.partition,
            found.offset,
            found.producer_id,
        )
        for found in scan(str(root)).findings
    )


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_findings_are_the_same_and_no_name_is_left(tmp_path, sample):
    original = Path("samples") / sample
    account = copied(original, tmp_path / "copy")
    assert findings(tmp_path / "copy") == findings(original, Redactor(SECRET).topic)
    names = {
        path.name.rpartition("-")[0] for path in original.iterdir() if path.is_dir() and not path.name.startswith("__")
    }
    text = b"\0".join([*files(tmp_path / "copy").values(), *map(str.encode, files(tmp_path / "copy"))])
    assert not [name for name in names - {"snapshot"} if name.encode() in text]
    assert [entry.reason for entry in account.left_out] == ["text"]  # README.md
    assert account.unread == []


def marked_batches(codec: int, flags: int = 0) -> bytes:
    headers = [(MARK + b"-header", MARK)]
    records = [record(at, at, b"%s-%d" % (MARK, at), MARK * 50, headers) for at in range(9)]
    made = [
        batch(records, 9 * number, codec, flags, producer_id=7, producer_epoch=0, base_sequence=9 * number)
        for number in range(3)
    ]
    return b"".join(made)


def directory(root: Path, content: bytes) -> Path:
    (root / "log/zqMark-0").mkdir(parents=True)
    (root / "log/zqMark-0/00000000000000000000.log").write_bytes(content)
    return root / "log"


@pytest.mark.parametrize("codec", COMPRESS)
def test_batches_of_every_codec(tmp_path, codec):
    content = marked_batches(codec)
    source = directory(tmp_path, content)
    positions = [0, *(at + 61 for at in range(1, len(content)) if content[at : at + 8] == struct.pack(">q", 9))]
    copied(source, tmp_path / "copy")
    ((name, made),) = files(tmp_path / "copy").items()
    assert re.fullmatch(r"topic-\w{10}-0/0{20}\.log", name)
    assert (MARK in made, len(made) == len(content) or codec != 0, positions[0]) == (False, True, 0)
    assert findings(tmp_path / "copy") == Counter()
    for depth in ("crc", "records"):
        assert scan(str(tmp_path / "copy"), depth=depth).summary == scan(str(source), depth=depth).summary or codec


CONTENT = marked_batches(0)
SIZE = len(CONTENT) // 3
DAMAGE = {
    "value": CONTENT[: SIZE + 90] + b"\xff" + CONTENT[SIZE + 91 :],
    "length": CONTENT[: SIZE + 11] + b"\x07" + CONTENT[SIZE + 12 :],
    "magic": CONTENT[: SIZE + 16] + b"\x09" + CONTENT[SIZE + 17 :],
    "torn": CONTENT[:-40],
    "torn header": CONTENT[: 2 * SIZE + 30],
    "hole": CONTENT[: SIZE + 60] + bytes(300) + CONTENT[SIZE + 360 :],
    "zeros": CONTENT + bytes(5000),
    "garbage": CONTENT + MARK * 90,
    "cut out": CONTENT[: SIZE + 90] + CONTENT[2 * SIZE - 90 :],
    "two": CONTENT[:90] + b"\xff" + CONTENT[91 : SIZE + 90] + b"\xff" + CONTENT[SIZE + 91 :],
    "records": batch([MARK * 20], 0, count=2, last_offset_delta=1) + CONTENT,
    "codec": batch([MARK * 20], 0, codec=6) + CONTENT,
    "legacy": message(0, 1, MARK, MARK * 9) + message(1, 0, MARK, COMPRESS[1](message(1, 0, MARK, MARK)), 1) + CONTENT,
    "damaged legacy": message(0, 1, MARK, MARK * 9)[:-1] + b"!" + message(1, 1, MARK, MARK),
    "wrapper": message(0, 1, None, MARK * 9, codec=1) + message(1, 1, MARK, MARK),
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_damage_stays_damage_and_says_nothing(tmp_path, content):
    source = directory(tmp_path, content)
    copied(source, tmp_path / "copy")
    ((_, made),) = files(tmp_path / "copy").items()
    assert MARK not in made
    assert MARK[2:] not in made
    assert findings(tmp_path / "copy") == findings(source, Redactor(SECRET).topic)


def test_a_copy_of_a_copy_and_archives_and_several_inputs(tmp_path):
    source = directory(tmp_path, CONTENT)
    shutil.make_archive(str(tmp_path / "zqpacked"), "zip", tmp_path, "log")
    copied(source, tmp_path / "one")
    copied(tmp_path / "zqpacked.zip", tmp_path / "packed")
    assert [*files(tmp_path / "packed").values()] == [*files(tmp_path / "one").values()]
    copied(source, tmp_path / "two", tmp_path / "zqpacked.zip")
    assert sorted(files(tmp_path / "two").values()) == 2 * [*files(tmp_path / "one").values()]
    assert not [name for name in files(tmp_path / "two") if "zq" in name]
    segment = next(source.rglob("*.log"))
    copied(segment, tmp_path / "segment")
    assert files(tmp_path / "segment") == files(tmp_path / "one")


def test_places_that_cannot_be(tmp_path):
    source = directory(tmp_path, CONTENT)
    with pytest.raises(OccupiedError, match="lies in"):
        copied(source, source / "copy")
    with pytest.raises(OccupiedError, match="new directory"):
        copied(source, tmp_path)
    with pytest.raises(FileNotFoundError):
        copied(tmp_path / "nothing", tmp_path / "copy")


SERVER_LOG = (
    "[2023-11-14 22:13:21,000] ERROR [ReplicaManager broker=1] Error processing append operation on partition zqMark-0 (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 7 at offset 3 in partition zqMark-0: 99 (incoming seq. number), 2 (current end sequence number)\n"
    "[2023-11-14 22:13:23,000] INFO [Partition zqMark-0 broker=1] Shrinking ISR from 1,2 to 1 on zqhost:9092 (kafka.cluster.Partition)\n"
)  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_logs_beside_are_redacted_and_say_the_same(tmp_path, encoding):
    source = directory(tmp_path, CONTENT)
    (source / "zqserver.log").write_text(SERVER_LOG, encoding=encoding)
    (source / "zqnotes.txt").write_text("zq was here\n")
    (source / "zqdump.json").write_text('{"topic": "zq"}')
    account = copied(source, tmp_path / "copy")
    text = b"\0".join([*files(tmp_path / "copy").values(), *map(str.encode, files(tmp_path / "copy"))])
    assert b"zq" not in text
    assert b"Out of order sequence number for producer 7 at offset 3 in partition topic-" in text
    assert account.logs == 1
    assert "zq" not in str(account)
    assert sorted(entry.reason[:11] for entry in account.left_out) == ["a JSON dump", "text"]
    assert findings(tmp_path / "copy") == findings(source, Redactor(SECRET).topic)
    assert [code for code, *_ in findings(source)] == ["KA810"]


CLIENT_LOG = (
    "2024-05-25 13:14:17.891  WARN 1 --- [ad | zqclient] o.a.k.clients.producer.internals.Sender  : [Producer clientId=zqclient] Got error produce response with correlation id 5 on topic-partition t-0, retrying (2 attempts left). Error: UNKNOWN_PRODUCER_ID\n"
    "2024-05-25 13:14:18.891 ERROR 1 --- [ad | zqclient] o.s.k.support.LoggingProducerListener    : Exception thrown when sending a message with key='4711' and payload='{\"a\": 5, \"zq\": 7}' to topic t:\n"
    "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer with the same transactionalId which fences the current one.\n"
)  # fmt: skip


def test_logs_alone(tmp_path):
    (tmp_path / "client.log").write_text(CLIENT_LOG)
    copied(tmp_path / "client.log", tmp_path / "copy")
    ((_, text),) = files(tmp_path / "copy").items()
    assert not [part for part in (b"zq", b"4711", b" t-0", b"topic t:", b'"a"') if part in text]
    found = findings(tmp_path / "copy")
    assert found == findings(tmp_path / "client.log", Redactor(SECRET).topic)
    assert sorted(code for code, *_ in found) == ["KA811", "KA812"]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("replication-offset-checkpoint", b"0\n2\nzq 3 17\n__transaction_state 1 5\n", rb"0\n2\ntopic-\w{10} 3 17\n__transaction_state 1 5\n"),
        ("recovery-point-offset-checkpoint", b"0\n1\nzq is 17\n", rb"0\n1\nxx xx 17\n"),
        ("leader-epoch-checkpoint", b"0\n1\n3 17\nzq\n", rb"0\n1\n3 17\nxx\n"),
        ("partition.metadata", b"version: 0\ntopic_id: zqzqzqzqzqzqzqzqzqzqzq", rb"version: 0\ntopic_id: \w{22}"),
        ("partition.metadata", b"version: 0\nzq", rb"xxxxxxxx 0\nxx"),
        (
            "meta.properties",
            b"#zq\nversion=1\nnode.id=3\ncluster.id=zq\ndirectory.id=4g9i2NRMSmKyGKtU9A9Vjw\nzq.x=zq\n",
            rb"#\nversion=1\nnode.id=3\ncluster.id=value-\w{10}\ndirectory.id=4g9i2NRMSmKyGKtU9A9Vjw\nvalue-\w{10}=value-\w{10}\n",
        ),
        ("meta.properties", b"zq=1", rb"xxx1"),
        (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":7,"zq":1}', rb'\{"version":0,"brokerEpoch":7\}'),
        (".kafka_cleanshutdown", b"", rb""),
        ("quorum-state", b'{"clusterId":"zq","leaderId":3,"voters":[{"host":"zq","id":1}],"data_version":1}', rb'\{"clusterId":"value-\w+","leaderId":3,"voters":\[\{"host":"value-\w+","id":1\}\],"data_version":1\}'),
        ("quorum-state", b"zq", b"xx"),
        ("capture.json", b"zq", b"xx"),
    ],
    ids=["offsets", "damaged offsets", "epochs", "metadata", "damaged metadata", "meta", "damaged meta", "shutdown", "empty shutdown", "quorum", "damaged quorum", "account"],
)  # fmt: skip
def test_files_beside_segments(name, data, expected):
    redacted = redacted_file(name, data, Redactor(SECRET))
    assert redacted is not None
    assert re.fullmatch(expected, redacted)


def test_an_index_follows_the_batches():
    moves = Moves()
    for position, written in ((0, 0), (100, 90), (200, 190), (300, 310)):
        moves.add(position, written)
    rows = struct.pack(">8i", 1, 100, 2, 250, 3, 300, 0, 0) + b"\1"
    assert moved_index(rows, moves) == struct.pack(">8i", 1, 90, 2, 240, 3, 310, 0, 0) + b"\1"


def test_contents_stay_equal_and_different():
    contents = RedactedContents(Redactor(SECRET))
    for values in (
        [bytes([byte]) for byte in range(256)],
        [b"%03d" % n for n in range(1000)],
        [b"%011d" % n for n in range(1000)],
    ):
        hashes = [contents.content(value) for value in values]
        assert len(set(hashes)) == len(values)
        assert {len(each) for each in hashes} == {len(values[0])}
        assert hashes == [RedactedContents(Redactor(SECRET)).content(value) for value in values]
        assert sum(map(bytes.__eq__, hashes, values)) <= 3
    assert contents.content(b"") == b""
    assert len(contents.content(b"x" * 1000)) == 1000


OPERATOR = "20ba6b65f97481d5570070de90e4e791"
THREAD = "7f3f8c5e-0b0e-4b6a-9d0c-6f1f2a3b4c5d"
BY_PROGRAM = {
    "Kafka Streams, exactly_once_v2": [f"orders-app-{THREAD}-1", f"orders-app-{THREAD}-2"],
    "Kafka Streams, exactly_once": ["orders-app-0_1", "orders-app-1_12"],
    "Flink KafkaSink": ["shop2-3-17", "shop2-3-18"],
    "Flink FlinkKafkaProducer": [f"Sink: out-{OPERATOR}-3", f"Sink: out-{OPERATOR}-44"],
    "ksqlDB query": ["_confluent-ksql-shop_query_CTAS_T_3-0_1", "_confluent-ksql-shop_query_CTAS_T_3-0_2"],
    "ksqlDB command topic": ["shop-migration-producer"],
    "Iceberg Kafka Connect sink": [f"sink-worker-txn-{THREAD}-1", f"sink-worker-txn-{THREAD}-2"],
    "Kafka Connect leader": ["connect-cluster-shop"],
    "Beam KafkaIO": ["producer_3_for_shop", "producer_12_for_shop"],
    "Spring listener": ["tx.group.orders.1", "tx.group.orders.2"],
    NUMBERED: ["tx-shop-7", "tx-shop-12"],
}


@pytest.mark.parametrize("program", BY_PROGRAM)
def test_a_transactional_id_keeps_the_form_of_its_program(program):
    names, redactor = BY_PROGRAM[program], Redactor(SECRET)
    hashes = [redactor.name("transactional_id", name) for name in names]
    assert len(set(hashes)) == len(names)
    before, after = map(parse_name, names), [parse_name(hashed) for hashed in hashes]
    assert all(one and other and one.format is other.format for one, other in zip(before, after, strict=True))
    assert {one.format.program for one in after if one} == {program}
    assert len({one.application for one in after if one}) == 1
    # what is of one member stays so
    members = [len({parsed.member for name in named if (parsed := parse_name(name))}) for named in (names, hashes)]
    assert members[0] == members[1]
    for name, hashed in zip(names, hashes, strict=True):
        assert coordinator_partition(name) == coordinator_partition(hashed)
        assert not {word for word in ("orders", "shop", "out", "sink", "group", THREAD, OPERATOR) if word in hashed}


def test_a_transactional_id_stays_in_its_partition_and_its_application():
    redactor = Redactor(SECRET)
    names = ["payments", "payments-0-17", "payments-3-1", "app-7f3f8c5e-0b0e-4b6a-9d0c-6f1f2a3b4c5d-1", "\u00fc"]
    redactor.partitions = (50, 7)
    hashes = [redactor.name("transactional_id", name) for name in names]
    assert len(set(hashes)) == len(names)
    for name, hashed in zip(names, hashes, strict=True):
        assert coordinator_partition(name) == coordinator_partition(hashed)
        assert coordinator_partition(name, 7) == coordinator_partition(hashed, 7)
        assert (application_of(name) is None) == (application_of(hashed) is None)
    assert application_of(hashes[1]) == application_of(hashes[2]) != application_of(hashes[3])


@pytest.mark.parametrize("directory", ["expiry", "main"])
def test_what_brokers_wrote_has_the_findings_of_the_original(evidence, tmp_path, directory):
    """Ids that no block holds are in many of its partitions (KA401): which one is named may not depend on their names."""
    (original,) = evidence.oracle("4.2.0", "logdir").rglob(directory)
    copied(original, tmp_path / "copy")
    found = findings(original, Redactor(SECRET).topic)
    assert findings(tmp_path / "copy") == found
    assert "KA401" in {code for code, *_ in found}
