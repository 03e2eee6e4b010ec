"""Batches whose CRC holds among damage: found wherever one looks from, in whatever order, and nothing is searched twice."""

from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.reading.read_window import Window
from kaudit.reading.valid_batches import ValidBatches
from tests.logs import data
from tests.memory import Memory

GARBAGE = bytes((number * 37 + 11) % 251 + 3 for number in range(300))
BATCHES = [data(7, 0, number, base_offset=number, payload=b"p" * number * 9).encode() for number in range(6)]
FIRST_SEARCH = 512


def damaged(batch):
    return batch[:-1] + bytes([batch[-1] ^ 1])


def laid_out(*parts):
    """Bytes one after the other, and where each part begins."""
    positions, content = [], b""
    for part in parts:
        positions.append(len(content))
        content += part
    return content, positions


CONTENT, PLACES = laid_out(
    GARBAGE[:100], BATCHES[0], damaged(BATCHES[1]), BATCHES[2], GARBAGE[:31], BATCHES[3], bytes(2000), BATCHES[4], GARBAGE,
    damaged(BATCHES[5]),
)  # fmt: skip
SOUND = [PLACES[number] for number in (1, 3, 5, 7)]


class Counting(Window):
    """A window that notes where it was loaded from."""

    def __init__(self, content):
        super().__init__(Memory(content), len(content), 1 << 20)
        self.loads: list[int] = []

    def load(self, position, size=None):
        self.loads.append(position)
        return super().load(position, size)


def sound(content):
    return ValidBatches(Counting(content))


def expected(start, stop):
    index = bisect_left(SOUND, start)
    found = SOUND[index] if index < len(SOUND) else None
    return None if found is None or (stop is not None and found >= stop) else found


BOUNDS = sorted({place + step for place in PLACES for step in (-1, 0, 1)} | {0, len(CONTENT), len(CONTENT) + 5})


@pytest.mark.parametrize("start", [at for at in BOUNDS if at >= 0])
def test_the_first_sound_batch_from_a_position_on_and_below_another(start):
    for stop in (None, *BOUNDS):
        assert sound(CONTENT).first(start, stop) == expected(start, stop), stop


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(CONTENT)), st.none() | st.integers(0, len(CONTENT) + 9)), max_size=12))
def test_the_same_is_found_whatever_was_searched_before(asked):
    batches = sound(CONTENT)
    assert [batches.first(start, stop) for start, stop in asked] == [expected(start, stop) for start, stop in asked]


def test_what_was_searched_is_not_searched_again():
    content, (_, _, last) = laid_out(GARBAGE, bytes(50_000), BATCHES[0])
    window = Counting(content)
    batches = ValidBatches(window)
    assert batches.first(0) == last
    searched = len(window.loads)
    assert searched < 12  # 512 bytes, then twice as many each time
    assert window.loads[:4] == [0, 512, 512 + 1024, 512 + 1024 + 2048]
    for start in range(0, last + 1, 97):
        assert batches.first(start) == last
        assert batches.first(start, last) is None
    assert len(window.loads) == searched


def test_where_no_batch_is_left_is_known_without_another_search():
    window = Counting(bytes(20_000))
    batches = ValidBatches(window)
    assert batches.first(100) is None
    searched = len(window.loads)
    for start in range(100, 20_000, 91):
        assert batches.first(start) is None
    assert len(window.loads) == searched
    assert batches.first(99) is None  # in front of what was searched
    assert len(window.loads) > searched


def test_batches_that_follow_one_another():
    content, (*places, damage, behind) = laid_out(*BATCHES[:3], damaged(BATCHES[3]), BATCHES[4])
    batches = sound(content)
    assert batches.chain(0, len(content))[1] == []  # nothing was searched yet
    assert batches.first(0) == 0
    assert batches.chain(0, len(content))[1] == places
    assert batches.chain(0, places[2] + 1)[1] == places
    assert batches.chain(0, places[2])[1] == places[:2]
    assert batches.chain(0, 0)[1] == []
    assert batches.chain(places[1], len(content))[1] == places[1:]
    assert batches.chain(1, len(content))[1] == []
    assert batches.chain(damage, len(content))[1] == []
    assert batches.chain(behind, len(content))[1] == [behind]
    block, _ = batches.chain(0, len(content))
    assert (block.start, bytes(block.content)) == (0, content)
    assert {*places, damage, behind} <= set(block.candidates)


def test_a_chain_ends_with_the_block_that_was_searched():
    """Of 512 bytes: seven batches of 69 lie in them, and of the eighth what was read behind them has the rest."""
    content, places = laid_out(*(data(7, 0, number, base_offset=number).encode() for number in range(20)))
    assert {following - place for place, following in pairwise(places)} == {69}
    batches = sound(content)
    batches.first(0)
    assert batches.chain(0, len(content))[1] == places[:8]
    assert batches.chain(places[7], len(content))[1] == [places[7]]
    assert batches.chain(places[8], len(content))[1] == []


def test_where_a_batch_ends_whose_crc_does_not_hold():
    content, (good, bad, cut) = laid_out(BATCHES[0], damaged(BATCHES[1]), BATCHES[2][:-1])
    batches = sound(content)
    assert batches.first(0) == 0
    assert batches.invalid_end(bad) == bad + len(BATCHES[1])
    assert [batches.invalid_end(at) for at in (good, bad - 1, bad + 1, cut, len(content))] == [None] * 5


def test_bytes_that_cannot_begin_a_batch():
    content, (batch, bad, garbage) = laid_out(BATCHES[0], damaged(BATCHES[1]), GARBAGE)
    batches = sound(content)
    assert not batches.begins_no_batch(garbage)  # nothing was searched yet
    batches.first(0)
    assert not batches.begins_no_batch(batch)
    assert not batches.begins_no_batch(bad)
    assert batches.begins_no_batch(garbage)
    assert batches.begins_no_batch(batch + 1)
    assert batches.begins_no_batch(len(content) - 17)  # the last of which the magic is there
    assert not batches.begins_no_batch(len(content) - 16)
    assert not batches.begins_no_batch(-1)
