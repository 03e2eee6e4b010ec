"""Stores are listed many directories at a time, each once; what is found is what one at a time finds."""

import os
import pickle
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from kaudit.source import listing
from kaudit.source.discover import discover
from kaudit.source.filesystem import FileStatus
from kaudit.source.local import LocalFileSystem
from kaudit.source.uri import Uri
from kaudit.source.webhdfs import WebHdfsFileSystem
from tests.engines.webhdfs_server import WebHdfs
from tests.logs import Log, data

TOPIC_ID = "4kZmd2pkSUmPhQv0bDbWCA"


def cluster(root, partitions):
    """Two brokers' log directories, with what brokers keep beside the segments."""
    for broker in ("b1", "b2"):
        for partition in range(partitions):
            log = Log()
            log.append(data(1, 0, 0))
            directory = log.write(root / broker / f"orders-{partition}")
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
        (root / broker / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (root / "empty").mkdir()
    return root


def seen(layout, before):
    """What was found, by its place under the input."""
    return [
        (entry.topic, entry.partition, entry.replica, entry.relative, entry.topic_id,
         [(segment.path.removeprefix(before), segment.size) for segment in entry.segments])
        for entry in layout.partitions
    ]  # fmt: skip


def test_a_store_is_listed_many_directories_at_a_time(tmp_path, monkeypatch):
    cluster(tmp_path, 4)
    listed: Counter[str] = Counter()
    together = threading.Barrier(4)
    entries = WebHdfsFileSystem.entries

    def counted(self, uri):
        listed[uri.path] += 1
        if uri.last.startswith("orders-"):
            together.wait(timeout=60)  # passes where the four of a broker are asked for at once
        return entries(self, uri)

    monkeypatch.setattr(WebHdfsFileSystem, "entries", counted)
    with WebHdfs(tmp_path) as served:
        found = discover([f"{served.url}/"])
        opened = Counter(name for name, _, _ in served.opened)
        assert seen(found, served.url) == seen(discover([str(tmp_path)]), str(tmp_path))
    assert set(listed.values()) == {1}
    assert len(listed) == 1 + 3 + 8
    assert opened["partition.metadata"] == 8
    assert opened["00000000000000000000.log"] == 0
    assert [entry.topic_id for entry in found.partitions] == [TOPIC_ID] * 8


def test_no_more_than_some_directories_are_listed_ahead(tmp_path, monkeypatch):
    cluster(tmp_path, 9)
    monkeypatch.setattr(listing, "_AHEAD", 2)
    with WebHdfs(tmp_path) as served:
        assert seen(discover([f"{served.url}/"]), served.url) == seen(discover([str(tmp_path)]), str(tmp_path))


def test_what_cannot_be_listed_is_said_once(tmp_path, monkeypatch):
    cluster(tmp_path, 3)
    entries = WebHdfsFileSystem.entries

    def refused(self, uri) -> Sequence[FileStatus]:
        if uri.path == "/b2/orders-1":
            raise PermissionError(13, "Permission denied", str(uri))
        return entries(self, uri)

    monkeypatch.setattr(WebHdfsFileSystem, "entries", refused)
    with WebHdfs(tmp_path) as served:
        found = discover([f"{served.url}/"])
    assert [(entry.path.rpartition("//")[2].partition("/")[2], entry.reason) for entry in found.unreadable] == [
        ("b2/orders-1", "Permission denied")
    ]
    assert len(found.partitions) == 5


@pytest.mark.parametrize("depth", [16, 17])
def test_directories_too_deep_are_named(tmp_path, depth):
    log = Log()
    log.append(data(1, 0, 0))
    directory = tmp_path.joinpath(*["d"] * (depth - 1))
    log.write(directory / "orders-0")
    found = discover([str(tmp_path)])
    assert len(found.partitions) == (depth == 16)
    assert [entry.reason for entry in found.skipped] == ["deeper than 16 directories"] * (depth == 17)


def test_reading_a_short_file_makes_no_room_for_the_limit(tmp_path):
    file = tmp_path / "x.snapshot"
    file.write_bytes(b"twelve bytes")
    # no machine has so much memory
    assert LocalFileSystem().read_start(Uri.parse(str(file)), 1 << 60) == b"twelve bytes"
    assert LocalFileSystem().read_start(Uri.parse(str(file)), 6) == b"twelve"


@pytest.mark.parametrize("inside", [False, True])
def test_side_files_are_those_that_lie_there(tmp_path, monkeypatch, inside):
    log = Log()
    log.append(data(1, 0, 0))
    directory = log.write(tmp_path / "orders-0")
    names = [f"{0:020d}.index", f"{0:020d}.snapshot", f"{0:020d}.timeindex", "leader-epoch-checkpoint"]
    for number, name in enumerate(names):
        (directory / name).write_bytes(bytes(number))
        os.utime(directory / name, ns=(0, (1_700_000_000_000 + number) * 1_000_000))
    monkeypatch.chdir(directory)
    (found,) = discover(["." if inside else str(directory)]).partitions
    for files in (found.side_files, pickle.loads(pickle.dumps(found.side_files))):
        assert [
            (file.path, file.name, file.base_offset, file.size, file.modified_ms) for file in files
        ] == [
            (name if inside else str(directory / name), name, 0, number, 1_700_000_000_000 + number)
            for number, name in enumerate(names)
        ]  # fmt: skip
        assert [*files] == [*files]
