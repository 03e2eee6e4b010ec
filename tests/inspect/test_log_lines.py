"""Logs of brokers and clients as rows of `kaudit inspect`, and directories of what no broker's name explains."""

# ruff: noqa: F811 - fixtures

import gzip
import json
from pathlib import Path

import pytest

from kaudit.source.inspect_columns import INSPECT_TABLES
from tests.cli.conftest import kaudit, plain_environment  # noqa: F401 - fixtures
from tests.logs import Log, data

REFUSED = (
    "[2024-06-24 08:11:02,411] ERROR [ReplicaManager broker=2] Error processing append operation on partition merchants-0"
    " (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number"
    " for producer 29003 at offset 1641969 in partition merchants-0: 158 (incoming seq. number), 155 (current end sequence number)\n"
)
STARTED = "[2024-06-24 08:12:02,411] INFO [KafkaServer id=2] started (kafka.server.KafkaServer)\n"
CLIENT = (
    "2024-06-24 08:11:02,431 WARN [Producer clientId=p-1] Got error produce response with correlation id 5 on topic-partition"
    " merchants-0, retrying (2147483646 attempts left). Error: OUT_OF_ORDER_SEQUENCE_NUMBER"
    " (org.apache.kafka.clients.producer.internals.Sender)\n"
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "logs" / "server.log"
    path.parent.mkdir()
    path.write_text(REFUSED + STARTED)
    return path


def rows(kaudit, *arguments):
    outcome = kaudit("inspect", "--output-format", "jsonl", *arguments)
    assert outcome.code == 0
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_each_event_is_a_row(kaudit, log):
    refused, started = rows(kaudit, log)
    for row in (refused, started):
        assert set(row) == {"row", *INSPECT_TABLES["event"]}
        assert (row["row"], row["file"], row["origin"], row["client"]) == ("event", "server.log", "server", None)
    assert (refused["line"], refused["event"], refused["error"]) == (
        1,
        "out_of_order_sequence",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
    )
    assert (refused["topic"], refused["partition"], refused["producer_id"], refused["offset"]) == (
        "merchants",
        0,
        29003,
        1641969,
    )
    assert (refused["base_sequence"], refused["last_sequence"], refused["timestamp"]) == (158, 155, 1719216662411)
    assert refused["text"] == REFUSED.removesuffix("\n")
    assert (started["line"], started["event"], started["topic"]) == (3, "started", None)


def test_people_read_one_table_of_all_partitions(kaudit, log):
    file, header, refused, started = kaudit("inspect", log).out.splitlines()
    assert file == "server.log"
    assert header.split()[:5] == ["line", "time", "(UTC)", "level", "event"]
    assert "merchants-0  29003" in refused
    assert "started" in started


def test_filters_choose_events(kaudit, log):
    assert [row["line"] for row in rows(kaudit, "--producer-id", "29003", log)] == [1]
    assert [row["line"] for row in rows(kaudit, "--since", "2024-06-24T08:12:00Z", log)] == [3]


def test_a_compressed_log_and_one_of_several_programs(kaudit, tmp_path):
    path = tmp_path / "all.log.gz"
    path.write_bytes(gzip.compress((REFUSED + CLIENT).encode()))
    assert [(row["line"], row["origin"]) for row in rows(kaudit, path)] == [(1, "server"), (3, "client")]


def test_a_directory_of_logs(kaudit, log):
    (file,) = json.loads(kaudit("inspect", "--output-format", "json", log.parent).out)["rows"]
    assert (file["file"], file["kind"], file["status"]) == ("server.log", "application_log", "ok")
    assert [row["line"] for row in rows(kaudit, log.parent)] == [1, 3]


DUMP = (
    "Dumping /d/orders-3/00000000000000000000.log\nLog starting offset: 0\n"
    "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: 42 producerEpoch: 0 partitionLeaderEpoch: 0"
    " isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700000000000 size: 70"
    " magic: 2 compresscodec: none crc: 1234567 isvalid: true\n"
)


def test_directories_of_copies_and_of_texts(kaudit, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "orders.txt").write_text(DUMP)
    assert [(row["topic"], row["partition"], row["producer_id"]) for row in rows(kaudit, tmp_path / "texts")] == [
        ("orders", 3, 42)
    ]
    log = Log()
    log.append(data(7, 0, 0, 3))
    copy: Path = log.write(tmp_path / "copies" / "orders_3")
    for given, named, place in (
        (copy, (), ("orders_3", 0)),
        (copy.parent, ("--topic", "orders", "--partition", "3"), ("orders", 3)),
        (copy, ("--topic", "orders", "--partition", "3"), ("orders", 3)),
    ):
        assert [(row["topic"], row["partition"]) for row in rows(kaudit, *named, given)] == [place]
