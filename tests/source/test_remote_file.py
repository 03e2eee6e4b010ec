"""Files behind a client: few and large reads for whoever reads on, and the client's own words where it fails."""

import errno
import socket
import threading
import time

import pytest

from kaudit.source.bytes import RemoteFile, announce, nothing_held
from kaudit.source.filesystem import answer_seconds, answered, as_os_errors, connect_seconds, require_listener
from kaudit.source.hdfs import HdfsFileSystem
from kaudit.source.name_nodes import name_nodes
from kaudit.source.s3 import S3FileSystem
from kaudit.source.uri import Uri, UrlError
from kaudit.source.webhdfs import WebHdfsFileSystem

CONTENT = bytes(range(256)) * (128 << 10)


@pytest.fixture
def asked():
    return []


@pytest.fixture
def file(asked):
    def read(position, length):
        asked.append((position, length))
        return CONTENT[position : position + length]

    return RemoteFile(len(CONTENT), read, nothing_held)


def read(file, position, length):
    buffer = memoryview(bytearray(length))
    return bytes(buffer[: file.read_into(position, buffer)])


def test_reads_in_order_are_few(file, asked):
    position, pieces = 0, []
    while piece := read(file, position, 1 << 20):
        pieces.append(piece)
        position += len(piece)
    assert b"".join(pieces) == CONTENT
    assert asked == [(0, 1 << 20), (1 << 20, 8 << 20), (9 << 20, 8 << 20), (17 << 20, 15 << 20)]


def test_what_is_announced_is_read_ahead_and_nothing_behind_it(file, asked):
    stop = (17 << 20) + 5
    announce(file, 1000, stop)
    read(file, stop, 100)
    position, pieces = 1000, []
    while position < stop:
        pieces.append(read(file, position, min(1 << 20, stop - position)))
        position += len(pieces[-1])
    assert b"".join(pieces) == CONTENT[1000:stop]
    # the rest of less than two reads is one
    assert asked == [(stop, 100), (1000, 8 << 20), ((8 << 20) + 1000, stop - (8 << 20) - 1000)]


def test_who_looks_for_a_batch_behind_what_is_announced_reads_ahead_a_little(file, asked):
    announce(file, 0, 1000)
    for number in range(20):
        read(file, 1000 + number * 100, 100)
    assert asked == [(1000, 100), (1100, 1600), (2700, 1600)]


def test_a_read_that_failed_leaves_nothing_behind():
    answers = [CONTENT[:10], OSError("gone"), CONTENT[20:30]]

    def answer(_position, _length):
        data = answers.pop(0)
        if isinstance(data, OSError):
            raise data
        return data

    file = RemoteFile(len(CONTENT), answer, nothing_held)
    assert read(file, 0, 10) == CONTENT[:10]
    with pytest.raises(OSError, match="gone"):
        read(file, 20, 10)
    assert read(file, 20, 10) == CONTENT[20:30]


def test_reads_elsewhere_ask_for_what_is_wanted(file, asked):
    for position, length in ((500, 17), (9000, 17), (100, 17), (len(CONTENT) - 5, 17), (len(CONTENT), 17)):
        assert read(file, position, length) == CONTENT[position : position + length]
    assert asked == [(500, 17), (9000, 17), (100, 17), (len(CONTENT) - 5, 5)]


def test_a_byte_alone_and_none(file, asked):
    assert [read(file, 500, length) for length in (1, 0)] == [CONTENT[500:501], b""]
    assert read(file, len(CONTENT) - 1, 2) == CONTENT[-1:]
    assert read(file, len(CONTENT) + 1, 2) == b""
    assert asked == [(500, 1), (len(CONTENT) - 1, 1)]


def test_who_reads_on_without_an_announcement_is_given_much(file, asked):
    assert read(file, 0, 100) + read(file, 100, 100) == CONTENT[:200]
    assert asked == [(0, 100), (100, 8 << 20)]


def test_a_first_read_at_the_beginning_is_what_is_wanted(file, asked):
    read(file, 0, 1)
    assert asked == [(0, 1)]
    announce(file, 0, 1)
    read(file, 0, 1)  # it is held
    assert asked == [(0, 1)]


def test_a_read_across_what_is_held_asks_for_the_rest(file, asked):
    assert read(file, 0, 100) + read(file, 100, 100) == CONTENT[:200]
    held = asked[-1][0] + asked[-1][1]
    assert read(file, held - 10, 30) == CONTENT[held - 10 : held + 20]
    assert asked[2:] == [(held, 20)]


def test_a_large_read_is_asked_for_as_it_is(file, asked):
    read(file, 0, 16 << 20)
    read(file, 16 << 20, 16 << 20)
    assert asked == [(0, 16 << 20), (16 << 20, 16 << 20)]


def test_a_clients_own_words_are_kept():
    text = "When reading bucket 'logs': AWS Error ACCESS_DENIED during HeadObject operation"
    with pytest.raises(OSError, match="ACCESS_DENIED") as caught, as_os_errors("S3", "s3://logs/kafka"):
        raise OSError(text)
    assert (caught.value.strerror, caught.value.filename) == (f"S3: {text}", "s3://logs/kafka")
    with pytest.raises(FileNotFoundError, match="No such file"), as_os_errors("S3", "s3://logs/kafka"):
        raise FileNotFoundError(2, "No such file or directory", "logs/kafka")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("standby", "standby"),
        # of hdfs-native 0.14.7 and Hadoop 3.4.1
        (
            r'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: inode=\"/a\":hdfs\n\tat org.apache\n")',
            'Permission denied: inode="/a":hdfs',
        ),
        (
            'GSSAPIError(GssMajorCodes { raw: "0x00070000", calling_error: "none" }, 2529639053, "No credentials were supplied")',
            "No credentials were supplied",
        ),
    ],
)
def test_a_servers_words_are_one_line(text, said):
    with pytest.raises(OSError, match="HDFS") as caught, as_os_errors("HDFS", "hdfs://nn/a", (RuntimeError,)):
        raise RuntimeError(text)
    assert caught.value.strerror == f"HDFS: {said}"


