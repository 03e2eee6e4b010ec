"""The producer ids of all partitions, or a share of them, joined by id: totals as columns, and access to each id's rows."""

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.listings.query import Query
from kaudit.model.batch_fields import NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.producer_listing import ProducerPartition, ProducerState
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.rows import Rows
from kaudit.scanning.block_histories import BlockHistories

_NEVER = np.iinfo(np.int64).max


class ReplicaPlace(Struct, frozen=True):
    """A partition replica. `blocks` is the number of its cluster among those with known blocks, None for another.

    `counted`: totals count only the longest of several replicas of a partition.
    """

    topic: str
    partition: int
    replica: str
    blocks: int | None = None
    counted: bool = True

    @property
    def key(self) -> tuple[str, int, str]:
        """Topic, partition and replica."""
        return self.topic, self.partition, self.replica


class ReplicaRows(Struct, frozen=True):
    """Some producer ids of one replica, each once, and their rows of PRODUCER_ACTIVITY. `place` is the replica's number."""

    place: int
    ids: NDArray[np.int64]
    rows: Rows


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
    _starts: NDArray[np.int64]
    _held: NDArray[np.int32]
    _rows: NDArray[np.int32]
    _parts: Sequence[ReplicaRows]
    _places: Sequence[ReplicaPlace]

    @property
    def replicas(self) -> NDArray[np.int64]:
        """The number of partition replicas that have each id."""
        return np.diff(self._starts)

    def entries(self, number: int) -> Iterator[tuple[ReplicaPlace, Rows]]:
        """Yield the replicas that have the `number`-th id, in the partitions' order, with its rows of PRODUCER_ACTIVITY."""
        first, last = int(self._starts[number]), int(self._starts[number + 1])
        for held, row in zip(self._held[first:last].tolist(), self._rows[first:last].tolist(), strict=True):
            part = self._parts[held]
            yield self._places[part.place], part.rows[row]

    def holds(self, producer_id: int) -> bool:
        """Return whether the id is in the logs."""
        at = int(np.searchsorted(self.ids, producer_id))
        return at < len(self.ids) and int(self.ids[at]) == producer_id

    def topics_of(self, number: int) -> list[str]:
        """List the topics the `number`-th id wrote to."""
        return sorted({place.topic for place, _ in self.entries(number)})


def join(places: Sequence[ReplicaPlace], parts: Sequence[ReplicaRows]) -> Joined:
    """Join rows by producer id; `places` are all replicas that were read, in order, `parts` rows of some, in that order."""
    ids = np.concatenate([np.empty(0, dtype=np.int64), *(part.ids for part in parts)])
    order = np.argsort(ids, kind="stable")
    lengths = [len(part.rows) for part in parts]
    held = np.repeat(np.arange(len(parts), dtype=np.int32), lengths)[order]
    rows = np.concatenate([np.empty(0, dtype=np.int32), *(np.arange(length, dtype=np.int32) for length in lengths)])
    rows = rows[order]
    ids = ids[order]
    new = np.ones(len(ids), dtype=bool)
    new[1:] = ids[1:] != ids[:-1]
    starts = np.flatnonzero(new)
    counted = np.array([places[part.place].counted for part in parts], dtype=bool)[held]

    def gathered(name: str) -> NDArray[np.int64]:
        values = np.concatenate([np.empty(0, dtype=np.int64), *(part.rows[name] for part in parts)])
        ordered: NDArray[np.int64] = values[order]
        return ordered

    def reduced(how: np.ufunc, values: NDArray[np.int64]) -> NDArray[np.int64]:
        result: NDArray[np.int64] = how.reduceat(values, starts) if len(starts) else np.empty(0, dtype=np.int64)
        return result

    first = gathered("first_timestamp")
    low = reduced(np.minimum, np.where(first >= 0, first, _NEVER))
    return Joined(
        ids=ids[starts],
        batches=reduced(np.add, gathered("batches") * counted),
        records=reduced(np.add, gathered("records") * counted),
        first_timestamp=np.where(low == _NEVER, NO_TIMESTAMP, low),
        last_timestamp=reduced(np.maximum, gathered("last_timestamp")),
        epochs=reduced(np.maximum, gathered("epochs")).astype(np.int32),
        partitions=reduced(np.add, counted.astype(np.int64)).astype(np.int32),
        is_transactional=reduced(np.maximum, gathered("is_transactional")).astype(bool),
        topics=_topic_sets(places, [part.place for part in parts], held, starts),
        _starts=np.append(starts, len(ids)),
        _held=held,
        _rows=rows,
        _parts=parts,
        _places=places,
    )


