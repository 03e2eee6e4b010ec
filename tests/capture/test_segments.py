"""Where batches begin and end in what is captured, and which epochs a leader knows: by Kafka's formats and LeaderEpochFileCache."""

import struct
from typing import Any

import pytest

from kaudit.capture.partition import MOST_ASKED, epochs_of_leader
from kaudit.capture.segments import Frame, NotABatchError, frames
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.kafka.answers import TopicPartition
from tests.formats.encoders import batch, message, record

TWO = [batch([record(0)], 5, leader_epoch=3), batch([record(0), record(1)], 9, leader_epoch=4)]
OLD = message(7, 1, b"k", b"v")


def found(data):
    return list(frames(data))


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_whole_batches(kind):
    data = b"".join(TWO)
    first, second = map(len, TWO)
    both = [Frame(0, first, 5, 5, 3), Frame(first, first + second, 9, 10, 4)]
    assert found(kind(data)) == both
    for cut in range(len(data)):
        assert found(kind(data[:cut])) == both[: (cut >= first) + (cut >= first + second)]


def test_messages_before_magic_2_have_no_epoch():
    assert found(OLD + TWO[0]) == [Frame(0, len(OLD), 7, 7, -1), Frame(len(OLD), len(OLD) + len(TWO[0]), 5, 5, 3)]


@pytest.mark.parametrize(
    ("offset", "delta", "good"),
    [
        (0, 0, True),
        (-1, 0, False),
        (0, -1, False),
        (5, -5, False),
        ((1 << 63) - 1, 0, True),
        ((1 << 63) - 1, 1, False),
        ((1 << 63) - 2, 1, True),
    ],
)
def test_offsets_that_no_batch_has(offset, delta, good):
    data = bytearray(TWO[0] + TWO[1])
    struct.pack_into(">q", data, len(TWO[0]), offset)
    struct.pack_into(">i", data, len(TWO[0]) + 23, delta)
    if good:
        assert found(bytes(data))[1][2:4] == (offset, offset + delta)
    else:
        with pytest.raises(NotABatchError, match=f"offsets {offset} to {offset + delta}") as caught:
            found(bytes(data))
        assert caught.value.position == len(TWO[0])


@pytest.mark.parametrize(("magic", "length"), [(3, 100), (-1, 100), (2, 48), (2, -1), (1, 13)])
def test_magics_and_lengths_that_no_batch_has(magic, length):
    data = TWO[0] + struct.pack(">qiib", 9, length, 0, magic) + bytes(200)
    with pytest.raises(NotABatchError, match=f"magic {magic} and a length of {length} bytes") as caught:
        found(data)
    assert caught.value.position == len(TWO[0])


class Leader:
    """Answers as LeaderEpochFileCache.endOffsetFor does, for epochs that begin at these offsets."""

    def __init__(self, starts, end):
        self.starts, self.end, self.asked = starts, end, 0

    def epoch_end_offset(self, _, epoch):
        self.asked += 1
        known = [each for each in self.starts if each <= epoch]
        if not known:
            # below the oldest: the epoch asked for, and where the oldest begins
            return (epoch, min(self.starts.values())) if self.starts else (-1, -1)
        later = [each for each in self.starts if each > epoch]
        return max(known), self.starts[min(later)] if later else self.end


@pytest.mark.parametrize(
    ("starts", "current", "log_start", "expected"),
    [
        ({0: 0}, 0, 0, [(0, 0)]),
        ({0: 0, 1: 5, 4: 9}, 4, 0, [(4, 9), (1, 5), (0, 0)]),
        ({0: 0, 1: 5, 4: 9}, 9, 0, [(4, 9), (1, 5), (0, 0)]),
        ({0: 0, 1: 5, 4: 9}, 3, 0, [(1, 5), (0, 0)]),
        ({0: 3, 1: 5}, 1, 3, [(1, 5), (0, 3)]),
        # epochs without batches begin where the next one does
        ({3: 7, 4: 7, 5: 9}, 5, 7, [(5, 9), (4, 7)]),
        ({}, 2, 0, []),
    ],
)
def test_the_epochs_of_a_leader_newest_first(starts, current, log_start, expected):
    client: Any = Leader(starts, 20)
    entries = epochs_of_leader(client, TopicPartition("t", 0), current, log_start)
    assert entries == [EpochEntry(epoch, start) for epoch, start in expected]


def test_a_leader_is_asked_for_a_thousand_epochs():
    client: Any = Leader({epoch: 10 * epoch for epoch in range(3000)}, 90_000)
    entries = epochs_of_leader(client, TopicPartition("t", 0), 2999, 0)
    assert (MOST_ASKED, len(entries), entries[0].epoch, entries[-1].epoch) == (1000, 1000, 2999, 2000)
    assert client.asked == 1001