def test_nobody_listening_is_found_out_at_once():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        authority = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(OSError, match=f"nobody answers at {authority}: Connection refused"):
            require_listener("hdfs://nn", [authority])
        held.listen()
        require_listener("hdfs://nn", ["127.0.0.1:1", authority])  # the second of two name nodes


def test_a_server_that_takes_no_connection_has_so_many_seconds(monkeypatch):
    monkeypatch.setenv("KAUDIT_CONNECT_SECONDS", "0.2")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(0)
        authority = f"127.0.0.1:{held.getsockname()[1]}"
        with socket.create_connection(held.getsockname()), pytest.raises(OSError, match="timed out"):
            require_listener("hdfs://nn", [authority])  # one waits to be accepted already
    for text in ("soon", "0", "-1", "inf"):
        monkeypatch.setenv("KAUDIT_CONNECT_SECONDS", text)
        with pytest.raises(UrlError, match=f"KAUDIT_CONNECT_SECONDS={text}: write a number of seconds above 0"):
            connect_seconds()


def test_a_store_that_stopped_has_so_many_seconds_to_answer(monkeypatch):
    stopped = threading.Event()
    began = time.monotonic()
    with pytest.raises(OSError, match=r"no answer within 0\.2 s") as raised:
        answered("hdfs://nn/logs", stopped.wait, 0.2)
    assert (raised.value.filename, raised.value.errno) == ("hdfs://nn/logs", errno.ETIMEDOUT)
    assert time.monotonic() - began < 20
    assert answered("hdfs://nn/logs", lambda: 7, 20) == 7
    with pytest.raises(ZeroDivisionError):
        answered("hdfs://nn/logs", lambda: 1 // 0, 20)
    assert answer_seconds() == 20
    monkeypatch.setenv("KAUDIT_ANSWER_SECONDS", "soon")
    with pytest.raises(UrlError, match="KAUDIT_ANSWER_SECONDS=soon: write a number of seconds above 0"):
        answer_seconds()


def test_a_name_node_that_stopped_is_an_error_of_discovery(monkeypatch):
    """It accepts connections, as the kernel does for a process that hangs, and says nothing."""
    monkeypatch.setenv("KAUDIT_ANSWER_SECONDS", "0.5")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        authority = f"127.0.0.1:{held.getsockname()[1]}"
        for store in (HdfsFileSystem(authority), WebHdfsFileSystem("http", authority)):
            for ask in (store.status, store.entries, store.open):
                with pytest.raises(OSError, match=r"no answer within 0\.5 s"):
                    ask(Uri.parse(f"hdfs://{authority}/logs"))


def test_an_s3_server_that_takes_no_connection_is_an_error_after_as_long_with_all_attempts(monkeypatch):
    monkeypatch.setenv("KAUDIT_CONNECT_SECONDS", "3")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(0)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{held.getsockname()[1]}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        began = time.monotonic()
        with socket.create_connection(held.getsockname()), pytest.raises(OSError, match="timed out"):
            S3FileSystem("kafka").status(Uri.parse("s3://kafka/logs"))
        assert 2 < time.monotonic() - began < 9  # 3 attempts of 3 s would be 9


CORE = "<configuration><property><name>fs.defaultFS</name><value>hdfs://logs/</value></property></configuration>"
SITE = """<configuration>
<property><name>dfs.nameservices</name><value>logs</value></property>
<property><name>dfs.ha.namenodes.logs</name><value>nn1, nn2</value></property>
<property><name>dfs.namenode.rpc-address.logs.nn1</name><value>one:8020</value></property>
<property><name>dfs.namenode.rpc-address.logs.nn2</name><value>two:8020</value></property>
</configuration>"""


def test_the_name_nodes_of_a_name_service_are_those_of_hadoops_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert name_nodes("logs") == []
    (tmp_path / "core-site.xml").write_text(CORE)
    (tmp_path / "hdfs-site.xml").write_text(SITE)
    assert name_nodes("logs") == name_nodes("") == ["one:8020", "two:8020"]
    assert name_nodes("other") == []
    assert name_nodes("other:9000") == ["other:9000"]
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    assert name_nodes("logs") == []
    (tmp_path / "home" / "etc" / "hadoop").mkdir(parents=True)
    (tmp_path / "hdfs-site.xml").rename(tmp_path / "home" / "etc" / "hadoop" / "hdfs-site.xml")
    assert name_nodes("logs") == ["one:8020", "two:8020"]


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(111, "refused"), "refused"), (OSError("odd"), "odd"), (OSError(), "OSError")]
)
def test_the_reason_why_nobody_answers(monkeypatch, error, reason):
    def refuse(*_arguments):
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(OSError, match=f"nobody answers at h:1: {reason}"):
        require_listener("hdfs://h:1/x", ["h:1"])
