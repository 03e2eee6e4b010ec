"""Windows of batch columns, and where two of them first differ."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model import sequence
from kaudit.model.batch_fields import DELETE_HORIZON_FLAG
from kaudit.model.replicas import ReplicaBatch

COLUMNS = (
    "base_offset",
    "last_offset",
    "crc",
    "leader_epoch",
    "magic",
    "attributes",
    "record_count",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "max_timestamp",
    "size",
    "position",
    "segment",
)

Columns = Mapping[str, NDArray[Any]]


def batch_at(rows: Columns, index: int) -> ReplicaBatch:
    """Return one row as a batch."""
    values = {name: int(rows[name][index]) for name in COLUMNS}
    values |= {"offset": values["base_offset"], "timestamp": values["max_timestamp"]}
    first, span = values["base_sequence"], values["last_offset"] - values["base_offset"]
    values["last_sequence"] = first if first < 0 else sequence.add(first, span)
    return ReplicaBatch(**{name: values[name] for name in ReplicaBatch.__struct_fields__})


def no_rows() -> Columns:
    """Return empty columns."""
    return {name: np.empty(0, dtype=np.int64) for name in COLUMNS}


def cleaned(rows: Columns, index: NDArray[np.int64] | slice) -> NDArray[np.bool_]:
    """Return a mask of the batches that the log cleaner rewrote: records are missing, or the delete horizon is set (KIP-534)."""
    spans = rows["last_offset"][index] - rows["base_offset"][index] + 1
    current, counts = rows["magic"][index] == CURRENT_MAGIC, rows["record_count"][index]
    horizon = rows["attributes"][index] & DELETE_HORIZON_FLAG != 0
    found: NDArray[np.bool_] = current & (((counts >= 0) & (counts < spans)) | horizon)
    return found


_NOTHING_READ = int(np.iinfo(np.int64).min)


class Conflict(Struct, frozen=True):
    """Rows of the two windows that differ at one offset; None for a batch of an earlier window."""

    offset: int
    left: int | None
    right: int | None


class PairCompare(Struct):
    """Compares windows that cover the same offsets, in ascending order.

    `compacted`: the log cleaner may have rewritten batches of magic 0 and 1, which do not show it.
    """

    compacted: bool
    _left_reached: int = _NOTHING_READ
    _right_reached: int = _NOTHING_READ

    def feed(self, left: Columns, right: Columns) -> Conflict | None:
        """Compare the next window of both; return the first conflict."""
        bases, others = left["base_offset"], right["base_offset"]
        conflict = None
        if not _same(left, right):
            conflict = self._first_conflict(left, right)
        if len(bases):
            self._left_reached = int(left["last_offset"][-1])
        if len(others):
            self._right_reached = int(right["last_offset"][-1])
        return conflict

    def _first_conflict(self, left: Columns, right: Columns) -> Conflict | None:
        found = [
            *self._matched(left, right),
            *_overlap(left, right, self._right_reached, swapped=False),
            *_overlap(right, left, self._left_reached, swapped=True),
        ]
        return min(found, key=lambda conflict: conflict.offset, default=None)

    def _matched(self, left: Columns, right: Columns) -> list[Conflict]:
        """Return the first pair of different batches with the same base offset, as a list of at most one."""
        if not len(left["base_offset"]) or not len(right["base_offset"]):
            return []
        at = np.searchsorted(right["base_offset"], left["base_offset"])
        at = np.minimum(at, len(right["base_offset"]) - 1)
        mine = np.flatnonzero(right["base_offset"][at] == left["base_offset"])
        theirs = at[mine]
        differs = self._differs(left, right, mine, theirs)
        if not differs.any():
            return []
        first = int(np.argmax(differs))
        return [Conflict(int(left["base_offset"][mine[first]]), int(mine[first]), int(theirs[first]))]

    def _differs(
        self, left: Columns, right: Columns, mine: NDArray[np.int64], theirs: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which pairs with one base offset differ; CRCs count only where the cleaner rewrote neither batch."""
        rewritten = cleaned(left, mine) | cleaned(right, theirs)
        if self.compacted:
            rewritten |= left["magic"][mine] < CURRENT_MAGIC
        differs = np.zeros(len(mine), dtype=bool)
        for name in ("last_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence", "magic"):
            differs |= left[name][mine] != right[name][theirs]
        differs |= (left["crc"][mine] != right["crc"][theirs]) & ~rewritten
        return differs


def _same(left: Columns, right: Columns) -> bool:
    names = ("base_offset", "last_offset", "crc", "leader_epoch", "magic")
    return all(np.array_equal(left[name], right[name]) for name in names)


def _overlap(rows: Columns, others: Columns, reached: int, *, swapped: bool) -> list[Conflict]:
    """Return the first of `rows` that begins inside a batch of `others`: replicas never split batches differently.

    `reached` is the last offset of the others' earlier windows.
    """
    bases = rows["base_offset"]
    before = np.searchsorted(others["base_offset"], bases, side="left") - 1
    covered = np.full(len(bases), reached, dtype=np.int64)
    inside = before >= 0
    covered[inside] = others["last_offset"][before[inside]]
    hit = np.flatnonzero(covered >= bases)
    if not len(hit):
        return []
    first = int(hit[0])
    other = int(before[first]) if inside[first] else None
    pair = (other, first) if swapped else (first, other)
    return [Conflict(int(bases[first]), *pair)]
