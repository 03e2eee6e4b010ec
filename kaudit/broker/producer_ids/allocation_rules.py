"""Which grants of producer ids the rules of allocation permit, and which ids they cover."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.broker.producer_ids.block_history import (
    BLOCK_SIZE,
    FIRST_BLOCK_START,
    LAST_CONTINUABLE_END,
    MAX_PRODUCER_ID,
    MIN_INT64,
    NO_BROKER_EPOCH,
    BlockHistory,
)
from kaudit.model.producer_ids import BlockEntry, BlockOverlap, EntryKind, RegressionCause


class StepKind(StrEnum):
    """How an entry follows from those before it."""

    FIRST = "first"  # block 0-999 of a new counter
    BEGINS_LATER = "begins-later"  # the history starts here, the counter did not
    NEXT = "next"  # the rule
    REPEATED = "repeated"  # the same broker's same block once more, as one write seen twice or one value set again
    JUMPED = "jumped"  # blocks left out by one write: no broker does that, nobody got those ids
    UNSEEN = "unseen"  # blocks in between that this history does not show
    REGRESSED = "regressed"  # back to ids granted before: they are handed out twice
    NO_BLOCK = "no-block"  # the counter was created empty, deleted or made unreadable


class Step(Struct, frozen=True):
    """One entry, and what it is after those before it. `skipped` are the first and last id left out (JUMPED, UNSEEN), `cause` is of a regression.

    `expected` are the starts the rules allow here, empty where the history begins. `exhausted`: no block can follow.
    """

    entry: BlockEntry
    kind: StepKind
    expected: tuple[int, ...] = ()
    skipped: tuple[int, int] | None = None
    cause: RegressionCause | None = None
    exhausted: bool = False


def replay(history: BlockHistory) -> list[Step]:
    """Classify every entry by those before it."""
    steps: list[Step] = []
    state = _State()
    for entry in history.entries:
        step = _classify(state, entry)
        steps.append(step)
        state = _after(state, entry)
    return steps


def is_complete(steps: list[Step]) -> bool:
    """Return whether the history shows every block from 0-999 to its end, so that absence proves.

    It says nothing of what was granted after BlockHistory.observed_until_ms: see Unallocated.after_history.
    """
    moves = [step.kind for step in steps if step.kind is not StepKind.NO_BLOCK]
    return bool(moves) and moves[0] is StepKind.FIRST and StepKind.UNSEEN not in moves


def next_block(history: BlockHistory) -> tuple[int, int] | None:
    """Return the block the next broker will get, None when the ids are used up or it is unknown."""
    state = _State()
    for entry in history.entries:
        state = _after(state, entry)
    unreadable = state.before is not None and state.before.kind is EntryKind.UNREADABLE
    if unreadable or not state.expected or state.expected[0] > LAST_CONTINUABLE_END + 1:
        return None
    return state.expected[0], state.expected[0] + BLOCK_SIZE - 1


class _State(Struct, frozen=True):
    """The counter before an entry: `last` granted or reserved, `before` of any kind, starts `expected` next."""

    last: BlockEntry | None = None
    before: BlockEntry | None = None
    expected: tuple[int, ...] = ()
    highest: int = -1


def _after(state: _State, entry: BlockEntry) -> _State:
    match entry.kind:
        case EntryKind.EMPTY | EntryKind.DELETED:
            return _State(None, entry, (FIRST_BLOCK_START,), state.highest)
        case EntryKind.UNREADABLE:
            return _State(state.last, entry, state.expected, state.highest)
    assert entry.start is not None
    assert entry.end is not None
    if entry.kind is EntryKind.RESERVED:
        # The controller goes on at the start of what it reserved, ZooKeeper's brokers after it.
        return _State(entry, entry, (entry.start, entry.end + 1), state.highest)
    return _State(entry, entry, (entry.end + 1,), max(state.highest, entry.end))


def _classify(state: _State, entry: BlockEntry) -> Step:  # noqa: PLR0911 - one return per rule, in the broker's order
    if entry.start is None or entry.end is None:
        return Step(entry, StepKind.NO_BLOCK, state.expected)
    exhausted = entry.end > LAST_CONTINUABLE_END
    before = state.before
    if before is None or not state.expected:
        kind = StepKind.FIRST if entry.start == FIRST_BLOCK_START else StepKind.BEGINS_LATER
        return Step(entry, kind, exhausted=exhausted)
    if entry.start in state.expected:
        kind = StepKind.NEXT if state.last else StepKind.FIRST
        if entry.start <= state.highest and entry.kind is EntryKind.GRANTED and not state.last:
            return Step(entry, StepKind.REGRESSED, state.expected, cause=RegressionCause.RECREATED, exhausted=exhausted)
        return Step(entry, kind, state.expected, exhausted=exhausted)
    if state.last and _same_grant(state.last, entry) and not _rewound(state.last, entry):
        return Step(entry, StepKind.REPEATED, state.expected, exhausted=exhausted)
    nearest = max(state.expected)
    if entry.start > nearest:
        kind = StepKind.JUMPED if _directly_after(before, entry) else StepKind.UNSEEN
        return Step(entry, kind, state.expected, (nearest, entry.start - 1), exhausted=exhausted)
    return Step(entry, StepKind.REGRESSED, state.expected, cause=_cause(state.last, entry), exhausted=exhausted)


def _same_grant(last: BlockEntry, entry: BlockEntry) -> bool:
    return (last.kind, last.start, last.end, last.broker) == (entry.kind, entry.start, entry.end, entry.broker)


def _rewound(last: BlockEntry, entry: BlockEntry) -> bool:
    """Return whether the znode's version went back, as after a restored backup: its blocks are granted once more."""
    return last.version is not None and entry.version is not None and entry.version <= last.version


