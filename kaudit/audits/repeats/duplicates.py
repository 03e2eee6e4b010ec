"""The repeats of a partition read again and compared: what a consumer is given twice, and by what it could have recognised it."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
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
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, MAGIC_OFFSET, RecordBatchHeader
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record
from kaudit.model.batch_fields import NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation, RepeatedRange
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batch, records_of
from kaudit.reading.identity.columns import IdentityReader
from kaudit.source.layout import PartitionDirectory

_AT_ONCE, _BYTES_AT_ONCE = 256, 8 << 20
"""So many records are compared at once, fewer where their batches have so many bytes: to decode one batch costs as much as ten at once."""
_BatchPlace = tuple[int, int, int]
"""Segment, position and size of a batch."""
_HIDDEN = frozenset({"aborted", "open"})
"""Outcomes of transactions that are hidden from read_committed consumers."""

_HEADER = HEADER.struct(*RecordBatchHeader._fields)


class Unit(Struct, frozen=True):
    """A record as it is compared. `identity`: 128 bits of what it is compared by."""

    offset: int
    timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    key: bytes | None
    identity: tuple[int, int]


class StoredBatch:
    """A batch of any magic, decoded; `identities` of its records by offset. Raises WireError where it cannot be decoded."""

    def __init__(self, data: memoryview, identities: Mapping[int, tuple[int, int]]) -> None:
        current = data[MAGIC_OFFSET] >= CURRENT_MAGIC
        header = RecordBatchHeader._make(_HEADER.unpack_from(data)) if current else None
        self._producer: tuple[int | None, int | None] = (None, None)
        if header is not None and header.producer_id >= 0:
            self._producer = header.producer_id, header.producer_epoch
        self.records: dict[int, Record | LegacyRecord] = {record.offset: record for record in records_of(data)}
        self._identities = identities

    def unit(self, offset: int) -> Unit:
        """Return the record at an offset. Raises KeyError where there is none."""
        record = self.records[offset]
        sequence = record.sequence if isinstance(record, Record) else None
        return Unit(
            record.offset, _known(record.timestamp), *self._producer, sequence, record.key, self._identities[offset]
        )

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
                content = hash(again.unit(suspect.again.offset).identity)
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
        unit, first = again.unit(one), earlier.unit(other)
        if (unit.identity == first.identity) is not bool(suspect.copy):
            return None
        return self._duplicate(suspect, unit, first)

    def _duplicate(self, suspect: _Suspect, unit: Unit, first: Unit) -> Duplicate:
        again, repeats = suspect.again, bool(suspect.copy)
        segment = self._partition.directory.segments[again.segment]
        return Duplicate(
            offset=unit.offset,
            last_offset=unit.offset,
            record_count=1,
            segment=segment.name if segment.fetched is None else None,
            position=again.position if segment.fetched is None else None,
            timestamp=unit.timestamp,
            producer_id=unit.producer_id,
            producer_epoch=unit.producer_epoch,
            sequence=unit.sequence,
            transaction_outcome=again.outcome,
            original_offset=first.offset,
            original_last_offset=first.offset,
            original_timestamp=first.timestamp,
            original_producer_id=first.producer_id,
            original_producer_epoch=first.producer_epoch,
            original_sequence=first.sequence,
            original_transaction_outcome=suspect.earlier.outcome,
            relation=_relation(unit, first) if repeats else Relation.SEQUENCE_REUSED,
            repeats=repeats,
            copy=suspect.copy or None,
            dropped_by_key=unit.key is not None and unit.key == first.key if repeats else None,
            dropped_by_sequence=suspect.known_sequence,
            read_committed=not {again.outcome, suspect.earlier.outcome} & _HIDDEN,
            key_hash=None if unit.key is None else hashlib.sha256(unit.key).hexdigest(),
        )

    def _read(self, places: Sequence[_BatchPlace]) -> Iterator[tuple[_BatchPlace, StoredBatch]]:
        """Yield the batches at these places; none of what is no longer there, or cannot be read or decoded."""
        stored: dict[_BatchPlace, memoryview] = {}
        for segment, within in groupby(places, key=itemgetter(0)):
            with suppress(OSError), closing(self._open(self._partition.directory.segments[segment])) as source:
                for place in (place for place in within if place[2]):
                    with suppress(ValueError):
                        stored[place] = read_batch(source, *place[1:])
        columns, undecoded = self._partition.reader.columns(list(stored.values()))
        ends = np.cumsum(np.bincount(columns.batches, minlength=len(stored))).tolist()
        identities = list(zip(columns.offsets.tolist(), map(tuple, columns.identities.tolist()), strict=True))
        for number, (place, data) in enumerate(stored.items()):
            if number not in undecoded:
                start = ends[number - 1] if number else 0
                yield place, StoredBatch(data, dict(identities[start : ends[number]]))


def _relation(unit: Unit, first: Unit) -> Relation:
    if unit.producer_id is None or first.producer_id is None:
        return Relation.NO_PRODUCER_ID
    if unit.producer_id != first.producer_id:
        return Relation.OTHER_PRODUCER_ID
    if unit.producer_epoch != first.producer_epoch:
        return Relation.OTHER_EPOCH
    return Relation.SAME_SEQUENCE if unit.sequence == first.sequence else Relation.OTHER_SEQUENCE


def _known(timestamp: int | None) -> int | None:
    return None if timestamp == NO_TIMESTAMP else timestamp
