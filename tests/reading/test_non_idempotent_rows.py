"""Which batches without a producer id stay candidates where ranges are joined: the copies, and the ends of the log."""

import numpy as np
import pytest

from kaudit.reading.chunk_rows import NonIdempotentRows
from kaudit.reading.equal_batches import DISTANCE, MAX_COPIES, NEAR
from kaudit.reading.non_idempotent_rows import join_non_idempotent
from kaudit.reading.rows import NON_IDEMPOTENT_BATCH

COUNT = 3000
"""Batches of a range: more than stay for being its first or its last."""
COPY = 77


def part(*batches, count=COUNT, regressions=0, recurring=()):
    """A range with these of its batches: (ordinal, CRC of the records, base timestamp)."""
    rows = np.zeros(len(batches), dtype=NON_IDEMPOTENT_BATCH)
    for row, (ordinal, crc, timestamp) in zip(rows, batches, strict=True):
        row["ordinal"], row["records_crc"], row["base_timestamp"], row["size"] = ordinal, crc, timestamp, 100
    return NonIdempotentRows(rows, count, regressions, np.array(recurring, dtype=np.int64).reshape(-1, 2))


def joined(*middle, recurring=()):
    """What stays of batches in the middle of a range, behind another."""
    first = part((0, 1, 0), (COUNT - 1, 2, 0))
    second = part((0, 3, 0), *middle, (COUNT - 1, 4, 9), recurring=recurring)
    found = join_non_idempotent([first, second])
    ordinals = found.rows["ordinal"].tolist()
    assert (ordinals[0], ordinals[-1], found.batches) == (0, 2 * COUNT - 1, 2 * COUNT)
    return [ordinal - COUNT for ordinal in ordinals[1:-1]], found


def test_copies_with_equal_times_stay_with_what_lies_between_them():
    stay, found = joined((999, 5, 1), (1000, COPY, 1), (1005, 6, 1), (1010, COPY, 1), (1011, 7, 1))
    assert stay == [1000, 1005, 1010]
    assert found.rows["records_crc"].tolist() == [1, COPY, 6, COPY, 4]
    assert found.recurring.tolist() == []


@pytest.mark.parametrize(("apart", "stays"), [(DISTANCE, True), (DISTANCE + 1, False)])
def test_how_far_a_copy_with_an_equal_time_may_be(apart, stays):
    stay, _ = joined((500, COPY, 1), (500 + apart, COPY, 1))
    assert stay == ([500, 500 + apart] if stays else [])


@pytest.mark.parametrize(
    ("apart", "later", "stays"),
    [
        (5, 1, True),
        (NEAR, 1, True),
        (NEAR + 1, 1, False),
        (5, 120_000, True),  # delivery.timeout.ms
        (5, 120_001, False),
        (5, -1, False),
    ],
)
def test_copies_with_other_times_stay_alone(apart, later, stays):
    stay, _ = joined((1000, COPY, 1), (1003, 5, 1), (1000 + apart, COPY, 1 + later))
    assert stay == ([1000, 1000 + apart] if stays else [])


def test_records_that_recur_are_no_copies():
    batches = [(1000 + 10 * number, COPY, number) for number in range(MAX_COPIES + 1)]
    stay, found = joined(*batches)
    assert (stay, found.recurring.tolist()) == ([], [[COUNT + 1000, COUNT + 1000 + 10 * MAX_COPIES]])
    stay, found = joined(*batches[:-1])
    assert (stay, found.recurring.tolist()) == ([1000, 1010, 1020], [])


def test_ranges_where_records_recur_are_counted_from_the_first_part():
    stay, found = joined((100, COPY, 1), (101, COPY, 2), recurring=[[102 + DISTANCE, 2000]])
    assert (stay, found.recurring.tolist()) == ([100, 101], [[COUNT + 102 + DISTANCE, COUNT + 2000]])
    stay, _ = joined((100, COPY, 1), (101, COPY, 2), recurring=[[101 + DISTANCE, 2000]])
    assert stay == []


def test_a_range_that_begins_at_an_earlier_time_regresses():
    parts = [part((0, 1, 5), (1, 2, 6), count=2, regressions=1), part((0, 3, 5), (1, 4, 4), count=2, regressions=2)]
    found = join_non_idempotent(parts)
    assert (found.batches, found.regressions) == (4, 4)
    assert found.rows["ordinal"].tolist() == [0, 1, 2, 3]
    assert found.rows["regresses"].tolist() == [False, False, True, False]
    equal = join_non_idempotent([part((0, 1, 5), count=1), part((0, 2, 5), count=1)])
    assert (equal.regressions, equal.rows["regresses"].tolist()) == (0, [False, False])


def test_ranges_without_batches_are_passed_over():
    only = part((0, 1, 5), count=1)
    assert join_non_idempotent([part(count=0), only, part(count=0)]) is only
    assert join_non_idempotent([part(count=0)]).batches == 0


@pytest.mark.parametrize("count", [DISTANCE, DISTANCE + 1])
def test_the_first_and_the_last_of_the_log_stay(count):
    first, second = (part(*((number, side + number, 0) for number in range(count)), count=count) for side in (0, 10**6))
    stay = join_non_idempotent([first, second]).rows["ordinal"].tolist()
    assert stay == [*range(DISTANCE), *range(2 * count - DISTANCE, 2 * count)]
