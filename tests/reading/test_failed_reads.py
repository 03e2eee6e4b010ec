"""The files that readers go on without: each is noted once, whatever kind of source it is, and stays the kind that it is."""

import errno

import pytest

from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.failed_reads import FailedReads
from kaudit.reading.segment import ByteRange
from kaudit.source.kafka.fetched_segment import BrokerError, FetchedSegment, RemovedByRetentionError
from kaudit.source.layout import FetchedRange, SegmentFile, TextRange, Unreadable
from kaudit.source.schemes import SegmentRemovedError
from kaudit.source.text import SegmentText
from tests.logs import data

FILE = SegmentFile("/logs/t-0/00000000000000000000.log", "00000000000000000000.log", 0, 100, 0)
INDEX = SegmentFile("/logs/t-0/00000000000000000000.index", "00000000000000000000.index", 0, 100, 0)


class Broken:
    """A file that can be opened, and of which `fails` cannot be done."""

    def __init__(self, fails):
        self.fails = fails

    def size(self):
        return self._done("size", 100)

    def read_into(self, position, buffer):
        return self._done("read_into", len(buffer))

    def close(self):
        pass

    def _done(self, name, value):
        if name == self.fails:
            raise OSError(errno.EIO, "Input/output error")
        return value


def refuse(error):
    def open_source(segment):
        raise error

    return open_source


@pytest.mark.parametrize("fails", ["size", "read_into"])
def test_what_fails_after_opening_is_noted_once(fails):
    reads = FailedReads(lambda segment: Broken(fails))
    for _ in range(2):
        source = reads(FILE)
        with pytest.raises(OSError, match="Input/output error"):
            getattr(source, fails)(*([] if fails == "size" else [0, memoryview(bytearray(4))]))
    assert list(reads.unreadable) == [Unreadable(FILE.path, "Input/output error")]


@pytest.mark.parametrize(
    ("error", "file", "unreadable", "removed"),
    [
        (PermissionError(13, "Permission denied"), FILE, ["Permission denied"], 0),
        (FileNotFoundError(2, "No such file"), FILE, ["No such file"], 0),
        (FileNotFoundError(2, "No such file"), INDEX, [], 0),  # brokers replace what lies beside segments
        (SegmentRemovedError(FILE.path, 50), FILE, [], 1),
    ],
)
def test_what_cannot_be_opened(error, file, unreadable, removed):
    reads = FailedReads(refuse(error))
    with pytest.raises(type(error)):
        reads(file)
    assert [entry.reason for entry in reads.unreadable] == unreadable
    assert [note.unreadable for note in reads.removed] == [False] * removed


def test_a_text_stays_a_text():
    source = FailedReads(lambda segment: SegmentText(Broken("read_into"), TextRange(0, 10)))(FILE)
    assert isinstance(source, SegmentText)
    with pytest.raises(OSError, match="Input/output error"):
        list(source.pieces())


@pytest.mark.parametrize("fails_at", [0, 1])
@pytest.mark.parametrize(
    ("error", "noted"),
    [(BrokerError("h:1", "the connection was closed"), 1), (RemovedByRetentionError("t-0", 5), 0)],
)
def test_a_fetch_that_fails_is_noted_whichever_it_is(fails_at, error, noted):
    place = FetchedRange("h:1", "t", 0, 0, 0, 10, bytes_per_offset=10, whole=True)
    batches = [data(7, 0, 0, 5, base_offset=0), data(7, 0, 5, 5, base_offset=5)]
    asked: list[int] = []

    def fetch(offset, size):
        asked.append(offset)
        if len(asked) == fails_at + 1:
            raise error
        return batches[offset // 5].encode(), frozenset()

    reads = FailedReads(lambda segment: FetchedSegment(place, fetch))
    source = reads(FILE)
    assert isinstance(source, FetchedSegment)
    with pytest.raises(type(error)):
        list(stream_batches(source, ByteRange(0, 100, 100), expected_offset=None))
    assert asked == [0, 5][: fails_at + 1]
    assert (len(reads.unreadable), len(reads.removed)) == (noted, 1 - noted)


def test_what_can_be_read_is_not_noted():
    reads = FailedReads(lambda segment: Broken("nothing"))
    source = reads(FILE)
    assert (source.size(), source.read_into(0, memoryview(bytearray(3)))) == (100, 3)
    source.close()
    assert (list(reads.unreadable), list(reads.removed)) == ([], [])
