"""What is remembered of every producer id of a partition, as columns: a million ids are rows, not objects."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.scan.rows import EDGE, Rows
from kaudit.analysis.sequences.sequence_audit import WINDOW
from kaudit.model.observation import BoundaryBatch, Remembered, State

REMEMBERED = np.dtype(
    [("base_offset", np.int64), ("first_sequence", np.int32), ("last_sequence", np.int32), ("crc", np.uint32)]
)
_SCALARS = (
    "epoch",
    "last_sequence",
    "start_crc",
    "coordinator_epoch",
    "last_timestamp",
    "txn_first_offset",
    "txn_first_timestamp",
    "txn_position",
    "txn_segment",
    "txn_records",
    "marker_offset",
    "marker_timestamp",
    "flags",
)
ROW = np.dtype(
    [
        ("producer_id", np.int64),
        ("known", np.bool_),
        ("epoch", np.int16),
        ("last_sequence", np.int32),
        ("start_crc", np.int64),
        ("coordinator_epoch", np.int32),
        ("last_timestamp", np.int64),
        ("txn_first_offset", np.int64),
        ("txn_first_timestamp", np.int64),
        ("txn_position", np.int64),
        ("txn_segment", np.int32),
        ("txn_records", np.int64),
        ("marker_offset", np.int64),
        ("marker_timestamp", np.int64),
        ("flags", np.int32),
        ("has_last", np.bool_),
        ("last", EDGE),
        ("remembered", np.int8),
        ("window", REMEMBERED, (WINDOW,)),
        ("run_open", np.bool_),
        ("run_transactional", np.bool_),
        ("run_epoch", np.int16),
        ("run_sequence", np.int32),
        ("run_timestamp", np.int64),
    ]
)
"""One State; `window` holds `remembered` batches, oldest first. `run_*`: the run going on at the chunk's end."""
_UNKNOWN: NDArray[Any] = np.zeros(1, dtype=ROW)
for _name in ("last_sequence", "start_crc", "coordinator_epoch", "last_timestamp", "txn_first_offset"):
    _UNKNOWN[_name] = -1
for _name in ("txn_first_timestamp", "txn_position", "txn_segment", "marker_offset", "marker_timestamp"):
    _UNKNOWN[_name] = -1


_SPARE_ROWS = 1 << 13
"""The most rows made ahead of need: 3 MB, which most partitions' few ids would leave untouched but zeroed."""


class ProducerTable:
    """Rows of State by producer id, in order of first appearance."""

    def __init__(self) -> None:
        self._rows: Rows = np.empty(0, dtype=ROW)
        self._count = 0
        self._sorted_ids: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._slots: NDArray[np.int32] = np.empty(0, dtype=np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Rows:
        """All rows; a view, writable."""
        return self._rows[: self._count]

    def slots(self, producer_ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Row numbers of these ids (ascending, unique), rows being made for those not seen before."""
        at = np.searchsorted(self._sorted_ids, producer_ids)
        inside = np.minimum(at, max(len(self._sorted_ids) - 1, 0))
        new = self._sorted_ids[inside] != producer_ids if len(self._sorted_ids) else np.ones(len(producer_ids), bool)
        if new.any():
            self._add(producer_ids[new], at[new])
            at = np.searchsorted(self._sorted_ids, producer_ids)
        return self._slots[at]

    def _add(self, producer_ids: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        first, count = self._count, self._count + len(producer_ids)
        if count > len(self._rows):
            # realloc moves large blocks by remapping pages: no second copy of a million rows, and no need to grow by much
            self._rows.resize(count + min(count, _SPARE_ROWS), refcheck=False)
        whole = np.dtype((np.void, ROW.itemsize))  # copied at once, not field by field
        self._rows[first:count].view(whole)[:] = _UNKNOWN.view(whole)
        self._rows["producer_id"][first:count] = producer_ids
        self._count = count
        self._slots = np.insert(self._slots, at, np.arange(first, count, dtype=np.int32))
        self._sorted_ids = np.insert(self._sorted_ids, at, producer_ids)

    def load(self, slot: int) -> State | None:
        """Return the state in a row, or None for a producer without one."""
        row = self._rows[slot]
        if not row["known"]:
            return None
        window = tuple(Remembered._make(entry) for entry in row["window"][: row["remembered"]].tolist())
        last = BoundaryBatch._make(row["last"].item()) if row["has_last"] else None
        return State(**{name: int(row[name]) for name in _SCALARS}, window=window, last=last)

    def store(self, slot: int, state: State) -> None:
        """Write a state into a row."""
        row = self._rows[slot]
        row["known"] = True
        for name in _SCALARS:
            row[name] = getattr(state, name)
        row["has_last"] = state.last is not None
        if state.last is not None:
            row["last"] = tuple(state.last)
        row["remembered"] = len(state.window)
        for index, entry in enumerate(state.window):
            row["window"][index] = tuple(entry)
