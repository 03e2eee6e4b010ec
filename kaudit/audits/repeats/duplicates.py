"""The repeats of a partition read again and compared: what a consumer is given twice, and by what it could have recognised it."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, offsets_of
from kaudit.audits.records.reading import STILL_OPEN, ReadPartition, in_hidden
from kaudit.audits.records.spill import Rows, Spill
from kaudit.audits.records.stored import StoredBatches
from kaudit.audits.repeats.ranges import RangeBuilder, Repeat
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, MAGIC_OFFSET
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.record_spans import BatchBytes
from kaudit.formats.log.records import Record
from kaudit.model.batch_fields import NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation, RepeatedRange
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batches, records_of
from kaudit.reading.identity.columns import IdentityReader
from kaudit.source.layout import PartitionDirectory

_AT_ONCE, _BYTES_AT_ONCE = 256, 8 << 20
"""So many records are compared at once, fewer where their batches have so many bytes: to decode one batch costs as much as ten at once."""
_BatchPlace = tuple[int, int, int]
"""Segment, position and size of a batch."""
_HIDDEN = frozenset({"aborted", "open"})
"""Outcomes of transactions that are hidden from read_committed consumers."""

_PRODUCER, _PRODUCER_AT = HEADER.struct("producer_id", "producer_epoch"), HEADER.offset("producer_id")


_Sender = tuple[int | None, int | None, int | None]


class StoredBatch:
    """A batch of any magic, decoded; `records` and their `identities` (128 bits each) by offset. Raises WireError where it cannot be decoded."""

    def __init__(self, data: memoryview, identities: Mapping[int, tuple[int, int]]) -> None:
        current = data[MAGIC_OFFSET] >= CURRENT_MAGIC
        producer_id, epoch = _PRODUCER.unpack_from(data, _PRODUCER_AT) if current else (-1, -1)
        self._producer = (None, None) if producer_id < 0 else (producer_id, epoch)
        self.records: dict[int, Record | LegacyRecord] = {record.offset: record for record in records_of(data)}
        self.identities = identities

    def sender(self, offset: int) -> _Sender:
        """Return producer id, epoch and sequence of a record, None for what it has not. Raises KeyError where there is no record."""
        record = self.records[offset]
        return *self._producer, record.sequence if isinstance(record, Record) else None

    def timestamp(self, offset: int) -> int | None:
        """Return a record's timestamp in ms, None where it has none."""
        timestamp = self.records[offset].timestamp
        return None if timestamp == NO_TIMESTAMP else timestamp

    def place(self, offset: int) -> tuple[int, int]:
        """Return the number of a record in the batch, by offset, and that of all."""
        return offset - next(iter(self.records)), len(self.records)


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
    segment: int
    position: int
    size: int
    outcome: str | None

    @property
    def batch(self) -> _BatchPlace:
        """Where its batch lies; of no size where it is no longer there."""
        return self[1:4]


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
        self._decoded: Mapping[_BatchPlace, StoredBatch] = {}
        """The batches of the records that are compared at once."""

    def found(self, *, read_committed: bool) -> Iterator[Duplicate | RepeatedRange]:
        """Yield the duplicates, in offset order, and ranges of them, each after its last duplicate.

        With `read_committed` those that such consumers are given.
        """
        partition = self._partition
        ranges = RangeBuilder(partition.reader.identity.text, keys_recur=partition.known_keys > 0)
        for suspect in self._suspects():
            try:
                again, earlier = self._decoded[suspect.again.batch], self._decoded[suspect.earlier.batch]
                duplicate = self._compared(suspect, again, earlier)
            except KeyError:
                self.unread += 1
                continue
            if duplicate is None or (read_committed and not duplicate.read_committed):
                continue
            self.counts.add(duplicate)
            yield duplicate
            if duplicate.repeats:
                same_layout = again.place(suspect.again.offset) == earlier.place(suspect.earlier.offset)
                records = again.records[suspect.again.offset], earlier.records[suspect.earlier.offset]
                content = hash(again.identities[suspect.again.offset])
                yield from self._counted(ranges.add(Repeat(duplicate, *records, suspect.copies, same_layout), content))
        yield from self._counted(ranges.finish())

    def _counted(self, ranges: Iterable[RepeatedRange]) -> Iterator[RepeatedRange]:
        for found in ranges:
            self.counts.add_range(found)
            yield found

    def _suspects(self) -> Iterator[_Suspect]:
        """Yield those of both kinds in offset order, each while its batches are decoded."""
        suspects = heapq.merge(self._equal(), self._of_sequences(), key=lambda suspect: suspect.again.offset)
        some: list[_Suspect] = []
        batches: set[_BatchPlace] = set()
        room = _BYTES_AT_ONCE
        for suspect in suspects:
            some.append(suspect)
            new = {suspect.again.batch, suspect.earlier.batch} - batches
            batches |= new
            room -= sum(size for *_, size in new)
            if len(some) == _AT_ONCE or room <= 0:
                yield from self._while_decoded(some, batches)
                some, batches, room = [], set(), _BYTES_AT_ONCE
        yield from self._while_decoded(some, batches)

    def _while_decoded(self, suspects: list[_Suspect], batches: set[_BatchPlace]) -> Iterator[_Suspect]:
        before = {place: batch for place, batch in self._decoded.items() if place in batches}
        self._decoded = before | dict(self._read(sorted(batches - before.keys())))
        yield from suspects

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
            again, first = self._places(offsets), self._places(firsts)
            committed = self._places(np.where(rows["committed"] == NOWHERE, firsts, given))
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
        lies = (rows[name].tolist() for name in ("segment", "position", "size"))
        return list(map(_Place._make, zip(offsets.tolist(), *lies, outcomes, strict=True)))

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

    def _compared(self, suspect: _Suspect, again: StoredBatch, earlier: StoredBatch) -> Duplicate | None:
        """Return what a suspect repeats, None where it says something else, or equals what is yielded as such.

        Raises KeyError for a record that is no longer there; of sequences, the log cleaner may have removed it.
        """
        one, other = suspect.again.offset, suspect.earlier.offset
        if not suspect.copy and (one not in again.records or other not in earlier.records):
            return None
        key, repeats = again.records[one].key, bool(suspect.copy)
        if (again.identities[one] == earlier.identities[other]) is not repeats:
            return None
        sender, earlier_sender = again.sender(one), earlier.sender(other)
        place = suspect.again
        segment = self._partition.directory.segments[place.segment]
        return Duplicate(
            offset=one,
            last_offset=one,
            record_count=1,
            segment=segment.name if segment.fetched is None else None,
            position=place.position if segment.fetched is None else None,
            timestamp=again.timestamp(one),
            producer_id=sender[0],
            producer_epoch=sender[1],
            sequence=sender[2],
            transaction_outcome=place.outcome,
            original_offset=other,
            original_last_offset=other,
            original_timestamp=earlier.timestamp(other),
            original_producer_id=earlier_sender[0],
            original_producer_epoch=earlier_sender[1],
            original_sequence=earlier_sender[2],
            original_transaction_outcome=suspect.earlier.outcome,
            relation=_relation(sender, earlier_sender) if repeats else Relation.SEQUENCE_REUSED,
            repeats=repeats,
            copy=suspect.copy or None,
            dropped_by_key=key is not None and key == earlier.records[other].key if repeats else None,
            dropped_by_sequence=suspect.known_sequence,
            read_committed=not {place.outcome, suspect.earlier.outcome} & _HIDDEN,
            key_hash=None if key is None else hashlib.sha256(key).hexdigest(),
        )

    def _read(self, places: Sequence[_BatchPlace]) -> Iterator[tuple[_BatchPlace, StoredBatch]]:
        """Yield the batches at these places; none of what is no longer there, or cannot be read or decoded."""
        for segment, within in groupby((place for place in places if place[2]), key=itemgetter(0)):
            own = np.array([*within], dtype=np.int64)
            with suppress(OSError), closing(self._open(self._partition.directory.segments[segment])) as source:
                for numbers, batches in read_batches(source, own[:, 1], own[:, 2]):
                    found = zip(own[numbers].tolist(), self._decoded_of(batches), strict=True)
                    yield from ((tuple(place), batch) for place, batch in found if batch is not None)

    def _decoded_of(self, batches: BatchBytes) -> Iterator[StoredBatch | None]:
        """Yield each of these batches, None for one that cannot be decoded."""
        columns, undecoded = self._partition.reader.columns(batches)
        identities = zip(columns.offsets.tolist(), map(tuple, columns.identities.tolist()), strict=True)
        counts = np.bincount(columns.batches, minlength=len(batches.sizes)).tolist()
        for number, count in enumerate(counts):
            own = dict(islice(identities, count))
            try:
                yield None if number in undecoded else StoredBatch(batches[number], own)
            except WireError:
                yield None  # of a header of its records, which nothing else reads


def _relation(sender: _Sender, earlier: _Sender) -> Relation:
    if sender[0] is None or earlier[0] is None:
        return Relation.NO_PRODUCER_ID
    if sender[0] != earlier[0]:
        return Relation.OTHER_PRODUCER_ID
    if sender[1] != earlier[1]:
        return Relation.OTHER_EPOCH
    return Relation.SAME_SEQUENCE if sender == earlier else Relation.OTHER_SEQUENCE
