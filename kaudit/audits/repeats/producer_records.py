"""Records of producers read again: their last ones, those of a batch, and those that follow a place."""

from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.repeats import equal_rows
from kaudit.audits.repeats.records_again import Ranges, RecordsAgain
from kaudit.audits.repeats.restarts import Edge
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import HEADER, HEADER_SIZE, LENGTH_OFFSET, LOG_OVERHEAD
from kaudit.formats.log.record_spans import BatchBytes
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches, concatenate
from kaudit.model.batch_fields import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.damage import PlacedDamage
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.held_blocks import HeldRange
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.identity.parts import content_of
from kaudit.reading.record_content import MAX_BATCH_BYTES, batch_bytes
from kaudit.reading.rows import NO_TAILS, TAIL_BATCHES, Rows
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory

FOLLOWED_BYTES = 256 << 20
"""Read of one partition where records are compared side by side."""
FAR_BYTES = 8 << 20
"""Bytes of the log in which the last batches of a producer's last epoch are looked for."""
_SEARCHED_BATCH = 1 << 20
"""Larger batches are not searched for bytes."""
_SEARCHED_BACK = 16 << 20
"""Bytes before hits that are searched for one producer's header: where there are more, reading its records costs less."""
_LENGTH = HEADER.struct("batch_length")
_PRODUCER, _PRODUCER_AT = HEADER.struct("producer_id", "producer_epoch"), HEADER.offset("producer_id")
_WORD, _SAMPLED_STEP = np.dtype(np.uint64), 16
"""Bytes are searched for by a word of them in so many bytes or more: in about six tenths of the time that comparing every byte takes."""
_MOST_DAMAGES = 8
"""Where there are more among a producer's last batches, all of the bytes are searched."""
_HOLDERS = 8
"""Of more batches with equal records all are read."""
_TAIL_BYTES = 256 << 10
"""The last batches of a producer are TAIL_BATCHES, or those of so many bytes."""
_DECODED_AT_ONCE = 16
"""Batches of up to MAX_BATCH_BYTES each: one at a time, numpy's calls are most of the cost."""
_WINDOW_BYTES = 256 << 10
_BEGUN_RECORDS = 256
"""So many records of the producer that is compared with others are read once."""
_BLOCK_BYTES, _BLOCKS = 1 << 20, 16
"""Tails are read by blocks, of which so many are held: those of producers that follow one another lie in the same ones."""


class StoredRecord(NamedTuple):
    """A record read again, and the batch that it lies in; its timestamp is in ms."""

    content: int
    """Half of its identity."""
    timestamp: int
    offset: int
    batch: BoundaryBatch


