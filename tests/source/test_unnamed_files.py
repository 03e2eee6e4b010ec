"""Files that no name of a broker's explains: recognised by their first bytes, and taken, skipped or named for what they are."""

import bz2
import gzip
import lzma
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from kaudit.source.content import HEAD_BYTES, Content, Recognised
from kaudit.source.discover import discover
from kaudit.source.recognition import recognise
from tests.formats.encoders import message
from tests.logs import Log, data

BROKER = b"[2024-06-24 08:11:02,411] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)\n"
PRODUCER = b"2024-06-24 08:11:02.411 WARN [Producer clientId=p-1] Got error produce response\n"
OTHER = b"2024-06-24 08:11:02,411 INFO com.example.Shop: sold a hat\n"
DUMP = b"Dumping /d/orders-3/00000000000000000000.log\nLog starting offset: 0\n"
GC = (
    b"[2023-12-05T12:06:32.654+0700][gc,heap] Heap region size: 1M\n[2023-12-05T12:06:32.660+0700][gc     ] Using G1\n",
    b"[0.005s][info][gc] Using G1\n[0.012s][info][gc,init] Version: 17.0.9\n",
    b"OpenJDK 64-Bit Server VM (25.392-b08) for linux-amd64\nCommandLine flags: -XX:+UseG1GC\n2023-12-05T12:06:33.381+0700: 0.727: [GC pause (G1 Evacuation Pause) (young), 0.0052 secs]\n",
)
ZOOKEEPER = (
    b"[2023-12-05 12:06:32,654] INFO clientPortAddress is 0.0.0.0:2181 (org.apache.zookeeper.server.quorum.QuorumPeerConfig)\n"
    b"[2023-12-05 12:06:32,660] INFO Server environment:java.class.path=/opt/kafka/libs/kafka_2.13.jar (org.apache.zookeeper.ZooKeeperMain)\n"
)
AUTHORIZER = (
    b"[2023-12-05 12:06:32,654] INFO Principal = User:a is Denied operation = Write from host = 10.0.0.1 on resource ="
    b" Topic:LITERAL:orders for request = Produce with resourceRefCount = 1 based on rule DefaultDeny (kafka.authorizer.logger)\n"
)
REQUESTS = b"[2023-12-05 12:06:32,654] DEBUG Completed request:RequestHeader(apiKey=PRODUCE) (kafka.request.logger)\n"
CRUISE_CONTROL = (
    b"[2023-12-05 12:06:32,654] INFO Kicking off (com.linkedin.kafka.cruisecontrol.KafkaCruiseControlMain)\n"
)
RECORDS = b'{"topic":"orders","partition":0,"offset":7,"key":null,"payload":"x"}\n'


def batches(offset: int = 0, count: int = 1) -> bytes:
    log = Log(next_offset=offset)
    for number in range(count):
        log.append(data(7, 0, 3 * number, 3))
    return log.encode()


TWO = batches(40, 2)
DAMAGED = {
    "magic": TWO[:16] + b"\x77" + TWO[17:],
    "length": TWO[:8] + b"\xff\xff" + TWO[10:],
    "zeros": bytes(61) + TWO[61:],
    "text": b"It was a dark and stormy night.\n" + TWO[32:],
    "value": TWO[:64] + b"\x77" + TWO[65:],
    "beginning": TWO[30:],
}
"""A segment whose first batch, of offsets 40 to 42, is damaged."""


@pytest.mark.parametrize(
    ("head", "content", "detail"),
    [
        (b"", Content.EMPTY, "an empty file"),
        (batches(), Content.SEGMENT, "batches of a log"),
        (message(5, 1, value=b"v"), Content.SEGMENT, "batches of a log"),
        (DUMP, Content.DUMP_TEXT, "output of kafka-dump-log"),
        (gzip.compress(b"x", mtime=0), Content.PACKED, "an archive or a compressed file (gzip)"),
        (bytes(200), Content.BINARY, "binary data"),
        (bytes(range(256)), Content.BINARY, "binary data"),
        (b"It was a dark and stormy night.\n", Content.TEXT, "text"),
        ("Es war eine dunkle, stürmische Nacht.\n".encode("utf-16"), Content.TEXT, "text"),
        (b"[see page 3]\n", Content.TEXT, "text"),
        (ZOOKEEPER, Content.OTHER_LOG, "the log of ZooKeeper"),
        (AUTHORIZER, Content.OTHER_LOG, "the log of an authorizer"),
        (REQUESTS, Content.OTHER_LOG, "a log of requests"),
        (CRUISE_CONTROL, Content.OTHER_LOG, "the log of Cruise Control"),
        *((text, Content.OTHER_LOG, "the log of the JVM's garbage collector") for text in GC),
    ],
)  # fmt: skip
def test_what_a_file_holds(head, content, detail):
    what = recognise("file", head)
    assert (what.content, what.detail) == (content, detail)


