"""Two writers are distinguished from one that lost, repeated or overtook its batches."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.broker.producer_ids.interleaved_writers import SequencedBatch, find_interleaved_writers
from kaudit.model.producer_patterns import Chain

LAST = 2**31 - 1


def batches(text: str) -> list[SequencedBatch]:
    """Batches like `0-4 5-9 0-4b`: sequences and, for another content than the first of these sequences, a letter."""
    built = []
    for offset, word in enumerate(text.split()):
        span = word.rstrip("abcdefgh")
        first, last = map(int, span.split("-")) if "-" in span else (int(span), int(span))
        built.append((offset * 10, first, last, zlib.crc32(word.encode())))
    return built


def test_two_writers_that_began_alike():
    woven = find_interleaved_writers(batches("0-4 5-9 0-2b 10-14 3-5b 15-19 6-8b"))
    assert woven is not None
    assert woven.first == Chain(0, 50, 0, 19, 4)
    assert woven.second == Chain(20, 60, 0, 8, 3)
    assert (woven.changes, woven.copies, woven.rewritten) == (5, 0, 0)


def test_two_writers_far_apart():
    woven = find_interleaved_writers(batches("100-101 5 102 6 103 7"))
    assert woven is not None
    assert (woven.first.first_sequence, woven.second.first_sequence, woven.changes) == (100, 5, 5)


def test_two_writers_across_the_wrap():
    woven = find_interleaved_writers([(0, LAST - 1, LAST, 1), (2, 50, 50, 2), (3, 0, 3, 3), (7, 51, 51, 4)])
    assert woven is not None
    assert (woven.first.last_sequence, woven.second.last_sequence) == (3, 51)


def test_batches_that_were_overtaken_are_of_the_chain_they_complete():
    woven = find_interleaved_writers(batches("10-14 5-9 15-19 100 20-24 101 25-29 102"))
    assert woven is not None
    assert woven.first == Chain(0, 60, 5, 29, 5)
    assert woven.second == Chain(30, 70, 100, 102, 3)
    assert (woven.changes, woven.copies, woven.rewritten) == (5, 0, 0)


def test_two_writers_behind_a_restart_and_a_gap():
    woven = find_interleaved_writers(batches("0-4 5-9 20-24 0-1c 2-3c 100-101 4 102 5 103"))
    assert woven is not None
    assert (woven.first.first_offset, woven.second.first_offset) == (30, 50)


def test_lockstep_batches_are_woven_and_marked():
    woven = find_interleaved_writers(batches("0 0b 1 1b 2 2b 3 3b"))
    assert woven is not None
    assert woven.rewritten == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0-4",
        "0-4 5-9 10-14",
        "0-4 20-24 25-29",  # a gap
        "0-4 5-9 20-24 5-9 25-29 0-4 30-34",  # a gap and old duplicates
        "0-4 5-9 10-14 0-4 5-9 10-14 15-19",  # everything once more, after lost state
        "0-4 5-9 0-4b 5-9b 10-14b",  # a restart at 0
        "0-4 5-9 0-4b 5-9b 10-14",  # the same with a changed crc, then on
        "0-4 10-14 5-9 15-19 20-24",  # overtaken
        "0-4 10-14 5-7 15-19 8-9 20-24 30-34 25-29 35-39",  # overtaken twice
        "0-4 20-24 5-9",  # A B A: a gap, then one batch of before
        "0-4 40-44 80-84 120-124 5-9",  # gaps only
    ],
)
def test_one_writer_is_not_called_two(text: str):
    assert find_interleaved_writers(batches(text)) is None


def chain(start: int, lengths: list[int], letter: int) -> list[tuple[int, int, int]]:
    built = []
    for number, length in enumerate(lengths):
        built.append((start, start + length - 1, letter * 1000 + number))
        start += length
    return built


LENGTHS = st.lists(st.integers(1, 5), min_size=4, max_size=15)


@given(LENGTHS, LENGTHS, st.integers(0, 60), st.integers(0, 60), st.lists(st.booleans(), max_size=40))
def test_two_random_writers_are_found(one: list[int], two: list[int], at: int, other: int, turns: list[bool]):
    left, right = chain(at, one, 1), chain(500 + other, two, 2)
    # Both go on twice at least, and never meet: 60 + 75 < 500.
    order = [left.pop(0), right.pop(0), left.pop(0), right.pop(0)]
    for turn in turns:
        source = left if turn else right
        if source:
            order.append(source.pop(0))
    found = find_interleaved_writers([(offset, *batch) for offset, batch in enumerate(order)])
    assert found is not None
    assert (found.first.first_sequence, found.second.first_sequence) == (at, 500 + other)
    assert found.first.batches + found.second.batches == len(order)
    assert found.first.last_sequence == max(last for _, last, _ in order if last < 500)
    assert found.second.last_sequence == max(last for _, last, _ in order)


@given(LENGTHS, st.lists(st.tuples(st.sampled_from(["gap", "copies"]), st.integers(1, 9)), max_size=8))
def test_gaps_and_copies_of_one_writer_are_not(lengths: list[int], accidents: list[tuple[str, int]]):
    batches_, position = [], 0
    written: list[tuple[int, int, int]] = []
    events = [*accidents, *[("write", length) for length in lengths]]
    for kind, amount in sorted(events, key=lambda event: event[1] * 7 % 5):
        if kind == "gap":
            position += amount
        elif kind == "copies":
            batches_ += written[-amount:]
        else:
            batch = (position, position + amount - 1, len(written))
            written.append(batch)
            batches_.append(batch)
            position += amount
    assert find_interleaved_writers([(offset, *batch) for offset, batch in enumerate(batches_)]) is None


def epochs(log: Path) -> dict[tuple[int, int], list[SequencedBatch]]:
    """The data batches of each producer id and epoch, read with the 61-byte header alone."""
    data = log.read_bytes()
    found: dict[tuple[int, int], list[SequencedBatch]] = {}
    position = 0
    while position + 61 <= len(data):
        header = struct.unpack_from(">qiibIhiqqqhii", data, position)
        offset, length, _, magic, crc, attributes, delta, _, _, producer_id, epoch, sequence, _ = header
        if magic != 2 or length < 49:
            break
        if producer_id >= 0 and sequence >= 0 and not attributes & 0x20:
            batch = (offset, sequence, (sequence + delta) % 2**31, crc)
            found.setdefault((producer_id, epoch), []).append(batch)
        position += 12 + length
    return found


@pytest.mark.parametrize(
    ("capture", "least"),
    [("retry-dup", 1), ("failover-acks1", 1), ("zk-pid-blocks", 2000), ("unknown-pid-2.0.1", 1), ("clients-mix", 1)],
)
def test_no_recorded_producer_is_called_two(evidence, capture: str, least: int):
    logs = sorted(evidence.capture(capture).rglob("*.log"))
    woven = [
        found for log in logs for batches_ in epochs(log).values() if (found := find_interleaved_writers(batches_))
    ]
    assert woven == []
    assert sum(len(epochs(log)) for log in logs) >= least


@pytest.mark.parametrize("version", ["1.1.1", "4.2.0"])
def test_no_scenario_of_the_oracle_is_called_two(evidence, version: str):
    logs = sorted(evidence.oracle(version, "logdir").rglob("*.log"))
    assert [
        find_interleaved_writers(batches_)
        for log in logs
        for batches_ in epochs(log).values()
        if find_interleaved_writers(batches_)
    ] == []
    assert sum(len(epochs(log)) for log in logs) > 80
