"""Fewer rows where a partition's tables are too large: first coarser bars, then fewer transactions and lanes.

What findings are about stays as it is, and so does every transaction that was not committed while there is room.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.model.timeline import OUTCOMES
from kaudit.report.html.columns import COARSE, Origins, Packed, pack
from kaudit.report.lanes import Column, Lanes, Tables

_COMMITTED = OUTCOMES.index("committed")
_SAFETY = 0.95
"""Of the rows that would fit: fewer rows compress a little worse."""


_SPREAD = np.uint32(2_654_435_769)
"""2**32 over the golden ratio: its multiples, modulo 2**32, lie evenly however many are taken."""


class Shown(Struct, frozen=True):
    """Packed tables, and how many rows they leave out."""

    packed: Packed
    runs_merged: int
    lanes_left_out: int
    transactions_left_out: int
    markers_left_out: int


def fitted(lanes: Lanes, origins: Origins, most_bytes: int, offsets: Column, producer_ids: Column) -> Shown:
    """Pack the tables into at most `most_bytes`; `offsets` (ascending) and `producer_ids` are those that findings are about."""
    whole = lanes.tables
    packed = pack(whole, origins)
    if len(packed.data) <= most_bytes:
        return Shown(packed, 0, 0, 0, 0)
    share = 1.0
    while True:
        share *= _SAFETY * most_bytes / len(packed.data)
        tables, merged = _reduced(lanes, share, offsets, producer_ids)
        packed = pack(tables, origins)
        if len(packed.data) <= most_bytes or not _rows(tables["lanes"]):
            break
    fewer = {name: _rows(whole[name]) - _rows(tables[name]) for name in whole}
    return Shown(packed, merged, fewer["lanes"], fewer["transactions"], fewer["markers"])


def _rows(columns: dict[str, Column]) -> int:
    return len(next(iter(columns.values())))


def _reduced(lanes: Lanes, share: float, offsets: Column, producer_ids: Column) -> tuple[Tables, int]:
    """Return about this share of the rows, and how many runs are only part of a coarser bar.

    Transactions and markers go sooner than runs: a bar shows that its batches are part of transactions.
    """
    whole = lanes.tables
    shares = {"lanes": share, "runs": share, "transactions": share * share, "markers": share * share}
    room = {name: int(_rows(columns) * shares[name]) for name, columns in whole.items()}
    shown = _lanes_shown(whole, max(room["runs"] // 2, room["lanes"]), producer_ids)
    runs = _in_lanes(whole["runs"], shown)
    transactions, kept = _transactions(whole["transactions"], shown, room["transactions"], offsets)
    ends = lanes.ends
    of_kept = np.append(kept, False)[ends]  # -1: ends none
    others = shown[whole["markers"]["lane"]] & (ends < 0)
    others &= np.cumsum(others) <= room["markers"] - np.count_nonzero(of_kept)
    markers = {name: column[of_kept | others] for name, column in whole["markers"].items()}
    number = np.cumsum(shown) - 1
    bars, merged = _merged(runs, room["runs"], offsets)
    tables = {
        "lanes": {name: column[shown] for name, column in whole["lanes"].items()},
        "runs": bars,
        "markers": markers,
        "transactions": transactions,
    }
    for name in ("runs", "markers", "transactions"):
        tables[name]["lane"] = number[tables[name]["lane"]]
    return tables, merged


def _in_lanes(columns: dict[str, Column], shown: NDArray[np.bool_]) -> dict[str, Column]:
    mask = shown[columns["lane"]]
    return {name: column[mask] for name, column in columns.items()}


def _lanes_shown(tables: Tables, room: int, producer_ids: Column) -> NDArray[np.bool_]:
    """Return which lanes are shown: those with findings first, then those with most records."""
    ids = tables["lanes"]["producer_id"]
    shown = np.ones(len(ids), dtype=bool)
    if len(ids) > room:
        records = np.bincount(tables["runs"]["lane"], weights=tables["runs"]["records"], minlength=len(ids))
        order = np.lexsort((-records, ~np.isin(ids, producer_ids)))
        shown[order[room:]] = False
    return shown


def _merged(runs: dict[str, Column], room: int, offsets: Column) -> tuple[dict[str, Column], int]:
    """Merge runs of one lane across the smallest gaps, but not runs that findings are about; count those merged."""
    count = len(runs["lane"])
    if not count:
        return dict(runs), 0
    gaps = runs["first_offset"][1:] - runs["last_offset"][:-1]
    fixed = runs["lane"][1:] != runs["lane"][:-1]
    about = _touch(runs["first_offset"], runs["last_offset"], offsets)
    fixed |= about[1:] | about[:-1]
    begins = np.append(True, fixed)
    free = max(room - np.count_nonzero(begins), 0)
    free_seams = np.flatnonzero(~fixed)
    widest = np.argsort(-gaps[free_seams], kind="stable")[:free]
    begins[free_seams[widest] + 1] = True
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], count) - 1
    merged = {name: runs[name][firsts] for name in ("lane", "first_offset", "first_sequence")}
    merged |= {name: runs[name][lasts] for name in ("last_offset", "last_sequence")}
    merged |= {name: np.add.reduceat(runs[name], firsts) for name in ("batches", "records")}
    merged["min_timestamp"] = np.minimum.reduceat(runs["min_timestamp"], firsts)
    merged["max_timestamp"] = np.maximum.reduceat(runs["max_timestamp"], firsts)
    flags: Column = np.bitwise_or.reduceat(runs["flags"], firsts)
    merged["flags"] = flags | np.where(lasts > firsts, COARSE, 0)
    sizes = lasts - firsts + 1
    return merged, int(sizes[sizes > 1].sum())


def _transactions(
    columns: dict[str, Column], shown: NDArray[np.bool_], room: int, offsets: Column
) -> tuple[dict[str, Column], NDArray[np.bool_]]:
    """Return the transactions that are shown, and which those are: the ones not committed, then the longest.

    Of equally long ones those that are shown are spread over all lanes.
    """
    kept = shown[columns["lane"]]
    length = columns["last_offset"] - columns["first_offset"]
    about = _touch(columns["first_offset"], columns["last_offset"], offsets)
    spread = np.arange(len(length), dtype=np.uint32) * _SPREAD
    order = np.lexsort((spread, -length, ~about, columns["outcome"] == _COMMITTED, ~kept))
    kept[order[room:]] = False
    return {name: column[kept] for name, column in columns.items()}, kept


def _touch(first: Column, last: Column, offsets: Column) -> NDArray[np.bool_]:
    """Return which ranges hold one of the offsets, or lie beside one."""
    if not len(offsets):
        return np.zeros(len(first), dtype=bool)
    at = np.searchsorted(offsets, first - 1)
    return (at < len(offsets)) & (offsets[np.minimum(at, len(offsets) - 1)] <= last + 1)
