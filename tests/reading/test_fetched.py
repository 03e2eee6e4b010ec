"""Positions that stand for offsets, of record sets as brokers send them."""

import pytest
from msgspec.structs import replace

from kaudit.reading.batch_stream import fetched_batches
from kaudit.source.kafka.fetched_segment import BrokerError, FetchedSegment
from kaudit.source.layout import FetchedRange
from tests.logs import data

PLACE = FetchedRange("b:9092", "orders", 0, 10, 10, 40, bytes_per_offset=100)
BATCHES = [data(7, 0, 0, 5, base_offset=10), data(7, 0, 5, 1, base_offset=15), data(7, 0, 6, 4, base_offset=20),
           data(7, 0, 10, 10, base_offset=30)]  # fmt: skip
"""Offsets 16 to 19 and 24 to 29 are missing."""


def broken(batch):
    raw = bytearray(batch.encode())
    raw[-1] ^= 1
    return bytes(raw)


def read(start=0, stop=3000, sets=None, encode=None, verify=True):
    """Read positions; a fetch brings so many batches as `sets` says, all without it, and half of another one."""
    asked = []

    def fetch(offset, size):
        asked.append(offset)
        at = next((number for number, batch in enumerate(BATCHES) if batch.last_offset >= offset), len(BATCHES))
        raw = [(encode or {}).get(number, type(batch).encode)(batch) for number, batch in enumerate(BATCHES)]
        end = len(BATCHES) if sets is None else at + sets
        return b"".join(raw[at:end]) + b"".join(raw[end:])[:40], frozenset({(7, offset)})

    pieces = list(fetched_batches(FetchedSegment(PLACE, fetch), start, stop, verify=verify))
    batches = [(int(row["base_offset"]), int(row["position"])) for piece in pieces for row in piece.batches]
    damages = [(each.position, each.end, each.base_offset) for piece in pieces for each in piece.damages]
    return asked, batches, damages, [piece.read_to for piece in pieces]


ALL = [(10, 0), (15, 500), (20, 1000), (30, 2000)]


@pytest.mark.parametrize(
    ("start", "stop", "asked", "batches", "read_to"),
    [
        (0, 3000, [10], ALL, [3000]),
        # batches that begin in the range are its own, however far they reach
        (0, 1000, [10], ALL[:2], [1000]),
        (0, 1001, [10], ALL[:3], [1001]),
        (1000, 3000, [20], ALL[2:], [3000]),
        (1001, 3000, [21], ALL[3:], [3000]),
        (500, 3000, [15], ALL[1:], [3000]),
        (100, 3000, [11], ALL[1:], [3000]),
        (2100, 3000, [31], [], [3000]),
        (1000, 1000, [], [], []),
    ],
)
def test_the_batches_of_a_range_of_positions(start, stop, asked, batches, read_to):
    found = read(start, stop)
    assert found == (asked, batches, [], read_to)


def test_a_fetch_at_a_time():
    assert read(sets=1) == ([10, 15, 16, 24], ALL, [], [500, 600, 1400, 3000])
    assert read(sets=2) == ([10, 16], ALL, [], [600, 3000])


def test_where_the_broker_has_nothing_more_the_range_ends():
    log = FetchedSegment(PLACE, lambda offset, size: (b"", frozenset()))
    (piece,) = fetched_batches(log, 0, 3000, verify=True)
    assert (len(piece.batches), piece.damages, piece.read_to) == (0, [], 3000)


def test_where_offsets_should_be_and_the_broker_sends_nothing_they_were_not_read():
    sets = [BATCHES[0].encode(), b""]
    log = FetchedSegment(replace(PLACE, whole=True), lambda offset, size: (sets.pop(0), frozenset()))
    with pytest.raises(BrokerError) as refused:
        list(fetched_batches(log, 0, 3000, verify=True))
    assert refused.value.strerror == "the broker sends nothing from offset 15 on, and its log goes on to 39"


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        # up to where the next batch begins, from where it says that it begins
        (0, (0, 500, 10)),
        (1, (500, 1000, 15)),
        (2, (1000, 2000, 20)),
        # behind the last one nothing says how far it reached but itself
        (3, (2000, 3000, 30)),
    ],
)
def test_a_batch_that_fails_its_crc(number, damage):
    kept = [batch for batch in ALL if batch[0] != BATCHES[number].base_offset]
    asked, batches, damages, read_to = read(encode={number: broken})
    assert (asked, batches, damages, read_to[-1]) == ([10], kept, [damage], 3000)
    # alone in its record set it is the last one
    end = BATCHES[number].last_offset + 1
    alone = (damage[0], (end - 10) * 100, damage[2])
    assert read(encode={number: broken}, sets=1)[1:3] == (kept, [alone])
    assert read(encode={number: broken}, verify=False)[1:3] == (ALL, [])


def test_aborted_transactions_come_with_their_fetch():
    log = FetchedSegment(PLACE, lambda offset, size: (b"".join(each.encode() for each in BATCHES), frozenset({(7, 3)})))
    (piece,) = fetched_batches(log, 0, 3000, verify=True)
    assert piece.listed_aborts == {(7, 3)}


@pytest.mark.parametrize("sent", [b"x" * 100, BATCHES[0].encode()])
def test_what_brings_no_further_is_an_error(sent):
    log = FetchedSegment(PLACE, lambda offset, size: (sent, frozenset()))
    with pytest.raises(BrokerError, match=f"no valid batch in the {len(sent)} bytes .* for offset 20"):
        list(fetched_batches(log, 1000, 3000, verify=True))
