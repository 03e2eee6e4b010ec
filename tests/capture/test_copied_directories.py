"""What becomes of directories and files in a redacted copy: which are copied where, which are left out, and which could not be read."""

import gzip
import os

import pytest

from kaudit.capture.redacted_copy import redacted_copy
from kaudit.results.redaction import Redactor
from kaudit.source.local import LocalFileSystem
from tests.logs import data
from tests.packed import zip_of

SEGMENT = "00000000000000000000.log"
BATCH = data(7, 0, 0).encode()
REDACTOR = Redactor(b"s")
TOPIC = REDACTOR.topic("orders")


def copied(tmp_path, *inputs):
    return redacted_copy([str(each) for each in inputs], str(tmp_path / "copy"), Redactor(b"s"))


def tree(root):
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or not any(path.iterdir())
    )


def write(place, content=BATCH):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def reasons(entries):
    return sorted(entry.reason for entry in entries)


@pytest.mark.parametrize(
    ("given", "files", "expected"),
    [
        (".", ["orders-0/" + SEGMENT, "orders-1/" + SEGMENT], [f"{TOPIC}-0/{SEGMENT}", f"{TOPIC}-1/{SEGMENT}"]),
        # the directory of a partition, and a file of one, are copied under the partition's name
        ("orders-0", ["orders-0/" + SEGMENT], [f"{TOPIC}-0/{SEGMENT}"]),
        (f"orders-0/{SEGMENT}", ["orders-0/" + SEGMENT], [f"{TOPIC}-0/{SEGMENT}"]),
        (".", ["orders-0 (copy)/" + SEGMENT], [f"{TOPIC}-0.copy/{SEGMENT}"]),
        (".", ["orders-0/.lock", ".lock", "orders-0/" + SEGMENT], [f"{TOPIC}-0/{SEGMENT}"]),
        (".", [f"orders-0/{SEGMENT}.deleted"], [f"{TOPIC}-0/{SEGMENT}.deleted"]),
        (".", [f"orders-0/remote-log-index-cache/{SEGMENT}"], [f"{TOPIC}-0/remote-log-index-cache/{SEGMENT}"]),
    ],
)
def test_where_files_are_copied_to(tmp_path, given, files, expected):
    for file in files:
        write(tmp_path / "in" / file)
    account = copied(tmp_path, tmp_path / "in" / given)
    found = tree(tmp_path / "copy")
    assert found == expected
    assert (account.inputs, account.left_out, account.unread) == (1, [], [])
    assert {(tmp_path / "copy" / name).stat().st_size for name in found} == {len(BATCH)}


def test_a_partition_without_files_is_a_directory(tmp_path):
    (tmp_path / "in/orders-0").mkdir(parents=True)
    (tmp_path / "in/else").mkdir()
    copied(tmp_path, tmp_path / "in")
    assert tree(tmp_path / "copy") == [f"{TOPIC}-0"]


def test_several_inputs_are_directories_of_the_copy(tmp_path):
    for name in ("b1", "b2"):
        write(tmp_path / name / "orders-0" / SEGMENT)
    account = copied(tmp_path, tmp_path / "b1", tmp_path / "b2")
    parts = [name.split("/") for name in tree(tmp_path / "copy")]
    assert account.inputs == len({first for first, *_ in parts}) == 2
    assert {tuple(rest) for _, *rest in parts} == {(f"{TOPIC}-0", SEGMENT)}


def test_times_are_those_of_the_originals(tmp_path):
    os.utime(write(tmp_path / "in/orders-0" / SEGMENT), (1_700_000_001, 1_700_000_001))
    copied(tmp_path, tmp_path / "in")
    assert (tmp_path / "copy" / f"{TOPIC}-0" / SEGMENT).stat().st_mtime == 1_700_000_001


def test_files_are_known_by_what_they_hold(tmp_path):
    write(tmp_path / "in/orders-0" / SEGMENT)
    write(tmp_path / "in/part", BATCH)
    write(tmp_path / "in/orders-0/part.gz", gzip.compress(BATCH))
    write(tmp_path / "in/logs.zip", zip_of(tmp_path / "in/orders-0"))
    write(tmp_path / "in/logs.7z", b"7z\xbc\xaf\x27\x1c" + bytes(100))
    write(tmp_path / "in/notes", b"some words\n")
    line = b"[2026-11-22 19:45:04,073] INFO [ReplicaManager broker=1] Stopping serving replica (kafka.server.ReplicaManager)\n"
    write(tmp_path / "in/server.log", line)
    account = copied(tmp_path, tmp_path / "in")
    assert len(tree(tmp_path / "copy")) == 4
    assert account.logs == 1
    left = reasons(account.left_out)
    assert len(left) == 3
    assert left.count("an archive: give it as an input of its own") == 2
    sizes = sorted(path.stat().st_size for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert sizes.count(len(BATCH)) == 3


def test_what_cannot_be_read_is_named_once_and_the_rest_is_copied(tmp_path, monkeypatch):
    write(tmp_path / "in/orders-0" / SEGMENT)
    write(tmp_path / "in/closed/orders-1" / SEGMENT)
    write(tmp_path / "in/orders-2" / SEGMENT)
    write(tmp_path / "in/server.log", b"[2026-11-22 19:45:04,073] INFO x (kafka.server.ReplicaManager)\n")
    listed, opened = LocalFileSystem.entries, LocalFileSystem.open

    def entries(self, uri):
        if uri.name == "closed":
            raise PermissionError(13, "Permission denied", str(uri))
        return listed(self, uri)

    def open_(self, uri):
        if uri.parent.name == "orders-2":
            raise PermissionError(13, "Permission denied", str(uri))
        return opened(self, uri)

    monkeypatch.setattr(LocalFileSystem, "entries", entries)
    monkeypatch.setattr(LocalFileSystem, "open", open_)
    account = copied(tmp_path, tmp_path / "in")
    assert [name for name in tree(tmp_path / "copy") if name.endswith(SEGMENT)] == [f"{TOPIC}-0/{SEGMENT}"]
    assert len(account.unread) == 2
    assert all("ermission denied" in entry.reason for entry in account.unread)
    assert not [entry for entry in account.unread if "orders" in entry.path or "closed" in entry.path]


def test_a_copy_that_cannot_be_written_ends(tmp_path, monkeypatch):
    write(tmp_path / "in/orders-0" / SEGMENT)

    def put(self, uri, content):
        raise OSError(28, "No space left on device", str(uri))

    monkeypatch.setattr(LocalFileSystem, "put", put)
    with pytest.raises(OSError, match="No space left on device"):
        copied(tmp_path, tmp_path / "in")


def test_links_that_lead_around_and_directories_that_are_too_deep(tmp_path):
    write(tmp_path / "in/orders-0" / SEGMENT)
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    account = copied(tmp_path, tmp_path / "in")
    assert tree(tmp_path / "copy") == [f"{TOPIC}-0/{SEGMENT}"]
    assert reasons(account.left_out) == ["a link to a directory that is copied"]


@pytest.mark.parametrize(("depth", "there"), [(12, True), (13, False)])
def test_twelve_directories_inside_one_another(tmp_path, depth, there):
    write(tmp_path / "in" / "/".join("d" * depth) / "part", BATCH)
    account = copied(tmp_path, tmp_path / "in")
    assert (len(tree(tmp_path / "copy")), reasons(account.left_out)) == ((1, []) if there else (0, ["too deep"]))
