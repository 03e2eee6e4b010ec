"""Suspects read again and compared: what a consumer is given twice, and by what it could have recognised it.

The first of equal batches, or records, is read once and kept as a digest; each later suspect is compared with that.
"""

import hashlib
import heapq
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from functools import cached_property, lru_cache

from msgspec import Struct

from kaudit.audits.repeats.suspects import PartitionDuplicates
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, MAGIC_OFFSET, RecordBatchHeader
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record
from kaudit.model.batch_fields import NO_PRODUCER_ID, NO_TIMESTAMP
from kaudit.model.duplicates import Duplicate, DuplicateCounts, Relation
from kaudit.model.log_rows import BoundaryBatch, Content, NonIdempotentBatch
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batch, records_of
from kaudit.reading.record_content import content_of, records_digest

MAX_CHAINS = 100_000
"""Distinct batches, or records, whose copies are counted on; with more, those that were not repeated for longest begin again."""
_BATCHES_HELD = 64
_HIDDEN = frozenset({"aborted", "open"})
"""Outcomes of transactions that are hidden from read_committed consumers."""

_HEADER = HEADER.struct(*RecordBatchHeader._fields)


class Unit(Struct, frozen=True):
    """A batch, or one of its records. `digest` identifies its content: for a batch, that of `records_digest`."""

    offset: int
    last_offset: int
    record_count: int
    timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    digest: int


class Keys(Struct, frozen=True):
    """Whether every record has a key, and the key that all of them have."""

    everywhere: bool
    common: bytes | None


