"""Copies among a partition's batches without producer ids, chunk by chunk, and what was put out of order with them."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.producer_patterns import ReorderedBatches, RepeatedBatch, Repeats
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.equal_batches import (
    DISTANCE,
    MAX_COPIES,
    NO_RANGES,
    EqualBatches,
    Indexes,
    Ranges,
    merged,
    near_none,
)
from kaudit.reading.record_content import batch_bytes, batch_content, contents, differ, with_times
from kaudit.reading.rows import NON_IDEMPOTENT_BATCH, Rows
from kaudit.source.layout import PartitionDirectory

MAX_REPEATS = 1000
"""Copies listed of one partition; the rest is counted."""
_BURST = 5
"""Late batches no further apart than this were put out of order by one retry."""

_MOST_SENDINGS = 2
"""An application sends a record, and once more when it was started again: under two timestamps, each of them retried."""
_MOST = 3
"""If more than one of so many batches has records of one before it under other timestamps, they recur for their own reasons."""


class RepeatDetector(Struct):
    """Takes a partition's chunks in offset order. Memory is DISTANCE batches and what is listed."""

    _batches: int = 0
    _regressions: int = 0
    _explained: int = 0
    _recent: Rows = field(default_factory=lambda: np.empty(0, dtype=NON_IDEMPOTENT_BATCH))
    _covered: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    _repeats: list[RepeatedBatch] = field(default_factory=list)
    _more_repeats: int = 0
    _restamped: list[RepeatedBatch] = field(default_factory=list)
    _more_restamped: int = 0
    _recurring: Ranges = field(default_factory=lambda: NO_RANGES)
    _late: list[tuple[NonIdempotentBatch, NonIdempotentBatch, bool]] = field(default_factory=list)

    def feed(self, chunk: ChunkRows) -> None:
        """Take the next chunk's candidates."""
        if not chunk.non_idempotent.batches:
            return
        rows = chunk.non_idempotent.rows.copy()
        rows["ordinal"] += self._batches
        self._regressions += chunk.non_idempotent.regressions
        if len(self._recent) and rows["base_timestamp"][0] < self._recent["base_timestamp"][-1]:
            rows["regresses"][0] = True
            self._regressions += 1
        joined = np.concatenate((self._recent, rows))
        covered = np.concatenate((self._covered, np.zeros(len(rows), dtype=bool)))
        contents = batch_content(joined["records_crc"], joined["size"], joined["record_count"])
        equal = EqualBatches.of(contents, joined["ordinal"])
        stamped = EqualBatches.of(with_times(contents, joined["base_timestamp"]), joined["ordinal"])
        first, again = self._in_log_order(joined, *stamped.copies())
        if len(first):
            self._note(joined, covered, (first, again), equal)
        self._note_restamped(joined, equal, chunk.non_idempotent.recurring)
        self._batches += chunk.non_idempotent.batches
        kept = joined["ordinal"] >= self._batches - DISTANCE
        self._recent, self._covered = joined[kept], covered[kept]

    def _in_log_order(self, rows: Rows, first: Indexes, again: Indexes) -> tuple[Indexes, Indexes]:
        """Return the pairs whose second batch is new."""
        new = rows["ordinal"][again] >= self._batches
        order = np.argsort(again[new], kind="stable")
        return first[new][order], again[new][order]

    def _note_restamped(self, rows: Rows, equal: EqualBatches, recurring: Ranges) -> None:
        times = rows["base_timestamp"]
        found = equal.recurring(times)
        self._recurring = merged(np.concatenate((self._recurring, recurring + self._batches, found)))
        first, again = self._in_log_order(rows, *equal.restamped(times))
        alone = near_none(rows["ordinal"][again], self._recurring)
        room = MAX_REPEATS - len(self._restamped)
        self._more_restamped += max(int(np.count_nonzero(alone)) - room, 0)
        self._restamped += _repeats(rows, first[alone][:room], again[alone][:room], equal)

    def _note(self, rows: Rows, covered: Rows, pairs: tuple[Indexes, Indexes], equal: EqualBatches) -> None:
        first, again = pairs
        edges = np.zeros(len(rows) + 1, dtype=np.int64)
        np.add.at(edges, first + 1, 1)
        np.subtract.at(edges, again + 1, 1)
        inside = np.cumsum(edges[:-1]) > 0
        new = inside & ~covered
        self._explained += int(np.count_nonzero(rows["regresses"] & new))
        copies = np.zeros(len(rows), dtype=bool)
        copies[again] = True
        room = MAX_REPEATS - len(self._repeats)
        self._more_repeats += max(len(first) - room, 0)
        if room <= 0:
            covered |= inside
            return
        for index in np.flatnonzero(rows["regresses"] & new & ~copies)[:room].tolist():
            self._late.append((_batch(rows, index - 1), _batch(rows, index), False))
        for repeat in _repeats(rows, first[:room], again[:room], equal):
            before = self._repeats[-1] if self._repeats else None
            if before is not None and _is_reversed(before, repeat):
                self._late.append((before.again, repeat.again, True))
            self._repeats.append(repeat)
        covered |= inside

    def result(self) -> Repeats:
        """Return copies and what is out of order: the latter only where batches are otherwise in the order of time.

        Where several producers write, timestamps go back and forth without any retry.
        """
        repeated = sorted([*self._repeats, *self._restamped_alone()], key=lambda repeat: repeat.again.ordinal)
        if self._regressions > self._explained:
            return Repeats(repeated)
        return Repeats(repeated, _grouped(sorted(self._late, key=lambda entry: entry[1].ordinal)))

    @property
    def unlisted(self) -> int:
        """How many copies `result` leaves out because there are too many."""
        return self._more_repeats + (self._more_restamped if self._restamped_alone() else 0)

    def _restamped_alone(self) -> list[RepeatedBatch]:
        """The copies with other timestamps around which nothing recurs; what came after them is known by now."""
        ordinals = np.array([repeat.again.ordinal for repeat in self._restamped], dtype=np.int64)
        alone = near_none(ordinals, self._recurring).tolist()
        kept = [repeat for repeat, is_alone in zip(self._restamped, alone, strict=True) if is_alone]
        return kept if (len(kept) + self._more_restamped) * _MOST <= self._batches else []


