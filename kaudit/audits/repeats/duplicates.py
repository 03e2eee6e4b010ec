"""Suspects read again and compared: what a consumer is given twice, and by what it could have recognised it.

The first of equal records is read once and its identity kept; each later suspect is compared with that.
"""

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from kaudit.audits.repeats.ranges import RangeBuilder, Repeat
from kaudit.audits.repeats.suspects import PartitionDuplicates
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, MAGIC_OFFSET, RecordBatchHeader
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record
from kaudit.model.batch_fields import NO_PRODUCER_ID, NO_TIMESTAMP
from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation, RepeatedRange
from kaudit.model.log_rows import BoundaryBatch, Content, NonIdempotentBatch
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batch, records_of
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity_in_log

MAX_CHAINS = 100_000
"""Distinct records whose copies are counted on; with more, those that were not repeated for longest begin again."""
_BATCHES_HELD = 64
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
    """A batch of any magic, decoded. Raises WireError where it cannot be."""

    def __init__(self, data: memoryview, reader: IdentityReader) -> None:
        current = data[MAGIC_OFFSET] >= CURRENT_MAGIC
        header = RecordBatchHeader._make(_HEADER.unpack_from(data)) if current else None
        self._producer: tuple[int | None, int | None] = (None, None)
        if header is not None and header.producer_id >= 0:
            self._producer = header.producer_id, header.producer_epoch
        self.records: dict[int, Record | LegacyRecord] = {record.offset: record for record in records_of(data)}
        columns, _ = reader.columns([data])
        self._identities = dict(zip(columns.offsets.tolist(), map(tuple, columns.identities.tolist()), strict=True))

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


class _Original(Struct, frozen=True):
    """What was first, and what became of its transaction."""

    unit: Unit
    outcome: str | None


class _Suspect(NamedTuple):
    """A record and an earlier one, each with the outcome of its transaction; the other fields as of Pairs."""

    again: Content
    outcome: str | None
    earlier: Content
    earlier_outcome: str | None
    same_content: bool
    known_sequence: bool
    copies: int = 2
    """Equal records in the partition."""


class _Chain(Struct):
    """Equal records: the first of them, the first that is not hidden from read_committed, how many there are."""

    first: _Original
    committed: _Original | None
    length: int = 1


