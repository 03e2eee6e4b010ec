"""Share groups over time: states as ShareCoordinatorShard replays them, by hand, and what is reported of each."""

import pytest

from kaudit.audits.coordinator import share_history as module
from kaudit.audits.coordinator.group_log import CommitRecord, GroupRecord
from kaudit.audits.coordinator.share_history import ShareHistory
from kaudit.formats.internal_topics.record_schemas import InternalRecord
from kaudit.model.group_commits import SharedOffsets, SharePartition, StartJump

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"
Written = tuple[int | None, int, tuple[tuple[int, int, str, int], ...]] | None
"""State epoch (None: an update), start offset, (first, last, state, deliveries) of ranges; None: a tombstone."""


def snapshot(start, *ranges, epoch=0):
    return epoch, start, ranges


def update(start, *ranges):
    return None, start, ranges


def history(*records: Written, partitions: tuple[int, ...] = ()) -> ShareHistory:
    """What follows from records at offsets 0, 1, ... and at 1000 ms, 1001 ms, ...; of partition 0, or of these."""
    found = ShareHistory()
    for offset, written in enumerate(records):
        key = {"groupId": "g", "topicId": "t", "partition": partitions[offset] if partitions else 0}
        value = None
        if written is not None:
            epoch, start, ranges = written
            names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
            value = {"startOffset": start, "stateBatches": [dict(zip(names, each, strict=True)) for each in ranges]}
            value |= {} if epoch is None else {"stateEpoch": epoch}
        name = "ShareUpdate" if written is not None and written[0] is None else "ShareSnapshot"
        found.take(GroupRecord(offset, 1000 + offset, 0, InternalRecord(name, 0, 0, key, value)))
    return found


def share(
    archived=(), rejected=0, exhausted=0, records=(-1, -1, -1), acquired=(), changed=1000, jumps=()
) -> SharePartition:
    ranges, held = ([SharedOffsets(*each) for each in own] for own in (archived, acquired))
    listed = [StartJump(*each) for each in jumps]
    first, last, timestamp = records
    return SharePartition(
        "g", "t", 0, ranges, rejected, exhausted, first, last, timestamp, held, changed, listed, len(listed)
    )


