"""The producer ids of all partitions, joined by id: totals as columns, and where to find each id's rows."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.analysis.producer_ids.activity import ActivityRows
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.rows import Rows
from kaudit.model.batch_fields import NO_TIMESTAMP

_NEVER = np.iinfo(np.int64).max


class Joined(Struct, frozen=True):
    """Columns by id, ascending. Totals count each topic's partition once: of several replicas the longest one.

    `topics` is a number for the set of topics an id wrote to: equal sets have equal numbers.
    """

    ids: NDArray[np.int64]
    batches: NDArray[np.int64]
    records: NDArray[np.int64]
    first_timestamp: NDArray[np.int64]
    last_timestamp: NDArray[np.int64]
    epochs: NDArray[np.int32]
    partitions: NDArray[np.int32]
    is_transactional: NDArray[np.bool_]
    topics: NDArray[np.int64]
    names: Sequence[str]
    _starts: NDArray[np.int64]
    _places: NDArray[np.int32]
    _rows: NDArray[np.int32]
    _kept: Sequence[ActivityRows]

    def entries(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield (partition number, row in it) of the `number`-th id, in the partitions' order."""
        first, last = int(self._starts[number]), int(self._starts[number + 1])
        yield from zip(self._places[first:last].tolist(), self._rows[first:last].tolist(), strict=True)

    def rows(self, place: int, row: int) -> Rows:
        """Return one row of ACTIVITY."""
        found: Rows = self._kept[place].rows[row]
        return found

    def holds(self, producer_id: int) -> bool:
        """Tell whether the id is in the logs."""
        at = int(np.searchsorted(self.ids, producer_id))
        return at < len(self.ids) and int(self.ids[at]) == producer_id

    def topics_of(self, number: int) -> list[str]:
        """List the topics the `number`-th id wrote to."""
        return sorted({self.names[place] for place, _ in self.entries(number)})


def join(partitions: Sequence[PartitionAudit], kept: Sequence[ActivityRows]) -> Joined:
    """Join the partitions' rows by producer id."""
    ids = np.concatenate([np.empty(0, dtype=np.int64), *(part.producer_ids for part in partitions)])
    order = np.argsort(ids, kind="stable")
    lengths = [len(part.rows) for part in kept]
    places = np.repeat(np.arange(len(kept), dtype=np.int32), lengths)[order]
    rows = np.concatenate([np.empty(0, dtype=np.int32), *(np.arange(length, dtype=np.int32) for length in lengths)])
    rows = rows[order]
    ids = ids[order]
    new = np.ones(len(ids), dtype=bool)
    new[1:] = ids[1:] != ids[:-1]
    starts = np.flatnonzero(new)
    counted = np.array(_longest_replicas(partitions), dtype=bool)[places] if len(places) else np.empty(0, dtype=bool)

    def gathered(name: str) -> NDArray[np.int64]:
        values = np.concatenate([np.empty(0, dtype=np.int64), *(part.rows[name] for part in kept)])
        ordered: NDArray[np.int64] = values[order]
        return ordered

    def reduced(how: np.ufunc, values: NDArray[np.int64]) -> NDArray[np.int64]:
        result: NDArray[np.int64] = how.reduceat(values, starts) if len(starts) else np.empty(0, dtype=np.int64)
        return result

    first = gathered("first_timestamp")
    low = reduced(np.minimum, np.where(first >= 0, first, _NEVER))
    topic_names = [part.directory.topic for part in partitions]
    return Joined(
        ids=ids[starts],
        batches=reduced(np.add, gathered("batches") * counted),
        records=reduced(np.add, gathered("records") * counted),
        first_timestamp=np.where(low == _NEVER, NO_TIMESTAMP, low),
        last_timestamp=reduced(np.maximum, gathered("last_timestamp")),
        epochs=reduced(np.maximum, gathered("epochs")).astype(np.int32),
        partitions=reduced(np.add, counted.astype(np.int64)).astype(np.int32),
        is_transactional=reduced(np.maximum, gathered("is_transactional")).astype(bool),
        topics=_topic_sets(topic_names, places, starts),
        names=topic_names,
        _starts=np.append(starts, len(ids)),
        _places=places,
        _rows=rows,
        _kept=kept,
    )


def _longest_replicas(partitions: Sequence[PartitionAudit]) -> list[bool]:
    """Choose one replica of each partition, the one that reaches furthest."""
    best: dict[tuple[str, int], int] = {}
    for number, part in enumerate(partitions):
        key = (part.directory.topic, part.directory.partition)
        known = best.get(key)
        if known is None or (part.log_end_offset or 0) > (partitions[known].log_end_offset or 0):
            best[key] = number
    chosen = set(best.values())
    return [number in chosen for number in range(len(partitions))]


def _topic_sets(topics: Sequence[str], places: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the set of topics of each id: the sum of a random number per topic, each topic counted once."""
    if not len(starts):
        return np.empty(0, dtype=np.int64)
    distinct = sorted(set(topics))
    number = {topic: index for index, topic in enumerate(distinct)}
    weights = np.random.default_rng(0).integers(1, 2**62, size=len(distinct), dtype=np.int64)
    topic = np.array([number[name] for name in topics], dtype=np.int32)[places]
    # partitions come ordered by topic, so an id's entries of one topic are neighbours
    fresh = np.ones(len(topic), dtype=bool)
    fresh[1:] = topic[1:] != topic[:-1]
    fresh[starts] = True
    sums: NDArray[np.int64] = np.add.reduceat(np.where(fresh, weights[topic], 0), starts)
    return sums
