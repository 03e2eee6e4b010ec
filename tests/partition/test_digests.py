"""The digests of ranges by their definition, which a few lines of recursion are."""

import hashlib
import struct
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.model.digests import LEAF_OFFSETS, MOST_RANGES
from kaudit.reading.digest_leaves import Leaves, RangeLeaves, join_leaves, range_leaves
from kaudit.reading.digest_tree import Leaf, RowOfRanges, WholeLog, widened

Held = list[tuple[int, int, int, int]]


def expected(batches: Held, first: int, width: int) -> bytes | None:
    """SHA-256 of the batches that begin in a leaf; of the digests of both halves; that of the only half that has any."""
    within = [batch for batch in batches if first <= batch[0] < first + width]
    if not within:
        return None
    if width == LEAF_OFFSETS:
        return hashlib.sha256(b"".join(struct.pack(">qqiI", *batch) for batch in within)).digest()
    half = width // 2
    digests = [each for start in (first, first + half) if (each := expected(within, start, half)) is not None]
    return digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digests)).digest()


@st.composite
def logs(draw: st.DrawFn) -> Held:
    batches, offset = [], draw(st.integers(0, 5000))
    for number in range(draw(st.integers(1, 40))):
        last = offset + draw(st.integers(0, 900))
        batches.append((offset, last, draw(st.integers(-1, 5)), number * 97_000_017))
        offset = last + 1 + draw(st.sampled_from((0, 0, 0, 3000, 70_000, 1 << 33)))
    return batches


def part(batches: Held) -> RangeLeaves:
    columns = zip(*batches, strict=True) if batches else ((),) * 4
    return range_leaves(*(np.array(column, dtype=np.int64) for column in columns))


def leaves(batches: Held, window: int) -> Iterator[Leaf]:
    reader = Leaves()
    for start in range(0, len(batches), window):
        yield from reader.feed(part(batches[start : start + window]))
    yield from reader.rest()


@settings(deadline=None, max_examples=80)
@given(logs(), st.lists(st.integers(0, 40), max_size=6), st.integers(0, 6))
def test_ranges_cut_anywhere_and_joined_by_any_task_have_the_leaves_of_the_log(batches, cuts, joined):
    bounds = [0, *sorted(min(cut, len(batches)) for cut in cuts), len(batches)]
    parts = [part(batches[begin:end]) for begin, end in pairwise(bounds)]
    together = [join_leaves(parts[:joined]), *parts[joined:]]
    reader = Leaves()
    found = [leaf for each in together for leaf in reader.feed(each)] + list(reader.rest())
    numbers = dict.fromkeys(batch[0] // LEAF_OFFSETS for batch in batches)
    assert found == [(number, expected(batches, number * LEAF_OFFSETS, LEAF_OFFSETS)) for number in numbers]
    assert sum(each.batches for each in together) == len(batches)


@settings(deadline=None, max_examples=80)
@given(logs(), st.integers(1, 7), st.integers(2, MOST_RANGES))
def test_ranges_of_a_whole_log(batches, window, most):
    whole = WholeLog(most)
    for leaf in leaves(batches, window):
        whole.add(leaf)
    made = whole.ranges(batches[0][0], batches[-1][1] + 1)
    assert made is not None
    assert len(made.digests) <= most
    assert made.first_offset <= batches[0][0]
    assert batches[-1][1] < made.end_offset
    span = 1 << (batches[-1][0]).bit_length()
    assert whole.digest() == expected(batches, 0, max(span, LEAF_OFFSETS))
    for at, digest in enumerate(made.digests):
        of_range = expected(batches, made.first_offset + at * made.width, made.width)
        assert digest == (None if of_range is None else of_range.hex())


@settings(deadline=None, max_examples=80)
@given(logs(), st.integers(0, 5), st.integers(0, 3))
def test_rows_of_ranges_and_wider_ranges_made_of_them(batches, doublings, more):
    width = LEAF_OFFSETS << doublings
    wide = width << more
    first = batches[len(batches) // 2][0] // wide * wide
    row = RowOfRanges(first, width, wide // width)
    for leaf in leaves(batches, 3):
        row.add(leaf)
    made = row.ranges()
    of_row = [expected(batches, first + at * width, width) for at in range(wide // width)]
    assert made.digests == [None if digest is None else digest.hex() for digest in of_row]
    of_range = expected(batches, first, wide)
    assert widened(made, first, wide) == (None if of_range is None else of_range.hex())


def test_a_log_with_offsets_far_apart_is_64_ranges_at_most():
    batches = [(1, 1, 0, 1), (1 << 62, 1 << 62, 0, 2)]
    whole = WholeLog()
    for leaf in leaves(batches, 1):
        whole.add(leaf)
    made = whole.ranges(1, (1 << 62) + 1)
    assert made is not None
    assert len([digest for digest in made.digests if digest]) == 2
    assert len(made.digests) <= MOST_RANGES
