"""Counts records that one copy holds and another does not, by reading the copies' ends again."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.crc_algebra import records_crcs
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from kaudit.model.replicas import CopyChange, MissingRecords, PartitionComparison, Relation, ReplicaGap
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import batches_from, placed_batches_from, producers_records
from kaudit.reading.record_content import content_of
from kaudit.source.file_kinds import CLEANER_CHECKPOINT
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory

_MOST_UNPACKED = 100
"""Batches of a gap whose records are unpacked to look for one without a key."""
_LARGEST_UNPACKED = 16 << 20
_MOST_SEARCHED = 64 << 20
"""Bytes of batches on either side whose records are compared one by one."""


def with_records(gap: ReplicaGap, copies: Mapping[str, PartitionDirectory], open_source: OpenSource) -> ReplicaGap:
    """Count the records that the first holder of a gap has there; compaction is ruled out where that is possible.

    Compaction is ruled out where a record has no key, which compacted topics reject (LogValidator.validateKey), and where each
    broker that lacks the offsets has a checkpoint of cleaned logs, none of which lists this partition.
    """
    holder = copies[gap.held_by[0]]
    records, unpacked, keyless = 0, 0, False
    try:
        for batches in batches_from(holder, open_source, gap.first_offset):
            within = batches[batches["base_offset"] <= gap.last_offset]
            records += int(producers_records(within).sum())
            if not keyless and unpacked < _MOST_UNPACKED:
                keyless = _has_keyless(within[:_MOST_UNPACKED], holder, open_source)
                unpacked += len(within)
            if len(within) < len(batches):
                break
    except OSError:
        return gap  # removed since it was compared
    may_clean = not all(
        any(file.name == CLEANER_CHECKPOINT for file in copies[name].checkpoints) for name in gap.missing_on
    )
    return replace(gap, records=records, may_be_compaction=may_clean and not keyless)


def _has_keyless(batches: Batches, copy: PartitionDirectory, open_source: OpenSource) -> bool:
    """Return whether any record of these batches has no key; batches that cannot be unpacked are skipped."""
    bases = [segment.base_offset for segment in copy.segments]
    data = batches[(batches["attributes"] & CONTROL_FLAG == 0) & (batches["magic"] == CURRENT_MAGIC)]
    columns = (data[name].tolist() for name in ("base_offset", "position", "size"))
    for base_offset, position, size in zip(*columns, strict=True):
        if size > _LARGEST_UNPACKED:
            continue
        content = bytearray(size)
        segment = copy.segments[max(bisect_right(bases, base_offset) - 1, 0)]
        with closing(open_source(segment)) as source:
            source.read_into(position, memoryview(content))
        try:
            if any(record.key is None for record in read_records(content, _LARGEST_UNPACKED)):
                return True
        except WireError:
            continue
    return False


_NEVER = 2**63 - 1
MAX_COMPARED = 1 << 20
"""Most batches of the other copy that are searched: retries come soon after a new leader began."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Spreads numbers over 64 bits: 2^64 divided by the golden ratio, as in Knuth's multiplicative hashing."""


def missing_records(
    copy: PartitionDirectory,
    other: PartitionDirectory | None,
    offset: int,
    *,
    high_watermark: int | None,
    open_source: OpenSource,
) -> MissingRecords:
    """Count the records of `copy` from `offset` on that `other` does not hold; all of them without another copy.

    A batch is there again if its records are, with their base timestamp and producer id: a retry that the new leader took,
    at another offset, under another leader epoch and perhaps producer epoch; records without a producer id may be there in other
    batches. Clients that stamp records anew at each retry (kafkajs) or take a new producer id are not recognised, and their retries count as missing.

    Raises:
        OSError: a segment cannot be read.

    """
    theirs = _held(other, offset, open_source)
    known = np.unique(theirs.identities)
    there = _WrittenElsewhere(copy, other, offset, open_source)
    missing = _Missing(high_watermark)
    for segment, batches in placed_batches_from(copy, open_source, offset):
        identities = _identities(batches)
        left = theirs.at(batches["base_offset"]) != identities
        again = left & np.isin(identities, known)
        missing.elsewhere += int(producers_records(batches[again]).sum())
        lost = batches[left & ~again]
        missing.add(lost, *there.of(segment, lost))
    return missing.counted(by_brokers=copy.topic in INTERNAL_TOPICS)