def _repeats(rows: Rows, first: Indexes, again: Indexes, equal: EqualBatches) -> list[RepeatedBatch]:
    """Return these pairs of rows as repeats; `equal` are the rows by their records."""
    times = rows["base_timestamp"]
    pairs = zip(first.tolist(), again.tolist(), equal.counts_before(again, times), strict=True)
    return [RepeatedBatch(_batch(rows, one), _batch(rows, two), count) for one, two, count in pairs]


def _is_reversed(before: RepeatedBatch, repeat: RepeatedBatch) -> bool:
    """Whether neighbours were sent again in the opposite order."""
    return repeat.again.ordinal == before.again.ordinal + 1 and repeat.first.ordinal == before.first.ordinal - 1


def _grouped(late: Sequence[tuple[NonIdempotentBatch, NonIdempotentBatch, bool]]) -> list[ReorderedBatches]:
    found: list[ReorderedBatches] = []
    for before, batch, is_reversed in late:
        last = found[-1] if found else None
        if last is not None and batch.ordinal - last.late[-1].ordinal <= _BURST:
            found[-1] = replace(last, late=[*last.late, batch], reversed=last.reversed or is_reversed)
        else:
            found.append(ReorderedBatches(before, [batch], is_reversed))
    return found


def _batch(rows: Rows, index: int) -> NonIdempotentBatch:
    return NonIdempotentBatch(*rows[index].item())


def without_equal_records(found: Repeats, directory: PartitionDirectory, open_source: OpenSource) -> Repeats:
    """Decode the copies, and leave out those whose records do not show which batch they are of.

    Equal batches of a load generator that sends one record over and over are no copies of one another. No more than two
    batches are in memory at a time.
    """
    kept: list[RepeatedBatch] = []
    single: dict[int, int] = {}
    copies: dict[int, list[RepeatedBatch]] = defaultdict(list)
    for repeat in found.repeated:
        again = batch_bytes(repeat.again, directory, open_source)
        if differ(batch_bytes(repeat.first, directory, open_source), again):
            continue  # not a copy: the CRCs are equal by chance
        records = contents(again)
        if len(records) > 1 and len(set(records)) == 1:
            continue
        kept.append(repeat)
        if len(records) == 1 and repeat.same_times:
            single[repeat.again.ordinal] = records[0]
            copies[records[0]].append(repeat)
    usual = {content for content, repeats in copies.items() if _is_usual(repeats)}
    kept = [repeat for repeat in kept if single.get(repeat.again.ordinal) not in usual]
    return Repeats(kept, found.reordered if kept else ())


def _is_usual(copies: Sequence[RepeatedBatch]) -> bool:
    """Return whether one record that has these copies recurs for its own reasons.

    It does where it is there under more timestamps than an application sends it, or more often under one of two than a
    client retries.
    """
    at = Counter(copy.again.base_timestamp for copy in copies)
    if len(at) < _MOST_SENDINGS:
        return False
    return max(len(at), *(copy.timestamps for copy in copies)) > _MOST_SENDINGS or max(at.values()) > MAX_COPIES
