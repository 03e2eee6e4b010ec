"""Files behind a client: few and large reads for whoever reads on, and the client's own words where it fails."""

import socket

import pytest

from kaudit.source.bytes import RemoteFile, nothing_held
from kaudit.source.filesystem import as_os_errors, require_listener

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
    assert asked == [(0, 1 << 20)] + [(start, 8 << 20) for start in range(1 << 20, 25 << 20, 8 << 20)] + [
        (25 << 20, 7 << 20)
    ]


def test_reads_elsewhere_ask_for_what_is_wanted(file, asked):
    for position, length in ((500, 17), (9000, 17), (100, 17), (len(CONTENT) - 5, 17), (len(CONTENT), 17)):
        assert read(file, position, length) == CONTENT[position : position + length]
    assert asked == [(500, 17), (9000, 17), (100, 17), (len(CONTENT) - 5, 5)]


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
    with pytest.raises(OSError, match="HDFS: standby"), as_os_errors("HDFS", "hdfs://nn/a", (RuntimeError,)):
        raise RuntimeError("standby")


def test_nobody_listening_is_found_out_at_once():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        authority = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(OSError, match=f"nobody answers at {authority}: Connection refused"):
            require_listener("hdfs://nn", authority)
        held.listen()
        require_listener("hdfs://nn", authority)