class _Missing:
    """Adds up what is missing."""

    def __init__(self, high_watermark: int | None) -> None:
        self._mark = high_watermark
        self.records = self.below = self.elsewhere = self.unsequenced = self.settled = 0
        self._times = range(_NEVER, -1)
        self._unanswered: dict[int, int] = {}
        """By producer id, the records of its last batch: a broker reads a request once the one before it is answered (SocketServer)."""

    def add(self, batches: Batches, again: NDArray[np.int64], went_on: NDArray[np.bool_]) -> None:
        """Take batches that the other copy lacks, how many records of each it has in other batches, and whose producers went on."""
        count = producers_records(batches)
        acknowledged = np.zeros_like(count)
        if self._mark is not None:
            acknowledged = np.clip(self._mark - batches["base_offset"], 0, count)
        self.records += int((count - again).sum())
        self.elsewhere += int(again.sum())
        self.below += int(np.maximum(acknowledged - again, 0).sum())
        others = np.maximum(count - np.maximum(acknowledged, again), 0)
        self.unsequenced += int(others[batches["producer_id"] < 0].sum())
        self.settled += int(others[went_on].sum())
        waiting = (batches["producer_id"] >= 0) & ~went_on
        for producer_id, own in zip(batches["producer_id"][waiting].tolist(), others[waiting].tolist(), strict=True):
            self.settled += self._unanswered.get(producer_id, 0)
            self._unanswered[producer_id] = own
        times = batches["max_timestamp"][(again < count) & (batches["max_timestamp"] > NO_TIMESTAMP)]
        if len(times):
            self._times = range(min(self._times.start, int(times.min())), max(self._times.stop, int(times.max())))

    def counted(self, *, by_brokers: bool) -> MissingRecords:
        """Return the sums; `by_brokers`: they write this topic, with acks=all, and send nothing again themselves."""
        # where other producers sent again, these would have too
        settled = max(self.settled, self.unsequenced if self.elsewhere else 0)
        return MissingRecords(
            self.records,
            self.below,
            self.elsewhere,
            0 if by_brokers else self.unsequenced,
            len(self._times),
            not_sent_again=0 if by_brokers else settled,
            unacknowledged=self.records - self.below if by_brokers else 0,
        )


