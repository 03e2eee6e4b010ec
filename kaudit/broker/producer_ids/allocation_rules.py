"""The allocation rules replayed over a history: which step followed from the one before, and which did not.

Rules: the first block is 0-999, the next starts at the end of the last plus one; a restarted broker drops the rest of
its block, so ids (not blocks) are sparse. The znode is updated on condition of its version, so each version follows
from the one before, and a broker that lost the answer finds its own write and keeps it: one grant, not two.
"""

from enum import StrEnum

from msgspec import Struct

from kaudit.broker.producer_ids.block_history import BlockHistory
from kaudit.broker.producer_ids.blocks import (
    BLOCK_SIZE,
    FIRST_BLOCK_START,
    LAST_CONTINUABLE_END,
    NO_BROKER_EPOCH,
)
from kaudit.model.producer_ids import BlockEntry, EntryKind, RegressionCause


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
    """One entry judged. `skipped` are the first and last id left out (JUMPED, UNSEEN), `cause` is of a regression.

    `expected` are the starts the rules allow here, empty where the history begins. `exhausted`: no block can follow.
    """

    entry: BlockEntry
    kind: StepKind
    expected: tuple[int, ...] = ()
    skipped: tuple[int, int] | None = None
    cause: RegressionCause | None = None
    exhausted: bool = False


def replay(history: BlockHistory) -> list[Step]:
    """Judge every entry against the ones before it."""
    steps: list[Step] = []
    state = _State()
    for entry in history.entries:
        step = _judge(state, entry)
        steps.append(step)
        state = _after(state, entry)
    return steps


def is_complete(steps: list[Step]) -> bool:
    """Return whether the history reaches back to block 0-999 and shows every block since, so that absence proves."""
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
        # The controller goes on at the start of what it reserved, ZooKeeper's brokers behind it.
        return _State(entry, entry, (entry.start, entry.end + 1), state.highest)
    return _State(entry, entry, (entry.end + 1,), max(state.highest, entry.end))


def _judge(state: _State, entry: BlockEntry) -> Step:  # noqa: PLR0911 - one return per rule, in the broker's order
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
