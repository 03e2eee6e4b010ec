"""Batches whose offsets do not ascend: which are kept, in what order, and what is said of the others."""

import pytest

from kaudit.model.damage import DamageKind, LogDamage
from kaudit.reading.batch_order import OrderFilter
from tests.logs import Log, data
from tests.properties.test_law import decode

SEGMENT = (0, None)
# segment, offsets as they lie there, first offsets as they are kept, and of what is set aside: its number, why, its producer id
CASES = {
    "ascending": (SEGMENT, [(0, 1), (2, 3), (7, 9)], [0, 2, 7], []),
    "one": (SEGMENT, [(5, 5)], [5], []),
    "exchanged": (
        SEGMENT, [(0, 1), (4, 5), (2, 3), (6, 7)], [0, 2, 4, 6],
        [(1, "it stands before the batch of offsets 2..3: the two are exchanged", None)],
    ),
    "the last two exchanged": (
        SEGMENT, [(0, 1), (4, 5), (2, 3)], [0, 2, 4],
        [(1, "it stands before the batch of offsets 2..3: the two are exchanged", None)],
    ),
    "repeated": (SEGMENT, [(0, 1), (2, 3), (0, 1), (4, 5)], [0, 2, 4], [(2, "offset 3 had already been written", 7)]),
    "repeated at the end": (SEGMENT, [(0, 1), (2, 3), (2, 2)], [0, 2], [(2, "offset 3 had already been written", 7)]),
    "of the same offset": (SEGMENT, [(0, 1), (2, 3), (2, 5)], [0, 2], [(2, "offset 3 had already been written", 7)]),
    "too far": (SEGMENT, [(0, 1), (9, 9), (2, 3), (4, 5)], [0, 2, 4], [(1, "the next batch goes on at offset 2", 7)]),
    "the first too far": (SEGMENT, [(9, 9), (0, 1), (2, 3)], [0, 2], [(0, "the next batch goes on at offset 0", 7)]),
    "overlapping": (SEGMENT, [(0, 1), (4, 7), (2, 4)], [0, 2], [(1, "the next batch goes on at offset 2", 7)]),
    "overlapping those before": (
        SEGMENT, [(0, 5), (7, 8), (4, 6), (9, 9)], [0, 7, 9], [(2, "offset 8 had already been written", 7)],
    ),
    "no room once exchanged": (
        SEGMENT, [(0, 1), (4, 6), (2, 3), (6, 7)], [0, 2, 6], [(1, "the next batch goes on at offset 2", 7)],
    ),
    "before its segment": (
        (10, 20), [(10, 11), (9, 9), (12, 19)], [10, 12], [(1, "its segment cannot hold these offsets", 7)],
    ),
    "into the next segment": (
        (10, 20), [(10, 11), (12, 20), (12, 19)], [10, 12], [(1, "its segment cannot hold these offsets", 7)],
    ),
    "from before its segment into it": (
        (10, 20), [(12, 13), (9, 10), (14, 15)], [12, 14], [(1, "its segment cannot hold these offsets", 7)],
    ),
    "from within into the next segment": (
        (10, 20), [(10, 10), (12, 13), (11, 20), (14, 15)], [10, 12, 14],
        [(2, "its segment cannot hold these offsets", 7)],
    ),
    "exchanged at the ends of its segment": (
        (10, 20), [(12, 19), (10, 11)], [10, 12],
        [(0, "it stands before the batch of offsets 10..11: the two are exchanged", None)],
    ),
    "the last into the next segment": (
        (10, 20), [(10, 11), (18, 19), (19, 20)], [10, 18], [(2, "its segment cannot hold these offsets", 7)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("segment", "offsets", "kept", "aside"), CASES.values(), ids=CASES)
def test_what_becomes_of_batches_whether_they_come_together_or_one_by_one(segment, offsets, kept, aside):
    log = Log([data(7, 0, 0, last - base + 1).at(base) for base, last in offsets])
    batches = decode(log)
    ends = [0]
    for batch in log.batches:
        ends.append(ends[-1] + len(batch.encode()))
    expected = []
    for number, detail, producer_id in aside:
        (base, last), start, end = offsets[number], ends[number], ends[number + 1]
        expected.append(LogDamage(DamageKind.OUT_OF_ORDER, start, end, True, detail, base, last, producer_id))
    for step in (1, 2, len(offsets)):
        order, bases, damages = OrderFilter(), [], []
        order.enter_segment(*segment)
        parts = [order.feed(batches[at : at + step]) for at in range(0, len(offsets), step)]
        for settled, found in [*parts, order.finish()]:
            bases += settled["base_offset"].tolist()
            damages += found
        assert (bases, damages) == (kept, expected), step


def test_a_batch_is_settled_once_two_follow():
    order, batches = OrderFilter(), decode(Log([data(7, 0, offset).at(offset) for offset in range(4)]))
    fed = [order.feed(batches[at : at + 1])[0]["base_offset"].tolist() for at in range(4)]
    assert (fed, order.finish()[0]["base_offset"].tolist()) == ([[], [], [0], [1]], [2, 3])
    # another segment goes on behind it
    order.enter_segment(3, None)
    order.feed(batches[3:])
    settled, (damage,) = order.finish()
    assert (len(settled), damage.detail) == (0, "offset 3 had already been written")