def replica_places(partitions: Sequence[PartitionAudit], histories: BlockHistories) -> list[ReplicaPlace]:
    """Return the replicas that were read, in order; of each partition the one with the highest end counts."""
    best: dict[tuple[str, int], int] = {}
    for number, part in enumerate(partitions):
        key = (part.directory.topic, part.directory.partition)
        known = best.get(key)
        if known is None or (part.log_end_offset or 0) > (partitions[known].log_end_offset or 0):
            best[key] = number
    chosen = set(best.values())
    return [
        ReplicaPlace(
            part.directory.topic,
            part.directory.partition,
            part.directory.replica,
            histories.number_of(part.directory.log_dir),
            number in chosen,
        )
        for number, part in enumerate(partitions)
    ]


def _topic_sets(
    places: Sequence[ReplicaPlace], numbers: Sequence[int], held: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Number the set of topics of each id: the sum of a random number per topic, each topic counted once."""
    if not len(starts):
        return np.empty(0, dtype=np.int64)
    distinct = sorted({place.topic for place in places})
    number = {topic: index for index, topic in enumerate(distinct)}
    draw = random.Random(0)  # noqa: S311 - numpy's own takes ten times as long to import
    weights = np.array([draw.randrange(1, 2**62) for _ in distinct], dtype=np.int64)
    topic = np.array([number[places[place].topic] for place in numbers], dtype=np.int32)[held]
    # partitions are sorted by topic, so an id's entries of one topic are neighbours
    fresh = np.ones(len(topic), dtype=bool)
    fresh[1:] = topic[1:] != topic[:-1]
    fresh[starts] = True
    sums: NDArray[np.int64] = np.add.reduceat(np.where(fresh, weights[topic], 0), starts)
    return sums


class AboutProducer(Struct, frozen=True):
    """The part of a finding that a list of producer ids shows. `place` is topic, partition and replica."""

    producer_id: int
    code: str
    fingerprint: str
    place: tuple[str | None, int | None, str | None]


def producer_partition(
    place: tuple[str, int, str], row: Rows, findings: Sequence[AboutProducer], *, remembers_markers: bool
) -> ProducerPartition:
    """Make the entry of one id in one partition replica from its row of PRODUCER_ACTIVITY; of `findings`, those in it."""
    topic, partition, replica = place
    timestamp = int(row["state_timestamp"] if remembers_markers else row["state_data_timestamp"])
    if not remembers_markers and row["state_sequence"] == NO_SEQUENCE:
        timestamp = NO_TIMESTAMP  # the broker forgets it at the next expiry check or restart (KAFKA-9144)
    return ProducerPartition(
        topic=topic,
        partition=partition,
        replica=replica,
        first_offset=int(row["first_offset"]),
        last_offset=int(row["last_offset"]),
        first_timestamp=int(row["first_timestamp"]),
        last_timestamp=int(row["last_timestamp"]),
        first_epoch=int(row["first_epoch"]),
        last_epoch=int(row["highest_epoch"]),
        epochs=int(row["epochs"]),
        batches=int(row["batches"]),
        records=int(row["records"]),
        state=ProducerState(
            producer_epoch=int(row["state_epoch"]),
            last_sequence=int(row["state_sequence"]),
            last_offset=int(row["state_offset"]),
            last_timestamp=timestamp,
            coordinator_epoch=int(row["state_coordinator_epoch"]),
            current_txn_start_offset=int(row["state_txn_offset"]),
        ),
        findings=tuple(finding.fingerprint for finding in findings if finding.place == place),
    )


def about_producers(findings: Iterable[Finding], query: Query) -> Iterator[AboutProducer]:
    """Yield the findings about producer ids that the query includes."""
    for finding in findings:
        if finding.producer_id is not None and query.includes(finding.code):
            place = finding.topic, finding.partition, finding.replica
            yield AboutProducer(finding.producer_id, finding.code, finding.fingerprint, place)


def by_producer(found: Iterable[AboutProducer]) -> dict[int, list[AboutProducer]]:
    """Group by producer id."""
    return grouped((finding.producer_id, finding) for finding in found)
