"""HDFS by plain HTTP: what is asked of a name node, what its answers give, and what is said where it has none."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from kaudit.source.filesystem import FileStatus
from kaudit.source.uri import Uri
from kaudit.source.webhdfs import WebHdfsFileSystem
from tests.engines.webhdfs_server import WebHdfs

MODIFIED_MS = 1_700_000_000_123


class NameNode:
    """Answers every request with one status and one body; `asked` are the paths and queries."""

    def __init__(self, body=b"{}", code=200):
        self.asked: list[tuple[str, dict[str, str]]] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = urlsplit(self.path)
                served.asked.append((asked.path, {key: values[0] for key, values in parse_qs(asked.query).items()}))
                self.send_response(code)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Nobody reads it."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.authority = f"127.0.0.1:{self.server.server_port}"
        # closing it waits for the thread to look up
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def files(self):
        return WebHdfsFileSystem("http", self.authority)

    def at(self, path):
        return Uri("webhdfs", self.authority, path)


def status(name, kind, length, **more):
    return {"pathSuffix": name, "type": kind, "length": length, "modificationTime": MODIFIED_MS, **more}


def test_status_and_entries():
    found = [status("b", "FILE", 7, blockSize=128), status("a", "DIRECTORY", 0, blockSize=0), status("c", "FILE", 0)]
    body = json.dumps({"FileStatus": found[0], "FileStatuses": {"FileStatus": found}}).encode()
    with NameNode(body) as node:
        files, place = node.files(), node.at("/logs/b")
        assert files.status(place) == FileStatus("b", False, 7, MODIFIED_MS, block_bytes=128)
        assert files.entries(place) == [
            FileStatus("a", True, 0, MODIFIED_MS),
            FileStatus("b", False, 7, MODIFIED_MS, block_bytes=128),
            FileStatus("c", False, 0, MODIFIED_MS),
        ]
        assert [query["op"] for _, query in node.asked] == ["GETFILESTATUS", "LISTSTATUS"]
        assert files.identity(place) == str(place)
        assert (files.is_remote, files.tree(place)) == (True, None)


@pytest.mark.parametrize("user", ["", "audit user"])
def test_who_asks_and_for_what(monkeypatch, user):
    monkeypatch.setenv("HADOOP_USER_NAME", user)
    with NameNode(b"seventeen bytes..") as node:
        assert node.files().read_range(node.at("/a b/c?d"), 5, 17) == b"seventeen bytes.."
        asked = {"op": "OPEN", "offset": "5", "length": "17"}
        assert node.asked == [("/webhdfs/v1/a%20b/c%3Fd", asked | ({"user.name": user} if user else {}))]


REFUSED = b"""{"RemoteException": {"exception": "AccessControlException",
    "message": "Permission denied: user=eve, inode=\\"/logs\\":hdfs:drwx------\\n\\tat org.apache.hadoop"}}"""
"""As Hadoop 3.4.1 has it."""


@pytest.mark.parametrize(
    ("body", "code", "kind", "said"),
    [
        (b"", 404, FileNotFoundError, "no such file"),
        (b"", 401, PermissionError, "this WebHDFS wants Kerberos, which kaudit has for hdfs:// alone"),
        (b"", 403, OSError, "WebHDFS answered 403 Forbidden"),
        (REFUSED, 403, OSError, 'WebHDFS answered 403 Permission denied: user=eve, inode="/logs":hdfs:drwx------'),
        (b"", 500, OSError, "WebHDFS answered 500 Internal Server Error"),
        (b"<html>", 200, OSError, "this is no WebHDFS: the answer is not JSON"),
    ],
)
def test_answers_that_give_nothing(body, code, kind, said):
    with NameNode(body, code) as node:
        with pytest.raises(OSError) as caught:
            node.files().status(node.at("/logs"))
        assert type(caught.value) is kind
        assert (caught.value.strerror, caught.value.filename) == (said, str(node.at("/logs")))


def test_a_name_node_that_stops_is_named():
    with NameNode() as node:
        files = node.files()
    with pytest.raises(OSError, match=r"WebHDFS: .*Connection refused") as caught:
        files.status(node.at("/logs"))
    assert caught.value.filename == str(node.at("/logs"))
    with pytest.raises(OSError, match=f"nobody answers at {node.authority}"):
        node.files()


def test_files_are_read_in_ranges(tmp_path):
    (tmp_path / "some").write_bytes(bytes(range(100)))
    (tmp_path / "none").touch()
    with WebHdfs(tmp_path) as served:
        root = Uri.parse(served.url)
        files = WebHdfsFileSystem("http", root.authority)
        source, buffer = files.open(root / "some"), bytearray(30)
        assert (source.size(), source.read_into(80, memoryview(buffer)), bytes(buffer)) == (100, 20, bytes(range(80, 100)) + bytes(10))  # fmt: skip
        assert files.read_start(root / "some", 10) == bytes(range(10))
        empty = files.open(root / "none")
        assert (empty.size(), empty.read_into(0, memoryview(buffer))) == (0, 0)
        assert served.opened == [("some", 80, 20), ("some", 0, 10)]
