"""Transactions of one partition as the log tells of them: where each began and what ended it.

Fed with runs and markers chunk by chunk: a run ends at every marker with records of its producer id, so a transaction
begins with the first transactional run behind a marker.
"""

from dataclasses import dataclass, field

import numpy as np

from kaudit.model.batch import ABORT_MARKER, COMMIT_MARKER, NO_OFFSET
from kaudit.pipeline.rows import Rows

ENDED = np.dtype(
    [
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("coordinator_epoch", np.int32),
        ("type", np.int8),
        ("first_offset", np.int64),
        ("marker_offset", np.int64),
        ("stable_offset", np.int64),
        ("timestamp", np.int64),
        ("position", np.int64),
        ("segment", np.int32),
    ]
)
"""A marker. `first_offset` -1: no data before it. `stable_offset`: first offset of the oldest other transaction open at
the marker, -1 without one."""

_OPEN = np.dtype([("producer_id", np.int64), ("offset", np.int64)])
_NEVER = np.iinfo(np.int64).max
MAX_ABORTS = 1_000_000
"""Abort markers kept of one partition (58 MB); with more, none is compared."""
MAX_COMMITS = 200_000
"""Commit markers kept of one partition; with more, outcomes are not compared with their coordinator's decisions."""


@dataclass(slots=True)
class TransactionSpans:
    """Follows the transactions of a partition."""

    _open: Rows = field(default_factory=lambda: np.empty(0, dtype=_OPEN))
    _ended: list[Rows] = field(default_factory=list)
    _aborts: int = 0
    _commits: int = 0

    def feed(self, runs: Rows, markers: Rows) -> None:
        """Take a chunk's rows, chunks in offset order."""
        ends = markers[(markers["record_count"] > 0) & np.isin(markers["type"], (ABORT_MARKER, COMMIT_MARKER))]
        starts = runs[runs["is_transactional"]]
        if not len(ends) and not len(starts):
            return
        waiting, new = len(self._open), len(starts)
        producers = np.concatenate([self._open["producer_id"], starts["producer_id"], ends["producer_id"]])
        offsets = np.concatenate([self._open["offset"], starts["first_offset"], ends["offset"]])
        order = np.lexsort((offsets, producers))
        producers, offsets = producers[order], offsets[order]
        is_end = order >= waiting + new
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (producers[1:] != producers[:-1]) | is_end[:-1]
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(order)) - 1
        started, ended = ~is_end[first], is_end[last]
        opened = started & ~ended
        spans_first = np.where(started, offsets[first], NO_OFFSET)
        spans_end = np.where(ended, offsets[last], _NEVER)
        stable = _oldest_open(spans_first[started], spans_end[started], spans_end[ended])
        self._keep(ends[order[last[ended]] - waiting - new], spans_first[ended], stable)
        self._open = np.empty(int(opened.sum()), dtype=_OPEN)
        self._open["producer_id"], self._open["offset"] = producers[first[opened]], spans_first[opened]

    def _keep(self, markers: Rows, first_offsets: Rows, stable: Rows) -> None:
        is_abort = markers["type"] == ABORT_MARKER
        self._aborts += int(is_abort.sum())
        self._commits += int((~is_abort).sum())
        chosen = np.flatnonzero(is_abort & self.has_all_aborts | ~is_abort & self.has_all_commits)
        rows = np.empty(len(chosen), dtype=ENDED)
        for name in ("producer_id", "producer_epoch", "coordinator_epoch", "type", "timestamp", "position", "segment"):
            rows[name] = markers[name][chosen]
        rows["marker_offset"] = markers["offset"][chosen]
        rows["first_offset"], rows["stable_offset"] = first_offsets[chosen], stable[chosen]
        self._ended.append(rows)

    @property
    def has_all_aborts(self) -> bool:
        """Whether every abort marker was kept."""
        return self._aborts <= MAX_ABORTS

    @property
    def has_all_commits(self) -> bool:
        """Whether every commit marker was kept."""
        return self._commits <= MAX_COMMITS

    def ended(self) -> Rows:
        """All markers kept, by offset."""
        rows = np.concatenate(self._ended) if self._ended else np.empty(0, dtype=ENDED)
        return rows[np.argsort(rows["marker_offset"], kind="stable")]


def _oldest_open(first: Rows, end: Rows, markers: Rows) -> Rows:
    """First offset of the oldest transaction open at each marker other than the one it ends, -1 without one."""
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(end[order]) if len(order) else end
    # the first transaction in offset order that ends behind the marker is the oldest one still open there
    at = np.searchsorted(reach, markers, side="right")
    found = at < len(first)
    result = np.full(len(markers), NO_OFFSET, dtype=np.int64)
    candidates = first[at[found]]
    result[found] = np.where(candidates < markers[found], candidates, NO_OFFSET)
    return result
