"""Producers whose first batches may repeat others' last ones, compared by whole batches: restarts and epoch bumps.

At the default depth, a producer that begins after others ended is a candidate if its first batches equal their last ones;
then the records decide (session_copies.py).

A client that raises its epoch renumbers its batches in flight from 0 and sends them again: their headers change, their
records do not (Kafka's ProducerBatch.resetProducerState). If they had been appended, the tail of the old epoch stands again
at the head of the new one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.repeats.sessions import PREDECESSORS, Handover, Session, unlike_others
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER
from kaudit.formats.log.crc_algebra import records_crcs
from kaudit.model.batch import Batches, concatenate
from kaudit.model.batch_fields import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import RepeatedEpoch
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.model.schema import Int16, Int64
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.record_content import batch_bytes, batch_content, contents_of, differ
from kaudit.reading.rows import Rows
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

MAX_RESTARTS = 100
"""Producers of one partition looked into; each reads some of the log again."""
MAX_PRODUCERS = 20_000
"""With more producers than this, most are short-lived, and nothing is compared."""


class _Producer(NamedTuple):
    producer_id: Int64
    producer_epoch: Int16


FIRST_BATCH = dtype_of(_Producer, BoundaryBatch)


class Edge(NamedTuple):
    """The first or last batch of a producer id and epoch."""

    producer_id: int
    producer_epoch: int
    batch: BoundaryBatch


class Restart(Struct, frozen=True):
    """A producer's first batch, and the last ones of those that had ended just before it, the latest first."""

    first: Edge
    before: Sequence[Edge]


class RestartTracker:
    """Takes a partition's runs, chunks in offset order."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], BoundaryBatch] = {}
        self._too_many = False

    def saved(self) -> tuple[Rows, bool]:
        """Return all it knows: the first batches as rows, as objects take ten times as long to load."""
        first = [(*producer, *batch) for producer, batch in self._first.items()]
        return np.array(first, dtype=FIRST_BATCH), self._too_many

    @classmethod
    def of(cls, first: Rows, too_many: bool) -> "RestartTracker":  # noqa: FBT001 - as it was saved
        """Return a tracker that knows what was saved."""
        if first.dtype != FIRST_BATCH:
            raise ValueError("no first batches of producers")
        tracker = cls()
        tracker._first = {(producer_id, epoch): BoundaryBatch(*batch) for producer_id, epoch, *batch in first.tolist()}
        tracker._too_many = too_many
        return tracker

    def feed(self, runs: Columns, boundary: Columns) -> None:
        """Take a chunk's runs and their boundary batches."""
        if self._too_many:
            return
        starts = np.flatnonzero((runs["first_sequence"] == 0) & ~runs["is_transactional"])
        ids, epochs = runs["producer_id"].take(starts).tolist(), runs["producer_epoch"].take(starts).tolist()
        places: dict[tuple[int, int], int] = {}
        for producer_id, epoch, place in zip(ids, epochs, runs["boundary_start"].take(starts).tolist(), strict=True):
            if (producer_id, epoch) not in self._first:
                places.setdefault((producer_id, epoch), place)
        if len(self._first) + len(places) > MAX_PRODUCERS:
            self._too_many = True
            self._first.clear()
            return
        batches = boundary.rows(np.fromiter(places.values(), np.intp, len(places))).tolist()
        self._first.update(zip(places, map(BoundaryBatch._make, batches), strict=True))

    def restarts(self, table: Rows) -> tuple[list[Restart], int]:
        """Return the producers that begin after the end of others, and how many more there are.

        `table` are the rows of all producers at the end of the log: those that had ended are there as they ended.
        """
        if len(table) > MAX_PRODUCERS:
            return [], len(table)
        ended = table[table["has_last"] & (table["txn_first_offset"] < 0)]
        ended = ended[np.argsort(ended["last"]["last_offset"], kind="stable")]
        starts = sorted(self._first.items(), key=lambda entry: entry[1].base_offset)
        places = np.searchsorted(ended["last"]["last_offset"], [batch.base_offset for _, batch in starts])
        later = np.flatnonzero(places > 0)
        found = []
        for number in later[:MAX_RESTARTS].tolist():
            (producer_id, epoch), batch = starts[number]
            before = ended[max(int(places[number]) - PREDECESSORS, 0) : int(places[number])]
            found.append(Restart(Edge(producer_id, epoch, batch), [_edge(row) for row in before[::-1]]))
        return found, len(later[MAX_RESTARTS:])