class DuplicateReader:
    """Reads the suspects of a partition again. `counts` and `unread`, suspects that cannot be read again, grow meanwhile."""

    def __init__(self, partition: PartitionDuplicates, open_source: OpenSource) -> None:
        self.counts = DuplicateCounts()
        self.unread = 0
        self._partition = partition
        self._open = open_source
        self._reader = IdentityReader(parse_identity_in_log(partition.identity))
        self._batch = lru_cache(maxsize=_BATCHES_HELD)(self._read)
        self._chains: dict[int, _Chain] = {}

    def found(self, *, read_committed: bool) -> Iterator[Duplicate | RepeatedRange]:
        """Yield the suspects that are duplicates, in offset order, and ranges of them, each after its last duplicate.

        With `read_committed` those that such consumers are given.
        """
        ranges = RangeBuilder(self._partition.identity, keys_recur=self._partition.known_keys > 0)
        for suspect in self._suspects():
            try:
                duplicate = self._compared(suspect)
                if duplicate is None or (read_committed and not duplicate.read_committed):
                    continue
                again, earlier = self._stored(suspect.again), self._stored(suspect.earlier)
                content = hash(again.unit(suspect.again.offset).identity)
            except (OSError, ValueError, KeyError, WireError):
                self.unread += 1
                continue
            self.counts.add(duplicate)
            yield duplicate
            if duplicate.repeats:
                same_layout = again.place(suspect.again.offset) == earlier.place(suspect.earlier.offset)
                records = again.records[suspect.again.offset], earlier.records[suspect.earlier.offset]
                yield from self._counted(ranges.add(Repeat(duplicate, *records, suspect.copies, same_layout), content))
        yield from self._counted(ranges.finish())

    def _counted(self, ranges: Iterable[RepeatedRange]) -> Iterator[RepeatedRange]:
        for found in ranges:
            self.counts.add_range(found)
            yield found

    def _suspects(self) -> Iterator[_Suspect]:
        pairs = self._partition.pairs
        contents, places = np.unique(pairs.again["content"], return_inverse=True)
        counts = np.bincount(places, weights=pairs.same_content, minlength=len(contents)).astype(np.int64) + 1
        columns = (
            map(Content._make, pairs.again.tolist()),
            pairs.outcomes,
            map(Content._make, pairs.earlier.tolist()),
            pairs.earlier_outcomes,
            pairs.same_content.tolist(),
            pairs.known_sequence.tolist(),
            counts.take(places).tolist(),
        )
        found = map(_Suspect._make, zip(*columns, strict=True))
        if not self._partition.reported or self._partition.more:
            return found
        listed = set(pairs.again["offset"].compress(pairs.same_content).tolist())
        reported = sorted(self._reported(listed), key=lambda suspect: suspect.again.offset)
        return heapq.merge(found, reported, key=lambda suspect: suspect.again.offset)

    def _reported(self, listed: Collection[int]) -> Iterator[_Suspect]:
        """Yield the pairs a scan reports that are not `listed`, further apart than is compared: outside transactions."""
        latest: dict[int, Content] = {}
        for repeat in sorted(self._partition.reported, key=lambda repeat: repeat.first_offset):
            for earlier, again in zip(
                self._records(repeat.copied, repeat.copied_first, repeat.records),
                self._records(repeat.again, repeat.first_offset, repeat.records),
                strict=False,
            ):
                if again.offset not in listed:
                    yield _Suspect(again, None, latest.get(earlier.offset, earlier), None, True, False)
                latest[earlier.offset] = again

    def _records(
        self, batches: Sequence[NonIdempotentBatch | BoundaryBatch], first: int, records: int
    ) -> list[Content]:
        """Return of the batches' records at most `records` from offset `first` on."""
        found = [
            Content(batch.base_offset, 0, 0, 0, NO_PRODUCER_ID, 1, batch.position, batch.size, batch.segment)
            for batch in batches
        ]
        try:
            return [
                content._replace(offset=offset)
                for content in found
                for offset in self._stored(content).records
                if offset >= first
            ][:records]
        except (OSError, ValueError, WireError):
            self.unread += 1
            return []

    def _compared(self, suspect: _Suspect) -> Duplicate | None:
        """Return what a suspect repeats, None if it says something else. Raises OSError, ValueError, KeyError and WireError."""
        again, earlier = suspect.again, suspect.earlier
        unit = self._stored(again).unit(again.offset)
        chain = self._chains.get(earlier.offset)
        before = self._stored(earlier).unit(earlier.offset) if chain is None else chain.first.unit
        if unit.identity != before.identity:
            if suspect.same_content:
                return None  # the hashes of two records are the same by chance
            first = _Original(self._stored(earlier).unit(earlier.offset), suspect.earlier_outcome)
            return self._duplicate(suspect, unit, first, None)
        if chain is None:
            first = _Original(before, suspect.earlier_outcome)
            chain = _Chain(first, None if suspect.earlier_outcome in _HIDDEN else first)
        original = _original(chain, suspect.outcome)
        self._prolong(chain, again.offset, earlier.offset, _Original(unit, suspect.outcome))
        return self._duplicate(suspect, unit, original, chain)

    def _prolong(self, chain: _Chain, offset: int, earlier: int, last: _Original) -> None:
        """Add the last of a chain, by which the next one finds it."""
        chain.length += 1
        if chain.committed is None and last.outcome not in _HIDDEN:
            chain.committed = last
        self._chains.pop(earlier, None)
        self._chains[offset] = chain
        if len(self._chains) > MAX_CHAINS:
            del self._chains[next(iter(self._chains))]

    def _duplicate(self, suspect: _Suspect, unit: Unit, original: _Original, chain: _Chain | None) -> Duplicate:
        first, again = original.unit, suspect.again
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
            transaction_outcome=suspect.outcome,
            original_offset=first.offset,
            original_last_offset=first.offset,
            original_timestamp=first.timestamp,
            original_producer_id=first.producer_id,
            original_producer_epoch=first.producer_epoch,
            original_sequence=first.sequence,
            original_transaction_outcome=original.outcome,
            relation=Relation.SEQUENCE_REUSED if chain is None else _relation(unit, first),
            repeats=chain is not None,
            copy=None if chain is None else chain.length,
            dropped_by_key=None if chain is None else unit.key is not None and unit.key == first.key,
            dropped_by_sequence=suspect.known_sequence,
            read_committed=not {suspect.outcome, original.outcome} & _HIDDEN,
            key_hash=None if unit.key is None else hashlib.sha256(unit.key).hexdigest(),
        )

    def _stored(self, content: Content) -> StoredBatch:
        return self._batch(content.segment, content.position, content.size)

    def _read(self, segment: int, position: int, size: int) -> StoredBatch:
        with closing(self._open(self._partition.directory.segments[segment])) as source:
            return StoredBatch(read_batch(source, position, size), self._reader)


def _original(chain: _Chain, outcome: str | None) -> _Original:
    """What a consumer was given first: for one that is not hidden from read_committed, the first that is not, if any is."""
    return chain.first if outcome in _HIDDEN or chain.committed is None else chain.committed


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
