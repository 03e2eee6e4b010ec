"""S3 and HDFS as the rest of kaudit sees them, with their clients' calls answered by a directory."""

import io
import os
import shutil
from types import SimpleNamespace

import hdfs_native
import pytest
from msgspec.structs import replace
from pyarrow import fs

from kaudit.source.filesystem import FileStatus
from kaudit.source.hdfs import HdfsFileSystem
from kaudit.source.local import LocalFileSystem
from kaudit.source.s3 import S3FileSystem
from kaudit.source.uri import Uri, UrlError

CONTENT = bytes(range(100))
MODIFIED_MS = 1_700_000_000_123


class NameNode:
    """hdfs_native's client, for files of a directory."""

    def __init__(self, root):
        self._root = root

    def _status(self, place):
        path = f"/{place.relative_to(self._root)}/" if place.is_dir() else f"/{place.relative_to(self._root)}"
        size, modified = (0, 0) if place.is_dir() else (place.stat().st_size, place.stat().st_mtime_ns // 1_000_000)
        block = None if place.is_dir() else 256 << 20
        return SimpleNamespace(
            path=path, isdir=place.is_dir(), length=size, modification_time=modified, blocksize=block
        )

    def _place(self, path):
        place = self._root / path.lstrip("/")
        if not place.exists():
            raise FileNotFoundError(2, "File does not exist", path)
        return place

    def get_file_info(self, path):
        if path == "/refused":
            raise RuntimeError("Permission denied: user=audit, access=EXECUTE")
        return self._status(self._place(path))

    def list_status(self, path):
        return map(self._status, sorted(self._place(path).iterdir(), reverse=True))

    def read(self, path):
        content = self._place(path).read_bytes()

        class Reader(bytes):
            def read_range(self, position, length):
                assert position + length <= len(self)
                return content[position : position + length]

        return Reader(content)

    def mkdirs(self, path, *, create_parent):
        (self._root / path.lstrip("/")).mkdir(parents=create_parent, exist_ok=True)

    def create(self, path, options):
        assert options.overwrite
        return (self._root / path.lstrip("/")).open("wb")

    def delete(self, path, *, recursive):
        place = self._root / path.lstrip("/")
        if place.is_dir() and recursive:
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def rename(self, old, new, *, overwrite):
        assert overwrite
        self._place(old).replace(self._root / new.lstrip("/"))


@pytest.fixture(params=["s3", "hdfs", "local"])
def store(request, tmp_path, monkeypatch):
    """A store with `logs/b` of 100 bytes, `logs/a` of none and a directory `logs/c`; with its root's URL."""
    (tmp_path / "bucket" / "logs" / "c").mkdir(parents=True)
    (tmp_path / "bucket" / "logs" / "a").write_bytes(b"")
    (tmp_path / "bucket" / "logs" / "b").write_bytes(CONTENT)
    os.utime(tmp_path / "bucket" / "logs" / "b", ns=(0, MODIFIED_MS * 1_000_000 + 999_999))
    if request.param == "local":
        return LocalFileSystem(), Uri.parse(str(tmp_path / "bucket"))
    if request.param == "s3":
        local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        monkeypatch.setattr(fs, "S3FileSystem", lambda **_: local)
        return S3FileSystem("bucket"), Uri("s3", "bucket", "/")
    monkeypatch.setattr(hdfs_native, "Client", lambda _: NameNode(tmp_path / "bucket"))
    return HdfsFileSystem("nameservice1"), Uri("hdfs", "nameservice1", "/")


def test_status_and_entries(store):
    files, root = store
    block_bytes = 256 << 20 if root.scheme == "hdfs" else 0
    status = replace(files.status(root / "logs" / "b"), inode=0, changed_ns=0)
    assert status == FileStatus("b", False, 100, MODIFIED_MS, block_bytes=block_bytes)
    entries = files.entries(root / "logs")
    assert [(entry.name, entry.is_directory) for entry in entries] == [("a", False), ("b", False), ("c", True)]
    if root.scheme:  # a local listing asks for no sizes
        assert [entry.size for entry in entries] == [0, 100, 0]
        assert entries[1] == status
    assert files.status(root / "logs" / "c").is_directory
    assert files.identity(root / "logs") != files.identity(root / "logs" / "c")
    assert files.is_remote is bool(root.scheme)


def test_what_is_not_there(store):
    files, root = store
    with pytest.raises(FileNotFoundError):
        files.status(root / "logs" / "d")


def test_reading(store):
    files, root = store
    place = root / "logs" / "b"
    assert [files.read_start(place, limit) for limit in (0, 10, 100, 101)] == [b"", CONTENT[:10], CONTENT, CONTENT]
    source = files.open(place)
    buffer = bytearray(30)
    assert (source.size(), source.read_into(80, memoryview(buffer)), bytes(buffer[:20])) == (100, 20, CONTENT[80:])
    source.close()


def test_writing(store, tmp_path):
    files, root = store
    files.make_directory(root / "logs" / "new" / "deep")
    (tmp_path / "bucket" / "logs" / "new" / "deep").mkdir(parents=True, exist_ok=True)  # S3 has none
    content = os.urandom((4 << 20) + 5)
    for written in (content, b"again"):
        files.put(root / "logs" / "new" / "deep" / "file", io.BytesIO(written))
        assert (tmp_path / "bucket" / "logs" / "new" / "deep" / "file").read_bytes() == written
    files.remove(root / "logs" / "new" / "deep" / "file")
    with pytest.raises(FileNotFoundError):
        files.status(root / "logs" / "new" / "deep" / "file")
    for place in (root / "logs", root / "logs", root / "logs" / "b"):
        files.remove(place)
    assert not list((tmp_path / "bucket").iterdir())


def test_a_local_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(OSError, match="No space"):
        LocalFileSystem().put(Uri.parse(str(tmp_path / "file")), Broken(b"after"))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"before")]