@pytest.mark.parametrize("head", DAMAGED.values(), ids=DAMAGED)
def test_a_segment_whose_first_batch_is_damaged(tmp_path, head):
    assert recognise("orders-3.bak", head) == Recognised(Content.SEGMENT, "batches of a log")
    (tmp_path / "orders-3.bak").write_bytes(head)
    (partition,) = found(tmp_path / "orders-3.bak").partitions
    assert [segment.base_offset for segment in partition.segments] == [43]


@pytest.mark.parametrize("head", [RECORDS, b"[" + RECORDS, b'[\n  {"id": 1}\n]', b"PAR1\0\0\0"])
def test_records_without_their_batches_are_none(head):
    assert recognise("file", head).content is Content.RECORDS


@pytest.mark.parametrize(
    ("head", "origins"),
    [
        (BROKER, ("server",)),
        (OTHER + BROKER, ("server",)),
        (ZOOKEEPER + BROKER, ("server",)),  # a broker's own client of ZooKeeper
        (PRODUCER, ("client",)),
        (b"%3|1709290800.123|FATAL|rdkafka#producer-1| [thrd:main]: Fatal error\n", ("client",)),
        (PRODUCER + BROKER, ("server", "client")),  # the output of several containers
        (OTHER, ("server", "client")),  # what is Kafka's may follow
        (b"\xef\xbb\xbf" + BROKER, ("server",)),
        (BROKER.decode().encode("utf-16"), ("server",)),
        (b'{"level":"INFO","timestamp":"2026-01-01T10:00:00.000Z","logger":"kafkajs","message":"x"}\n', ("client",)),
    ],
)
def test_whose_log_a_file_is(head, origins):
    what = recognise("file", head)
    assert (what.content, what.origins) == (Content.APPLICATION_LOG, origins)


@pytest.mark.parametrize(("line", "origin"), [(BROKER, "server"), (PRODUCER, "client")])
def test_whose_lines_are_in_a_text_that_has_none_of_the_layouts(line, origin):
    without_time = line[line.rindex(b"[") :]
    assert recognise("file", without_time) == Recognised(Content.TEXT, "text", (origin,))
    numbered = recognise("file", b"      7\t" + line)
    assert (numbered.content, numbered.origins) == (Content.APPLICATION_LOG, (origin,))


def test_a_line_that_the_first_bytes_cut_off_decides_nothing():
    padding = OTHER * (HEAD_BYTES // len(OTHER))
    cut = padding + BROKER
    assert recognise("file", cut[:HEAD_BYTES]).origins == ("server", "client")


def found(*paths: Path):
    return discover([str(path) for path in paths])


def written(directory: Path, **files: bytes) -> Path:
    """A directory with these files; `__` in a keyword is a dot."""
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("__", ".")).write_bytes(content)
    return directory


