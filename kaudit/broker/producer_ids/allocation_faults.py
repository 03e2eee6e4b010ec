"""Faults of a block history, and producer ids of the logs that no block holds."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.broker.producer_ids.allocation_rules import Coverage, Step, StepKind
from kaudit.broker.producer_ids.block_history import (
    BLOCK_SIZE,
    FIRST_BLOCK_START,
    MAX_PRODUCER_ID,
    NO_BROKER,
    BlockHistory,
)
from kaudit.model.producer_ids import (
    BlockEntry,
    EntryKind,
    MalformedBlock,
    NearEnd,
    RegressionCause,
    SharedBlock,
    Unallocated,
    UnallocatedReason,
)

_MS_PER_DAY = 86_400_000


class Burn(Struct, frozen=True):
    """`blocks` granted between two times (ms since 1970), and what that means for the ids left after the last."""

    blocks: int
    since_ms: int
    until_ms: int
    ids_left: int

    @property
    def blocks_per_day(self) -> float:
        """Blocks granted in 24 hours at the observed rate, > 0."""
        return self.blocks * _MS_PER_DAY / (self.until_ms - self.since_ms)

    @property
    def days_left(self) -> float:
        """Days until the ids are exhausted at the observed rate."""
        return self.ids_left / BLOCK_SIZE / self.blocks_per_day


class BurnMeter:
    """Counts regular grants over time: a jump uses up ids, yet says nothing about the next day."""

    def __init__(self) -> None:
        self._blocks = 0
        self._since_ms: int | None = None
        self._until_ms: int | None = None
        self._last_end: int | None = None

    def note(self, step: Step) -> None:
        """Count one step of a replayed history; those without a time or a block count nothing."""
        if step.entry.at_ms is None or step.entry.end is None:
            return
        if self._since_ms is None:
            self._since_ms = step.entry.at_ms
        elif step.kind is StepKind.NEXT:
            self._blocks += 1
        self._until_ms = step.entry.at_ms
        self._last_end = step.entry.end

    def read(self) -> Burn | None:
        """Return the rate so far, None before a second block at a later time."""
        since, until, end = self._since_ms, self._until_ms, self._last_end
        if since is None or until is None or end is None or until <= since or not self._blocks:
            return None
        return Burn(self._blocks, since, until, max(MAX_PRODUCER_ID - end, 0))


def measure_burn(steps: Iterable[Step]) -> Burn | None:
    """Return the rate of grants over a whole history, None when it shows no two blocks with times."""
    meter = BurnMeter()
    for step in steps:
        meter.note(step)
    return meter.read()


NEAR_END_BLOCKS = 1_000_000
"""this many blocks left are a milliard ids, months for a cluster that opens producers in a loop."""

NEAR_END_DAYS = 365
"""at the observed rate of grants the ids last no longer than this."""

_EXAMPLES = 10


def find_unallocated(
    history: BlockHistory,
    coverage: Coverage,
    producer_ids: NDArray[np.int64],
    granted_by_ms: NDArray[np.int64] | None,
    *,
    complete: bool,
) -> Iterator[Unallocated]:
    """Find the ids (each once, any order) in no block of the history.

    `granted_by_ms` are the times by which their producers must have had them, in the same order, or None when unknown.
    Of an incomplete history ids before its first block are left out: it does not reach back to them. A history without
    any block proves nothing and yields nothing. `complete` is the answer of allocation_rules.is_complete.
    """
    bounds = coverage.bounds
    if bounds is None:
        return
    granted = [entry for entry in history.entries if entry.kind is EntryKind.GRANTED and entry.end is not None]
    granted.sort(key=lambda entry: entry.end or 0)
    ends = [entry.end or 0 for entry in granted]
    for index in np.flatnonzero(~coverage.contains(producer_ids)):
        producer_id = int(producer_ids[index])
        reason = _reason(producer_id, bounds)
        if reason is UnallocatedReason.BEFORE and not complete:
            continue
        below = bisect_right(ends, producer_id) - 1
        after: bool | None = None
        if granted_by_ms is not None and history.observed_until_ms is not None:
            after = int(granted_by_ms[index]) > history.observed_until_ms
        # A negative id is nobody's, whatever the history leaves out.
        proven = complete or reason is UnallocatedReason.NEGATIVE
        yield Unallocated(producer_id, reason, granted[below] if below >= 0 else None, proven, after)


def _reason(producer_id: int, bounds: tuple[int, int]) -> UnallocatedReason:
    if producer_id < 0:
        return UnallocatedReason.NEGATIVE
    if producer_id > bounds[1]:
        return UnallocatedReason.BEYOND
    return UnallocatedReason.BEFORE if producer_id < bounds[0] else UnallocatedReason.BETWEEN


def find_shared_blocks(steps: list[Step], coverage: Coverage, producer_ids: NDArray[np.int64]) -> Iterator[SharedBlock]:
    """Find overlapping grants and the ids of `producer_ids` (each once) that two producers may have got."""
    ordered = np.sort(producer_ids)
    causes: dict[int, RegressionCause | None] = {}
    cause: RegressionCause | None = None
    for step in steps:
        cause = step.cause or cause
        causes[id(step.entry)] = cause
    for overlap in coverage.overlaps:
        low = int(np.searchsorted(ordered, overlap.first, side="left"))
        high = int(np.searchsorted(ordered, overlap.last, side="right"))
        examples = tuple(int(value) for value in ordered[low : min(high, low + _EXAMPLES)])
        yield SharedBlock(overlap, causes[id(overlap.later)], high - low, examples)


def find_malformed(history: BlockHistory) -> Iterator[MalformedBlock]:
    """Find values that are no block, a block of another size or range, or of a version no broker writes."""
    for entry in history.entries:
        defects = (*entry.oddities, *_defects(entry))
        if defects:
            yield MalformedBlock(entry, defects)


def _defects(entry: BlockEntry) -> Iterator[str]:
    if entry.start is None or entry.end is None:
        return
    size = entry.end - entry.start + 1
    if size <= 0:
        yield f"the block ends at {entry.end}, before it starts at {entry.start}"
    elif size != BLOCK_SIZE:
        yield f"the block holds {size} ids instead of {BLOCK_SIZE}"
    if entry.start < FIRST_BLOCK_START:
        yield f"the block starts at the negative id {entry.start}"
    if entry.end > MAX_PRODUCER_ID:
        yield f"the block ends at {entry.end}, beyond the largest producer id"
    if entry.broker is not None and entry.broker < NO_BROKER:
        yield f"the broker id {entry.broker} is negative"


def find_near_end(steps: list[Step]) -> Iterator[NearEnd]:
    """Find the blocks with which the counter came near its end, and those after which none can follow."""
    near = False
    meter = BurnMeter()
    for step in steps:
        entry = step.entry
        if step.kind is StepKind.NO_BLOCK or entry.end is None:
            continue
        meter.note(step)
        left = max(MAX_PRODUCER_ID - entry.end, 0)
        burn = meter.read()
        days = burn.days_left if burn else None
        was_near, near = near, left < NEAR_END_BLOCKS * BLOCK_SIZE or (days is not None and days < NEAR_END_DAYS)
        if near and (not was_near or step.exhausted):
            yield NearEnd(entry, left, days, step.exhausted)
