"""The repeats of a partition read again and compared: what a consumer is given twice, and by what it could have recognised it."""

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, offsets_of
from kaudit.audits.records.reading import STILL_OPEN, ReadPartition, in_hidden
from kaudit.audits.records.spill import Rows, Spill
from kaudit.audits.records.stored import StoredBatches
from kaudit.audits.repeats.identities import Content
from kaudit.audits.repeats.ranges import RangeBuilder, Repeat
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.record_batch import HEADER_BYTES, HEADER_DTYPE, at_every_byte
from kaudit.formats.log.record_spans import BatchBytes, record_spans, with_headers
from kaudit.model.batch_fields import NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation, RepeatedRange
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batches, records_of
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.parts import headers_of
from kaudit.source.layout import PartitionDirectory

_AT_ONCE, _BYTES_AT_ONCE = 1024, 32 << 20
"""So many records are compared at once, fewer where their batches have so many bytes: to decode one batch costs as much as ten at once."""
_BatchPlace = tuple[int, int, int]
"""Segment, position and size of a batch."""
_HIDDEN = frozenset({"aborted", "open"})
"""Outcomes of transactions that are hidden from read_committed consumers."""

_Sender = tuple[int | None, int | None, int | None]


class StoredRecord(NamedTuple):
    """A record of a batch of any magic, read again. `identity` has 128 bits; `timestamp` is in ms, None without one.

    `sender`: producer id, epoch and sequence, None for what it has not. `place`: its number in the batch, by offset, and that of all.
    """

    content: Content
    identity: tuple[int, ...]
    timestamp: int | None
    sender: _Sender
    place: tuple[int, int]


def stored_records(
    batches: BatchBytes, reader: IdentityReader, wanted: Sequence[Collection[int]]
) -> Mapping[int, Mapping[int, StoredRecord]]:
    """Return by number of the batch and offset the records that are wanted of each; nothing of a batch that cannot be decoded."""
    columns, undecoded = reader.columns(batches)
    known = enumerate(zip(columns.batches.tolist(), columns.offsets.tolist(), strict=True))
    rows = np.array([row for row, (number, offset) in known if offset in wanted[number]], dtype=np.intp)
    numbers, offsets, times = columns.batches[rows], columns.offsets[rows], columns.timestamps[rows]
    starts = np.searchsorted(columns.batches, np.arange(len(wanted) + 1))
    first = starts[numbers]
    contents, damaged = _contents(batches, numbers, rows - first)
    records = map(
        StoredRecord,
        contents,
        map(tuple, columns.identities[rows].tolist()),
        _or_none(times, times != NO_TIMESTAMP),
        _senders(batches, numbers, offsets),
        zip((offsets - columns.offsets[first]).tolist(), (starts[numbers + 1] - first).tolist(), strict=True),
    )
    found: dict[int, dict[int, StoredRecord]] = {number: {} for number in range(len(wanted))}
    for number, offset, record in zip(numbers.tolist(), offsets.tolist(), records, strict=True):
        found[number][offset] = record
    for number in {*undecoded, *damaged}:
        del found[number]
    return found


def _senders(batches: BatchBytes, numbers: NDArray[np.int64], offsets: NDArray[np.int64]) -> Iterator[_Sender]:
    headers = at_every_byte(memoryview(batches.data), HEADER_BYTES)[batches.starts[numbers]].view(HEADER_DTYPE)
    current, sequences = headers["magic"] >= CURRENT_MAGIC, headers["base_sequence"].astype(np.int64)
    has_producer, has_sequence = current & (headers["producer_id"] >= 0), current & (sequences != NO_SEQUENCE)
    sequences += offsets - headers["base_offset"]
    ids, epochs = (_or_none(headers[name], has_producer) for name in ("producer_id", "producer_epoch"))
    return zip(ids, epochs, _or_none(sequences & MAX_SEQUENCE, has_sequence), strict=True)


def _or_none(column: NDArray[Any], has: NDArray[np.bool_]) -> Sequence[int | None]:
    return [each if own else None for each, own in zip(column.tolist(), has.tolist(), strict=True)]


def _contents(
    batches: BatchBytes, numbers: NDArray[np.int64], within: NDArray[np.intp]
) -> tuple[Sequence[Content], Sequence[int]]:
    """Return what the records say that have these numbers within these batches, and the batches whose records cannot be decoded.

    Headers of records are read here alone.
    """
    spans, _ = record_spans(batches)
    starts = np.searchsorted(spans.batches, np.arange(len(batches.sizes) + 1))
    is_plain = starts[1:] > starts[:-1]
    is_plain[spans.batches[with_headers(spans)]] = False
    others: dict[int, Sequence[Content]] = {}
    for number in np.flatnonzero(~is_plain).tolist():
        with suppress(WireError):
            records = records_of(batches[number])
            others[number] = [Content(each.key, each.value, headers_of(each)) for each in records]
    damaged = [number for number in np.flatnonzero(~is_plain).tolist() if number not in others]
    at = (starts[numbers] + within)[is_plain[numbers]]
    keys = _texts(spans.data, spans.null_keys[at], spans.key_starts[at], spans.values[at])
    values = _texts(spans.data, spans.null_values[at], spans.value_starts[at], spans.headers[at])
    plain, nothing = map(Content, keys, values), Content(None, None)
    places = zip(is_plain[numbers].tolist(), numbers.tolist(), within.tolist(), strict=True)
    return [
        next(plain) if own else others[number][row] if number in others else nothing for own, number, row in places
    ], damaged