def test_what_the_hdfs_client_says_is_an_os_error(tmp_path, monkeypatch):
    monkeypatch.setattr(hdfs_native, "Client", lambda _: NameNode(tmp_path))
    with pytest.raises(OSError, match="HDFS: Permission denied: user=audit") as caught:
        HdfsFileSystem("").status(Uri("hdfs", "", "/refused"))
    assert (caught.value.errno, caught.value.filename) == (5, "hdfs:///refused")


@pytest.mark.parametrize(("authority", "asked"), [("", None), ("nameservice1", "hdfs://nameservice1")])
def test_the_name_node_is_the_configured_one_unless_one_is_named(monkeypatch, authority, asked):
    names: list[str | None] = []
    monkeypatch.setattr(hdfs_native, "Client", names.append)
    HdfsFileSystem(authority)
    assert names == [asked]


@pytest.mark.parametrize(("environ", "endpoint", "region"), [
    ({}, None, "us-east-1"),
    ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, None, "eu-west-1"),
    ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-2"}, None, "eu-west-2"),
    ({"AWS_ENDPOINT_URL": "http://b:9000"}, "http://b:9000", "us-east-1"),
    ({"AWS_ENDPOINT_URL": "http://b:9000", "AWS_ENDPOINT_URL_S3": "http://a:9000"}, "http://a:9000", "us-east-1"),
])  # fmt: skip
def test_s3_is_chosen_as_aws_own_tools_choose_it(monkeypatch, environ, endpoint, region):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    asked = []
    monkeypatch.setattr(fs, "S3FileSystem", lambda **options: asked.append(options))
    S3FileSystem("bucket")
    (options,) = asked
    assert (options["endpoint_override"], options["region"]) == (endpoint, region)
    assert 3 * options["connect_timeout"] == pytest.approx(10)  # three attempts


def test_s3_needs_a_bucket():
    with pytest.raises(UrlError, match="needs a bucket"):
        S3FileSystem("")
