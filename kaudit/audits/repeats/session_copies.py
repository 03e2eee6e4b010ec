"""Whether a producer begins with records that an earlier one wrote: both are read side by side from there, to where they part.

The first record of the producer is searched for among the last ones of those that had ended, and of its own last epoch; in all
of the log before it where records are decoded. Only what lies outside transactions counts: what a transaction wrote and aborted
is written again by right.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.records.repeats import equal_rows
from kaudit.audits.repeats.records_again import Ranges, RecordsAgain
from kaudit.audits.repeats.restarts import Edge, Restart
from kaudit.model.batch import Batches, concatenate
from kaudit.model.batch_fields import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.record_content import MAX_BATCH_BYTES, batch_bytes
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory

MIN_RECORDS = 3
"""Fewer equal records in a row may be chance, unless their timestamps are equal too, or they are of the producer's own last epoch."""
_USUAL_WRITERS, _MIN_USUAL = 3, 10
"""What three producers wrote may be what every producer writes: unless all of the log is searched, more records in a row must be
equal then, or their timestamps too."""
FOLLOWED_BYTES = 256 << 20
"""Read of one partition where records are compared side by side."""
TAIL_BATCHES, _TAIL_BYTES = 64, 256 << 10
"""The last batches of a producer, many times what clients have in flight: so many, or those of so many bytes."""
NEAR_BYTES = 1 << 20
"""Bytes of the log in which the last batches of a producer that ended are looked for."""
FAR_BYTES = 8 << 20
"""Bytes of the log in which those of a producer's last epoch are looked for."""
_PLACES = 8
"""Places of one earlier producer from which records are compared, the last ones: a record that recurs is no evidence."""
_PROOF = 64
"""So many records of fewer than MIN_RECORDS kinds show that equal ones are what is written here."""
_LISTED = 100_000
"""Records held of one comparison; more are counted."""
_WINDOW_BYTES = 256 << 10
_BLOCK_BYTES, _BLOCKS = 1 << 20, 16
"""Tails are read by blocks, of which so many are held: those of producers that follow one another lie in the same ones."""


class _Record(NamedTuple):
    content: int
    """Half of its identity."""
    timestamp: int
    offset: int
    batch: BoundaryBatch


class _Copy(Struct):
    """Records in a row that both producers have: of each the first _LISTED, and the batches they lie in."""

    before: Edge
    again: list[_Record] = field(default_factory=list)
    copied: list[_Record] = field(default_factory=list)
    beyond: Sequence[_Record] = ()
    """Some that follow `again`."""
    records: int = 0
    last_again: int = -1
    last_copied: int = -1
    same_times: bool = True
    ends: bool = False
    """One of the producers has no more records."""


class Compared(NamedTuple):
    """Producers that begin with records of another one, or of their own last epoch, and for how many not all of the log was searched."""

    sessions: Sequence[RepeatedSession]
    epochs: Sequence[RepeatedEpoch]
    not_exhausted: int


def compare_restarts(
    restarts: Sequence[Restart],
    directory: PartitionDirectory,
    open_source: OpenSource,
    reader: IdentityReader,
    most_bytes: int | None = 0,
) -> Compared:
    """Return which producers begin with records of those before them.

    At most `most_bytes` of the log before a producer are searched for its first record, None: all; 0: the last batches of those
    before it alone.
    """
    records = ProducerRecords(directory, open_source, reader)
    firsts = [next(records.of_batch(restart.first.batch), None) for restart in restarts]
    not_exhausted = 0
    if most_bytes == 0:
        found = _places_in_tails(restarts, firsts, records)
    else:
        found, not_exhausted = _places_before(restarts, firsts, records, most_bytes)
    sessions: list[RepeatedSession] = []
    epochs: list[RepeatedEpoch] = []
    for number, restart in enumerate(restarts):
        copies = [
            copy
            for before in restart.before
            if (copy := _longest_copy(records, restart, before, found.places.get((number, *before.producer), ())))
            and copy.records
        ]
        for copy in sorted(copies, key=lambda copy: -copy.records):
            writers = found.writers[copy.again[0].content]
            if copy.before.producer_id != restart.first.producer_id:
                usual = most_bytes == 0 and len(writers) >= _USUAL_WRITERS and not copy.same_times
                if _is_evidence(records, copy, _MIN_USUAL if usual else MIN_RECORDS):
                    sessions.append(_repeated(restart, copy))
                    break
            elif (epoch := _repeated_epoch(records, restart, copy)) is not None:
                epochs.append(epoch)
                break
    most = records.repeats_at_most() if sessions or epochs else {}
    return Compared(_bounded(sessions, most), _bounded(epochs, most), not_exhausted)


_Found = TypeVar("_Found", RepeatedSession, RepeatedEpoch)


