"""A window over a file: what it shows is the file's, wherever it was before, and what claims to be a batch is looked at in bounded memory."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.reading import read_window
from kaudit.reading.read_window import Window
from tests.formats.encoders import batch, message, record
from tests.memory import Memory

CONTENT = random.Random(3).randbytes(400)
CAPACITY = 64


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(CONTENT) + 5), st.none() | st.integers(1, 100)), max_size=12),
    st.integers(300, len(CONTENT)),
)
def test_what_is_loaded_is_what_lies_there(loads, end):
    window = Window(Memory(CONTENT), end, CAPACITY)
    for position, size in loads:
        view = bytes(window.load(position, size))
        assert view == CONTENT[position : min(position + len(view), end)]
        assert len(view) >= min(size or CAPACITY, CAPACITY, max(end - position, 0))
        assert window.base == position


class Counting(Memory):
    def __init__(self, data):
        super().__init__(data)
        self.read = []

    def read_into(self, position, buffer):
        count = super().read_into(position, buffer)
        self.read.append((position, count))
        return count


def test_bytes_that_are_there_are_not_read_again():
    source = Counting(CONTENT)
    window = Window(source, len(CONTENT), CAPACITY)
    window.load(0)
    window.load(10, 54)
    assert source.read == [(0, 64)]
    window.load(40)
    assert source.read == [(0, 64), (64, 40)]
    # a small step from the end of what is there fetches as much again
    window.load(70, 40)
    assert source.read[2:] == [(104, 30)]


def test_bytes_that_were_overwritten_are_read_again():
    source = Counting(CONTENT)
    window = Window(source, len(CONTENT), CAPACITY)
    window.load(0)[:20] = bytes(20)
    window.spend(20)
    assert bytes(window.load(20, 10))[:10] == CONTENT[20:30]
    assert bytes(window.load(19, 10))[:10] == CONTENT[19:29]


def valid(size, *, magic=2):
    """A batch of so many bytes."""
    if magic < 2:
        empty = message(0, magic, value=b"")
        return message(0, magic, value=bytes(size - len(empty)))
    for length in range(size):
        found = batch([record(0, value=bytes(length))])
        if len(found) >= size:
            return found
    raise AssertionError


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(read_window, "_PIECE_BYTES", 16)
    monkeypatch.setattr(read_window, "_LARGE_CLAIM_BYTES", 150)
    monkeypatch.setattr(read_window, "_SMALL_CLAIM_BYTES", 80)


@pytest.mark.parametrize("loaded", [None, 0, 30, 90])
@pytest.mark.parametrize("size", [80, 128, 129, 200, 400])
@pytest.mark.parametrize("before", [0, 30])
def test_whether_a_batch_matches_its_crc(small, before, size, loaded):
    """In what is loaded, in a piece of its own, and in pieces where it is larger than the window."""
    raw = valid(size)
    for change, sound in ((None, True), (len(raw) - 1, False), (30, False), (17, False)):
        content = bytearray(bytes(before) + raw + bytes(20))
        if change is not None:
            content[before + change] ^= 1
        window = Window(Memory(bytes(content)), len(content), 128)
        if loaded is not None:
            window.load(loaded)
        assert window.crc_holds(before, len(raw)) is sound
        assert window.is_batch(before, len(raw)) is sound
        assert not window.crc_holds(before, len(raw) + 5)


def test_a_batch_that_the_end_cuts_off_matches_nothing(small):
    for size in (100, 128, 300):
        raw = valid(size)
        window = Window(Memory(raw[:-1]), len(raw) - 1, 128)
        assert not window.crc_holds(0, len(raw))
        assert not window.is_batch(0, len(raw))


@pytest.mark.parametrize(
    ("follows", "looked_at"),
    [
        (b"", True),
        (bytes(17), True),
        (valid(80), True),
        (b"\xaa" * 40, False),
        # a length that no batch of its magic has
        (valid(80)[:8] + struct.pack(">i", 48) + valid(80)[12:], False),
        (b"\xaa" * 16, True),
    ],
)
def test_what_claims_to_be_large_is_read_where_a_batch_zeros_or_the_end_follow(small, follows, looked_at):
    raw = valid(300)
    content = raw + follows
    assert Window(Memory(content), len(content), 1000).is_batch(0, len(raw)) is looked_at


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_after_many_claims_in_vain_the_answer_is_the_same(small, magic):
    """Beyond 150 bytes claimed in vain CRCs are put together from ranges of the file."""
    raw = valid(120, magic=magic)
    broken = bytearray(raw)
    broken[-1] ^= 1
    content = bytes(broken) * 3 + raw + bytes(broken) + raw
    window = Window(Memory(content), len(content), 1000)
    found = [window.is_batch(at, len(raw)) for at in range(0, len(content), len(raw))]
    assert found == [False, False, False, True, False, True]
    # a search may step back
    assert window.is_batch(3 * len(raw), len(raw))
    assert not window.is_batch(2 * len(raw), len(raw))
