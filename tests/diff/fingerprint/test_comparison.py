"""What two fingerprints say of each offset, on fingerprints written by hand."""

import hashlib

import pytest

from kaudit.diff.fingerprint.comparison import Block, Bounds, blocks, compare, joined, narrowed, without
from kaudit.engines.fingerprints import compare_fingerprints
from kaudit.model.digests import RangeDigests
from kaudit.model.fingerprint import HeldBatch, ListedBatches, PartitionFingerprint
from kaudit.model.replicas import OffsetRange, Relation
from tests.diff.fingerprint.sites import compared, fingerprint_of
from tests.logs import Log, data

A, B, C = "a" * 64, "b" * 64, "c" * 64
A_AND_B = hashlib.sha256(bytes.fromhex(A) + bytes.fromhex(B)).hexdigest()
"""Of a range whose halves are A and B."""
NAMES = ("here", "there")


def held(first: int, last: int, crc: int = 0) -> HeldBatch:
    return HeldBatch(first, last, 0, crc)


def side(
    start: int, end: int, *lists: ListedBatches, covers: tuple[int, int] | None = None, **more
) -> PartitionFingerprint:
    """A fingerprint of a log of offsets `start` to `end` (exclusive), of all of it unless it `covers` less."""
    first, stop = covers or (start, end)
    fields = {"batches": 0, "digest": None, "ranges": [], "listed": lists} | more
    return PartitionFingerprint("orders", 0, start, end, first, stop, **fields)


def listed(*batches: HeldBatch, first: int = 0) -> ListedBatches:
    return ListedBatches(first, batches)


