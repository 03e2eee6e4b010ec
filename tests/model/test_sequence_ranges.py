"""Sets of sequences against Python's own sets."""

from hypothesis import given
from hypothesis import strategies as st

from kaudit.model.sequence import SequenceRange, SequenceRanges

WRAP = 2**31
START = st.sampled_from([0, 40, WRAP - 30])


def members(given):
    return {(given.producer_id, given.producer_epoch, (given.first + step) % WRAP) for step in range(given.length)}


@given(START, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 12)), max_size=8), st.data())
def test_counting(start, drawn, data):
    ranges = [SequenceRange(5, epoch, (start + step) % WRAP, length) for epoch, step, length in drawn]
    epoch, step, length = data.draw(st.tuples(st.integers(0, 1), st.integers(0, 70), st.integers(0, 40)))
    wanted = SequenceRange(5, epoch, (start + step) % WRAP, length)
    known = set().union(*map(members, ranges))
    assert SequenceRanges(ranges).count(wanted) == len(known & members(wanted))
    assert SequenceRanges(ranges).count(wanted._replace(producer_id=6)) == 0
