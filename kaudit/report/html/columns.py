"""Packed columns of a page: numpy tables to bytes that a browser turns into typed arrays without parsing text.

A column holds what differs from a prediction, which is nothing for most values of a healthy log. Value i of a column is
`stored[i]` plus, by `encoding`:

    plain      0
    delta      value[i-1]                     (the origin for the first)
    follows    last_offset[i-1]               (the origin for the first)
    from       first_offset[i] for last_offset, min_timestamp[i] for max_timestamp
    continues  value[i-1] + last_offset[i-1] - first_offset[i-1] + 1     (0 for the first)
    spans      last_offset[i] - first_offset[i], plus first_sequence[i] for last_sequence, plus 1 for records

Origins are those of the columns whose names end in offset, timestamp and producer_id; a browser takes them for 0, so that its
numbers hold what is relative to them. Columns of a table lie in the order of its fields, so that those a prediction needs have been read before; the exception is
first_offset, which `follows` needs: it and last_offset are read together. The stored numbers are zigzag (0, -1, 1, -2 are
0, 1, 2, 3), in `width` bytes each, as planes: the lowest byte of all rows, then the next. All of it goes through zlib.

Where a partition's tables are too large, `fitted` shows fewer rows: first coarser bars, then fewer transactions and lanes. What
findings are about stays as it is, and so does every transaction that was not committed while there is room.
"""

import zlib
from collections.abc import Mapping
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.model.timeline import OUTCOMES
from kaudit.report.html.page_model import Field, PackedTable
from kaudit.report.lanes import Column, Lanes, Tables

Encoding = Literal["plain", "delta", "follows", "from", "continues", "spans"]

RUN_FIELDS: Mapping[str, Encoding] = {
    "lane": "delta",
    "first_offset": "follows",
    "last_offset": "from",
    "min_timestamp": "delta",
    "max_timestamp": "from",
    "first_sequence": "continues",
    "last_sequence": "spans",
    "batches": "plain",
    "records": "spans",
    "flags": "plain",
}
"""Runs of consecutive batches, by lane and then offset. `lane` is a row of the lanes.

Both offsets are inclusive. Sequences are -1 where they do not count; min_timestamp and max_timestamp of -1 (before the
origin is subtracted) mean none. `flags` are TRANSACTIONAL (kaudit/report/lanes.py) and COARSE."""
MARKER_FIELDS: Mapping[str, Encoding] = {
    "lane": "delta",
    "offset": "delta",
    "timestamp": "delta",
    "type": "plain",
    "coordinator_epoch": "plain",
}
"""End markers, by lane and then offset. `type` is 0 abort, 1 commit, -1 unknown: the log cleaner emptied it,
or a text does not say."""
TRANSACTION_FIELDS: Mapping[str, Encoding] = {
    "lane": "delta",
    "first_offset": "follows",
    "last_offset": "from",
    "outcome": "plain",
}
"""Transactions, by lane and then offset. `last_offset` is the marker's, or where it is open the last batch's.

`outcome` is an index into OUTCOMES (kaudit/model/timeline.py)."""
LANE_FIELDS: Mapping[str, Encoding] = {"producer_id": "delta", "producer_epoch": "plain", "name": "plain"}
"""Lanes: a producer id and epoch each, by producer id and then epoch; `name` is an index into `names`, -1 for none."""

TABLES: Mapping[str, Mapping[str, Encoding]] = {
    "lanes": LANE_FIELDS,
    "runs": RUN_FIELDS,
    "markers": MARKER_FIELDS,
    "transactions": TRANSACTION_FIELDS,
}
"""The tables in the order they are packed."""

COARSE = 2
"""Bit of `flags` beside TRANSACTIONAL: the run stands for several that were merged to save room."""

_LEVEL = 6
"""Level 9 takes ten times as long for half a percent."""


class Origins(Struct, frozen=True):
    """The least offset, timestamp and producer id of a partition: the page's numbers are relative to them."""

    offset: int = 0
    timestamp: int = 0
    producer_id: int = 0

    @classmethod
    def of(cls, tables: Mapping[str, Mapping[str, Column]]) -> "Origins":
        """Return the least of each; 0 where there are none. Timestamps below 0 are none."""
        runs, markers = tables["runs"], tables["markers"]
        starts = np.concatenate([runs["first_offset"], markers["offset"]])
        times = np.concatenate([runs["min_timestamp"], markers["timestamp"]])
        return cls(_least(starts), _least(times[times >= 0]), _least(tables["lanes"]["producer_id"]))

    def get(self, column: str) -> int:
        """Return the origin of a column, 0 for a column without one."""
        return next((getattr(self, name) for name in self.__struct_fields__ if column.endswith(name)), 0)


def _least(column: Column) -> int:
    return int(column.min()) if len(column) else 0