PLAIN = listed(held(0, 1), held(2, 3), held(4, 5))
CASES = {
    "the same": (side(0, 6, PLAIN), side(0, 6, PLAIN), Relation.IDENTICAL, 6, [], [], None),
    "one is longer": (
        side(0, 8, listed(*PLAIN.batches, held(6, 7))), side(0, 6, PLAIN), Relation.BEHIND, 6, [], [], None,
    ),
    "one starts later": (
        side(0, 6, PLAIN), side(2, 6, listed(*PLAIN.batches[1:])), Relation.IDENTICAL, 6, [], [], None,
    ),
    "a batch in the middle": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 1), held(2, 3, crc=9), held(4, 5))),
        Relation.DIVERGED, 2, [(2, 3)], [], (held(2, 3), held(2, 3, crc=9)),
    ),
    "the first batch": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 1, crc=9), *PLAIN.batches[1:])),
        Relation.DIVERGED, None, [(0, 1)], [], (held(0, 1), held(0, 1, crc=9)),
    ),
    "two batches side by side": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 1), held(2, 3, crc=9), held(4, 5, crc=9))),
        Relation.DIVERGED, 2, [(2, 5)], [], (held(2, 3), held(2, 3, crc=9)),
    ),
    "two batches apart": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 1, crc=9), held(2, 3), held(4, 5, crc=9))),
        Relation.DIVERGED, None, [(0, 1), (4, 5)], [], (held(0, 1), held(0, 1, crc=9)),
    ),
    "one batch in place of two": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 3), held(4, 5))),
        Relation.DIVERGED, None, [(0, 3)], [], (held(0, 1), held(0, 3)),
    ),
    "a batch that one lacks": (
        side(0, 6, PLAIN), side(0, 6, listed(held(0, 1), held(4, 5))),
        Relation.DIVERGED, 2, [(2, 3)], [], (held(2, 3), None),
    ),
    "a cleaned log": (
        side(0, 6, PLAIN, compacted=True), side(0, 6, listed(held(0, 1), held(4, 5))),
        None, 2, [(2, 3)], [], (held(2, 3), None),
    ),
    "a cleaned log that holds the same": (
        side(0, 6, PLAIN), side(0, 6, PLAIN, compacted=True), Relation.IDENTICAL, 6, [], [], None,
    ),
    "a range of offsets that one does not cover": (
        side(0, 6, PLAIN), side(0, 6, listed(*PLAIN.batches[1:]), covers=(2, 6)),
        Relation.IDENTICAL, None, [], [(0, 1)], None,
    ),
    "an end that one does not cover": (
        side(0, 6, PLAIN), side(0, 6, listed(*PLAIN.batches[:2]), covers=(0, 4)),
        Relation.IDENTICAL, 4, [], [(4, 5)], None,
    ),
    "no digest in common": (side(0, 6, PLAIN), side(0, 6), None, None, [], [(0, 5)], None),
    "no offset in common": (side(0, 4, PLAIN), side(4, 6, PLAIN), None, None, [], [], None),
    "both are empty": (side(5, 5), side(5, 5), Relation.IDENTICAL, None, [], [], None),
    "both are empty, at different offsets": (side(5, 5), side(6, 6), None, None, [], [], None),
    "the first batch of a second list": (
        side(0, 1026, listed(held(0, 1023)), listed(held(1024, 1025), first=1024)),
        side(0, 1026, listed(held(0, 1023)), listed(held(1024, 1025, crc=9), first=1024)),
        Relation.DIVERGED, 1024, [(1024, 1025)], [], (held(1024, 1025), held(1024, 1025, crc=9)),
    ),
    "a batch that only one lacks, behind the other's end": (
        side(0, 6, PLAIN), side(0, 4, listed(held(0, 1), held(2, 3, crc=9))),
        Relation.DIVERGED, 2, [(2, 3)], [], (held(2, 3), held(2, 3, crc=9)),
    ),
    "a batch that ends where the other log begins": (
        side(0, 6, PLAIN), side(2, 6, listed(held(2, 3), held(4, 5, crc=9))),
        Relation.DIVERGED, 4, [(4, 5)], [], (held(4, 5), held(4, 5, crc=9)),
    ),
    "a batch that reaches beyond its list": (
        side(0, 1030, listed(held(1020, 1029))), side(0, 1030, listed(held(1020, 1029, crc=9))),
        Relation.DIVERGED, 1020, [(1020, 1029)], [], (held(1020, 1029), held(1020, 1029, crc=9)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_two_logs_whose_batches_are_listed(name):
    ours, theirs, relation, identical, differing, unknown, first = CASES[name]
    for left, right, batches in ((ours, theirs, first), (theirs, ours, None if first is None else first[::-1])):
        found = compare(NAMES, left, right)
        assert (found.relation, found.identical_up_to) == (relation, identical)
        assert found.differing == [OffsetRange(*offsets) for offsets in differing]
        assert found.not_compared == [OffsetRange(*offsets) for offsets in unknown]
        assert found.first_difference == (None if batches is None else dict(zip(NAMES, batches, strict=True)))
        assert found.start_offsets == {"here": left.log_start_offset, "there": right.log_start_offset}
        assert found.end_offsets == {"here": left.log_end_offset, "there": right.log_end_offset}
        assert found.compacted is ("cleaned" in name)


def test_which_site_has_damage():
    assert compare(NAMES, side(0, 6, PLAIN, damaged=True), side(0, 6, PLAIN)).damaged_on == ["here"]
    assert compare(NAMES, side(0, 6, PLAIN), side(0, 6, PLAIN, damaged=True)).damaged_on == ["there"]


def test_a_difference_of_which_one_site_lists_no_batches_has_none():
    ranges = [RangeDigests(0, 1024, [digest]) for digest in (A, B)]
    found = compare(NAMES, side(0, 6, PLAIN, ranges=ranges[:1]), side(0, 6, ranges=ranges[1:]))
    assert (found.relation, found.differing, found.first_difference) == (Relation.DIVERGED, [OffsetRange(0, 5)], None)


def ranged(
    first: int, width: int, *digests: str | None, log: tuple[int, int] | None = None, **more
) -> PartitionFingerprint:
    """A fingerprint by digests of ranges; its log is of these ranges unless `log` is given."""
    row = RangeDigests(first, width, digests)
    return side(*(log or (first, row.end_offset)), ranges=[row], **more)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (
            ranged(0, 1024, A, B), ranged(0, 1024, A, C),
            [Block(0, 1024, 1024, same=True), Block(1024, 2048, 1024, same=False)],
        ),
        (ranged(0, 1024, A, B), ranged(1024, 1024, B), [Block(1024, 2048, 1024, same=True)]),
        (ranged(0, 1024, A, B), ranged(2048, 1024, B), []),
        (ranged(0, 1024, None), ranged(0, 1024, None), [Block(0, 1024, 1024, same=True)]),
        (ranged(0, 1024, None), ranged(0, 1024, A), [Block(0, 1024, 1024, same=False)]),
        # the narrower of two rows is put together
        (ranged(0, 2048, A_AND_B), ranged(0, 1024, A, B), [Block(0, 2048, 2048, same=True)]),
        (ranged(0, 1024, A, C), ranged(0, 2048, A_AND_B), [Block(0, 2048, 2048, same=False)]),
        (ranged(1024, 1024, B, A, B), ranged(0, 2048, C, A_AND_B), [Block(2048, 4096, 2048, same=True)]),
        # of a range of which one log ends in the middle nothing is known
        (
            ranged(0, 1024, A, B, log=(0, 1500)), ranged(0, 1024, A, C),
            [Block(0, 1024, 1024, same=True), Block(1024, 1500, 1024, same=None)],
        ),
        (
            ranged(0, 1024, A, B, log=(500, 2048)), ranged(0, 1024, A, B),
            [Block(500, 1024, 1024, same=None), Block(1024, 2048, 1024, same=True)],
        ),
        (ranged(0, 1024, A, log=(500, 900)), ranged(0, 1024, A, log=(500, 900)), [Block(500, 900, 1024, same=True)]),
        # a list within a range that differs says where
        (
            ranged(0, 2048, A, listed=[listed(held(0, 1), held(2, 1023))]),
            ranged(0, 2048, B, listed=[listed(held(0, 1), held(2, 1023, crc=9))]),
            [Block(0, 2, 1, same=True), Block(2, 1024, 1, same=False), Block(1024, 2048, 2048, same=False)],
        ),
        # digests of one range that contradict each other: a difference anywhere is one
        (
            ranged(0, 1024, A), side(0, 1024, ranges=[RangeDigests(0, 1024, [digest]) for digest in (B, A)]),
            [Block(0, 1024, 1024, same=False)],
        ),
        (
            ranged(0, 1024, A), side(0, 1024, ranges=[RangeDigests(0, 1024, [digest]) for digest in (A, B)]),
            [Block(0, 1024, 1024, same=False)],
        ),
        # lists alone: what is the same before, between and behind what differs
        (
            side(0, 6, PLAIN), side(0, 6, listed(held(0, 1), held(2, 3, crc=9), held(4, 5))),
            [Block(0, 2, 1, same=True), Block(2, 4, 1, same=False), Block(4, 6, 1, same=True)],
        ),
    ],
)  # fmt: skip
def test_what_digests_of_ranges_say(ours, theirs, expected):
    assert blocks(ours, theirs) == expected
    assert blocks(theirs, ours) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "ranges", "lists"),
    [
        (ranged(0, 4096, A, B), ranged(0, 4096, A, C), [(4096, 1024, 4)], []),
        (ranged(0, 1 << 17, A), ranged(0, 1 << 17, C), [(0, 2048, 64)], []),
        (ranged(0, 1024, A, B), ranged(0, 1024, A, C), [], [1024]),
        # where a log begins or ends inside a range, the whole range is asked for
        (ranged(0, 4096, A, log=(500, 4000)), ranged(0, 4096, A), [(0, 1024, 4)], []),
        (ranged(0, 1024, A, B, log=(0, 1500)), ranged(0, 1024, A, C), [], [1024]),
        # a list in the middle of a range that differs leaves a range on either side of it: one question
        (
            ranged(0, 4096, A, listed=[listed(held(1024, 2047), first=1024)]),
            ranged(0, 4096, B, listed=[listed(held(1024, 2047), first=1024)]),
            [(0, 1024, 4)], [],
        ),
        (ranged(0, 1024, *[A] * 12), ranged(0, 1024, *[B] * 12), [], [1024 * number for number in range(8)]),
        (ranged(0, 1024, A), ranged(0, 1024, A), [], []),
    ],
)  # fmt: skip
def test_what_is_asked_for_next(ours, theirs, ranges, lists):
    rows = narrowed(ours, theirs)
    assert (rows.ranges, rows.listed) == (ranges, lists)
    assert (rows.start_offset, rows.end_offset) == (theirs.log_start_offset, theirs.log_end_offset)