class StoredBatch:
    """A batch of any magic. `unit` and `keys` take the offset of a record, None for the whole batch.

    They raise KeyError where there is no such record, ValueError where there is none at all, and WireError.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        current = data[MAGIC_OFFSET] >= CURRENT_MAGIC
        self._header = RecordBatchHeader._make(_HEADER.unpack_from(data)) if current else None

    @property
    def offsets(self) -> list[int]:
        """The offsets of the records."""
        return list(self._records)

    def unit(self, offset: int | None) -> Unit:
        """Return what is compared."""
        if offset is not None or self._header is None:
            return self._records_unit(offset)
        header = self._header
        return Unit(
            header.base_offset,
            header.base_offset + max(header.last_offset_delta, 0),
            header.record_count,
            _known(header.max_timestamp),
            *self._producer,
            header.base_sequence if header.base_sequence >= 0 else None,
            records_digest(self._data),
        )

    def contents(self, offset: int | None) -> list[int]:
        """Return the content of each record."""
        return [content_of(record) for record in self._chosen(offset)]

    def keys(self, offset: int | None) -> Keys:
        """Return what keys the records have."""
        keys = {record.key for record in self._chosen(offset)}
        return Keys(None not in keys, keys.pop() if len(keys) == 1 else None)

    @property
    def _producer(self) -> tuple[int | None, int | None]:
        header = self._header
        return (None, None) if header is None or header.producer_id < 0 else (header.producer_id, header.producer_epoch)

    @cached_property
    def _records(self) -> dict[int, Record | LegacyRecord]:
        return {record.offset: record for record in records_of(self._data)}

    def _chosen(self, offset: int | None) -> list[Record | LegacyRecord]:
        records = list(self._records.values()) if offset is None else [self._records[offset]]
        if not records:
            raise ValueError("the batch is empty")
        return records

    def _records_unit(self, offset: int | None) -> Unit:
        records = self._chosen(offset)
        return Unit(
            records[0].offset,
            records[-1].offset,
            len(records),
            max((known for known in map(_known, (record.timestamp for record in records)) if known), default=None),
            *self._producer,
            records[0].sequence if isinstance(records[0], Record) else None,
            hash(tuple(map(content_of, records))),
        )


class _Original(Struct, frozen=True):
    """What was first, and what became of its transaction."""

    unit: Unit
    outcome: str | None


_Suspect = tuple[Content, str | None, Content, str | None, bool, bool]
"""A unit and the outcome of its transaction, an earlier one with its own; same content; known sequence (both as of Pairs)."""


class _Chain(Struct):
    """Equal batches, or records: the first of them, the first that is not hidden from read_committed, how many there are."""

    first: _Original
    committed: _Original | None
    keys: Keys
    length: int = 1


class DuplicateReader:
    """Reads the suspects of a partition again. `counts` and `unread`, suspects that cannot be read again, grow meanwhile."""

    def __init__(self, partition: PartitionDuplicates, open_source: OpenSource) -> None:
        self.counts = DuplicateCounts()
        self.unread = 0
        self._partition = partition
        self._open = open_source
        self._batch = lru_cache(maxsize=_BATCHES_HELD)(self._read)
        self._chains: dict[int, _Chain] = {}

    def duplicates(self, *, read_committed: bool) -> Iterator[Duplicate]:
        """Yield the suspects that are duplicates, in offset order; with `read_committed` those that such consumers are given."""
        for again, outcome, earlier, earlier_outcome, same_content, known_sequence in self._suspects():
            try:
                unit = self._unit(again)
                chain = self._chain(again, unit, earlier, earlier_outcome, same_content=same_content)
                original = (
                    _Original(self._unit(earlier), earlier_outcome) if chain is None else _original(chain, outcome)
                )
                keys = self._keys(again) if chain is None else chain.keys
            except (OSError, ValueError, KeyError, WireError):
                self.unread += 1
                continue
            if chain is not None:
                self._prolong(chain, again.offset, earlier.offset, _Original(unit, outcome))
            elif same_content:
                continue  # the CRCs of two batches are the same by chance
            duplicate = self._duplicate(again, _Original(unit, outcome), original, chain, keys, known=known_sequence)
            if duplicate.read_committed or not read_committed:
                self.counts.add(duplicate)
                yield duplicate

    def _suspects(self) -> Iterator[_Suspect]:
        pairs = self._partition.pairs
        found = zip(
            map(Content._make, pairs.again.tolist()),
            pairs.outcomes,
            map(Content._make, pairs.earlier.tolist()),
            pairs.earlier_outcomes,
            pairs.same_content.tolist(),
            pairs.known_sequence.tolist(),
            strict=True,
        )
        if not self._partition.reported or self._partition.more:
            return found
        listed = set(pairs.again["offset"].compress(pairs.same_content).tolist())
        reported = sorted(self._reported(listed), key=lambda suspect: suspect[0].offset)
        return heapq.merge(found, reported, key=lambda suspect: suspect[0].offset)

    def _reported(self, listed: Collection[int]) -> Iterator[_Suspect]:
        """Yield the pairs a scan reports that are not `listed`, further apart than is compared: outside transactions."""
        latest: dict[int, Content] = {}
        for repeat in sorted(self._partition.reported, key=lambda repeat: repeat.first_offset):
            for earlier, again in zip(
                self._units(repeat.copied, repeat.copied_first, repeat.records),
                self._units(repeat.again, repeat.first_offset, repeat.records),
                strict=False,
            ):
                if again.offset not in listed:
                    yield again, None, latest.get(earlier.offset, earlier), None, True, False
                latest[earlier.offset] = again

    def _units(self, batches: Sequence[NonIdempotentBatch | BoundaryBatch], first: int, records: int) -> list[Content]:
        """Return the batches, or of their records at most `records` from offset `first` on."""
        found = [
            Content(
                batch.base_offset,
                0,
                0,
                0,
                NO_PRODUCER_ID,
                batch.record_count,
                batch.position,
                batch.size,
                batch.segment,
            )
            for batch in batches
        ]
        if not self._partition.records_compared:
            return found
        try:
            of_records = [
                content._replace(offset=offset, records=1)
                for content in found
                for offset in self._stored(content).offsets
                if offset >= first
            ]
        except (OSError, ValueError, WireError):
            self.unread += 1
            return []
        return of_records[:records]

    def _chain(
        self, again: Content, unit: Unit, earlier: Content, outcome: str | None, *, same_content: bool
    ) -> _Chain | None:
        """Return what `unit` repeats, None if it says something else."""
        chain = self._chains.get(earlier.offset)
        before = self._unit(earlier) if chain is None else chain.first.unit
        if unit.digest != before.digest and (same_content or self._contents(again) != self._contents(earlier)):
            return None
        if chain is not None:
            return chain
        first = _Original(before, outcome)
        return _Chain(first, None if outcome in _HIDDEN else first, self._keys(earlier))

    def _prolong(self, chain: _Chain, offset: int, earlier: int, last: _Original) -> None:
        """Add the last of a chain, by which the next one finds it."""
        chain.length += 1
        if chain.committed is None and last.outcome not in _HIDDEN:
            chain.committed = last
        self._chains.pop(earlier, None)
        self._chains[offset] = chain
        if len(self._chains) > MAX_CHAINS:
            del self._chains[next(iter(self._chains))]

    def _duplicate(  # noqa: PLR0913 - independent facts
        self,
        again: Content,
        last: _Original,
        original: _Original,
        chain: _Chain | None,
        keys: Keys,
        *,
        known: bool,
    ) -> Duplicate:
        unit, first = last.unit, original.unit
        segment = self._partition.directory.segments[again.segment]
        return Duplicate(
            offset=unit.offset,
            last_offset=unit.last_offset,
            record_count=unit.record_count,
            segment=segment.name if segment.fetched is None else None,
            position=again.position if segment.fetched is None else None,
            timestamp=unit.timestamp,
            producer_id=unit.producer_id,
            producer_epoch=unit.producer_epoch,
            sequence=unit.sequence,
            transaction_outcome=last.outcome,
            original_offset=first.offset,
            original_last_offset=first.last_offset,
            original_timestamp=first.timestamp,
            original_producer_id=first.producer_id,
            original_producer_epoch=first.producer_epoch,
            original_sequence=first.sequence,
            original_transaction_outcome=original.outcome,
            relation=Relation.SEQUENCE_REUSED if chain is None else _relation(unit, first),
            repeats=chain is not None,
            copy=None if chain is None else chain.length,
            dropped_by_key=None if chain is None else keys.everywhere,
            dropped_by_sequence=known,
            read_committed=not {last.outcome, original.outcome} & _HIDDEN,
            key_hash=None if keys.common is None else hashlib.sha256(keys.common).hexdigest(),
        )

    def _unit(self, content: Content) -> Unit:
        return self._stored(content).unit(self._record(content))

    def _contents(self, content: Content) -> list[int]:
        return self._stored(content).contents(self._record(content))

    def _keys(self, content: Content) -> Keys:
        return self._stored(content).keys(self._record(content))

    def _record(self, content: Content) -> int | None:
        """The offset of the record that it is, None if it is a batch."""
        return content.offset if self._partition.records_compared else None

    def _stored(self, content: Content) -> StoredBatch:
        return self._batch(content.segment, content.position, content.size)

    def _read(self, segment: int, position: int, size: int) -> StoredBatch:
        with closing(self._open(self._partition.directory.segments[segment])) as source:
            return StoredBatch(read_batch(source, position, size))


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