class ProducerRecords:
    """Reads records of producers again that are outside transactions.

    `largest_batch`, in bytes, of a partition where nothing is compressed; without it no bytes are searched. `tails`, of TAIL_BATCH,
    list the last batches of epochs as far as they are known, but for those in `damages`.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - independent inputs
        self,
        directory: PartitionDirectory,
        open_source: OpenSource,
        reader: IdentityReader,
        largest_batch: int = 0,
        tails: Rows = NO_TAILS,
        damages: Sequence[PlacedDamage] = (),
    ) -> None:
        self.directory = directory
        self._open = open_source
        self._again = RecordsAgain(directory, open_source, reader, _is_plain)
        self._block = lru_cache(_BLOCKS)(self._framed)
        self._first = lru_cache(1)(lambda batch: list(self.of_batches([batch])))
        self._bytes = lru_cache(2)(self._bytes_of)
        self._listed = tails
        places = zip(tails["segment"].tolist(), tails["position"].tolist(), strict=True)
        self._listed_at = {place: number for number, place in enumerate(places)}
        damaged = [(each.segment, each.damage.position, each.damage.end) for each in damages]
        self._damaged = np.array(damaged, dtype=np.int64).reshape(-1, 3).T
        self._tails: dict[tuple[int, int], Sequence[StoredRecord]] = {}
        self._asked: dict[tuple[int, int], tuple[Edge, int]] = {}
        has_bytes = all(segment.text is None and segment.fetched is None for segment in directory.segments)
        self._largest = largest_batch if has_bytes and largest_batch <= _SEARCHED_BATCH else 0
        longest = max(segment.size for segment in directory.segments)
        self._range = HeldRange(open_source, min(2 * (FAR_BYTES + self._largest), longest) if self._largest else 0)
        self._room = FOLLOWED_BYTES
        self._begun_at: BoundaryBatch | None = None
        self._begun: list[StoredRecord] = []
        self._rest: Generator[StoredRecord] | None = None

    def close(self) -> None:
        """End the reading, and give back what was held of files: megabytes, which only a search for garbage would find."""
        self._end_begun()
        self._range.close()

    def _end_begun(self) -> None:
        if self._rest is not None:
            self._rest.close()
        self._begun_at = self._rest = None

    def of_batches(self, batches: Sequence[BoundaryBatch]) -> Iterator[StoredRecord]:
        """Yield the records of batches, of some decoded at once; none of a batch that cannot be read."""
        for start in range(0, len(batches), _DECODED_AT_ONCE):
            some = batches[start : start + _DECODED_AT_ONCE]
            data = {batch: batch_bytes(batch, self.directory, self._open) for batch in some}
            read = {batch: each for batch, each in data.items() if each is not None}
            columns, _ = self._again.reader.columns(BatchBytes.of(list(read.values())), MAX_BATCH_BYTES)
            yield from _listed(columns, columns.batches, list(read))

    def repeats_at_most(self) -> Mapping[tuple[int, int], int]:
        """Return how many records of each producer id and epoch others had written before; nothing where not all of the partition can be compared."""
        read = None
        with suppress(OSError):  # reported by the audit itself
            read = self._again.read() if self._again.fits() else None
        if read is None or not read.ended:
            return {}
        order, begins = equal_rows(read.offsets, *read.contents.T)
        at = read.numbers[order]
        ids, epochs = read.batches["producer_id"][at], read.batches["producer_epoch"][at]
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        others = (ids != ids[first]) | (epochs != epochs[first])
        return Counter(zip(ids[others].tolist(), epochs[others].tolist(), strict=True))

    def tail(self, edge: Edge, reach: int) -> Sequence[StoredRecord]:
        """Return the records of a producer's last batches that begin within so many bytes; none where they cannot be read."""
        edge, reach = self._asked.setdefault(edge.producer, (edge, reach))
        if edge.producer not in self._tails:
            self._tails[edge.producer] = ()
            with suppress(OSError):  # reported by the audit itself
                self._tails[edge.producer] = list(self._tail(edge, reach))
        return self._tails[edge.producer]

    def may_repeat(self, edge: Edge, first: StoredRecord, before: Edge, reach: int) -> bool:
        """Return whether a copy of a producer's first record in the tail of `before` can matter, by far less reading than `tail`.

        Its own last epoch is no evidence by one record under another time.
        """
        holders = self._holders(before, reach, self._bytes(first))
        if not holders or before.producer_id != edge.producer_id:
            return holders is None or bool(holders)
        columns, undecoded = self._again.reader.columns(BatchBytes.of(holders), MAX_BATCH_BYTES)
        same = (columns.identities[:, 0] == first.content) & (columns.timestamps == first.timestamp)
        if undecoded or same.any():
            return True
        room = self._room
        try:
            with closing(self.begun(edge, first)) as ours:
                second = next(islice(ours, 1, None), None)
        except OSError:
            return True  # reading the records says so
        finally:
            self._room = room
        return second is not None and self._holders(before, reach, self._bytes(second)) != []

    def _bytes_of(self, record: StoredRecord) -> bytes:
        """Return bytes that all equals of a record have where nothing is compressed; none where that is not known."""
        identity = self._again.reader.identity
        data = batch_bytes(record.batch, self.directory, self._open) if self._largest and identity.is_whole else None
        if data is None:
            return b""
        try:
            found = next(
                each for each in read_records(memoryview(data), MAX_BATCH_BYTES) if each.offset == record.offset
            )
        except (WireError, StopIteration):
            return b""
        content = content_of(found, identity.choices[0])
        return content if content in data else b""

    def _holders(self, edge: Edge, reach: int, wanted: bytes) -> list[bytes] | None:
        """Return what seem to be the batches up to `edge` and within reach that hold these bytes; None where that is not known."""
        edge, reach = self._asked.setdefault(edge.producer, (edge, reach))
        if not wanted or edge.producer in self._tails:
            return None
        producer, found, room = _PRODUCER.pack(*edge.producer), list[bytes](), _SEARCHED_BACK
        try:
            for segment, first, end in self._not_listed(edge, reach, wanted, found):
                data, start, stop = self._range.read(self.directory.segments[segment], first, end + self._largest)
                for at in places_of(wanted, data, start, stop):
                    room -= self._largest
                    place = data.rfind(producer, max(at - self._largest, start), at) - _PRODUCER_AT
                    if place >= start:
                        size = LOG_OVERHEAD + _LENGTH.unpack_from(data, place + LENGTH_OFFSET)[0]
                        found.append(bytes(data[place : place + max(size, HEADER_SIZE)]))
                        room = -1 if size > self._largest else room  # not one of the batches that were counted
                    if room < 0 or len(found) > _HOLDERS:
                        return None
        except OSError:
            return None  # reading the records says so
        return found

    def _not_listed(self, edge: Edge, reach: int, wanted: bytes, found: list[bytes]) -> Iterator[tuple[int, int, int]]:
        """Yield as `ranges_before` where last batches may lie that are not listed; those listed that hold the bytes are found."""
        last, segments, starts, stops = edge.batch._replace(position=edge.batch.position + 1), *self._damaged
        index = self._listed_at.get((last.segment, edge.batch.position), -1)
        rows = self._listed[max(index + 1 - TAIL_BATCHES, 0) : index + 1]
        since = int(rows["since"][-1]) if len(rows) else last.position
        begin = max(since, last.position - reach)
        damaged = np.flatnonzero((segments == last.segment) & (starts < last.position) & (stops > begin)).tolist()
        if len(rows) and len(damaged) <= _MOST_DAMAGES:
            for number in damaged:
                yield last.segment, max(int(starts[number]), begin), min(int(stops[number]), last.position)
            own = (rows["producer_id"] == edge.producer_id) & (rows["producer_epoch"] == edge.producer_epoch)
            places = np.unique(rows[own & (rows["position"] >= begin)][["position", "size"]])
            with closing(self._open(self.directory.segments[last.segment])) as source:
                for position, size in places.tolist():
                    data = bytearray(size)
                    source.read_into(position, memoryview(data))
                    if wanted in data:
                        found.append(bytes(data))
            # before the last TAIL_BATCHES nothing is compared
            reach = 0 if len(places) == TAIL_BATCHES else reach - (last.position - since)
            last = last._replace(position=since)
        if reach > 0:
            yield from (each for each in ranges_before(self.directory, last, reach) if each[1] < each[2])

    def _tail(self, edge: Edge, reach: int) -> Iterator[StoredRecord]:
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
        for segment, first, end in ranges_before(self.directory, last._replace(position=last.position + 1), reach):
            for start in reversed(range(first // _BLOCK_BYTES * _BLOCK_BYTES, end, _BLOCK_BYTES)):
                rows = self._block(segment, start)
                at = rows["position"]
                yield segment, rows[(at >= max(first, start)) & (at < min(end, start + _BLOCK_BYTES))]

    def _framed(self, segment: int, start: int) -> Batches:
        file = self.directory.segments[segment]
        with closing(self._open(file)) as source:
            return concatenate(list(self._again.batches(source, segment, start, min(start + _BLOCK_BYTES, file.size))))

    def within(self, ranges: Ranges, wanted: NDArray[np.uint64]) -> Iterator[tuple[tuple[int, int], StoredRecord]]:
        """Yield the producers' records in bytes of segments that have a wanted content, each with its producer id and epoch."""
        for segment, batches, columns in self._again.within(ranges):
            hits = np.flatnonzero(np.isin(columns.identities[:, 0], wanted))
            at = columns.batches[hits]
            producers = zip(batches["producer_id"][at].tolist(), batches["producer_epoch"][at].tolist(), strict=True)
            yield from zip(producers, _chosen(segment, batches, columns, hits), strict=True)

    def begun(self, edge: Edge, first: StoredRecord) -> Generator[StoredRecord]:
        """Yield the records of a producer from its first one on, which is known. Raises OSError.

        Of the producer asked for last the first ones are held: they are compared with each place where it may have copied from.
        """
        yield first
        yield from self._first(edge.batch)[1:]
        if edge.batch != self._begun_at:
            self._end_begun()
            self._begun_at, self._begun = edge.batch, []
            self._rest = self.after(edge, (edge.batch, edge.batch.last_offset + 1))
        begun, rest = self._begun, self._rest
        assert rest is not None
        for number in range(_BEGUN_RECORDS):
            if number == len(begun):
                try:
                    record = next(rest, None)
                except OSError:
                    self._end_begun()
                    raise
                if record is None:
                    return
                begun.append(record)
            yield begun[number]
        with closing(self.after(edge, (begun[-1].batch, begun[-1].offset + 1))) as more:
            yield from more

    def copied(self, edge: Edge, place: tuple[BoundaryBatch, int]) -> Generator[StoredRecord]:
        """Yield the records of a producer from a place on, to its last batch: of those that its tail has without another reading."""
        tail = self._tails.get(edge.producer, ())
        if tail and tail[0].offset <= place[1]:
            yield from (record for record in tail if record.offset >= place[1])
        else:
            yield from self.after(edge, place, edge.batch.last_offset)

    def after(
        self, edge: Edge, place: tuple[BoundaryBatch, int], last_offset: int | None = None
    ) -> Generator[StoredRecord]:
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

    def _records(self, source: ByteSource, segment: int, rows: Batches) -> Iterator[StoredRecord]:
        for batches, columns in self._again.decoded(source, rows):
            yield from _chosen(segment, batches, columns, np.arange(len(columns.offsets)))


def places_of(wanted: bytes, data: bytearray, start: int, stop: int) -> Iterator[int]:
    """Yield where bytes begin between `start` and `stop`, in ascending order."""
    windows = [(start, stop)]
    step = len(wanted) - _WORD.itemsize + 1
    if step >= _SAMPLED_STEP:
        # of the words `step` bytes apart each place has exactly one: few others hash as the words of `wanted` do
        words = np.ndarray((stop - start - _WORD.itemsize) // step + 1, _WORD, data, start, step)
        own = np.zeros(1 << 16, dtype=np.bool_)
        own[_hashed(np.ndarray(step, _WORD, wanted, 0, 1))] = True
        found = np.flatnonzero(own.take(_hashed(words)))
        if len(found) * _SAMPLED_STEP < len(words):  # in what repeats a word again and again they are no help
            at = found * step + start
            windows = list(zip(np.maximum(at - step + 1, start).tolist(), (at + len(wanted)).tolist(), strict=True))
    for first, last in windows:
        place = data.find(wanted, first, min(last, stop))
        while place >= 0:
            yield place
            place = data.find(wanted, place + 1, min(last, stop))


def _hashed(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return a number below 65,536 for each word (Fibonacci hashing)."""
    return (words * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(48)).view(np.int64)


def _chosen(
    segment: int, batches: Batches, columns: IdentityColumns, chosen: NDArray[np.intp]
) -> Iterator[StoredRecord]:
    numbers, where = np.unique(columns.batches[chosen], return_inverse=True)
    own = IdentityColumns(*(column[chosen] for column in columns))
    return _listed(own, where, boundary_batches(batches[numbers], 0, segment))


def _listed(
    columns: IdentityColumns, where: NDArray[np.intp], batches: Sequence[BoundaryBatch]
) -> Iterator[StoredRecord]:
    of = map(batches.__getitem__, where.tolist())
    columns_of = (column.tolist() for column in (columns.identities[:, 0], columns.timestamps, columns.offsets))
    return map(StoredRecord._make, zip(*columns_of, of, strict=True))


def _is_plain(batches: Batches) -> NDArray[np.bool_]:
    """Return which are data of producers, outside transactions; those of magic 0 and 1 have no producer id."""
    plain = batches["attributes"] & (CONTROL_FLAG | TRANSACTIONAL_FLAG) == 0
    found: NDArray[np.bool_] = plain & (batches["producer_id"] >= 0)
    return found


def _of(edge: Edge, batches: Batches) -> Batches:
    own = (batches["producer_id"] == edge.producer_id) & (batches["producer_epoch"] == edge.producer_epoch)
    rows: Batches = batches[own & _is_plain(batches)]
    return rows


def ranges_before(directory: PartitionDirectory, batch: BoundaryBatch, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield (segment, first byte, byte after the last) of the log before a batch, the nearest first, of `room` bytes in all."""
    for segment in range(batch.segment, -1, -1):
        stop = batch.position if segment == batch.segment else directory.segments[segment].size
        yield segment, max(stop - room, 0), stop
        room -= stop
        if room <= 0:
            return