CASES = {
    "nothing": ([snapshot(0), update(0, (0, 9, AVAILABLE, 1))], None),
    "acknowledged": ([snapshot(0, (0, 9, ACKNOWLEDGED, 1)), update(10)], None),
    "acquired": ([snapshot(0, (5, 9, ACQUIRED, 2))], share(acquired=[(5, 9, 2)])),
    "acquired and done in part": (
        [snapshot(0, (0, 9, ACQUIRED, 2)), update(0, (3, 5, ACKNOWLEDGED, 2))],
        share(acquired=[(0, 2, 2), (6, 9, 2)], changed=1001),
    ),
    "acquired from its first and up to its last": (
        [snapshot(0, (0, 9, ACQUIRED, 2)), update(0, (0, 1, AVAILABLE, 2), (8, 9, AVAILABLE, 2))],
        share(acquired=[(2, 7, 2)], changed=1001),
    ),
    "acquired, over several": (
        [snapshot(0, (0, 3, ACQUIRED, 1), (4, 7, ACQUIRED, 2), (8, 9, ACQUIRED, 3)), update(0, (2, 8, AVAILABLE, 2))],
        share(acquired=[(0, 1, 1), (9, 9, 3)], changed=1001),
    ),
    "acquired below the start": (
        [snapshot(0, (0, 4, ACQUIRED, 1), (5, 9, ACKNOWLEDGED, 1)), update(5)],
        share(changed=1001, jumps=[(1, 1001, 0, 5, 5, False)]),
    ),
    "acquired around the start": (
        [snapshot(0, (0, 9, ACQUIRED, 1)), update(9)],
        share(acquired=[(0, 9, 1)], changed=1001, jumps=[(1, 1001, 0, 9, 9, False)]),
    ),
    "written twice in one record, the first part counts": (
        [snapshot(0, (0, 5, ACQUIRED, 1), (3, 9, ACQUIRED, 2))],
        share(acquired=[(0, 5, 1), (6, 9, 2)]),
    ),
    "out of order": ([snapshot(0, (6, 9, ACQUIRED, 2), (0, 5, ACQUIRED, 1))], share(acquired=[(0, 5, 1), (6, 9, 2)])),
    "a snapshot has all": (
        [snapshot(0, (0, 9, ACQUIRED, 1)), snapshot(0, (20, 24, ACQUIRED, 1))],
        share(acquired=[(20, 24, 1)], changed=1001),
    ),
    "rejected": ([snapshot(0, (0, 4, ARCHIVED, 4))], share([(0, 4, 4)], 5, 0, (0, 0, 1000))),
    "being archived": ([snapshot(0, (0, 4, "ARCHIVING", 1))], share([(0, 4, 1)], 5, 0, (0, 0, 1000))),
    "delivered five times": ([snapshot(0, (0, 4, ARCHIVED, 5))], share([(0, 4, 5)], 0, 5, (0, 0, 1000))),
    "said again, and more": (
        [
            snapshot(0, (3, 5, ARCHIVED, 1)),
            update(0, (0, 2, ACKNOWLEDGED, 1), (3, 5, ARCHIVED, 1)),
            update(0, (4, 6, ARCHIVED, 2), (9, 9, ARCHIVED, 5)),
            update(0, (10, 10, ACKNOWLEDGED, 1)),
        ],
        share([(3, 5, 1), (6, 6, 2), (9, 9, 5)], 4, 1, (0, 2, 1002), changed=1003),
    ),
    "archived on both sides": (
        [snapshot(0, (3, 5, ARCHIVED, 1)), update(0, (1, 8, ARCHIVED, 2))],
        share([(3, 5, 1), (1, 2, 2), (6, 8, 2)], 8, 0, (0, 1, 1001), changed=1001),
    ),
    "passed over": ([snapshot(0), update(10)], share(changed=1001, jumps=[(1, 1001, 0, 10, 10, False)])),
    "one passed over": (
        [snapshot(0, (0, 8, ACKNOWLEDGED, 1)), update(10)],
        share(changed=1001, jumps=[(1, 1001, 9, 10, 1, False)]),
    ),
    "passed over around what is done": (
        [snapshot(0, (3, 5, ACKNOWLEDGED, 1), (7, 20, ACKNOWLEDGED, 1)), update(10)],
        share(changed=1001, jumps=[(1, 1001, 0, 10, 10 - 3 - 3, False)]),
    ),
    "done from the start on, then a hole": (
        [snapshot(2, (0, 4, ACKNOWLEDGED, 1), (5, 6, ACKNOWLEDGED, 1), (8, 9, ACKNOWLEDGED, 1)), update(10)],
        share(changed=1001, jumps=[(1, 1001, 7, 10, 1, False)]),
    ),
    "available, not done": (
        [snapshot(0, (0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1)), update(10)],
        share(changed=1001, jumps=[(1, 1001, 5, 10, 5, False)]),
    ),
    "initialized later": ([snapshot(-1), update(40)], None),
    "not changed": ([snapshot(0, (0, 9, ACKNOWLEDGED, 1)), update(-1, (10, 14, ACKNOWLEDGED, 1)), update(15)], None),
    "backwards": ([snapshot(40), update(39)], share(changed=1001, jumps=[(1, 1001, 40, 39, 0, False)])),
    "as it was": ([snapshot(40), update(40), snapshot(40, epoch=1)], None),
    "reset backwards": (
        [snapshot(40, epoch=1), snapshot(0, epoch=2)],
        share(changed=1001, jumps=[(1, 1001, 40, 0, 0, True)]),
    ),
    "reset into what is done": (
        [snapshot(0, (0, 9, ACKNOWLEDGED, 1)), snapshot(5, epoch=1)],
        share(changed=1001, jumps=[(1, 1001, 10, 5, 0, True)]),
    ),
    "reset to where all is done": ([snapshot(0, (0, 9, ACKNOWLEDGED, 1)), snapshot(10, epoch=1)], None),
    "moved into what is done": ([snapshot(0, (0, 9, ACKNOWLEDGED, 1)), snapshot(5)], None),
    "the first epoch is no reset": ([snapshot(-1, epoch=-1), snapshot(40, epoch=3), snapshot(40, epoch=3)], None),
    "an update has the epoch of before": (
        [snapshot(40, epoch=2), update(40), snapshot(0, epoch=2)],
        share(changed=1002, jumps=[(2, 1002, 40, 0, 0, False)]),
    ),
    "removed and begun again": (
        [snapshot(40, (40, 49, ACQUIRED, 1)), None, snapshot(0, (0, 4, ACQUIRED, 1))],
        share(acquired=[(0, 4, 1)], changed=1002),
    ),
    "removed before it was known": ([None, snapshot(0)], None),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace(" ", "-").replace(",", ""))
def test_what_is_reported_of_a_share_partition(case):
    records, expected = CASES[case]
    assert list(history(*records).shares()) == ([] if expected is None else [expected])


def test_lists_have_a_hundred_ranges_and_counts_all():
    many = [(2 * number, 2 * number, ARCHIVED, 1) for number in range(101)]
    acquired = [(1000 + 2 * number, 1000 + 2 * number, ACQUIRED, 1) for number in range(101)]
    jumps = [update(2000 + number) for number in range(1, 102)]
    (found,) = history(snapshot(0, *many, *acquired)).shares()
    assert [(each.first_offset, each.last_offset) for each in found.archived] == [each[:2] for each in many[:100]]
    assert (found.rejected, len(found.acquired)) == (101, 100)
    (found,) = history(snapshot(2000), *jumps).shares()
    assert (found.jump_count, [each.after for each in found.jumps]) == (101, list(range(2001, 2101)))


def test_share_partitions_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(module, "_MOST_PARTITIONS", 2)
    own = snapshot(0, (0, 4, ACQUIRED, 1))
    found = history(own, own, own, None, own, partitions=(0, 1, 2, 2, 1))
    assert found.not_followed == 1
    assert [each.partition for each in found.shares()] == [0, 1]


def test_other_entries_are_none_of_theirs():
    found = ShareHistory()
    found.take(CommitRecord(0, 1000, 0, -1, -1, ("g", "t", 0), 5))
    assert list(found.shares()) == []
