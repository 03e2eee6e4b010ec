"""Which producer ids of all that a query chooses the driver brings, and where the table of them ends."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kaudit.listings.query import Query
from kaudit.spark import producer_listing as spark_listing
from kaudit.spark.producer_listing import list_producers, shares_of
from kaudit.spark.producer_shares import FirstIds

CHOSEN = 5
NOTHING = (-(2**63), -1)
"""Before all ids."""


@pytest.fixture
def listed(monkeypatch):
    """List five ids, each in two partitions; return how many were looked for, brought, and left, and where the table ends."""
    monkeypatch.setattr(spark_listing, "PRODUCERS", 3)
    monkeypatch.setattr(spark_listing, "producers_result", lambda *given: given)

    def run(query: Query, asked: tuple[int, ...] = (), chosen: int = CHOSEN) -> tuple[int, list[int], int, Any]:
        looked_for: list[int] = []

        def first(steps: object, most: int) -> FirstIds:
            assert steps == "steps"
            looked_for.append(most)
            ids = np.arange(100, 100 + min(most, chosen), dtype=np.int64)
            return FirstIds(ids * 2, ids, np.full(len(ids), 2), np.array([chosen]))

        ids: Any = SimpleNamespace(
            sharing=SimpleNamespace(listing=SimpleNamespace(query=query)),
            figures=lambda: SimpleNamespace(chosen=chosen, steps="steps"),
            creators=lambda: "creators",
            first=first,
            producers=lambda ids: ids.tolist(),
        )
        audit: Any = SimpleNamespace(options=SimpleNamespace(producer_ids=asked))
        scan: Any = "scan"
        result, rows = list_producers(ids, audit, scan)
        given: Any = result
        assert given[:3] == (audit, scan, given[2])
        assert (given[3].tolist(), given[4], given[5]) == ([chosen], "creators", query)
        assert rows.ids is ids
        (most,) = looked_for
        return most, given[6], given[7], rows.last

    return run


@pytest.mark.parametrize(("limit", "asked", "replicas", "expected"), [
    (None, (), 99, (3, [100, 101, 102], 2, None)),
    (None, (), 6, (3, [100, 101, 102], 2, None)),
    (None, (), 5, (3, [100, 101], 3, None)),
    (None, (), 4, (3, [100, 101], 3, None)),
    (None, (), 1, (3, [100], 4, None)),  # one at least
    (None, (100,), 1, (5, [100, 101, 102, 103, 104], 0, None)),  # those asked for are all listed
    (2, (), 1, (2, [100, 101], 0, (202, 101))),
    (4, (), 1, (4, [100, 101, 102, 103], 0, (206, 103))),
    (5, (), 1, (5, [100, 101, 102, 103, 104], 0, None)),
    (9, (), 1, (5, [100, 101, 102, 103, 104], 0, None)),
    (0, (), 9, (0, [], 0, NOTHING)),
])  # fmt: skip
def test_without_a_limit_the_first_ones_are_brought_and_all_of_them_are_in_the_table(
    listed, monkeypatch, limit, asked, replicas, expected
):
    monkeypatch.setattr(spark_listing, "PRODUCER_REPLICAS", replicas)
    assert listed(Query(limit=limit), asked) == expected


def test_a_summary_brings_none_and_its_table_has_none(listed):
    assert listed(Query(summary_only=True)) == (0, [], 0, NOTHING)
    assert listed(Query(summary_only=True), chosen=0) == (0, [], 0, None)


def test_no_id_is_all_there_is(listed):
    assert listed(Query(), chosen=0) == (0, [], 0, None)


@pytest.mark.parametrize(("producers", "sizes", "shares"), [
    ([], [], 1),
    ([1], [1], 1),
    ([250_000], [64 << 20], 1),
    ([250_000, 1], [], 2),
    ([500_000, 0], [64 << 20], 2),
    ([500_001], [], 3),
    ([], [64 << 20, 1], 2),
    ([250_001], [64 << 20, 64 << 20, 1], 3),
])  # fmt: skip
def test_ids_are_joined_in_shares_of_250_000_or_of_64_mib_of_names(producers, sizes, shares):
    logs = [SimpleNamespace(segments=[SimpleNamespace(size=size)]) for size in sizes]
    audit: Any = SimpleNamespace(coordinator_logs=logs)
    scan: Any = SimpleNamespace(partitions=[SimpleNamespace(producers=count) for count in producers])
    assert shares_of(audit, scan) == shares
