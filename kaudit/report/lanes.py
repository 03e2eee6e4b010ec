"""The lanes of a partition: one for each producer id and epoch, as entries of a timeline or as numpy columns.

The columns are the tables of a page, where millions of runs are never made objects.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.listings.merged_runs import NO_MARKER
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, UNREPORTED_CONTROL
from kaudit.model.columns import Columns
from kaudit.model.timeline import Entry, HistoryRow

Column = NDArray[np.int64]
Tables = dict[str, dict[str, Column]]
TRANSACTIONAL = 1
"""Bit of a run's `flags`: it is part of a transaction."""


def with_epochs(entries: Iterable[Entry]) -> Iterator[tuple[Entry, int | None]]:
    """Yield each entry with the epoch of its lane: that of the latest run or marker, its own included; None before the first."""
    epoch: int | None = None
    for entry in entries:
        if isinstance(entry, HistoryRow):
            epoch = entry.producer_epoch
        yield entry, epoch


class Lanes(Struct, frozen=True):
    """The tables as `html.columns.TABLES` has them, without origins taken off and without names.

    `ends` is for each marker the row of the transaction it ends, -1 for none.
    """

    tables: Tables
    ends: NDArray[np.int64]


def lanes_of(runs: Columns, markers: Columns) -> Lanes:
    """Return the lanes of merged runs (MERGED_RUN) and markers, both by producer id and then offset."""
    ids = np.concatenate([runs["producer_id"], markers["producer_id"]]).astype(np.int64)
    epochs = np.concatenate([runs["producer_epoch"], markers["producer_epoch"]]).astype(np.int64)
    order = np.lexsort((epochs, ids))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (ids[order][1:] != ids[order][:-1]) | (epochs[order][1:] != epochs[order][:-1])
    lane = np.empty(len(order), dtype=np.int64)
    lane[order] = np.cumsum(begins) - 1
    firsts = order[begins]
    run_lane, marker_lane = lane[: len(runs)], lane[len(runs) :]
    by_lane = np.lexsort((runs["first_offset"], run_lane))
    markers_by_lane = np.lexsort((markers["offset"], marker_lane))
    transactions, ended_by = _transactions(runs, run_lane, markers)
    ends = np.full(len(markers) + 1, -1, dtype=np.int64)
    ends[ended_by] = np.arange(len(ended_by))  # one row more than there are markers, for transactions without an end
    tables = {
        "lanes": {"producer_id": ids[firsts], "producer_epoch": epochs[firsts], "name": np.full(len(firsts), -1)},
        "runs": _picked(_runs(runs, run_lane), by_lane),
        "markers": _picked(_markers(markers, marker_lane), markers_by_lane),
        "transactions": transactions,
    }
    return Lanes(tables, ends[:-1][markers_by_lane])


def _picked(columns: dict[str, Column], rows: NDArray[np.intp]) -> dict[str, Column]:
    return {name: column[rows] for name, column in columns.items()}


def _runs(runs: Columns, lane: Column) -> dict[str, Column]:
    names = ("first_offset", "last_offset", "min_timestamp", "max_timestamp", "first_sequence", "last_sequence")
    columns = {name: runs[name].astype(np.int64) for name in (*names, "batches", "records")}
    flags = np.where(runs["is_transactional"], TRANSACTIONAL, 0)
    return {"lane": lane, **columns, "flags": flags}


def _markers(markers: Columns, lane: Column) -> dict[str, Column]:
    kind = markers["type"].astype(np.int64)
    known = (kind == ABORT_MARKER) | (kind == COMMIT_MARKER)
    unreported = kind == UNREPORTED_CONTROL
    names = ("offset", "timestamp", "coordinator_epoch")
    columns = {name: markers[name].astype(np.int64) for name in names}
    columns["coordinator_epoch"] = np.where(unreported, -1, columns["coordinator_epoch"])
    return {"lane": lane, **columns, "type": np.where(known, kind, -1)}


def _transactions(runs: Columns, lane: Column, markers: Columns) -> tuple[dict[str, Column], NDArray[np.int64]]:
    """Return the transactions, and the index of the marker that ends each (len(markers): none). A transaction's lane is its first run's."""
    parts = np.flatnonzero(runs["is_transactional"])
    first, began = runs["first_offset"][parts], runs["transaction_first_offset"][parts]
    begins = np.flatnonzero(first == began)
    lasts = np.append(begins[1:], len(parts))[: len(begins)] - 1
    chosen, last = parts[begins], parts[lasts]
    marker = runs["next_marker"][chosen]
    ended = marker != NO_MARKER
    row = np.where(ended, marker, len(markers))
    columns = {
        "lane": lane[chosen],
        "first_offset": first[begins],
        "last_offset": np.where(ended, np.append(markers["offset"], -1)[row], runs["last_offset"][last]),
        "outcome": runs["transaction_outcome"][chosen].astype(np.int64),
    }
    order = np.lexsort((columns["first_offset"], columns["lane"]))
    return _picked(columns, order), row[order]