def _edge(row: Any) -> Edge:  # noqa: ANN401 - np.void
    return Edge(int(row["producer_id"]), int(row["epoch"]), BoundaryBatch._make(row["last"].item()))


def handovers(restarts: Sequence[Restart], directory: PartitionDirectory, open_source: OpenSource) -> list[Handover]:
    """Return those that begin with a batch a predecessor ended with, each with these predecessors.

    Batches that three producers or more have begin or end with are what every producer writes, and no evidence.
    """
    reader = ProducerBatches(directory, open_source, NEAR_BYTES)
    heads: dict[Edge, Side] = {}
    tails: dict[Edge, Side] = {}
    owners: defaultdict[int, set[int]] = defaultdict(set)
    try:
        for restart in restarts:
            heads[restart.first] = reader.after(*_place(restart.first))
            tails |= {edge: reader.before(*_place(edge)) for edge in restart.before if edge not in tails}
    except OSError:
        return []  # reported by the audit itself
    for edge, side in (*heads.items(), *tails.items()):
        for content in side.contents:
            owners[content].add(edge.producer_id)
    found = []
    for restart in restarts:
        first = {
            content for content in heads[restart.first].contents[:NUM_BATCHES_TO_RETAIN] if len(owners[content]) == 2
        }
        before = [edge for edge in restart.before if first & set(tails[edge].contents[-NUM_BATCHES_TO_RETAIN:])]
        if before:
            session = _session(restart.first, head=heads[restart.first].batches[:NUM_BATCHES_TO_RETAIN])
            found.append(
                Handover(
                    session, [_session(edge, tail=tails[edge].batches[-NUM_BATCHES_TO_RETAIN:]) for edge in before]
                )
            )
    return found


def _place(edge: Edge) -> tuple[BoundaryBatch, int, int]:
    return edge.batch, edge.producer_id, edge.producer_epoch


def _session(edge: Edge, *, head: Sequence[BoundaryBatch] = (), tail: Sequence[BoundaryBatch] = ()) -> Session:
    batches = [*head, *tail]
    first, last = batches[0].base_offset, batches[-1].last_offset
    return Session(edge.producer_id, edge.producer_epoch, first, last, list(head), list(tail))


NEIGHBOURS = 64
"""Batches of a producer compared on either side of a place: many times what clients have in flight."""
_BLOCK_BYTES = 1 << 20
_HELD_BLOCKS = 32
"""Blocks kept: places compared with one another are near one another."""
NEAR_BYTES = 1 << 20
"""Bytes of the log in which the neighbours of a producer's first and last batch are looked for."""
FAR_BYTES = 8 << 20
"""Bytes of the log in which the neighbours of a bump are looked for."""
_PRODUCER, _PRODUCER_AT = HEADER.struct("producer_id", "producer_epoch"), HEADER.offset("producer_id")
_COUNT_AT = HEADER.offset("record_count")
_SEARCHED_BYTES = 4 << 10
"""Of a batch's records, with their number before them: as many are compared where bytes are searched."""


class Side(NamedTuple):
    """The producer's batches on one side of a place, in offset order."""

    contents: list[int]
    """The content of each batch, as `batch_content` gives it."""
    times: list[int]
    """Base timestamps: with equal records all timestamps are equal if these are. Brokers leave them alone."""
    rows: Sequence[tuple[int, Batches]]
    """Some of them, in the segment of this number."""

    @property
    def batches(self) -> list[BoundaryBatch]:
        """The batches themselves; offsets present before one are not known where rows are read again."""
        return [batch for segment, rows in self.rows for batch in boundary_batches(rows, 0, segment)]


class _Block(NamedTuple):
    """The producers' data batches that start in a block of a segment, in offset order, and the content of each."""

    batches: Batches
    contents: NDArray[np.int64]