def _directly_after(before: BlockEntry, entry: BlockEntry) -> bool:
    """Return whether nothing was written between the two: the znode's versions follow each other, or it is new."""
    return entry.version == 0 or (before.version is not None and entry.version == before.version + 1)


def _cause(last: BlockEntry | None, entry: BlockEntry) -> RegressionCause:
    copied = entry.broker_epoch == NO_BROKER_EPOCH
    changed_hands = last is not None and last.zxid is not None and entry.offset is not None
    if copied or changed_hands:
        return RegressionCause.MIGRATION
    if last is not None and (last.start, last.end) == (entry.start, entry.end) and not _rewound(last, entry):
        return RegressionCause.SAME_BLOCK
    return RegressionCause.SET_BACK


class _Holders(Struct, frozen=True):
    """The grants of a range of ids, newest first, as a list that shares its tail with other ranges."""

    grant: BlockEntry
    older: "_Holders | None"


class _IdRange(Struct, frozen=True):
    first: int
    last: int
    holders: _Holders


class Coverage:
    """The ids granted, as disjoint ranges. Built once per history; memory grows with the number of grants.

    A step that repeats a grant counts once, see StepKind.REPEATED. Blocks that end before they start cover nothing.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._ranges: list[_IdRange] = []
        self._starts: list[int] = []
        self.overlaps: list[BlockOverlap] = []
        for step in steps:
            if step.entry.kind is EntryKind.GRANTED and step.kind is not StepKind.REPEATED:
                self._grant(step.entry)
        self._firsts = np.array([part.first for part in self._ranges], dtype=np.int64)
        self._lasts = np.array([part.last for part in self._ranges], dtype=np.int64)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The lowest and highest id granted, None when none was."""
        return (self._ranges[0].first, self._ranges[-1].last) if self._ranges else None

    def holders(self, producer_id: int) -> tuple[BlockEntry, ...]:
        """List the grants the id lies in, oldest first: none, one, or several when blocks overlap."""
        index = bisect_right(self._starts, producer_id) - 1
        if index < 0 or self._ranges[index].last < producer_id:
            return ()
        found: list[BlockEntry] = []
        node: _Holders | None = self._ranges[index].holders
        while node is not None:
            found.append(node.grant)
            node = node.older
        return tuple(reversed(found))

    def contains(self, producer_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each id whether any grant holds it."""
        if not self._ranges:
            return np.zeros(len(producer_ids), dtype=np.bool_)
        index = np.searchsorted(self._firsts, producer_ids, side="right") - 1
        inside: NDArray[np.bool_] = (index >= 0) & (producer_ids <= self._lasts[np.maximum(index, 0)])
        return inside

    def _grant(self, entry: BlockEntry) -> None:
        assert entry.start is not None
        assert entry.end is not None
        # Ids are int64: what a forged block claims beyond them cannot be seen in any log.
        start, end = max(entry.start, MIN_INT64), min(entry.end, MAX_PRODUCER_ID)
        if end < start:
            return
        low = bisect_right(self._starts, start) - 1
        if low < 0 or self._ranges[low].last < start:
            low += 1
        high = bisect_right(self._starts, end)
        touched = self._ranges[low:high]
        replacement = list(_laid_over(touched, entry, start, end))
        self._ranges[low:high] = replacement
        self._starts[low:high] = [part.first for part in replacement]
        for part in touched:
            self._note(part, entry, max(part.first, start), min(part.last, end))

    def _note(self, part: _IdRange, entry: BlockEntry, first: int, last: int) -> None:
        earlier = part.holders.grant
        known = self.overlaps[-1] if self.overlaps else None
        if known and known.later is entry and known.earlier is earlier and known.last + 1 == first:
            self.overlaps[-1] = BlockOverlap(earlier, entry, known.first, last)
        else:
            self.overlaps.append(BlockOverlap(earlier, entry, first, last))


def _laid_over(touched: list[_IdRange], entry: BlockEntry, start: int, end: int) -> Iterator[_IdRange]:
    """Lay the grant over the ranges it touches: these are split, the holes between them filled."""
    free = start
    for part in touched:
        if part.first < start:
            yield _IdRange(part.first, start - 1, part.holders)
        first, last = max(part.first, start), min(part.last, end)
        if free < first:
            yield _IdRange(free, first - 1, _Holders(entry, None))
        yield _IdRange(first, last, _Holders(entry, part.holders))
        free = last + 1
        if part.last > end:
            yield _IdRange(end + 1, part.last, part.holders)
    if free <= end:
        yield _IdRange(free, end, _Holders(entry, None))