def _bounded(found: Sequence[_Found], most: Mapping[tuple[int, int], int]) -> list[_Found]:
    """Return what was found with how many records of each producer are there before at most."""
    return [
        replace(each, records_at_most=max(most[each.producer_id, each.producer_epoch], each.records)) if most else each
        for each in found
    ]


class _Places(Struct):
    """Where the first record of a producer was written before: by number of the restart, producer id and epoch; and by whom, by content."""

    places: defaultdict[tuple[int, int, int], deque[tuple[BoundaryBatch, int]]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_PLACES))
    )
    writers: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))


def _places_in_tails(
    restarts: Sequence[Restart], firsts: Sequence[_Record | None], records: "ProducerRecords"
) -> _Places:
    found = _Places()
    for number, (restart, first) in enumerate(zip(restarts, firsts, strict=True)):
        if first is None:
            continue
        found.writers[first.content].add(restart.first.producer_id)
        for before in restart.before:
            own = before.producer_id == restart.first.producer_id
            for record in records.tail(before, FAR_BYTES if own else NEAR_BYTES):
                if record.content == first.content:
                    found.writers[first.content].add(before.producer_id)
                    found.places[number, *before.producer].append((record.batch, record.offset))
    return found


def _places_before(
    restarts: Sequence[Restart],
    firsts: Sequence[_Record | None],
    records: "ProducerRecords",
    most_bytes: int | None,
) -> tuple[_Places, int]:
    """Search the log before all restarts in one reading. Return what was found, and for how many not all of it was searched."""
    segments, not_exhausted = records.directory.segments, 0
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    found = _Places()
    for number, (restart, first) in enumerate(zip(restarts, firsts, strict=True)):
        if first is None:
            continue
        wanted[first.content].append(number)
        found.writers[first.content].add(restart.first.producer_id)
        room = sum(segment.size for segment in segments) if most_bytes is None else most_bytes
        for segment, start, stop in _ranges_before(records.directory, restart.first.batch, room):
            ranges[segment].append((start, stop))
        not_exhausted += room < _bytes_before(records.directory, restart.first.batch)
    contents = np.array(list(wanted), dtype=np.uint64)
    try:
        for producer, record in records.within(ranges, contents):
            found.writers[record.content].add(producer[0])
            for number in wanted[record.content]:
                if record.batch.last_offset < restarts[number].first.batch.base_offset:
                    found.places[number, *producer].append((record.batch, record.offset))
    except OSError:
        return found, not_exhausted  # reported by the audit itself
    return found, not_exhausted


def _bytes_before(directory: PartitionDirectory, batch: BoundaryBatch) -> int:
    return sum(segment.size for segment in directory.segments[: batch.segment]) + batch.position


