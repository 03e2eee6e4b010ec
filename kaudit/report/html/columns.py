"""Packed columns of a page: numpy tables to bytes that a browser turns into typed arrays without parsing text.

A column holds what differs from a prediction, which is nothing for most values of a healthy log. Value i of a column is
`stored[i]` plus, by `encoding`:

    plain      0
    delta      value[i-1]                     (0 for the first)
    follows    last_offset[i-1]               (0 for the first)
    from       first_offset[i] for last_offset, min_timestamp[i] for max_timestamp
    continues  value[i-1] + last_offset[i-1] - first_offset[i-1] + 1     (0 for the first)
    spans      last_offset[i] - first_offset[i], plus first_sequence[i] for last_sequence, plus 1 for records

Columns of a table lie in the order of its fields, so that those a prediction needs have been read before; the exception is
first_offset, which `follows` needs: it and last_offset are read together. The stored numbers are zigzag (0, -1, 1, -2 are
0, 1, 2, 3), in `width` bytes each, as planes: the lowest byte of all rows, then the next. All of it goes through zlib.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.report.html.page_model import Field, PackedTable

Column = NDArray[np.int64]
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
origin is subtracted) mean none. `flags` are TRANSACTIONAL and COARSE."""
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

`outcome` is an index into OUTCOMES."""
LANE_FIELDS: Mapping[str, Encoding] = {"producer_id": "delta", "producer_epoch": "plain", "name": "plain"}
"""Lanes: a producer id and epoch each, by producer id and then epoch; `name` is an index into `names`, -1 for none."""

TABLES: Mapping[str, Mapping[str, Encoding]] = {
    "lanes": LANE_FIELDS,
    "runs": RUN_FIELDS,
    "markers": MARKER_FIELDS,
    "transactions": TRANSACTION_FIELDS,
}
"""The tables in the order they are packed."""

TRANSACTIONAL, COARSE = 1, 2
"""Bits of `flags`: the run is part of a transaction; it stands for several runs that were merged to save room."""
OUTCOMES = ("open", "committed", "aborted", "unknown")

_LEVEL = 6
"""Level 9 takes ten times as long for half a percent."""


class Packed(Struct, frozen=True):
    """Tables, what is in them, and their bytes."""

    tables: Mapping[str, PackedTable]
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as they stand in the page: base64."""
        return base64.b64encode(self.data).decode("ascii")


def pack(tables: Mapping[str, Mapping[str, Column]]) -> Packed:
    """Pack tables of int64 columns, shape (rows,) each; every table of TABLES and every field of it must be there."""
    described: dict[str, PackedTable] = {}
    parts: list[bytes] = []
    for name, fields in TABLES.items():
        columns = tables[name]
        described[name], planes = _table(columns, fields)
        parts += planes
    # planes are residues of a prediction, which is what this strategy is for
    deflate = zlib.compressobj(_LEVEL, strategy=zlib.Z_FILTERED)
    return Packed(described, b"".join([*map(deflate.compress, parts), deflate.flush()]))


def _table(columns: Mapping[str, Column], fields: Mapping[str, Encoding]) -> tuple[PackedTable, Sequence[bytes]]:
    described: list[Field] = []
    planes: list[bytes] = []
    for name, encoding in fields.items():
        width, data = _planes(columns[name] - _prediction(name, encoding, columns))
        described.append(Field(name, encoding, width))
        planes.append(data)
    return PackedTable(len(columns[next(iter(fields))]), described), planes


def _prediction(name: str, encoding: Encoding, columns: Mapping[str, Column]) -> Column:
    if encoding == "plain":
        return np.zeros(len(columns[name]), dtype=np.int64)
    if encoding == "delta":
        return _shifted(columns[name])
    if encoding == "follows":
        return _shifted(columns["last_offset"])
    if encoding == "from":
        return columns["first_offset" if name == "last_offset" else "min_timestamp"]
    lengths = columns["last_offset"] - columns["first_offset"]
    if encoding == "continues":
        return _shifted(columns[name] + lengths + 1)
    return lengths + (columns["first_sequence"] if name == "last_sequence" else 1)


def _shifted(column: Column) -> Column:
    """The value of the row before; 0 for the first."""
    before = np.zeros_like(column)
    before[1:] = column[:-1]
    return before


def _planes(stored: Column) -> tuple[int, bytes]:
    """Return how many bytes a value takes, and the planes; differences wrap around at 64 bits, as adding them up does."""
    zigzag = ((stored << 1) ^ (stored >> 63)).view(np.uint64)
    width = (int(zigzag.max(initial=0)).bit_length() + 7) // 8
    by_byte = zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)
    return width, by_byte[:, :width].T.tobytes()
