"""Missing offsets of a producer's timeline: which are its own, and how many are listed."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import astuple

from kaudit.listings.merged_runs import MERGED_RUN
from kaudit.listings.timeline import MissingEntries
from kaudit.model.columns import Columns
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.timeline import MissingEntry

DAMAGE, UNKNOWN = MissingCause.DAMAGE, MissingCause.UNKNOWN


def partition(
    *gaps: MissingOffsets, base: int | None = 0, log_start: int | None = None, compacted: bool = False
) -> Any:
    segments = [] if base is None else [SimpleNamespace(base_offset=base), SimpleNamespace(base_offset=10**6)]
    directory = SimpleNamespace(segments=segments, log_start_offset=log_start)
    return SimpleNamespace(directory=directory, missing=gaps, compacted=compacted)


def gap(first: int, last: int, cause: MissingCause = DAMAGE) -> MissingOffsets:
    return MissingOffsets(first, last, cause, 0, 0)


def runs(*rows: tuple[int, int, int]) -> Columns:
    """First sequence, first and last offset of each."""
    columns: dict[str, np.ndarray | int] = dict.fromkeys(MERGED_RUN.names or (), 0)
    names = ("first_sequence", "first_offset", "last_offset")
    columns |= {name: np.array([row[at] for row in rows], dtype=np.int64) for at, name in enumerate(names)}
    return Columns(MERGED_RUN, len(rows), columns)


def markers(*offsets: int) -> Columns:
    dtype = dtype_of(EndTxnMarker)
    columns: dict[str, np.ndarray | int] = dict.fromkeys(dtype.names or (), 0)
    return Columns(dtype, len(offsets), {**columns, "offset": np.array(offsets, dtype=np.int64)})


def found(log: Any, own: Columns, ended: Sequence[int] = ()) -> list[tuple[int, int, int, MissingCause]]:
    return [astuple(entry) for entry in MissingEntries(log).of_producer(own, markers(*ended))]


def test_gaps_that_begin_within_the_producers_span_are_its_own():
    log = partition(*(gap(at, at + 1) for at in (30, 9, 10, 20, 21)))
    # from its first offset to its last: a gap at 9 lies before it, one at 21 and 30 behind
    assert found(log, runs((0, 10, 12), (5, 18, 20))) == [(10, 11, 2, DAMAGE), (20, 21, 2, DAMAGE)]
    assert found(log, runs((0, 10, 12)), [20]) == [(10, 11, 2, DAMAGE), (20, 21, 2, DAMAGE)]
    assert found(log, runs(), [21]) == [(21, 22, 2, DAMAGE)]
    assert found(log, runs((0, 25, 40)), [12]) == [(20, 21, 2, DAMAGE), (21, 22, 2, DAMAGE), (30, 31, 2, DAMAGE)]
    assert found(log, runs(), []) == []


@pytest.mark.parametrize(
    ("base", "log_start", "first_sequence", "missing"),
    [(7, None, 1, 7), (7, 9, 1, 9), (9, 7, 1, 9), (0, 1, 1, 1), (7, 9, 0, 0), (0, None, 1, 0), (None, 4, 1, 4)],
)
def test_what_came_before_the_log_is_missing_where_the_first_sequence_is_not_0(
    base, log_start, first_sequence, missing
):
    entries = [(0, missing - 1, missing, MissingCause.LOG_START)] if missing else []
    log = partition(base=base, log_start=log_start)
    assert found(log, runs((first_sequence, 50, 50))) == entries
    assert found(log, runs(), [50]) == []


@pytest.mark.parametrize("more", [0, 1, 5])
def test_ten_gaps_of_a_cause_are_listed_behind_each_run_and_the_rest_is_one(more):
    gaps = [gap(100 + 10 * at, 100 + 10 * at + at) for at in range(10 + more)]
    log = partition(*gaps, gap(105, 106, UNKNOWN), gap(1000, 1001))
    entries = [(100 + 10 * at, 100 + 11 * at, at + 1, DAMAGE) for at in range(10)]
    last = 9 + more
    rest = [(200, 100 + 11 * last, sum(at + 1 for at in range(10, 10 + more)), DAMAGE)] if more else []
    assert found(log, runs((0, 90, 91), (1, 900, 2000))) == [
        *(*entries, *rest, (1000, 1001, 2, DAMAGE)),
        (105, 106, 2, UNKNOWN),
    ]


@pytest.mark.parametrize("cause", MissingCause)
def test_the_cause_is_the_audits(cause):
    assert found(partition(gap(5, 6, cause), compacted=True), runs((0, 1, 9))) == [(5, 6, 2, cause)]


def test_an_entry_of_a_timeline():
    assert MissingEntry(3, 9, 5, MissingCause.MISSING_SEGMENT).to_dict() == {
        "kind": "missing",
        "first_offset": 3,
        "last_offset": 9,
        "offsets": 5,
        "cause": "missing-segment",
    }