def test_a_directory_of_logs(tmp_path):
    logs = written(
        tmp_path / "logs", server__log=BROKER, app__out=PRODUCER, kafkaServer_gc__log__0=GC[0], zookeeper__out=ZOOKEEPER,
        strange__log=b"nothing that has a layout\n", notes=b"nothing that has a layout\n", image=bytes(99), records__json=RECORDS,
    )  # fmt: skip
    layout = found(tmp_path)
    assert [(Path(log.path).name, log.origins) for log in layout.logs] == [
        ("app.out", ("client",)), ("server.log", ("server",)), ("strange.log", ("server", "client")),
    ]  # fmt: skip
    assert [(entry.path, entry.reason) for entry in layout.other_logs] == [
        (str(logs / "kafkaServer_gc.log.0"), "the log of the JVM's garbage collector: skipped"),
        (str(logs / "zookeeper.out"), "the log of ZooKeeper: skipped"),
    ]
    assert not layout.empty_inputs
    assert [entry.path for entry in layout.skipped] == [str(logs / "records.json")]


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_a_compressed_log_has_the_name_of_its_file(tmp_path, suffix, compress):
    path = tmp_path / f"server.log.1.{suffix}"
    path.write_bytes(compress(BROKER))
    for given in (path, tmp_path):
        (log,) = found(given).logs
        assert (log.name, log.path, log.origins) == (str(path), f"{path}!", ("server",))


def test_texts_and_renamed_segments_count_where_there_is_no_log_directory(tmp_path):
    directory = written(tmp_path / "handed-over", a__txt=DUMP + b"| offset: 0 CreateTime: 5 keysize: -1 valuesize: 1\n")
    (tmp_path / "handed-over" / "sub").mkdir()
    written(directory / "sub", copy__bin=batches(30), packed__gz=gzip.compress(batches(40)))
    layout = found(tmp_path / "handed-over")
    assert [(entry.topic, entry.partition, entry.named) for entry in layout.partitions] == [
        ("orders", 3, True), ("sub", 0, False),
    ]  # fmt: skip
    assert [segment.base_offset for segment in layout.partitions[1].segments] == [30, 40]
    (tmp_path / "handed-over" / "pay-1").mkdir()
    written(tmp_path / "handed-over" / "pay-1", **{"0" * 20 + "__log": batches()})
    layout = found(tmp_path / "handed-over")
    assert [entry.name for entry in layout.partitions] == ["pay-1"]
    reasons = {Path(entry.path).name: entry.reason for entry in layout.skipped}
    assert reasons.keys() == {"a.txt", "copy.bin", "packed.gz"}
    assert all("lies beside segments and was not read" in reason for reason in reasons.values())


def test_archives_count_where_there_is_no_log_directory(tmp_path):
    broker = tmp_path / "broker-1"
    written(tmp_path / "orders-0", **{"0" * 20 + "__log": batches()})
    written(tmp_path / "logs", server__log=BROKER)
    broker.mkdir()
    with tarfile.open(broker / "all.tar.gz", "w:gz") as archive:
        for name in ("orders-0", "logs"):
            archive.add(tmp_path / name, name)
    layout = found(broker)
    assert [entry.name for entry in layout.partitions] == ["orders-0"]
    assert [log.name for log in layout.logs] == [f"{broker}/all.tar.gz!/logs/server.log"]
    shutil.move(tmp_path / "orders-0", broker / "orders-0")
    (skipped,) = found(broker).skipped
    assert skipped.reason.startswith("an archive (gzip) that lies beside segments and was not read")


def test_a_file_by_name_is_read_as_a_log_whatever_its_first_bytes_are(tmp_path):
    text = written(tmp_path, a=b"a banner\n") / "a"
    (log,) = found(text).logs
    assert (log.path, log.origins, log.claimed) == (str(text), ("server", "client"), False)


def test_more_files_than_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.source.unnamed_files.UNNAMED_FILES", 2)
    written(tmp_path, a=BROKER, b=BROKER, c=BROKER, d=BROKER)
    layout = found(tmp_path)
    assert len(layout.logs) == 2
    assert [(entry.path, entry.reason) for entry in layout.skipped] == [
        (str(tmp_path / "c"), "and 2 more files were not looked at: no broker names its files so")
    ]


def test_members_that_cannot_be_opened(tmp_path):
    """A log is missed, and whatever lies beside segments under another name is not."""
    written(tmp_path, a=BROKER)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "b.log")
    written(tmp_path / "orders-0", **{"0" * 20 + "__log": batches()})
    os.mkfifo(tmp_path / "pipe")
    layout = found(tmp_path)
    assert [(entry.path, entry.reason) for entry in layout.unreadable] == [
        (str(tmp_path / "b.log"), "not a regular file")
    ]
    assert [log.path for log in layout.logs] == [str(tmp_path / "a")]
