"""file:// and webhdfs:// URLs, layouts, dumps that are no logs, and files that cannot be read: from both engines."""

import shutil

import pytest
from msgspec.structs import replace

from kaudit.errors import NothingToAuditError, UsageError
from tests.engines.faulty_logs import duplicates, gap, healthy
from tests.engines.webhdfs_server import WebHdfs


@pytest.fixture
def store(tmp_path):
    with WebHdfs(tmp_path / "store") as server:
        yield server


def test_a_file_url_is_a_path(local, tmp_path):
    gap(tmp_path / "a dir" / "orders-0")
    by_url, by_path = local.scan(f"file://{tmp_path}/a%20dir").findings, local.scan(tmp_path / "a dir").findings
    # commands name the input as it was given
    assert [replace(found, next=()) for found in by_url] == [replace(found, next=()) for found in by_path]
    assert f"file://{tmp_path}/a%20dir" in " ".join(by_url[0].next)
    with pytest.raises(UsageError, match="three slashes"):
        local.scan("file://host/data")


def test_webhdfs_gives_what_the_disk_gives(engine, store):
    healthy(store.root / "logs" / "orders-0")
    duplicates(store.root / "logs" / "orders-1")
    (store.root / "logs" / "log-start-offset-checkpoint").write_text("0\n1\norders 1 3\n")
    near, far = engine.scan(store.root / "logs"), engine.scan(f"{store.url}/logs")
    assert [finding.code for finding in far.findings] == ["KA101"] * 3
    assert [(found.fingerprint, found.evidence) for found in far.findings] == [
        (found.fingerprint, found.evidence) for found in near.findings
    ]
    assert far.partitions[1].log_start_offset == 3
    assert far.summary == near.summary


def test_remote_files_are_read_in_ranges(local, store):
    healthy(store.root / "orders-0", batches=400)
    local.scan(f"{store.url}/orders-0", chunk_bytes=20_000)
    reads = [length for name, _, length in store.opened if name.endswith(".log")]
    whole = max(file.stat().st_size for file in (store.root / "orders-0").glob("*.log"))
    assert len(reads) > 3
    assert max(reads) <= whole


def test_an_unreadable_segment_is_reported_and_the_rest_audited(engine, store):
    gap(store.root / "orders-0")
    healthy(store.root / "orders-1")
    duplicates(store.root / "orders-2")
    broken = sorted((store.root / "orders-1").glob("*.log"))[1]
    store.broken.add(broken.name)
    result = engine.scan(store.url, chunk_bytes=500)
    reason = "WebHDFS answered 500 Internal Server Error (read from byte 500 on)"  # where a batch begins there is asked first
    unreadable = [item for item in result.not_audited if item.unreadable]
    assert [(item.path, item.reason) for item in unreadable] == [(f"{store.url}/orders-1/{broken.name}", reason)]
    assert result.incomplete
    assert [finding.code for finding in result.findings] == ["KA104", "KA012"] + ["KA101"] * 3
    (found,) = [finding for finding in result.findings if finding.code == "KA012"]
    assert (found.file, found.evidence["reason"]) == (f"orders-1/{broken.name}", reason)
    rows = {(row.partition, row.segment): (row.status, row.reason) for row in result.segments}
    assert rows[1, broken.name] == ("unreadable", reason)
    assert [status for status, _ in rows.values()].count("read") == len(rows) - 1


def test_a_path_that_is_not_there_is_usage(engine, store, tmp_path):
    (store.root).mkdir()
    with pytest.raises(UsageError, match="no such file"):
        engine.scan(f"{store.url}/nothing")
    with pytest.raises(UsageError, match="reads local paths"):
        engine.scan("gopher://host/logs")
    with pytest.raises(UsageError, match="s3:// needs a bucket"):
        engine.scan("s3:///logs")
    with pytest.raises(NothingToAuditError, match="webhdfs"):
        engine.scan(store.url)


def test_a_store_that_does_not_answer_is_unreadable(local):
    with pytest.raises(
        NothingToAuditError,
        match=r"webhdfs://127\.0\.0\.1:1/logs: nobody answers at 127\.0\.0\.1:1: Connection refused",
    ):
        local.scan("webhdfs://127.0.0.1:1/logs")


def test_a_layout_names_topic_partition_and_replica(engine, tmp_path):
    for replica in ("ams", "fra"):
        gap(tmp_path / f"dc={replica}" / "shop.orders" / "p007")
    result = engine.scan(tmp_path, layout="dc={replica}/{topic}/p{partition}")
    assert [(part.topic, part.partition, part.replica) for part in result.partitions] == [
        ("shop.orders", 7, "ams"),
        ("shop.orders", 7, "fra"),
    ]
    assert [finding.replica for finding in result.findings] == ["ams", "fra"]


def test_replicas_are_distinguished_without_a_layout(engine, tmp_path):
    for broker in (1, 2):
        gap(tmp_path / f"broker={broker}" / "orders-0")
    assert [part.replica for part in engine.scan(tmp_path).partitions] == ["broker=1", "broker=2"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{topic}", "has no {partition}"),
        ("{topic}-{partition}-{topic}", "given twice"),
        ("{topic}/{part}", "is not a field"),
        ("{topic/p{partition}", "brace"),
    ],
)
def test_a_layout_that_cannot_be_is_usage(local, tmp_path, pattern, message):
    with pytest.raises(UsageError, match=message):
        local.scan(tmp_path, layout=pattern)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("part-0.parquet", b"PAR1....", "Parquet"),
        ("orders.json.gz", b"\x1f\x8b..", "JSON"),
        ("orders", b'{"key": null, "value": 1}\n{}', "JSON"),
        ("orders+0+0.avro", b"Obj\x01", "Avro"),
    ],
)
def test_a_dump_of_records_is_refused_in_one_sentence(local, tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NothingToAuditError, match=f"{kind} .*lost their producer ids.*give kaudit the segment files"):
        local.scan(tmp_path / name)
    if "." in name:
        with pytest.raises(NothingToAuditError, match="lost their producer ids"):
            local.scan(tmp_path)
    shutil.copytree(gap(tmp_path / "kept" / "orders-0"), tmp_path / "orders-0")
    assert not [item for item in local.scan(tmp_path).not_audited if "dump" in item.reason]
