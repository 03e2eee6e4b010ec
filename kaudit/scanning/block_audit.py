"""The producer ids of the logs compared with the blocks they were allocated from, and the histories of blocks themselves."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.producer_ids.block_sources import ClusterBlocks
from kaudit.audits.sequences.rescan import Questions, Rescan
from kaudit.broker.producer_ids.allocation_faults import (
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
)
from kaudit.model.json_record import rfc3339
from kaudit.model.producer_ids import (
    FirstBatch,
    MalformedBlock,
    NearEnd,
    SharedBlock,
    Unallocated,
    UnallocatedId,
    UnallocatedReason,
)
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit

MAX_LISTED_IDS = 1000
"""Unallocated ids reported one by one: with the history of another cluster all of a million would be."""
_MAX_PLACED_IDS = 100_000
"""Ids outside every block whose first batches are kept while they are compared with the end of the history."""
_MAX_WAIT_FOR_ID_MS = 120_000
"""A record is stamped when the client takes it and may wait this long (delivery.timeout.ms) for its producer's id."""
_NEVER_MS = 2**63 - 1
_FILE_TIME_MS = 10_000
"""Clocks of brokers and controllers may differ this much, and archives keep whole or even seconds of file times."""


def _oldest(part: PartitionAudit) -> int:
    """Return the least timestamp of a partition's records."""
    return part.counts.min_timestamp if part.counts.min_timestamp >= 0 else _NEVER_MS


class BlockAudit(Struct):
    """One history, and its partitions by their numbers among all."""

    blocks: ClusterBlocks
    parts: Mapping[int, PartitionAudit]
    rescan: Rescan
    unlisted: list[NotAudited] = field(default_factory=list)

    def of_history(self) -> Iterator[MalformedBlock | NearEnd | SharedBlock]:
        """Yield what the history shows by itself, with the ids of the logs that it concerns."""
        yield from find_malformed(self.blocks.history)
        yield from find_near_end(self.blocks.steps)
        yield from find_shared_blocks(self.blocks.steps, self.blocks.coverage, self._ids())

    def unallocated(self) -> Iterator[tuple[int, UnallocatedId]]:
        """Yield the ids that no block holds, each with the number of the partition in which it is placed."""
        blocks = self.blocks
        outside = [found.producer_id for found in self._find(self._ids(), None)]
        wanted = np.array(outside[:_MAX_PLACED_IDS], dtype=np.int64)
        placed = self._first_batches(wanted, negative=any(step.exhausted for step in blocks.steps))
        known = np.array(sorted(placed), dtype=np.int64)
        times = np.array([self._granted_by(*placed[producer_id]) for producer_id in known.tolist()], dtype=np.int64)
        listed, later, more = 0, 0, len(outside) - len(wanted)
        for found in self._find(known, times):
            if found.reason is UnallocatedReason.BEYOND and found.after_history is not False:
                later += 1
            elif listed == MAX_LISTED_IDS:
                more += 1
            else:
                listed += 1
                number, first = placed[found.producer_id]
                count = sum(bool((part.producer_ids == found.producer_id).any()) for part in self.parts.values())
                by_client = found.reason is UnallocatedReason.BEYOND and not self._written_before_end(number, first)
                yield number, UnallocatedId(found, first, max(count, 1), blocks.following, blocks.origin, by_client)
        if later:
            self.unlisted.append(NotAudited(blocks.origin, self._not_checked(later)))
        if more:
            outside_all = f"{more:,} more producer ids outside every known block"
            self.unlisted.append(NotAudited(blocks.origin, f"{outside_all} are not reported one by one"))

    def _ids(self) -> NDArray[np.int64]:
        held = [part.producer_ids for part in self.parts.values() if len(part.producer_ids)]
        return np.unique(np.concatenate(held)) if held else np.empty(0, dtype=np.int64)

    def _find(self, ids: NDArray[np.int64], times: NDArray[np.int64] | None) -> Iterable[Unallocated]:
        blocks = self.blocks
        return find_unallocated(blocks.history, blocks.coverage, ids, times, complete=blocks.complete)

    def _first_batches(self, wanted: NDArray[np.int64], *, negative: bool) -> dict[int, tuple[int, FirstBatch]]:
        """Find each id's first batch in the partition of those that have it whose records are the oldest; negative ids wherever they are.

        Names do not count, so that a copy with other names has the same findings.
        """
        asked: list[tuple[int, Questions]] = []
        missing = wanted
        for number, part in sorted(self.parts.items(), key=lambda item: _oldest(item[1])):
            has = np.isin(missing, part.producer_ids)
            # only an exhausted counter hands out ids below 0, which rows do not keep
            questions = Questions(first_of=missing[has], negative=negative and part.counts.without_producer > 0)
            if questions:
                asked.append((number, questions))
            missing = missing[~has]
        answers = self.rescan([(self.parts[number].directory, questions) for number, questions in asked])
        placed: dict[int, tuple[int, FirstBatch]] = {}
        for (number, _), seen in zip(asked, answers, strict=True):
            for producer_id, first in seen.first.items():
                placed.setdefault(producer_id, (number, first))
        return placed

    def _granted_by(self, number: int, first: FirstBatch) -> int:
        """Return the time by which the id of this batch was granted, as its timestamp or its file's time shows."""
        if first.timestamp < 0:  # no time
            return _NEVER_MS
        return min(first.timestamp + _MAX_WAIT_FOR_ID_MS, self._written_by(number, first))

    def _written_by(self, number: int, first: FirstBatch) -> int:
        """Return the time by which a broker wrote this batch, as its file's time shows."""
        # A file is never older than what is in it, unless whoever copied it gave it another time.
        written = self.parts[number].directory.segments[first.segment].modified_ms + _FILE_TIME_MS
        return written if written >= first.timestamp else _NEVER_MS

    def _written_before_end(self, number: int, first: FirstBatch) -> bool:
        """Whether a broker's time shows that the batch was written before the history ends."""
        end = self.blocks.history.observed_until_ms
        written = first.timestamp + _FILE_TIME_MS if first.by_broker else self._written_by(number, first)
        return end is not None and written <= end

    def _not_checked(self, later: int) -> str:
        """Say where the history ends, and how many ids it could not show."""
        history = self.blocks.history
        ids, were = ("1 producer id", "was") if later == 1 else (f"{later:,} producer ids", "were")
        if history.observed_until_ms is None:
            return (
                f"the block history does not say when it ends: {ids} beyond its last block {were} not checked (KA401)"
            )
        time = rfc3339(history.observed_until_ms) or f"{history.observed_until_ms} ms"
        place = f" ({history.end_place})" if history.end_place else ""
        return f"the block history ends at {time}{place}: {ids} first seen later {were} not checked (KA401)"
