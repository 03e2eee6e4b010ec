"""Copies among a partition's batches without producer ids, chunk by chunk, and what was put out of order with them."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from kaudit.analysis.repeats.record_content import MAX_BATCH_BYTES, batch_bytes, content_of
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.chunk_rows import ChunkRows
from kaudit.analysis.scan.non_idempotent_rows import DISTANCE
from kaudit.analysis.scan.rows import NON_IDEMPOTENT_BATCH, Rows
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET
from kaudit.formats.log.records import read_records
from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.repeats import ReorderedBatches, RepeatedBatch, Repeats
from kaudit.source.layout import PartitionDirectory

MAX_REPEATS = 1000
"""Copies listed of one partition; the rest is counted."""
_BURST = 5
"""Late batches no further apart than this were put out of order by one retry."""

_EQUAL = ("crc", "size", "record_count", "base_timestamp", "max_timestamp")


class RepeatDetector:
    """Takes a partition's chunks in offset order. Memory is DISTANCE batches and what is listed."""

    def __init__(self) -> None:
        self.unlisted = 0
        self._batches = 0
        self._regressions = 0
        self._explained = 0
        self._recent = np.empty(0, dtype=NON_IDEMPOTENT_BATCH)
        self._covered = np.empty(0, dtype=bool)
        self._repeats: list[RepeatedBatch] = []
        self._late: list[tuple[NonIdempotentBatch, NonIdempotentBatch, bool]] = []

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
        first, again = self._pairs(joined)
        if len(first):
            self._note(joined, covered, first, again)
        self._batches += chunk.non_idempotent.batches
        kept = joined["ordinal"] >= self._batches - DISTANCE
        self._recent, self._covered = joined[kept], covered[kept]

    def _pairs(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return indexes of the new copies, in log order, and of the first copy of each no more than DISTANCE before."""
        order = np.lexsort((rows["ordinal"], rows["size"], rows["crc"]))
        ordinals = rows["ordinal"][order]
        changes = np.zeros(len(order), dtype=np.int64)
        for name in _EQUAL:
            changes[1:] |= rows[name][order[1:]] != rows[name][order[:-1]]
        group = np.cumsum(changes)
        width = int(ordinals.max()) + 1 if len(ordinals) else 1
        # ordinals ascend within a group, and groups ascend: one search finds the first near enough in each row's own
        earliest = np.searchsorted(group * width + ordinals, group * width + np.maximum(ordinals - DISTANCE, 0))
        copies = np.flatnonzero((earliest < np.arange(len(order))) & (ordinals >= self._batches))
        first, again = order[earliest[copies]], order[copies]
        in_log_order = np.argsort(again, kind="stable")
        return first[in_log_order], again[in_log_order]

    def _note(self, rows: Rows, covered: Rows, first: Rows, again: Rows) -> None:
        edges = np.zeros(len(rows) + 1, dtype=np.int64)
        np.add.at(edges, first + 1, 1)
        np.subtract.at(edges, again + 1, 1)
        inside = np.cumsum(edges[:-1]) > 0
        new = inside & ~covered
        self._explained += int(np.count_nonzero(rows["regresses"] & new))
        copies = np.zeros(len(rows), dtype=bool)
        copies[again] = True
        room = MAX_REPEATS - len(self._repeats)
        self.unlisted += max(len(first) - room, 0)
        if room <= 0:
            covered |= inside
            return
        for index in np.flatnonzero(rows["regresses"] & new & ~copies)[:room].tolist():
            self._late.append((_batch(rows, index - 1), _batch(rows, index), False))
        for one, two in zip(first[:room].tolist(), again[:room].tolist(), strict=True):
            repeat = RepeatedBatch(_batch(rows, one), _batch(rows, two))
            before = self._repeats[-1] if self._repeats else None
            if before is not None and _is_reversed(before, repeat):
                self._late.append((before.again, repeat.again, True))
            self._repeats.append(repeat)
        covered |= inside

    def result(self) -> Repeats:
        """Return copies and what is out of order: the latter only where batches are otherwise in the order of time.

        Where several producers write, timestamps go back and forth without any retry.
        """
        if self._regressions > self._explained:
            return Repeats(self._repeats)
        return Repeats(self._repeats, _grouped(sorted(self._late, key=lambda entry: entry[1].ordinal)))


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
    contents: dict[int, int] = {}
    times: dict[int, set[int]] = {}
    for repeat in found.repeated:
        again = batch_bytes(repeat.again, directory, open_source)
        if again is not None:
            first = batch_bytes(repeat.first, directory, open_source)
            if first is not None and first[ATTRIBUTES_OFFSET:] != again[ATTRIBUTES_OFFSET:]:
                continue  # no copy: the CRCs are equal by chance
        records = _contents(again)
        if len(records) > 1 and len(set(records)) == 1:
            continue
        kept.append(repeat)
        if len(records) == 1:
            contents[repeat.again.ordinal] = records[0]
            times.setdefault(records[0], set()).add(repeat.again.base_timestamp)
    usual = {content for content, timestamps in times.items() if len(timestamps) > 1}
    kept = [repeat for repeat in kept if contents.get(repeat.again.ordinal) not in usual]
    return Repeats(kept, found.reordered if kept else ())


def _contents(batch: bytes | None) -> list[int]:
    """A number for the key, value and headers of each record; none where the batch cannot be unpacked."""
    if batch is None:
        return []
    try:
        return [content_of(record) for record in read_records(memoryview(batch), MAX_BATCH_BYTES)]
    except WireError:
        return []  # malformed, and reported as such when records are decoded