def test_blocks_side_by_side_that_say_the_same_are_one():
    found = [
        Block(0, 2, 1, same=True), Block(2, 1024, 1024, same=True), Block(1024, 1030, 1, same=False),
        Block(1030, 1040, 1, same=None), Block(1041, 1050, 1, same=None),
    ]  # fmt: skip
    assert joined(found) == [Block(0, 1024, 1024, same=True), *found[2:]]
    assert joined([]) == []


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        ([], [(10, 19)]),
        ([(10, 20)], []),
        ([(5, 25)], []),
        ([(11, 19)], [(10, 10), (19, 19)]),
        ([(12, 14), (14, 16)], [(10, 11), (16, 19)]),
        ([(12, 14), (15, 25)], [(10, 11), (14, 14)]),
        ([(0, 5), (25, 30)], [(10, 19)]),
    ],
)
def test_offsets_that_no_block_says_anything_about(known, unknown):
    found = [Block(first, end, 1, same=True) for first, end in known]
    assert [(gap.first, gap.last) for gap in without(Bounds(10, 20), found)] == unknown


def test_what_only_one_site_has_is_listed_by_site(tmp_path):
    for name, partitions in (
        ("a", ["orders-0", "orders-1", "payments-0"]),
        ("b", ["orders-1", "refunds-3", "orders-2"]),
    ):
        for partition in partitions:
            log = Log()
            log.append(data(7, 0, 0))
            log.write(tmp_path / name / partition)
    one, other = (fingerprint_of(tmp_path / name) for name in "ab")
    only = {"a": [("orders", 0), ("payments", 0)], "b": [("orders", 2), ("refunds", 3)]}
    found = compare_fingerprints(("a", "b"), (one, other))
    assert {name: sorted(keys) for name, keys in found.only_on.items()} == only
    assert [(entry.topic, entry.partition) for entry in found.partitions] == [("orders", 1)]
    assert list(found.names) == ["a", "b"]
    assert list(found.inputs) == [str(tmp_path / "a"), str(tmp_path / "b")]
    with_logs = compared(tmp_path / "a", other)
    assert {name: sorted(keys) for name, keys in with_logs.only_on.items()} == {"here": only["a"], "there": only["b"]}
