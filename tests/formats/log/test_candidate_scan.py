"""Which way batches are followed, and how far at a time: what is asked of the walk, and of the search for candidates."""

import numpy as np
import pytest

from kaudit.formats.log import candidate_scan
from kaudit.formats.log.candidate_scan import Framing, linked_positions
from kaudit.formats.log.record_batch import Walk
from tests.logs import data

KIB = 1024
START, END = 100, 1 << 24


@pytest.fixture
def asked(monkeypatch):
    """Calls of both ways: `walk` or `scan`, and how far from where it begins. Batches have `size` bytes, `good` says whether all are."""
    calls: list[tuple[str, int]] = []

    class Asked:
        size, good, linked, made = 100, True, 10, calls

    def batches(start, count):
        return np.arange(start, start + count * Asked.size, Asked.size, dtype=np.int64)

    def walk(_, start, end, last_start):
        assert end == END
        calls.append(("walk", last_start - start))
        count = 5
        return Walk(batches(start, count), start + count * Asked.size, Asked.good)

    def linked(_, start, end, last_start):
        assert end == END
        calls.append(("scan", last_start - start))
        return batches(start, Asked.linked), start + Asked.linked * Asked.size

    monkeypatch.setattr(candidate_scan, "walk", walk)
    monkeypatch.setattr(candidate_scan, "linked_positions", linked)
    return Asked


def follow(framing, asked, length=1 << 20):
    asked.made.clear()
    walked = framing.follow(memoryview(b""), START, END, START + length)
    return walked, list(asked.made)


def test_after_an_obstacle_twice_as_much_is_followed_each_time_until_all_is(asked):
    framing = Framing()
    framing.meet_obstacle()
    for power in range(9):
        assert follow(framing, asked)[1] == [("walk", KIB << power)]
    assert [way for way, _ in follow(framing, asked)[1]] == ["walk", "scan", "walk"]
    framing.meet_obstacle()
    assert follow(framing, asked, 700)[1] == [("walk", 700)]
    asked.good = False
    assert follow(framing, asked)[1] == [("walk", 2 * KIB)]
    asked.good = True
    assert follow(framing, asked)[1] == [("walk", KIB)]


@pytest.mark.parametrize("good", [True, False])
def test_what_is_no_batch_is_an_obstacle(asked, good):
    framing = Framing()
    asked.good = good
    follow(framing, asked)
    assert next(length for _, length in follow(framing, asked)[1]) == ((1 << 20) if good else KIB)


@pytest.mark.parametrize(
    ("size", "way"), [(599, ["walk", "scan", "walk"]), (600, ["walk", "walk"]), (16_384, ["walk", "walk"])]
)
def test_small_batches_are_searched_for_and_large_ones_followed(asked, size, way):
    framing = Framing()
    asked.size = size
    assert [made for made, _ in follow(framing, asked)[1]] == way
    assert framing.mean_size == size
    # what was learned of the first is not asked again
    assert [made for made, _ in follow(framing, asked)[1]] == way[1:]


@pytest.mark.parametrize(("length", "sampled"), [(16 * KIB, False), (16 * KIB + 1, True)])
def test_a_few_bytes_are_followed_whole(asked, length, sampled):
    calls = follow(Framing(), asked, length)[1]
    assert calls[0] == ("walk", 16 * KIB)
    assert len(calls) == (3 if sampled else 1)


@pytest.mark.parametrize(("linked", "pays"), [(4, False), (5, True), (0, False)])
def test_a_search_that_finds_less_than_the_walk_after_it_is_not_made_again(asked, linked, pays):
    framing = Framing()
    asked.linked = linked
    walked, _ = follow(framing, asked)
    assert walked.positions.tolist() == [START + 100 * number for number in range(linked + 5)]
    assert (walked.stop, walked.valid) == (START + 100 * (linked + 5), True)
    assert follow(framing, asked)[1] == (
        [("scan", 1 << 20), ("walk", (1 << 20) - 100 * linked)] if pays else [("walk", 1 << 20)]
    )


def test_headers_in_payloads_are_dropped_a_thousand_at_most():
    inner = data(7, 0, 0).encode()
    batches = [data(7, 0, number, payload=inner).at(number).encode() for number in range(1003)]
    content = b"".join(batches)
    starts = np.cumsum([0, *map(len, batches)])[:-1]
    positions, stop = linked_positions(memoryview(content), 0, len(content), len(content))
    assert 1000 <= len(positions) <= 1003
    assert positions.tolist() == starts[: len(positions)].tolist()
    assert stop == (len(content) if len(positions) == 1003 else starts[len(positions)])


@pytest.mark.parametrize("lead", [0, 1, 300])
def test_only_what_begins_where_the_walk_begins_and_ends_in_the_buffer_is_linked(lead):
    batches = [data(7, 0, number).at(number).encode() for number in range(4)]
    size = len(batches[0])
    content = b"\2" * lead + b"".join(batches)
    whole = lead + 4 * size
    for end in (whole, whole - 1, whole - size, whole - 4 * size + 61, whole - 4 * size + 60):
        for last in (whole, lead + 1, lead):
            positions, stop = linked_positions(memoryview(content), lead, end, last)
            count = min((end - lead) // size, -(-(last - lead) // size))
            assert positions.tolist() == [lead + size * number for number in range(count)]
            assert stop == lead + size * count
    nothing, stop = linked_positions(memoryview(content), lead + 5, whole, whole)
    assert (len(nothing), stop) == (0, lead + 5)
