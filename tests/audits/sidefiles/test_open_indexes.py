"""Rows of the index of a log's last segment that a truncation has left: which are new, and which may be old, by tables of rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kaudit.audits.sidefiles.index_audit import IndexedSegment, _is_near_end, _left_by_truncation, _rows_written
from kaudit.reading.rows import LEADER_EPOCH_START

BASE, END = 100, 160
"""Of the last segment of two."""


def log(*epoch_starts: int, end: int = END) -> Any:
    """A log of two segments; a leader epoch begins at each of these offsets."""
    steps = np.zeros(len(epoch_starts), dtype=LEADER_EPOCH_START)
    steps["base_offset"] = epoch_starts
    return SimpleNamespace(directory=SimpleNamespace(segments=[None, None]), epoch_steps=steps, end_offset=end)


def segment(number: int = 1, size: int | None = 5000) -> IndexedSegment:
    return IndexedSegment(number, BASE, END, size)


def index(*offsets: int, padding: int = 10) -> Any:
    """An index that is open while it has room for more rows."""
    return SimpleNamespace(relative_offsets=np.array(offsets, dtype=np.int64) - BASE, padding_rows=padding)


@pytest.mark.parametrize(
    ("rows", "end", "near"),
    [
        # a row each 20 offsets; the last one at most 40 before the last offset
        ([119, 139], 160, True),
        ([119, 139], 180, True),
        ([119, 139], 181, False),
        ([119], 160, True),
        ([119], 161, False),
        # the widest distance counts, wherever it is
        ([104, 134, 139], 200, True),
        ([104, 134, 139], 201, False),
    ],
)
def test_rows_end_about_as_near_the_logs_end_as_they_are_to_one_another(rows, end, near):
    assert _is_near_end(log(end=end), segment(), index(*rows).relative_offsets) is near


@pytest.mark.parametrize(
    ("rows", "options", "written"),
    [
        ([119, 139, 159], {}, 3),
        # from the third on they rise again from a lower offset
        ([119, 139, 129, 149], {}, 2),
        ([119, 139, 139, 149], {}, 2),
        # an index that was closed, or of an older segment, or of a segment whose size proves nothing
        ([119, 139, 129, 149], {"padding": 0}, 4),
        ([119, 139, 129, 149], {"number": 0}, 4),
        ([119, 139, 129, 149], {"size": None}, 4),
        # they fall twice
        ([119, 139, 129, 149, 109], {}, 5),
        # the first ones end far from the log's end
        ([104, 109, 106, 149], {}, 4),
    ],
)
def test_new_rows_are_those_before_offsets_fall(rows, options, written):
    own = segment(options.get("number", 1), options.get("size", 5000))
    assert _rows_written(log(), own, index(*rows, padding=options.get("padding", 10))) == written


@pytest.mark.parametrize(
    ("rows", "row", "epochs", "options", "left"),
    [
        # a leader epoch begins in the segment, not after the row
        ([139], 0, (0, 120), {}, True),
        ([139], 0, (0, 100), {}, True),
        ([139], 0, (0, 139), {}, True),
        ([139], 0, (0, 140), {}, False),
        ([139], 0, (0, 99), {}, False),
        # with the first one nothing changes
        ([139], 0, (120,), {}, False),
        ([139], 0, (), {}, False),
        ([139], 0, (0, 50, 120, 159), {}, True),
        # the lowest of the rows from this one on
        ([119, 139, 150, 145], 2, (0, 145), {}, True),
        ([119, 139, 150, 145], 2, (0, 146), {}, False),
        # new rows before it end near the log's end: there are too few bytes since to have overwritten it
        ([104, 109, 150], 2, (0, 120), {}, False),
        ([139], 0, (0, 120), {"padding": 0}, False),
        ([139], 0, (0, 120), {"number": 0}, False),
    ],
)
def test_rows_that_may_be_of_what_was_truncated(rows, row, epochs, options, left):
    own = segment(options.get("number", 1))
    assert _left_by_truncation(log(*epochs), own, index(*rows, padding=options.get("padding", 10)), row) is left
