"""Runs joined as people see them: where one ends, what is added up, which marker and transaction are its own."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from kaudit.listings.merged_runs import MERGED_RUN, merged_runs
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import EndTxnMarker, Run

HOUR_MS = 3_600_000
Row = Mapping[str, int]


def columns(kind: type, rows: Sequence[Row]) -> Columns:
    dtype = dtype_of(kind)
    names = dtype.names or ()
    return Columns(dtype, len(rows), {name: np.array([row.get(name, 0) for row in rows]) for name in names})


def run(first_sequence: int, last_sequence: int, offset: int, time: int = 1000, **more: int) -> Row:
    """A run of one batch of 100 bytes for each offset from `offset` on, its timestamps `time` and 10 ms later."""
    count = last_sequence - first_sequence + 1
    return {
        "producer_id": 7,
        "producer_epoch": 1,
        "first_sequence": first_sequence,
        "last_sequence": last_sequence,
        "first_offset": offset,
        "last_offset": offset + count - 1,
        "batches": 1,
        "records": count,
        "bytes": 100,
        "min_timestamp": time,
        "max_timestamp": time + 10,
        "last_max_timestamp": time + 10,
        "first_leader_epoch": 3,
        "last_leader_epoch": 4,
        **more,
    }


def merged(*runs: Row, markers: Sequence[Row] = ()) -> list[dict[str, int]]:
    found = merged_runs(columns(Run, runs), columns(EndTxnMarker, markers))
    names = MERGED_RUN.names or ()
    return [
        dict(zip(names, values, strict=True)) for values in zip(*(found[name].tolist() for name in names), strict=True)
    ]


def offsets(*runs: Row, markers: Sequence[Row] = ()) -> list[tuple[int, int]]:
    return [(one["first_offset"], one["last_offset"]) for one in merged(*runs, markers=markers)]


def test_what_continues_is_one_with_everything_added_up():
    assert merged(
        run(2, 4, 10, 1000, first_leader_epoch=1, batches=2, bytes=70),
        run(5, 5, 20, 900, last_leader_epoch=6),
        run(6, 9, 30, 950, first_leader_epoch=7, last_leader_epoch=9, batches=3, last_max_timestamp=955),
    ) == [
        {
            "producer_id": 7,
            "producer_epoch": 1,
            "is_transactional": False,
            "first_sequence": 2,
            "last_sequence": 9,
            "first_offset": 10,
            "last_offset": 33,
            "batches": 6,
            "records": 8,
            "bytes": 270,
            "min_timestamp": 900,
            "max_timestamp": 1010,
            "last_max_timestamp": 955,
            "first_leader_epoch": 1,
            "last_leader_epoch": 9,
            "next_marker": -1,
            "transaction_first_offset": -1,
            "transaction_outcome": -1,
        }
    ]


@pytest.mark.parametrize(
    "second",
    [
        *(run(6, 6, 20), run(4, 4, 20), run(0, 0, 20)),
        *(run(5, 5, 20, producer_id=8), run(5, 5, 20, producer_epoch=2), run(5, 5, 20, is_transactional=1)),
    ],
    ids=["gap", "repeat", "anew", "other producer", "other epoch", "transactional"],
)
def test_what_does_not_continue_is_another(second):
    assert offsets(run(0, 4, 10), second) == [(10, 14), (20, 20)]


def test_sequence_0_begins_another_even_behind_the_highest():
    highest = 2**31 - 1
    assert offsets(run(highest - 1, highest, 10), run(0, 0, 20)) == [(10, 11), (20, 20)]


def test_batches_without_a_sequence_never_continue():
    assert offsets(run(-1, -1, 10), run(0, 0, 20), run(-1, -1, 30), run(1, 1, 40)) == [
        *((10, 10), (20, 20), (30, 30), (40, 40))
    ]


@pytest.mark.parametrize(("later", "parts"), [(HOUR_MS - 1, 1), (HOUR_MS, 2), (HOUR_MS + 1, 2), (-2 * HOUR_MS, 1)])
def test_an_hour_of_silence_parts_them(later, parts):
    # from the last batch of the one to the earliest timestamp of the other
    first = run(0, 4, 10, 10 * HOUR_MS, max_timestamp=12 * HOUR_MS, last_max_timestamp=10 * HOUR_MS + 5)
    assert len(merged(first, run(5, 5, 20, 10 * HOUR_MS + 5 + later))) == parts


def test_timestamps_further_apart_than_64_bits_hold_are_parted():
    assert len(merged(run(0, 4, 10, last_max_timestamp=-(2**63)), run(5, 5, 20, 2**62))) == 2


def end(producer_id: int, offset: int) -> Row:
    return {"producer_id": producer_id, "offset": offset}


def test_a_marker_between_parts_them_and_is_the_next_of_what_lies_before():
    found = merged(
        run(0, 4, 10, is_transactional=1),
        run(5, 5, 20, is_transactional=1),
        run(6, 6, 40, is_transactional=1, producer_epoch=2),
        run(7, 7, 60, is_transactional=1, producer_epoch=2),
        markers=[end(6, 15), end(7, 30), end(7, 50), end(8, 55)],
    )
    assert [(one["first_offset"], one["last_offset"], one["next_marker"]) for one in found] == [
        *((10, 20, 1), (40, 40, 2), (60, 60, -1))
    ]


def test_the_next_marker_is_the_producers_own():
    found = merged(run(0, 0, 10, producer_id=5), run(0, 0, 12), run(0, 0, 14, producer_id=9), markers=[end(7, 20)])
    assert [one["next_marker"] for one in found] == [-1, 0, -1]
    assert [one["next_marker"] for one in merged(run(0, 0, 12))] == [-1]


def test_runs_up_to_one_marker_are_of_one_transaction():
    found = merged(
        run(0, 0, 5, producer_id=6, is_transactional=1),
        run(0, 4, 10, is_transactional=1),
        run(8, 8, 20, is_transactional=1),
        run(9, 9, 25),
        run(9, 9, 40, is_transactional=1),
        run(11, 11, 45, is_transactional=1),
        run(0, 0, 50, producer_id=8, is_transactional=1),
        markers=[end(7, 30)],
    )
    assert [(one["first_offset"], one["transaction_first_offset"]) for one in found] == [
        *((5, 5), (10, 10), (20, 10), (25, -1), (40, 40), (45, 40), (50, 50))
    ]


def test_nothing_gives_nothing():
    assert merged() == merged(markers=[end(7, 30)]) == []