def _texts(data: bytes, nulls: NDArray[np.bool_], starts: NDArray[Any], ends: NDArray[Any]) -> Iterator[bytes | None]:
    places = zip(nulls.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return (None if null else data[start:end] for null, start, end in places)


class PartitionDuplicates(Struct):
    """The repeats of a partition that was `read`, in files that are there while it is used.

    `known_keys` records have the key of an earlier one, and say something else.
    """

    directory: PartitionDirectory
    reader: IdentityReader
    """By which records were compared."""
    read: ReadPartition
    repeated: Spill
    parts: Sequence[int]
    """The numbers of its rows in `repeated`, in the order of the log."""
    known_keys: int
    without_key: int


class _Place(NamedTuple):
    """A record: its offset, where its batch lies, and what became of its transaction."""

    offset: int
    batch: _BatchPlace
    """Of no size where it is no longer there."""
    outcome: str | None


class _Suspect(NamedTuple):
    """A record and an earlier one that it equals, or whose sequence it has.

    `copy`: its number among `copies` equal ones, 0 where only the sequence is known to be the same.
    """

    again: _Place
    earlier: _Place
    copy: int
    copies: int
    known_sequence: bool


class DuplicateReader:
    """Reads the repeats of a partition again. `counts` and `unread`, those that cannot be read again, grow meanwhile."""

    def __init__(self, partition: PartitionDuplicates, open_source: OpenSource) -> None:
        self.counts = DuplicateCounts()
        self.unread = 0
        self._partition = partition
        self._open = open_source
        self._batches = StoredBatches(partition.directory, partition.read.parts, open_source)
        self._decoded: Mapping[_BatchPlace, Mapping[int, StoredRecord]] = {}
        """The records that are compared at once."""

    def found(self, *, read_committed: bool) -> Iterator[Duplicate | RepeatedRange]:
        """Yield the duplicates, in offset order, and ranges of them, each after its last duplicate.

        With `read_committed` those that such consumers are given.
        """
        partition = self._partition
        ranges = RangeBuilder(partition.reader.identity.text, keys_recur=partition.known_keys > 0)
        for suspect in self._suspects():
            try:
                one = self._decoded[suspect.again.batch].get(suspect.again.offset)
                other = self._decoded[suspect.earlier.batch].get(suspect.earlier.offset)
            except KeyError:
                self.unread += 1
                continue
            if one is None or other is None:
                # a record that is no longer there; of sequences, the log cleaner may have removed it
                self.unread += bool(suspect.copy)
                continue
            duplicate = self._compared(suspect, one, other)
            if duplicate is None or (read_committed and not duplicate.read_committed):
                continue
            self.counts.add(duplicate)
            yield duplicate
            if duplicate.repeats:
                repeat = Repeat(duplicate, one.content, other.content, suspect.copies, one.place == other.place)
                ended = ranges.add(repeat, hash(one.identity))
                if ended:
                    yield from self._counted(ended)
        yield from self._counted(ranges.finish())

    def _counted(self, ranges: Iterable[RepeatedRange]) -> Iterator[RepeatedRange]:
        for found in ranges:
            self.counts.add_range(found)
            yield found

    def _suspects(self) -> Iterator[_Suspect]:
        """Yield those of both kinds in offset order, each while its batches are decoded."""
        suspects = heapq.merge(self._equal(), self._of_sequences(), key=lambda suspect: suspect.again.offset)
        some: list[_Suspect] = []
        wanted: dict[_BatchPlace, set[int]] = {}
        room = _BYTES_AT_ONCE
        for suspect in suspects:
            some.append(suspect)
            for place in (suspect.again, suspect.earlier):
                if place.batch not in wanted:
                    wanted[place.batch] = set()
                    room -= place.batch[2]
                wanted[place.batch].add(place.offset)
            if len(some) == _AT_ONCE or room <= 0:
                self._decoded = dict(self._read(wanted))
                yield from some
                some, wanted, room = [], {}, _BYTES_AT_ONCE
        self._decoded = dict(self._read(wanted))
        yield from some

    def _equal(self) -> Iterator[_Suspect]:
        """Yield the records that equal earlier ones, each with that of them which its consumer was given first."""
        partition = self._partition
        for part in partition.parts:
            rows = partition.repeated.read(part)
            rows = rows[np.argsort(rows["place"], kind="stable")]
            offsets, firsts, given = (
                offsets_of(rows[name]) + partition.read.first_offset for name in ("place", "first", "committed")
            )
            known = np.isin(offsets, partition.read.sequences.rows["offset"])
            given = np.where(rows["committed"] == NOWHERE, firsts, given)
            again, first = self._places(offsets), self._places(firsts)
            committed = first if (given == firsts).all() else self._places(given)
            columns = (rows["copy"].tolist(), rows["copies"].tolist(), known.tolist())
            for one, earlier, other, *rest in zip(again, first, committed, *columns, strict=True):
                yield _Suspect(one, earlier if one.outcome in _HIDDEN else other, *rest)

    def _of_sequences(self) -> Iterator[_Suspect]:
        rows = self._partition.read.sequences.rows
        if len(rows):
            again, earlier = (self._places(rows[name]) for name in ("offset", "earlier"))
            for one, other in zip(again, earlier, strict=True):
                yield _Suspect(one, other, 0, 0, known_sequence=True)

    def _places(self, offsets: NDArray[np.int64]) -> list[_Place]:
        """Return where the records at these offsets lie."""
        rows = self._batches.at(offsets)
        outcomes = self._outcomes(rows, offsets)
        lies = zip(*(rows[name].tolist() for name in ("segment", "position", "size")), strict=True)
        return list(map(_Place, offsets.tolist(), lies, outcomes))

    def _outcomes(self, rows: Rows, offsets: NDArray[np.int64]) -> Sequence[str | None]:
        hidden = self._partition.read.hidden
        if hidden is None:
            return [None] * len(rows)
        markers = np.append(hidden["marker_offset"], -1)[in_hidden(hidden, rows["producer_id"], offsets)]
        transactional = rows["attributes"] & TRANSACTIONAL_FLAG != 0
        return [
            ("committed" if marker < 0 else "open" if marker == STILL_OPEN else "aborted") if own else None
            for marker, own in zip(markers.tolist(), transactional.tolist(), strict=True)
        ]

    def _compared(self, suspect: _Suspect, one: StoredRecord, other: StoredRecord) -> Duplicate | None:
        """Return what a suspect repeats, None where it says something else, or equals what is yielded as such."""
        repeats = suspect.copy > 0
        if (one.identity == other.identity) is not repeats:
            return None
        (offset, (number, position, _), outcome), (other_offset, _, other_outcome) = suspect[:2]
        segment = self._partition.directory.segments[number]
        key, sender, other_sender = one.content.key, one.sender, other.sender
        return Duplicate(
            offset=offset,
            last_offset=offset,
            record_count=1,
            segment=segment.name if segment.fetched is None else None,
            position=position if segment.fetched is None else None,
            timestamp=one.timestamp,
            producer_id=sender[0],
            producer_epoch=sender[1],
            sequence=sender[2],
            transaction_outcome=outcome,
            original_offset=other_offset,
            original_last_offset=other_offset,
            original_timestamp=other.timestamp,
            original_producer_id=other_sender[0],
            original_producer_epoch=other_sender[1],
            original_sequence=other_sender[2],
            original_transaction_outcome=other_outcome,
            relation=_relation(sender, other_sender) if repeats else Relation.SEQUENCE_REUSED,
            repeats=repeats,
            copy=suspect.copy or None,
            dropped_by_key=key is not None and key == other.content.key if repeats else None,
            dropped_by_sequence=suspect.known_sequence,
            read_committed=outcome not in _HIDDEN and other_outcome not in _HIDDEN,
            key_hash=None if key is None else hashlib.sha256(key).hexdigest(),
        )

    def _read(
        self, wanted: Mapping[_BatchPlace, Collection[int]]
    ) -> Iterator[tuple[_BatchPlace, Mapping[int, StoredRecord]]]:
        """Yield the wanted records of batches; nothing of a batch that is no longer there, or cannot be read or decoded."""
        for segment, within in groupby(sorted(place for place in wanted if place[2]), key=itemgetter(0)):
            places = list(within)
            own = np.array(places, dtype=np.int64)
            with suppress(OSError), closing(self._open(self._partition.directory.segments[segment])) as source:
                for numbers, batches in read_batches(source, own[:, 1], own[:, 2]):
                    some = [places[number] for number in numbers.tolist()]
                    found = stored_records(batches, self._partition.reader, [wanted[place] for place in some])
                    yield from ((some[number], records) for number, records in found.items())


def _relation(sender: _Sender, earlier: _Sender) -> Relation:
    if sender[0] is None or earlier[0] is None:
        return Relation.NO_PRODUCER_ID
    if sender[0] != earlier[0]:
        return Relation.OTHER_PRODUCER_ID
    if sender[1] != earlier[1]:
        return Relation.OTHER_EPOCH
    return Relation.SAME_SEQUENCE if sender == earlier else Relation.OTHER_SEQUENCE
