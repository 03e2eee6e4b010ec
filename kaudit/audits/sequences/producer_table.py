"""The audit's state of every producer id of a partition, as columns: a million ids are rows, not objects."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.sidefiles.producer_snapshot import ENTRY_DTYPE
from kaudit.model.batch_fields import NO_LEADER_EPOCH, NO_OFFSET
from kaudit.model.dtypes import default_rows, dtype_of, load, store
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.producer_state import NO_POSITION, NO_SEGMENT, OpenRun, ProducerAuditState, RetainedBatch
from kaudit.model.schema import Bool, Int64
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.reading.rows import Rows, pick, put


class _Key(NamedTuple):
    """Whose row it is, and whether there is a state in it."""

    producer_id: Int64
    known: Bool = False


_COLUMNS = (_Key, ProducerAuditState, OpenRun)
ROW = dtype_of(*_COLUMNS)
RETAINED_BATCH = dtype_of(RetainedBatch)
_UNKNOWN = default_rows(*_COLUMNS)

_SPARE_ROWS = 1 << 13
"""The most rows made ahead of need: 3 MB, which most partitions' few ids would leave untouched but zeroed."""


class ProducerTable:
    """Rows of ProducerAuditState by producer id, in order of first appearance."""

    def __init__(self) -> None:
        self._rows: Rows = np.empty(0, dtype=ROW)
        self._count = 0
        self._sorted_ids: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._slots: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._before: Rows = np.empty(0, dtype=ENTRY_DTYPE)
        self._begins_at = 0
        self._lineage: Sequence[EpochEntry] = ()

    def continue_from(self, entries: Rows, begins_at: int, lineage: Sequence[EpochEntry]) -> None:
        """Begin producers that a snapshot at offset `begins_at` knows with their state there, as a broker does that loads it.

        `lineage`: which leader epoch its batches have. Of a batch before that offset all is known but its bytes and their place, and
        none of those before it: the window is empty.
        """
        self._before, self._begins_at, self._lineage = entries[np.argsort(entries["producer_id"])], begins_at, lineage

    @classmethod
    def of(cls, rows: Rows) -> "ProducerTable":
        """Return a table of these rows, which must own their memory: it grows in place."""
        if rows.dtype != ROW:
            raise ValueError("no rows of producers")
        table = cls()
        table._rows, table._count = rows, len(rows)
        order = np.argsort(rows["producer_id"], kind="stable")
        table._slots = order.astype(np.int32)
        table._sorted_ids = rows["producer_id"][order]
        return table

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Rows:
        """All rows; a view, writable."""
        return self._rows[: self._count]

    def find(self, producer_ids: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return row numbers for these ids, and which of the ids they are of; there must be rows."""
        at = np.minimum(np.searchsorted(self._sorted_ids, producer_ids), len(self._sorted_ids) - 1)
        return self._slots.take(at), self._sorted_ids.take(at) == producer_ids

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
        if len(self._before):
            self._continue(self._rows[first:count])
        self._count = count
        self._slots = np.insert(self._slots, at, np.arange(first, count, dtype=np.int32))
        self._sorted_ids = np.insert(self._sorted_ids, at, producer_ids)

    def _continue(self, rows: Rows) -> None:
        at = np.minimum(np.searchsorted(self._before["producer_id"], rows["producer_id"]), len(self._before) - 1)
        known = np.flatnonzero(self._before["producer_id"].take(at) == rows["producer_id"])
        before, own = self._before.take(at.take(known)), pick(rows, known)
        own["known"] = True
        own["epoch"] = own["rebuilt_epoch"] = before["producer_epoch"]
        own["last_sequence"] = before["last_sequence"]
        own["coordinator_epoch"] = own["rebuilt_coordinator_epoch"] = before["coordinator_epoch"]
        own["last_timestamp"] = before["timestamp"]
        own["has_last"] = before["last_offset"] != NO_OFFSET
        first = before["last_offset"] - before["offset_delta"]
        starts = [row.start_offset for row in self._lineage]
        epochs = np.array([NO_LEADER_EPOCH, *(row.epoch for row in self._lineage)])
        last = {
            "base_offset": first,
            "last_offset": before["last_offset"],
            "first_sequence": (before["last_sequence"] - before["offset_delta"]) & MAX_SEQUENCE,
            "last_sequence": before["last_sequence"],
            "record_count": before["offset_delta"] + 1,
            "max_timestamp": before["timestamp"],
            "present_before": first - self._begins_at,  # no offset is missing up to there
            "position": NO_POSITION,
            "leader_epoch": epochs[np.searchsorted(starts, first, side="right")],
            "segment": NO_SEGMENT,
        }
        for name, values in last.items():
            own["last"][name] = values
        put(rows, known, own)

    def load(self, slots: NDArray[Any]) -> list[ProducerAuditState | None]:
        """Return the states in these rows, None for a producer without one."""
        rows = self._rows[slots]
        states = load(ProducerAuditState, rows)
        return [state if known else None for state, known in zip(states, rows["known"].tolist(), strict=True)]

    def store(self, states: Mapping[int, ProducerAuditState]) -> None:
        """Write states into their rows."""
        if states:
            self._rows["known"][[*states]] = True
            store(self._rows, [*states], [*states.values()])
