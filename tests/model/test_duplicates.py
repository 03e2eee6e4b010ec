"""Duplicates counted: each figure by itself, and added up."""

from typing import Any

import pytest

from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation


def duplicate(records=3, **changes: Any):
    fields: dict[str, Any] = dict.fromkeys(Duplicate.__struct_fields__) | {
        "record_count": records, "relation": Relation.OTHER_EPOCH, "repeats": True, "copy": 2, "dropped_by_key": None,
        "dropped_by_sequence": False, "read_committed": True,
    }  # fmt: skip
    return Duplicate(**{**fields, **changes})


def counted(*found):
    counts = DuplicateCounts()
    for each in found:
        counts.add(each)
    return counts


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, {"repeated": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"dropped_by_sequence": True}, {"repeated": 3, "dropped_by_sequence": 3}),
    ({"dropped_by_key": True}, {"repeated": 3, "dropped_by_key": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"dropped_by_key": False}, {"repeated": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"copy": None}, {"repeated": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"copy": 3}, {"repeated": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"copy": 4}, {"repeated": 3, "recurring": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    ({"copy": 5}, {"repeated": 3, "recurring": 3, "given_twice_by_sequence": {"other-epoch": 3}}),
    # the same sequence, other records
    ({"repeats": False, "dropped_by_sequence": True, "copy": 9, "dropped_by_key": True}, {"lost_by_sequence": 3}),
])  # fmt: skip
def test_one(changes, expected):
    assert counted(duplicate(**changes)) == DuplicateCounts(**expected)


def test_several_and_several_partitions():
    one = counted(
        duplicate(1, copy=4, dropped_by_key=True),
        duplicate(2, dropped_by_sequence=True),
        duplicate(4, relation=Relation.NO_PRODUCER_ID, copy=4, dropped_by_key=True),
        duplicate(8),
        duplicate(16, repeats=False),
        duplicate(32, dropped_by_sequence=True),
        duplicate(64, repeats=False),
    )
    expected: dict[str, Any] = {
        "repeated": 47, "recurring": 5, "dropped_by_key": 5, "dropped_by_sequence": 34, "lost_by_sequence": 80,
        "given_twice_by_sequence": {"other-epoch": 9, "no-producer-id": 4},
    }  # fmt: skip
    assert one == DuplicateCounts(**expected)
    other = DuplicateCounts(100, 200, 300, 400, 500, {"other-epoch": 600, "other-sequence": 700})
    other.merge(one)
    assert other == DuplicateCounts(
        147, 205, 305, 434, 580, {"other-epoch": 609, "other-sequence": 700, "no-producer-id": 4}
    )
    assert one == DuplicateCounts(**expected)
