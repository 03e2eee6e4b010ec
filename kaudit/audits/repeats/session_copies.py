"""Whether a producer begins with records that an earlier one wrote: both are read side by side from there, to where they part.

The first record of the producer is searched for among the last ones of those that had ended, and of its own last epoch; in all
of the log before it where records are decoded. Only what lies outside transactions counts: what a transaction wrote and aborted
is written again by right.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.repeats.producer_records import FAR_BYTES, ProducerRecords, StoredRecord, ranges_before
from kaudit.audits.repeats.restarts import Edge, Restart
from kaudit.model.damage import PlacedDamage
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.held_blocks import HeldBlocks
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.rows import NO_TAILS, Rows
from kaudit.source.layout import PartitionDirectory

MIN_RECORDS = 3
"""Fewer equal records in a row may be chance, unless their timestamps are equal too, or they are of the producer's own last epoch."""
_USUAL_WRITERS, _MIN_USUAL = 3, 10
"""What three producers wrote may be what every producer writes: unless all of the log is searched, more records in a row must be
equal then, or their timestamps too."""
NEAR_BYTES = 1 << 20
"""Bytes of the log in which the last batches of a producer that ended are looked for."""
_PLACES = 8
"""Places of one earlier producer from which records are compared, the last ones: a record that recurs is no evidence."""
_PROOF = 64
"""So many records of fewer than MIN_RECORDS kinds show that equal ones are what is written here."""
_LISTED = 100_000
"""Records held of one comparison; more are counted."""


class _Copy(Struct):
    """Records in a row that both producers have: of each the first _LISTED, and the batches they lie in."""

    before: Edge
    again: list[StoredRecord] = field(default_factory=list)
    copied: list[StoredRecord] = field(default_factory=list)
    beyond: Sequence[StoredRecord] = ()
    """Some that follow `again`, where both are of one producer."""
    records: int = 0
    last_again: int = -1
    last_copied: int = -1
    same_times: bool = True
    ends: bool = False
    """One of the producers has no more records."""


Compared = tuple[list[RepeatedSession], list[RepeatedEpoch], int]
"""Producers that begin with records of another one, or of their own last epoch, and for how many not all of the log was searched."""


def compare_restarts(  # noqa: PLR0913 - independent inputs
    restarts: Sequence[Restart],
    directory: PartitionDirectory,
    open_source: OpenSource,
    reader: IdentityReader,
    most_bytes: int | None = 0,
    *,
    largest_batch: int = 0,
    tails: Rows = NO_TAILS,
    damages: Sequence[PlacedDamage] = (),
) -> Compared:
    """Return which producers begin with records of those before them.

    At most `most_bytes` of the log before a producer are searched for its first record, None: all; 0: the last batches of those
    before it alone. `largest_batch`, `tails` and `damages` as of ProducerRecords.
    """
    with (
        HeldBlocks(open_source) as held,
        closing(ProducerRecords(directory, held, reader, largest_batch, tails, damages)) as records,
    ):
        return _compared(restarts, records, most_bytes)


def _compared(restarts: Sequence[Restart], records: ProducerRecords, most_bytes: int | None) -> Compared:
    first_of: dict[BoundaryBatch, StoredRecord] = {}
    for record in records.of_batches([restart.first.batch for restart in restarts]):
        first_of.setdefault(record.batch, record)
    firsts = [first_of.get(restart.first.batch) for restart in restarts]
    not_exhausted = 0
    if most_bytes == 0:
        found = _places_in_tails(restarts, firsts, records)
    else:
        found, not_exhausted = _places_before(restarts, firsts, records, most_bytes)
    sessions: list[RepeatedSession] = []
    epochs: list[RepeatedEpoch] = []
    for number, (restart, first) in enumerate(zip(restarts, firsts, strict=True)):
        if first is None:
            continue
        copies = [
            copy
            for before in restart.before
            if (
                copy := _longest_copy(records, restart, before, first, found.places.get((number, *before.producer), ()))
            )
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
    return _bounded(sessions, most), _bounded(epochs, most), not_exhausted


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
    restarts: Sequence[Restart], firsts: Sequence[StoredRecord | None], records: ProducerRecords
) -> _Places:
    found = _Places()
    for number, (restart, first) in enumerate(zip(restarts, firsts, strict=True)):
        if first is None:
            continue
        found.writers[first.content].add(restart.first.producer_id)
        for before in restart.before:
            own = before.producer_id == restart.first.producer_id
            reach = FAR_BYTES if own else NEAR_BYTES
            if not records.may_repeat(restart.first, first, before, reach):
                continue
            for record in records.tail(before, reach):
                if record.content == first.content:
                    found.writers[first.content].add(before.producer_id)
                    found.places[number, *before.producer].append((record.batch, record.offset))
    return found


def _places_before(
    restarts: Sequence[Restart],
    firsts: Sequence[StoredRecord | None],
    records: ProducerRecords,
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
        for segment, start, stop in ranges_before(records.directory, restart.first.batch, room):
            ranges[segment].append((start, stop))
        not_exhausted += room < _bytes_before(records.directory, restart.first.batch)
    contents = np.array(list(wanted), dtype=np.uint64)
    with suppress(OSError):  # reported by the audit itself
        for producer, record in records.within(ranges, contents):
            found.writers[record.content].add(producer[0])
            for number in wanted[record.content]:
                if record.batch.last_offset < restarts[number].first.batch.base_offset:
                    found.places[number, *producer].append((record.batch, record.offset))
    return found, not_exhausted


def _bytes_before(directory: PartitionDirectory, batch: BoundaryBatch) -> int:
    return sum(segment.size for segment in directory.segments[: batch.segment]) + batch.position


def _longest_copy(
    records: ProducerRecords,
    restart: Restart,
    before: Edge,
    first: StoredRecord,
    places: Iterable[tuple[BoundaryBatch, int]],
) -> _Copy | None:
    """Return the longest copy that begins at one of these places, the first of several."""
    reached = (place for place in places if place[1] <= before.batch.last_offset)
    copies = (_copy(records, restart, before, first, place) for place in reached)
    with suppress(OSError):  # reported by the audit itself
        return max(copies, key=lambda copy: copy.records, default=None)
    return None


def _copy(
    records: ProducerRecords, restart: Restart, before: Edge, first: StoredRecord, place: tuple[BoundaryBatch, int]
) -> _Copy:
    found = _Copy(before)
    own = before.producer_id == restart.first.producer_id
    with closing(records.begun(restart.first, first)) as ours, closing(records.copied(before, place)) as theirs:
        contents: set[int] = set()
        for copied in theirs:
            again = next(ours, None)
            if again is None or again.content != copied.content:
                found.ends = again is None
                if own and again is not None and (found.same_times or found.records > 1):  # else it is no evidence
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
        found.beyond = list(islice(ours, _PROOF)) if own else ()
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


def _batches_of(records: Sequence[StoredRecord]) -> list[BoundaryBatch]:
    return list(dict.fromkeys(record.batch for record in records))