def pack(
    tables: Mapping[str, Mapping[str, Column]],
    origins: Origins = Origins(),  # noqa: B008 - immutable
) -> tuple[dict[str, PackedTable], bytes]:
    """Pack tables of int64 columns, shape (rows,) each; every table of TABLES and every field of it must be there.

    Return their fields, and their bytes.
    """
    # planes are residues of a prediction, which is what this strategy is for
    deflate = zlib.compressobj(_LEVEL, strategy=zlib.Z_FILTERED)
    described: dict[str, PackedTable] = {}
    parts: list[bytes] = []
    for table, encodings in TABLES.items():
        columns, fields = tables[table], []
        for name, encoding in encodings.items():
            width, planes = _planes(columns[name] - _prediction(name, encoding, columns, origins.get(name)))
            fields.append(Field(name, encoding, width))
            parts.append(deflate.compress(planes))
        described[table] = PackedTable(len(columns[next(iter(encodings))]), fields)
    return described, b"".join([*parts, deflate.flush()])


def _prediction(name: str, encoding: Encoding, columns: Mapping[str, Column], origin: int) -> Column | int:
    if encoding == "plain":
        return 0
    if encoding == "delta":
        return _shifted(columns[name], origin)
    if encoding == "follows":
        return _shifted(columns["last_offset"], origin)
    if encoding == "from":
        return columns["first_offset" if name == "last_offset" else "min_timestamp"]
    lengths = columns["last_offset"] - columns["first_offset"]
    if encoding == "continues":
        return _shifted(columns[name] + lengths + 1, 0)
    return lengths + (columns["first_sequence"] if name == "last_sequence" else 1)


def _shifted(column: Column, origin: int) -> Column:
    """The value of the row before; the origin for the first."""
    before = np.empty_like(column)
    before[:1] = origin
    before[1:] = column[:-1]
    return before


def _planes(stored: Column) -> tuple[int, bytes]:
    """Return how many bytes a value takes, and the planes; differences wrap around at 64 bits, as adding them up does."""
    zigzag = ((stored << 1) ^ (stored >> 63)).view(np.uint64)
    width = (int(zigzag.max(initial=0)).bit_length() + 7) // 8
    by_byte = zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)
    return width, by_byte[:, :width].T.tobytes()


_COMMITTED = OUTCOMES.index("committed")
_SAFETY = 0.95
"""Share of the rows that would fit by size: fewer rows compress a little worse."""


_SPREAD = np.uint32(2_654_435_769)
"""2**32 over the golden ratio: any number of its multiples, modulo 2**32, are spread evenly."""


def fitted(
    lanes: Lanes, origins: Origins, most_bytes: int, offsets: Column, producer_ids: Column
) -> tuple[dict[str, PackedTable], bytes, Mapping[str, int]]:
    """Pack the tables into at most `most_bytes`; `offsets` (ascending) and `producer_ids` are those that findings are about.

    Return their fields, their bytes, and how many rows they leave out, by the names of PackedColumns.
    """
    tables, merged, share = lanes.tables, 0, 1.0
    packed, data = pack(tables, origins)
    while len(data) > most_bytes and _rows(tables["lanes"]):
        share *= _SAFETY * most_bytes / len(data)
        tables, merged = _reduced(lanes, share, offsets, producer_ids)
        packed, data = pack(tables, origins)
    fewer = {name: _rows(lanes.tables[name]) - _rows(tables[name]) for name in ("lanes", "transactions", "markers")}
    return packed, data, {"runs_merged": merged, **{f"{name}_left_out": count for name, count in fewer.items()}}


def _rows(columns: dict[str, Column]) -> int:
    return len(next(iter(columns.values())))


def _reduced(lanes: Lanes, share: float, offsets: Column, producer_ids: Column) -> tuple[Tables, int]:
    """Return about this share of the rows, and how many runs are only part of a coarser bar.

    Fewer transactions and markers stay than runs: a bar shows that its batches are part of transactions.
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
    """Return a mask of the lanes that are shown: those with findings first, then those with most records."""
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
    """Return the transactions that are shown, and a mask of them: those not committed first, then the longest.

    Of equally long transactions those that are shown are spread over all lanes.
    """
    kept = shown[columns["lane"]]
    length = columns["last_offset"] - columns["first_offset"]
    about = _touch(columns["first_offset"], columns["last_offset"], offsets)
    spread = np.arange(len(length), dtype=np.uint32) * _SPREAD
    order = np.lexsort((spread, -length, ~about, columns["outcome"] == _COMMITTED, ~kept))
    kept[order[room:]] = False
    return {name: column[kept] for name, column in columns.items()}, kept


def _touch(first: Column, last: Column, offsets: Column) -> NDArray[np.bool_]:
    """Return a mask of the ranges that contain one of the offsets or are next to one."""
    if not len(offsets):
        return np.zeros(len(first), dtype=bool)
    at = np.searchsorted(offsets, first - 1)
    return (at < len(offsets)) & (offsets[np.minimum(at, len(offsets) - 1)] <= last + 1)
