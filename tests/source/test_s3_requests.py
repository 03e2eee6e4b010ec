"""What an audit asks of S3: each request takes some 10 ms and costs money, so they are few and large."""

import struct
from collections import Counter
from random import Random

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from tests.logs import Log, data

PAGE = 1000
"""Keys of one answer of ListObjectsV2, at most."""
AHEAD = 8 << 20


def partitions(s3, prefix, count):
    for number in range(count):
        for suffix in ("log", "index", "timeindex"):
            s3.put(f"{prefix}/b{number % 2}/orders-{number}/00000000000000000000.{suffix}", b"x" * 100)


def test_a_prefix_is_listed_by_pages_of_all_keys_not_by_directories(s3_server):
    partitions(s3_server, "few", 4)
    partitions(s3_server, "many", 400)
    assert len(discover(["s3://kafka/few"]).partitions) == 4
    few = len(s3_server.requests)
    s3_server.requests.clear()
    found = discover(["s3://kafka/many"])
    assert len(found.partitions) == 400
    assert {(len(entry.segments), len([*entry.side_files]), entry.bytes) for entry in found.partitions} == {(1, 2, 100)}
    assert [request.key for request in s3_server.requests if request.kind == "LIST" and request.delimiter is None] == [
        "many/"
    ] * -(-400 * 3 // PAGE)
    assert len(s3_server.requests) == few + 1  # a page


def indexed_log(directory, batches):
    """A segment of batches of 16 KiB each, and an index with a row for each but the first."""
    log, random = Log(), Random(batches)
    for sequence in range(batches):
        log.append(data(1, 0, sequence, payload=random.randbytes(16 << 10)))
    log.write(directory)
    content, position = (directory / f"{0:020d}.log").read_bytes(), 0
    rows: list[tuple[int, int]] = []
    while position < len(content):
        rows.append((len(rows), position))
        position += 12 + int.from_bytes(content[position + 8 : position + 12])
    index = directory / f"{0:020d}.index"
    index.write_bytes(b"".join(struct.pack(">ii", *row) for row in rows[1:]))
    index.with_suffix(".timeindex").write_bytes(b"")
    return index


def test_objects_are_read_in_large_pieces_and_indexes_once(s3_server, tmp_path):
    for number, batches in enumerate((1500, 20)):
        indexed_log(tmp_path / "b" / f"orders-{number}", batches)
    index = tmp_path / "b" / "orders-0" / f"{0:020d}.index"
    rows = index.read_bytes()
    index.write_bytes(rows[:92] + struct.pack(">i", struct.unpack_from(">i", rows, 92)[0] + 1) + rows[96:])
    s3_server.upload(tmp_path, "logs")
    result = scan(ScanOptions(["s3://kafka/logs"], jobs=1), SilentProgress())
    assert [(found.code, found.position) for found in result.findings] == [("KA503", 88)]
    gets, fetched = Counter[str](), Counter[str]()
    for request in s3_server.requests:
        if request.kind == "GET":
            gets[request.key] += 1
            fetched[request.key] += request.length or 0
    for file in tmp_path.rglob("*.*"):
        key, size = f"logs/{file.relative_to(tmp_path)}", file.stat().st_size
        # a large segment is cut once: where a batch begins there is looked for, and the first piece ends there
        cuts = size > AHEAD
        assert gets[key] <= -(-size // AHEAD) + 2 * cuts, key
        assert fetched[key] <= size + cuts * (128 << 10), key
    assert max(Counter(request.key for request in s3_server.requests if request.kind == "HEAD").values()) <= 2


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_is_refused_is_not_missing(s3_server, tmp_path, name):
    log = Log()
    for sequence in range(3):
        log.append(data(1, 0, sequence))
    log.write(tmp_path / "orders-0")
    (tmp_path / name).write_text("0\n1\norders 0 2\n")
    s3_server.upload(tmp_path, "logs")
    assert not scan(ScanOptions(["s3://kafka/logs"], jobs=1), SilentProgress()).incomplete
    s3_server.denied = lambda request: request.key == f"logs/{name}"
    result = scan(ScanOptions(["s3://kafka/logs"], jobs=1), SilentProgress())
    assert result.incomplete
    (note,) = [note for note in result.not_audited if note.unreadable]
    assert note.path == f"s3://kafka/logs/{name}"
    assert "ACCESS_DENIED" in note.reason
    assert "s3:ListBucket" in note.reason
