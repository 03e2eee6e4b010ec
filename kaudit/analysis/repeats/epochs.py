"""Epoch bumps of idempotent producers after which the client sent again what was in the log already.

A client that raises its epoch numbers its batches in flight anew, from 0, and sends them again: their headers change, their
records do not (Kafka's ProducerBatch.resetProducerState). If they had been appended, the tail of the old epoch stands again
at the head of the new one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from kaudit.analysis.repeats.record_content import contents_of
from kaudit.analysis.scan.batch_stream import ByteRange, stream_batches
from kaudit.analysis.scan.chunk_plan import OpenSource, boundary_from
from kaudit.analysis.scan.run_batches import boundary_batches
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records_crc import records_crcs
from kaudit.model.batch import Batches, concatenate
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.repeats import RepeatedEpoch
from kaudit.source.layout import PartitionDirectory

MAX_BUMPS = 200
"""Bumps of one partition looked into; each reads some of the log again."""
NEIGHBOURS = 64
"""Batches of the producer compared on either side of a bump: many times what clients have in flight."""
_REACHES = (1 << 20, 16 << 20)
"""Bytes of the log in which they are looked for on either side: the second where the first held too few."""


class _Side(NamedTuple):
    """The producer's batches on one side of a bump, in offset order."""

    batches: list[BoundaryBatch]
    keys: list[tuple[int, ...]]
    """Of each its records' CRC and size, its record count, offsets and codec: equal for equal records."""
    times: list[int]
    """Base timestamps: with equal records all timestamps are equal if these are. Brokers leave them alone."""


def repeated_epochs(
    observations: Sequence[Observation], directory: PartitionDirectory, open_source: OpenSource
) -> tuple[list[RepeatedEpoch], int]:
    """Return the bumps after which the tail of the old epoch stands again, and how many bumps were not looked into.

    Only bumps outside transactions: what a transaction wrote and aborted is written again by right.
    """
    bumps = [found for found in observations if found.kind is ObservationKind.CLIENT_BUMP and not found.explained]
    repeated = []
    for bump in bumps[:MAX_BUMPS]:
        try:
            found = _compare(bump, directory, open_source)
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


def _compare(bump: Observation, directory: PartitionDirectory, open_source: OpenSource) -> RepeatedEpoch | None:
    state, first = bump.remembered, bump.batch
    if state is None or state.last is None or first is None:
        return None
    reader = _Reader(directory, open_source, bump.producer_id)
    tail, head = reader.before(state.last, state.epoch), reader.after(first, bump.producer_epoch)
    start, length = _longest(tail.keys, head.keys)
    if not length:
        return None
    copied, again = tail.batches[start : start + length], head.batches[:length]
    same_times = tail.times[start : start + length] == head.times[:length]
    if same_times:
        sides = list(zip(tail.keys, tail.times, strict=True)), list(zip(head.keys, head.times, strict=True))
        distinct = unlike_others(*sides, length)
    else:
        distinct = unlike_others(tail.keys, head.keys, length)
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
        to_the_end=start + length == len(tail.keys) or length == len(head.keys),
    )


def _longest(tail: Sequence[object], head: Sequence[object]) -> tuple[int, int]:
    """Where in `tail` the longest beginning of `head` is found, and how long it is; the latest of several."""
    best = 0, 0
    for start in range(len(tail)):
        length = 0
        while length < len(head) and start + length < len(tail) and tail[start + length] == head[length]:
            length += 1
        if length and length >= best[1]:
            best = start, length
    return best


def unlike_others(tail: Sequence[object], head: Sequence[object], length: int) -> int:
    """Return how many of the first `length` of `head` are found once on either side: what is common around proves nothing."""
    before, after = Counter(tail), Counter(head)
    return sum(before[one] == after[one] == 1 for one in head[:length])


class _Reader(NamedTuple):
    """Reads batches of one producer id again."""

    directory: PartitionDirectory
    open_source: OpenSource
    producer_id: int

    def before(self, last: BoundaryBatch, epoch: int) -> _Side:
        """Return the last batches of the epoch up to `last`."""
        end = last.position + last.size
        for reach in _REACHES:
            ranges, room = [], reach
            for number in range(last.segment, -1, -1):
                stop = end if number == last.segment else self.directory.segments[number].size
                ranges.append((number, ByteRange(max(stop - room, 0), stop, stop)))
                room -= stop
                if room <= 0:
                    break
            side = _joined([self._read(*where, epoch) for where in reversed(ranges)], slice(-NEIGHBOURS, None))
            if room > 0 or len(side.batches) == NEIGHBOURS:
                break
        return side

    def after(self, first: BoundaryBatch, epoch: int) -> _Side:
        """Return the first batches of the epoch from `first` on."""
        segments = self.directory.segments
        for reach in _REACHES:
            ranges, room = [], reach
            for number in range(first.segment, len(segments)):
                begin, end = first.position if number == first.segment else 0, segments[number].size
                ranges.append((number, ByteRange(begin, min(begin + room, end), end)))
                room -= end - begin
                if room <= 0:
                    break
            side = _joined([self._read(*where, epoch) for where in ranges], slice(NEIGHBOURS))
            if room > 0 or len(side.batches) == NEIGHBOURS:
                break
        return side

    def _read(self, segment: int, where: ByteRange, epoch: int) -> _Side:
        parts = []
        with closing(self.open_source(self.directory.segments[segment])) as source:
            start = boundary_from(source, where.start, where.end) if where.start > 0 else 0
            for piece in stream_batches(source, where._replace(start=start), expected_offset=None):
                batches = piece.batches
                own = (batches["producer_id"] == self.producer_id) & (batches["producer_epoch"] == epoch)
                own &= (batches["magic"] == CURRENT_MAGIC) & (batches["attributes"] & CONTROL_FLAG == 0)
                parts.append(batches[own])
        return _side(concatenate(parts), segment)


def _joined(sides: Sequence[_Side], kept: slice) -> _Side:
    batches, keys, times = (list(chain.from_iterable(columns))[kept] for columns in zip(*sides, strict=True))
    return _Side(batches, keys, times)


def _side(batches: Batches, segment: int) -> _Side:
    columns = (
        records_crcs(batches),
        batches["size"],
        batches["record_count"],
        batches["last_offset_delta"],
        batches["attributes"] & CODEC_MASK,
    )
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    # rows read again do not know what lies before them
    return _Side(boundary_batches(batches, 0, segment), keys, batches["base_timestamp"].tolist())