class _WrittenElsewhere:
    """What the other copy holds that this one does not hold there: records and their producers.

    Records without a producer id are found one by one, as some clients retry them in other batches (librdkafka). They are the same
    that are equal in content and in the time that their producer gave them.
    """

    def __init__(
        self, copy: PartitionDirectory, other: PartitionDirectory | None, offset: int, open_source: OpenSource
    ) -> None:
        self._copy, self._other, self._offset, self._open = copy, other, offset, open_source
        self._producers: NDArray[np.int64] | None = None
        self._held: Counter[tuple[int, int]] = Counter()
        self._left = _MOST_SEARCHED

    def of(self, segment: int, batches: Batches) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return how many records of each of these batches of a segment are there, and whose producers went on there; both (n,)."""
        found = np.zeros(len(batches), dtype=np.int64)
        if not len(batches) or self._other is None:
            return found, found > 0
        if self._producers is None:
            self._producers = self._read(self._other)
        plain = batches["producer_id"] < 0
        self._left -= int(batches["size"][plain].sum())
        if self._held and self._left >= 0:
            found[plain] = [self._taken(own) for own in _records_of(batches[plain], self._copy, segment, self._open)]
        return found, np.isin(batches["producer_id"], self._producers)

    def _read(self, other: PartitionDirectory) -> NDArray[np.int64]:
        own, left = _held(self._copy, self._offset, self._open), _MOST_SEARCHED
        producers = [np.empty(0, dtype=np.int64)]
        for number, theirs in placed_batches_from(other, self._open, self._offset):
            moved = theirs[own.at(theirs["base_offset"]) != _identities(theirs)]
            producers.append(np.unique(moved["producer_id"][producers_records(moved) > 0]))
            plain = moved[moved["producer_id"] < 0]
            left -= int(plain["size"].sum())
            for records in _records_of(plain, other, number, self._open) if left >= 0 else ():
                self._held.update(records)
        return np.unique(np.concatenate(producers))

    def _taken(self, records: Iterable[tuple[int, int]]) -> int:
        taken = 0
        for record in records:
            if self._held[record] > 0:
                self._held[record] -= 1
                taken += 1
        return taken


def _records_of(
    batches: Batches, copy: PartitionDirectory, segment: int, open_source: OpenSource
) -> Iterator[list[tuple[int, int]]]:
    """Yield content and time of the records of each of these batches; none of one that cannot be unpacked."""
    if not len(batches):
        return
    with closing(open_source(copy.segments[segment])) as source:
        for batch in batches:
            content = bytearray(int(batch["size"]))
            stamped = int(batch["attributes"]) & LOG_APPEND_TIME_FLAG
            own: list[tuple[int, int]] = []
            if batch["magic"] == CURRENT_MAGIC and len(content) <= _LARGEST_UNPACKED:
                source.read_into(int(batch["position"]), memoryview(content))
                with suppress(WireError):
                    own = [
                        (content_of(record), 0 if stamped else record.timestamp)
                        for record in read_records(content, _LARGEST_UNPACKED)
                    ]
            yield own


class MissingCounts:
    """Counts the records that one copy of a partition holds and another does not, from the offset where they diverge.

    `copies` and the high watermarks of their checkpoints are by name. Records that exist on only one replica count as below
    the high watermark if they lie below the highest one of the replicas. Copies that can no longer be read are left out.
    """

    def __init__(
        self, copies: Mapping[str, PartitionDirectory], high_watermarks: Mapping[str, int], open_source: OpenSource
    ) -> None:
        self._copies, self._marks, self._open = copies, high_watermarks, open_source
        self._counted: dict[tuple[str, str | None, int], MissingRecords | None] = {}

    def of_copy(self, change: CopyChange) -> CopyChange:
        """Count the truncated records that the later copy lacks."""
        if change.truncated is None:
            return change
        return replace(
            change,
            missing=self._count(change.earlier, change.later, change.truncated.first, self._marks.get(change.earlier)),
        )

    def of_replicas(self, comparison: PartitionComparison) -> dict[str, MissingRecords]:
        """Count, by the copy's name, the records that the reference or all other copies lack."""
        later = {change.earlier: change.later for change in comparison.copy_changes}
        highest = max((mark for name, mark in self._marks.items() if name not in later), default=None)
        found = {
            name: self._count(name, later.get(name), offsets.first, self._marks.get(name) if name in later else highest)
            for name, offsets in comparison.only_on.items()
        }
        difference = comparison.first_difference
        for name, relation in comparison.relations.items():
            if relation is Relation.DIVERGED:
                end = comparison.end_offsets[comparison.reference or ""]
                first = end if difference is None else min(end, difference.offset)
                found[name] = self._count(name, comparison.reference, first, self._marks.get(name))
        return {name: missing for name, missing in found.items() if missing is not None}

    def _count(self, name: str, other: str | None, offset: int, mark: int | None) -> MissingRecords | None:
        key = name, other, offset
        if key not in self._counted:
            try:
                self._counted[key] = missing_records(
                    self._copies[name],
                    None if other is None else self._copies[other],
                    offset,
                    high_watermark=mark,
                    open_source=self._open,
                )
            except OSError:
                self._counted[key] = None
        return self._counted[key]


class _Identities(NamedTuple):
    """Base offsets of batches, ascending, and numbers that identify their records; both of shape (n,)."""

    offsets: NDArray[np.int64]
    identities: NDArray[np.uint64]

    def at(self, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the identity of the batch at each of these base offsets, 0 where there is no batch."""
        if not len(self.offsets):
            return np.zeros(len(offsets), dtype=np.uint64)
        place = np.minimum(np.searchsorted(self.offsets, offsets), len(self.offsets) - 1)
        return np.where(self.offsets[place] == offsets, self.identities[place], np.uint64(0))


def _held(copy: PartitionDirectory | None, offset: int, open_source: OpenSource) -> _Identities:
    offsets, identities = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    count = 0
    for batches in batches_from(copy, open_source, offset) if copy is not None else ():
        offsets.append(batches["base_offset"])
        identities.append(_identities(batches))
        count += len(batches)
        if count >= MAX_COMPARED:
            break
    held = np.concatenate(offsets)
    order = np.argsort(held, kind="stable")
    return _Identities(held[order], np.concatenate(identities)[order])


def _identities(batches: Batches) -> NDArray[np.uint64]:
    """Return a number for each batch that is the same where records, base timestamp and producer id are; never 0."""
    records = batches["crc"].astype(np.uint64)
    current = np.flatnonzero(batches["magic"] == CURRENT_MAGIC)
    if len(current):
        records[current] = records_crcs(batches[current])
    sent = (batches["base_timestamp"].astype(np.uint64) * _SPREAD ^ batches["producer_id"].astype(np.uint64)) * _SPREAD
    return ((records << np.uint64(32)) | batches["size"].astype(np.uint64)) ^ sent | np.uint64(1)
