"""A chunk's runs and markers in one order: by producer id, each producer's in the order of the log.

Both come sorted that way. Producer id and offset share one 64-bit key, and a stable sort merges two sorted halves in one
pass; the lowest bit tells afterwards which half a key came from.
"""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.pipeline.columns import Columns

_KEY_BITS = 62


class Merged(Struct, frozen=True):
    """Runs and markers, each sorted by producer id and offset, and how they go together.

    For each of both together, in their common order: `order` is its index among the runs, or among the markers plus the
    number of runs; `is_run`; `ids`, its producer id. `starts` are the places where another producer id begins.
    """

    runs: Columns
    markers: Columns
    order: NDArray[np.intp]
    is_run: NDArray[np.bool_]
    ids: NDArray[np.int64]
    starts: NDArray[np.intp]

    @property
    def producer_ids(self) -> NDArray[np.int64]:
        """Each producer id once, ascending."""
        return self.ids.take(self.starts)

    def ends(self) -> NDArray[np.intp]:
        """Return the last place of each producer id."""
        ends = np.empty_like(self.starts)
        ends[:-1] = self.starts[1:] - 1
        ends[-1:] = len(self.ids) - 1
        return ends

    def parts(self, size: int) -> Iterator[tuple["Merged", slice]]:
        """Cut into parts of whole producers, of about `size` places, each with the slice of `starts` that it is."""
        group = 0
        while group < len(self.starts):
            first = int(self.starts[group])
            stop = max(int(np.searchsorted(self.starts, first + size)), group + 1)
            last = int(self.starts[stop]) if stop < len(self.starts) else len(self.ids)
            yield self._part(slice(first, last), slice(group, stop)), slice(group, stop)
            group = stop

    def _part(self, places: slice, groups: slice) -> "Merged":
        if places == slice(0, len(self.ids)):
            return self
        is_run = self.is_run[places]
        count = int(np.count_nonzero(is_run))
        order = self.order[places]
        # of whole producers: their runs and their markers are neighbours
        first_run = int(order[np.argmax(is_run)]) if count else 0
        first_marker = int(order[np.argmin(is_run)]) - len(self.runs) if count < len(order) else 0
        runs = self.runs[first_run : first_run + count]
        markers = self.markers[first_marker : first_marker + len(order) - count]
        moved = order - np.where(is_run, first_run, first_marker + len(self.runs) - count)
        return Merged(runs, markers, moved, is_run, self.ids[places], self.starts[groups] - places.start)


def merge(runs: Columns, markers: Columns) -> Merged:
    """Merge rows of dtype RUN and rows of dtype MARKER, each sorted by producer id and offset."""
    count = len(runs)
    ids = runs["producer_id"]
    if len(markers):
        order, is_run = _order(runs, markers)
        ids = np.concatenate((ids, markers["producer_id"])).take(order)
    else:
        order, is_run = np.arange(count), np.ones(count, dtype=np.bool_)
    begins = np.ones(len(ids), dtype=np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=begins[1:])
    return Merged(runs, markers, order, is_run, ids, np.flatnonzero(begins))


def _order(runs: Columns, markers: Columns) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    count = len(runs)
    ids = np.concatenate((runs["producer_id"], markers["producer_id"]))
    offsets = np.concatenate((runs["first_offset"], markers["offset"]))
    low, bits = int(offsets.min()), (int(offsets.max()) - int(offsets.min())).bit_length()
    if (int(ids.max()) - int(ids.min())).bit_length() + bits > _KEY_BITS:
        order = np.lexsort((offsets, ids))
        return order, order < count
    keys = (((ids - ids.min()) << bits) + (offsets - low)) << 1
    keys[count:] |= 1
    keys.sort(kind="stable")
    is_run = keys & 1 == 0
    order = np.empty(len(keys), dtype=np.intp)
    order[is_run] = np.arange(count)
    order[~is_run] = np.arange(count, len(keys))
    return order, is_run


def with_records(markers: Columns) -> Columns:
    """Leave out the markers that compaction emptied."""
    kept = markers["record_count"] > 0
    return markers if kept.all() else markers[kept]