class ProducerBatches:
    """Reads batches of producers again that are outside transactions: up to `reach` bytes from a place, the nearest first."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource, reach: int = FAR_BYTES) -> None:
        self._directory = directory
        self._open = open_source
        self._reach = reach
        self._blocks: dict[tuple[int, int], _Block] = {}
        self._has_bytes = all(segment.text is None and segment.fetched is None for segment in directory.segments)
        self._searched = bytearray(_BLOCK_BYTES + _COUNT_AT + _SEARCHED_BYTES)

    def before(self, last: BoundaryBatch, producer_id: int, epoch: int) -> Side:
        """Return the last batches of the epoch up to `last`, at most NEIGHBOURS.

        Raises:
            OSError: a segment cannot be read any more.

        """
        return self._side(self._ranges_before(last), producer_id, epoch, -NEIGHBOURS)

    def _ranges_before(self, last: BoundaryBatch) -> Sequence[tuple[int, range]]:
        """Return, the nearest first, the (segment, bytes) where batches up to `last` begin that are within reach."""
        ranges, room = [], self._reach
        for number in range(last.segment, -1, -1):
            stop = last.position + 1 if number == last.segment else self._directory.segments[number].size
            ranges.append((number, range(max(stop - room, 0), stop)))
            room -= stop
            if room <= 0:
                break
        return ranges

    def may_have_before(self, last: BoundaryBatch, producer_id: int, epoch: int, first: BoundaryBatch) -> bool:
        """Return whether a batch of `before` can have the records of `first`; raises as `before`.

        Bytes are searched many times faster than batches are decoded, and most sessions repeat nothing.
        """
        data = batch_bytes(first, self._directory, self._open) if self._has_bytes else None
        if data is None:
            return True
        records, producer = data[_COUNT_AT : _COUNT_AT + _SEARCHED_BYTES], _PRODUCER.pack(producer_id, epoch)
        for number, where in self._ranges_before(last):
            with closing(self._open(self._directory.segments[number])) as source:
                for start in range(where.start, where.stop, _BLOCK_BYTES):
                    stop = min(start + _BLOCK_BYTES, where.stop) + _COUNT_AT + len(records)
                    end = source.read_into(start, memoryview(self._searched)[: stop - start])
                    at = self._searched.find(records, 0, end)
                    while at >= 0:
                        if self._searched.startswith(producer, max(at + _PRODUCER_AT - _COUNT_AT, 0)):
                            return True
                        at = self._searched.find(records, at + 1, end)
        return False

    def after(self, first: BoundaryBatch, producer_id: int, epoch: int, most: int = NEIGHBOURS) -> Side:
        """Return the first batches of the epoch from `first` on, at most `most`; raises as `before`."""
        segments = self._directory.segments
        ranges, room = [], self._reach
        for number in range(first.segment, len(segments)):
            begin, end = first.position if number == first.segment else 0, segments[number].size
            ranges.append((number, range(begin, min(begin + room, end))))
            room -= end - begin
            if room <= 0:
                break
        return self._side(ranges, producer_id, epoch, most)

    def _side(self, ranges: Iterable[tuple[int, range]], producer_id: int, epoch: int, most: int) -> Side:
        """Take batches that start in these (segment, bytes), the nearest first: `most`, or -`most` going backwards."""
        contents: list[list[int]] = []
        rows: list[tuple[int, Batches]] = []
        backwards, missing = most < 0, abs(most)
        for segment, where in ranges:
            numbers = range(where.start // _BLOCK_BYTES, -(-where.stop // _BLOCK_BYTES))
            for number in reversed(numbers) if backwards else numbers:
                batches, content = self._block(segment, number)
                own = (batches["producer_id"] == producer_id) & (batches["producer_epoch"] == epoch)
                own &= (batches["position"] >= where.start) & (batches["position"] < where.stop)
                chosen = np.flatnonzero(own)[-missing:] if backwards else np.flatnonzero(own)[:missing]
                contents.append(content[chosen].tolist())
                rows.append((segment, batches[chosen]))
                missing -= len(chosen)
                if not missing:
                    break
            if not missing:
                break
        if backwards:
            contents.reverse()
            rows.reverse()
        times = [part["base_timestamp"].tolist() for _, part in rows]
        return Side(list(chain.from_iterable(contents)), list(chain.from_iterable(times)), rows)

    def _block(self, segment: int, number: int) -> _Block:
        key = (segment, number)
        if key not in self._blocks:
            if len(self._blocks) >= _HELD_BLOCKS:
                self._blocks.pop(next(iter(self._blocks)))
            parts = []
            file, start = self._directory.segments[segment], number * _BLOCK_BYTES
            with closing(self._open(file)) as source:
                start = boundary_from(source, start, file.size) if start > 0 else 0
                where = ByteRange(start, min((number + 1) * _BLOCK_BYTES, file.size), file.size)
                for piece in stream_batches(source, where, expected_offset=None):
                    batches = piece.batches
                    data = batches["attributes"] & (CONTROL_FLAG | TRANSACTIONAL_FLAG) == 0
                    parts.append(batches[data & (batches["magic"] == CURRENT_MAGIC) & (batches["producer_id"] >= 0)])
            found = concatenate(parts)
            contents = batch_content(records_crcs(found), found["size"], found["record_count"])
            self._blocks[key] = _Block(found, contents)
        return self._blocks[key]


MAX_BUMPS = 100
"""Bumps of one partition looked into; each reads some of the log again."""
_EVIDENCE = 2
"""Equal batches in a row that are evidence without equal timestamps."""


def repeated_epochs(
    observations: Sequence[Observation], directory: PartitionDirectory, open_source: OpenSource
) -> tuple[list[RepeatedEpoch], int]:
    """Return the bumps after which the tail of the old epoch stands again, and how many bumps were not looked into.

    Only bumps outside transactions: what a transaction wrote and aborted is written again by right.
    """
    bumps = [found for found in observations if found.kind is ObservationKind.CLIENT_BUMP and not found.explained]
    reader = ProducerBatches(directory, open_source)
    repeated = []
    for bump in bumps[:MAX_BUMPS]:
        try:
            found = _compare(bump, reader, directory, open_source)
        except OSError:
            continue  # reported by the audit itself
        repeated += [] if found is None else [found]
    return repeated, max(len(bumps) - MAX_BUMPS, 0)


def one_for_each_bump(found: Iterable[RepeatedEpoch]) -> list[RepeatedEpoch]:
    """Return of those about the same bump the one with the most records, in offset order."""
    most: dict[tuple[int, int], RepeatedEpoch] = {}
    for repeated in found:
        key = repeated.producer_id, repeated.producer_epoch
        if key not in most or repeated.records > most[key].records:
            most[key] = repeated
    return sorted(most.values(), key=lambda repeated: repeated.first_offset)


def _compare(
    bump: Observation, reader: ProducerBatches, directory: PartitionDirectory, open_source: OpenSource
) -> RepeatedEpoch | None:
    state, first = bump.remembered, bump.batch
    if state is None or state.last is None or first is None:
        return None
    if not reader.may_have_before(state.last, bump.producer_id, state.epoch, first):
        return None
    tail = reader.before(state.last, bump.producer_id, state.epoch)
    head = reader.after(first, bump.producer_id, bump.producer_epoch, _EVIDENCE)
    start, length = _longest(tail.contents, head.contents)
    if length < _EVIDENCE and tail.times[start : start + length] != head.times[:length]:
        return None  # the first batch alone, under another time
    head = reader.after(first, bump.producer_id, bump.producer_epoch)
    start, length = _longest(tail.contents, head.contents)
    copied, again = tail.batches[start : start + length], head.batches[:length]
    if not length or any(
        differ(*(batch_bytes(batch, directory, open_source) for batch in pair))
        for pair in zip(copied, again, strict=True)
    ):
        return None  # without any, or the CRCs are equal by chance
    same_times = tail.times[start : start + length] == head.times[:length]
    if same_times:
        sides = list(zip(tail.contents, tail.times, strict=True)), list(zip(head.contents, head.times, strict=True))
        distinct = unlike_others(*sides, length)
    else:
        distinct = unlike_others(tail.contents, head.contents, length)
    if not distinct or (distinct == 1 and not same_times):
        return None  # what is common around is no evidence, and one batch without its time may be chance
    if distinct == 1:
        distinct = max(len({content for batch in copied for content in contents_of(batch, directory, open_source)}), 1)
    return RepeatedEpoch(
        producer_id=bump.producer_id,
        producer_epoch=bump.producer_epoch,
        previous_epoch=state.epoch,
        first_offset=again[0].base_offset,
        last_offset=again[-1].last_offset,
        copied_first=copied[0].base_offset,
        copied_last=copied[-1].last_offset,
        copied=copied,
        again=again,
        records=sum(batch.record_count for batch in again),
        distinct=distinct,
        same_times=same_times,
        to_the_end=start + length == len(tail.contents) or length == len(head.contents),
    )


def _longest(tail: Sequence[object], head: Sequence[object]) -> tuple[int, int]:
    """Return the index in `tail` of the longest beginning of `head`, and its length; the latest of several."""
    best = 0, 0
    for start in range(len(tail)):
        length = 0
        while length < len(head) and start + length < len(tail) and tail[start + length] == head[length]:
            length += 1
        if length and length >= best[1]:
            best = start, length
    return best