def _ranges_before(directory: PartitionDirectory, batch: BoundaryBatch, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield (segment, first byte, byte after the last) of the log before a batch, the nearest first, of `room` bytes in all."""
    for segment in range(batch.segment, -1, -1):
        stop = batch.position if segment == batch.segment else directory.segments[segment].size
        yield segment, max(stop - room, 0), stop
        room -= stop
        if room <= 0:
            return


class ProducerRecords:
    """Reads records of producers again that are outside transactions."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource, reader: IdentityReader) -> None:
        self.directory = directory
        self._open = open_source
        self._again = RecordsAgain(directory, open_source, reader, _is_plain)
        self._block = lru_cache(_BLOCKS)(self._framed)
        self._tails: dict[tuple[int, int], Sequence[_Record]] = {}
        self._room = FOLLOWED_BYTES

    def of_batch(self, batch: BoundaryBatch) -> Iterator[_Record]:
        """Yield the records of a batch; none where it cannot be read."""
        data = batch_bytes(batch, self.directory, self._open)
        columns, _ = self._again.reader.columns([] if data is None else [data], MAX_BATCH_BYTES)
        return _listed(columns, np.zeros(len(columns.offsets), dtype=np.intp), [batch])

    def repeats_at_most(self) -> Mapping[tuple[int, int], int]:
        """Return how many records of each producer id and epoch others had written before; nothing where not all of the partition can be compared."""
        try:
            read = self._again.read() if self._again.fits() else None
        except OSError:
            return {}  # reported by the audit itself
        if read is None or not read.ended:
            return {}
        order, begins = equal_rows(read.offsets, *read.contents.T)
        at = read.numbers[order]
        ids, epochs = read.batches["producer_id"][at], read.batches["producer_epoch"][at]
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        others = (ids != ids[first]) | (epochs != epochs[first])
        return Counter(zip(ids[others].tolist(), epochs[others].tolist(), strict=True))

    def tail(self, edge: Edge, reach: int) -> Sequence[_Record]:
        """Return the records of a producer's last batches that begin within so many bytes; none where they cannot be read."""
        if edge.producer not in self._tails:
            try:
                self._tails[edge.producer] = list(self._tail(edge, reach))
            except OSError:
                self._tails[edge.producer] = ()  # reported by the audit itself
        return self._tails[edge.producer]

    def _tail(self, edge: Edge, reach: int) -> Iterator[_Record]:
        parts: deque[tuple[int, Batches]] = deque()
        batches = size = 0
        for segment, found in self._before(edge.batch, reach):
            rows = _of(edge, found)
            parts.appendleft((segment, rows))
            batches, size = batches + len(rows), size + int(rows["size"].sum())
            if batches >= TAIL_BATCHES or size >= _TAIL_BYTES or (rows["base_sequence"] == 0).any():
                break
        sizes = np.concatenate([rows["size"] for _, rows in parts]).astype(np.int64)
        from_end = np.cumsum(sizes[::-1])[::-1] - sizes
        numbers = np.arange(len(sizes))[::-1]
        chosen = (numbers < NUM_BATCHES_TO_RETAIN) | ((numbers < TAIL_BATCHES) & (from_end < _TAIL_BYTES))
        for segment, rows in parts:
            own, chosen = chosen[: len(rows)], chosen[len(rows) :]
            with closing(self._open(self.directory.segments[segment])) as source:
                yield from self._records(source, segment, rows[own])

    def _before(self, last: BoundaryBatch, reach: int) -> Iterator[tuple[int, Batches]]:
        """Yield segments and batches of a block of them, the nearest first, up to and with the batch."""
        for segment, first, end in _ranges_before(self.directory, last._replace(position=last.position + 1), reach):
            for start in reversed(range(first // _BLOCK_BYTES * _BLOCK_BYTES, end, _BLOCK_BYTES)):
                rows = self._block(segment, start)
                at = rows["position"]
                yield segment, rows[(at >= max(first, start)) & (at < min(end, start + _BLOCK_BYTES))]

    def _framed(self, segment: int, start: int) -> Batches:
        file = self.directory.segments[segment]
        with closing(self._open(file)) as source:
            return concatenate(list(self._again.batches(source, segment, start, min(start + _BLOCK_BYTES, file.size))))

    def within(self, ranges: Ranges, wanted: NDArray[np.uint64]) -> Iterator[tuple[tuple[int, int], _Record]]:
        """Yield the producers' records in bytes of segments that have a wanted content, each with its producer id and epoch."""
        for segment, batches, columns in self._again.within(ranges):
            hits = np.flatnonzero(np.isin(columns.identities[:, 0], wanted))
            at = columns.batches[hits]
            producers = zip(batches["producer_id"][at].tolist(), batches["producer_epoch"][at].tolist(), strict=True)
            yield from zip(producers, _chosen(segment, batches, columns, hits), strict=True)

    def after(self, edge: Edge, place: tuple[BoundaryBatch, int], last_offset: int | None = None) -> Generator[_Record]:
        """Yield the records of a producer from a place on, up to `last_offset`. Raises OSError."""
        first, offset = place
        for segment in range(first.segment, len(self.directory.segments)):
            file = self.directory.segments[segment]
            begin = first.position if segment == first.segment else 0
            with closing(self._open(file)) as source:
                where = ByteRange(begin, file.size, file.size)
                for piece in stream_batches(source, where, expected_offset=None, window_bytes=_WINDOW_BYTES):
                    rows = _of(edge, piece.batches)
                    if last_offset is not None:
                        rows = rows[rows["base_offset"] <= last_offset]
                    yield from (record for record in self._records(source, segment, rows) if record.offset >= offset)
                    self._room -= piece.read_to - begin
                    begin = piece.read_to
                    passed = last_offset is not None and bool((piece.batches["base_offset"] > last_offset).any())
                    if self._room < 0 or passed:
                        return

    def _records(self, source: ByteSource, segment: int, rows: Batches) -> Iterator[_Record]:
        for batches, columns in self._again.decoded(source, rows):
            yield from _chosen(segment, batches, columns, np.arange(len(columns.offsets)))


def _chosen(segment: int, batches: Batches, columns: IdentityColumns, chosen: NDArray[np.intp]) -> Iterator[_Record]:
    numbers, where = np.unique(columns.batches[chosen], return_inverse=True)
    own = IdentityColumns(*(column[chosen] for column in columns))
    return _listed(own, where, boundary_batches(batches[numbers], 0, segment))


def _listed(columns: IdentityColumns, where: NDArray[np.intp], batches: Sequence[BoundaryBatch]) -> Iterator[_Record]:
    of = map(batches.__getitem__, where.tolist())
    columns_of = (column.tolist() for column in (columns.identities[:, 0], columns.timestamps, columns.offsets))
    return map(_Record._make, zip(*columns_of, of, strict=True))


def _is_plain(batches: Batches) -> NDArray[np.bool_]:
    """Return which are data of producers, outside transactions; those of magic 0 and 1 have no producer id."""
    plain = batches["attributes"] & (CONTROL_FLAG | TRANSACTIONAL_FLAG) == 0
    found: NDArray[np.bool_] = plain & (batches["producer_id"] >= 0)
    return found


def _of(edge: Edge, batches: Batches) -> Batches:
    own = (batches["producer_id"] == edge.producer_id) & (batches["producer_epoch"] == edge.producer_epoch)
    rows: Batches = batches[own & _is_plain(batches)]
    return rows


def _longest_copy(
    records: ProducerRecords, restart: Restart, before: Edge, places: Iterable[tuple[BoundaryBatch, int]]
) -> _Copy | None:
    """Return the longest copy that begins at one of these places, the first of several."""
    best: _Copy | None = None
    try:
        for place in places:
            if place[1] <= before.batch.last_offset:
                found = _copy(records, restart, before, place)
                best = found if best is None or found.records > best.records else best
    except OSError:
        return None  # reported by the audit itself
    return best


def _copy(records: ProducerRecords, restart: Restart, before: Edge, place: tuple[BoundaryBatch, int]) -> _Copy:
    found = _Copy(before)
    head = restart.first.batch
    with (
        closing(records.after(restart.first, (head, head.base_offset))) as ours,
        closing(records.after(before, place, before.batch.last_offset)) as theirs,
    ):
        contents: set[int] = set()
        for copied in theirs:
            again = next(ours, None)
            if again is None or again.content != copied.content:
                found.ends = again is None
                if again is not None and (
                    found.same_times or found.records > 1
                ):  # one alone at another time is no evidence
                    found.beyond = [again, *islice(ours, _PROOF)]
                return found
            found.records += 1
            found.last_again, found.last_copied = again.offset, copied.offset
            found.same_times = found.same_times and again.timestamp == copied.timestamp >= 0
            if found.records <= _LISTED:
                found.again.append(again)
                found.copied.append(copied)
            if len(contents) < MIN_RECORDS:
                contents.add(copied.content)
            if found.records == _PROOF and len(contents) < MIN_RECORDS:
                return found
        found.beyond = list(islice(ours, _PROOF))
    found.ends = True
    return found


def _is_evidence(records: ProducerRecords, copy: _Copy, least: int) -> bool:
    """Return whether records of another producer are too many to be equal by chance."""
    if len({record.content for record in copy.copied}) >= least:
        return True
    # one record is enough if it is the only one like it, and its time is the same to the millisecond
    tail = [record.content for record in records.tail(copy.before, NEAR_BYTES)]
    return copy.same_times and len(set(tail)) == len(tail) > 1


def _repeated(restart: Restart, copy: _Copy) -> RepeatedSession:
    return RepeatedSession(
        producer_id=restart.first.producer_id,
        producer_epoch=restart.first.producer_epoch,
        first_offset=copy.again[0].offset,
        last_offset=copy.last_again,
        previous_id=copy.before.producer_id,
        previous_epoch=copy.before.producer_epoch,
        copied_first=copy.copied[0].offset,
        copied_last=copy.last_copied,
        records=copy.records,
        same_times=copy.same_times,
        previous=copy.copied[0].batch,
        batch=restart.first.batch,
    )


def _repeated_epoch(records: ProducerRecords, restart: Restart, copy: _Copy) -> RepeatedEpoch | None:
    """Return the repetition; None where it may be chance: what is common around proves nothing, nor does one record under another time."""
    around = {record.offset: record for record in (*records.tail(copy.before, FAR_BYTES), *copy.copied)}
    sides = around.values(), (*copy.again, *copy.beyond)
    keys = [[(record.content, record.timestamp if copy.same_times else 0) for record in side] for side in sides]
    before, after = map(Counter, keys)
    distinct = sum(before[key] == after[key] == 1 for key in keys[1][: len(copy.again)])
    if not distinct or (distinct == 1 and not copy.same_times):
        return None
    return RepeatedEpoch(
        producer_id=restart.first.producer_id,
        producer_epoch=restart.first.producer_epoch,
        previous_epoch=copy.before.producer_epoch,
        first_offset=copy.again[0].offset,
        last_offset=copy.last_again,
        copied_first=copy.copied[0].offset,
        copied_last=copy.last_copied,
        copied=_batches_of(copy.copied),
        again=_batches_of(copy.again),
        records=copy.records,
        distinct=distinct,
        same_times=copy.same_times,
        to_the_end=copy.ends,
    )


def _batches_of(records: Sequence[_Record]) -> list[BoundaryBatch]:
    return list(dict.fromkeys(record.batch for record in records))
