"""Rows of digests and lists of batches: what is taken, and what is refused."""

import pytest

from kaudit.model.digests import DIGESTS, LEAF_OFFSETS, MOST_RANGES, PartitionDigest, RangeDigests, ranges_each
from kaudit.model.fingerprint import HeldBatch, ListedBatches, PartitionFingerprint


@pytest.mark.parametrize(("partitions", "ranges"), [
    (0, 64), (1, 64), (16, 64), (17, 60), (32, 32), (100, 10), (204, 5), (205, 4), (256, 4), (257, 4), (100_000, 4),
])  # fmt: skip
def test_partitions_share_the_digests_of_a_document(partitions, ranges):
    assert (DIGESTS, MOST_RANGES) == (1024, 64)
    assert ranges_each(partitions) == ranges


@pytest.mark.parametrize(("first", "width"), [(0, 1024), (1024, 1024), (2048, 2048), (0, 1 << 62), (1 << 40, 1 << 40)])
def test_ranges_of_a_width(first, width):
    row = RangeDigests(first, width, ["0" * 64, None, "f" * 64])
    assert row.end_offset == first + 3 * width


@pytest.mark.parametrize(("first", "width"), [(1, 1024), (1024, 2048), (0, 1536), (512, 1024), (0, 3)])
def test_ranges_that_do_not_fit_their_width(first, width):
    with pytest.raises(ValueError, match="multiples of their width"):
        RangeDigests(first, width, [None])


def held(*bases):
    return [HeldBatch(base, base, 0, 0) for base in bases]


@pytest.mark.parametrize("bases", [(), (1024,), (2047,), (1024, 1025, 2047)])
def test_lists_of_batches(bases):
    listed = ListedBatches(1024, held(*bases))
    assert listed.end_offset == 2048 == 1024 + LEAF_OFFSETS


@pytest.mark.parametrize(("first", "bases"), [
    (1024, (1023,)), (1024, (2048,)), (1024, (1030, 2048)), (1024, (1030, 1030)), (1024, (1031, 1030)), (1024, (1025, 1031, 1030)),
    (1000, (1500,)), (1, ()),
])  # fmt: skip
def test_batches_out_of_order_or_range(first, bases):
    with pytest.raises(ValueError, match="offset order"):
        ListedBatches(first, held(*bases))


def test_what_is_not_said_is_not_so():
    digest = PartitionDigest("t", 3, "1", 0, 5, 2, None, None, compacted=False, damaged=True)
    fingerprint = PartitionFingerprint("t", 3, 0, 5, 0, 5, 2, None, ())
    assert digest.key == fingerprint.key == ("t", 3)
    assert (fingerprint.listed, fingerprint.compacted, fingerprint.damaged) == ((), False, False)
