"""One batch held against the state before it: every observation with all its fields, and the whole state after it."""

import pytest
from msgspec.structs import replace

from kaudit.audits.sequences.sequence_audit import Producer, audit_batch, audit_end
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
    ProducerAuditState,
    RetainedBatch,
)

DAY_MS = 24 * 3600 * 1000
HIGHEST = 2**31 - 1
MISSING_UP_TO_0 = 2**31 - 10
"""Sequences from 10 up to the wrap."""


def batch(
    first: int, last: int, *, crc: int = 77, offset: int = 20, present: int | None = None, time: int = 1001
) -> BoundaryBatch:
    """Sequences; its offset, how many offsets before it the log covers (all, by default), and its time (ms)."""
    covered = offset if present is None else present
    return BoundaryBatch(offset, offset + 1, first, last, 3, crc, time, covered, 2000, 90, 4, 6)


def retained(added: BoundaryBatch) -> RetainedBatch:
    return RetainedBatch(added.base_offset, added.first_sequence, added.last_sequence, added.crc)


LAST = batch(8, 9, crc=104, offset=18, time=1000)
WINDOW = tuple(RetainedBatch(10 + 2 * number, 2 * number, 2 * number + 1, 100 + number) for number in range(5))
STATE = ProducerAuditState(
    3, 9, WINDOW, LAST, 100, coordinator_epoch=5, rebuilt_epoch=3, rebuilt_coordinator_epoch=5, last_timestamp=1000
)
LATER = replace(STATE, window=tuple(each._replace(first_sequence=each.first_sequence + 2) for each in WINDOW))
"""What is remembered begins at sequence 2."""
OPEN = replace(STATE, txn_first_offset=15, txn_first_timestamp=900, txn_position=1500, txn_segment=6, txn_records=4)
K = ObservationKind


def adopted(before: ProducerAuditState, added: BoundaryBatch, **more) -> ProducerAuditState:
    """The state with the batch as its newest one."""
    changed = {
        "last_sequence": added.last_sequence,
        "window": (*before.window, retained(added))[-5:],
        "last": added,
        "last_timestamp": added.max_timestamp,
    }
    return replace(before, **(changed | more))


def anew(before: ProducerAuditState, added: BoundaryBatch, **more) -> ProducerAuditState:
    """The state with the batch alone, which begins its epoch's sequences."""
    crc = added.crc if added.first_sequence == 0 else -1
    return adopted(replace(before, window=()), added, **({"start_crc": crc} | more))


def seen(before: ProducerAuditState, added: BoundaryBatch, **more) -> ProducerAuditState:
    """The state of a batch that is not adopted."""
    return replace(before, last_timestamp=added.max_timestamp, **more)


NEXT, AGAIN, OTHER = batch(10, 11), batch(4, 5, crc=102), batch(4, 5)
GAP, OVERLAP, INSIDE, AT_ZERO = batch(12, 13), batch(8, 11), batch(3, 4), batch(0, 1)
HIDDEN = batch(12, 13, offset=22, present=20)
"""Two offsets are missing before it."""
LATE = batch(10, 11, time=1000 + DAY_MS)
WRAPPED = replace(STATE, last_sequence=HIGHEST - 2)

Expected = list[tuple[ObservationKind, RetainedBatch | None, int, int, bool]]
"""Kind, what it repeats, missing sequences and offsets, whether these explain those."""
CASES: dict[str, tuple[ProducerAuditState | None, BoundaryBatch, int, ProducerAuditState, Expected]] = {
    "next": (STATE, NEXT, 3, adopted(STATE, NEXT), []),
    "again": (STATE, AGAIN, 3, seen(STATE, AGAIN), [(K.EXACT_DUPLICATE, WINDOW[2], 0, 0, False)]),
    "other content": (STATE, OTHER, 3, seen(STATE, OTHER), [(K.SAME_SEQUENCES, WINDOW[2], 0, 0, False)]),
    "gap": (STATE, GAP, 3, adopted(STATE, GAP), [(K.GAP, None, 2, 0, False)]),
    "gap of offsets too": (STATE, HIDDEN, 3, adopted(STATE, HIDDEN), [(K.GAP, None, 2, 2, True)]),
    "gap of fewer offsets": (
        STATE,
        (fewer := batch(12, 13, offset=21, present=20)),
        3,
        adopted(STATE, fewer),
        [(K.GAP, None, 2, 1, False)],
    ),
    "the longest gap": (
        STATE,
        (far := batch(9 + 2**30, 9 + 2**30)),
        3,
        adopted(STATE, far),
        [(K.GAP, None, 2**30 - 1, 0, False)],
    ),
    "one further is a step back": (
        STATE,
        (further := batch(10 + 2**30, 10 + 2**30)),
        3,
        seen(STATE, further),
        [(K.BEHIND_WINDOW, None, 0, 0, False)],
    ),
    "overlap": (STATE, OVERLAP, 3, adopted(STATE, OVERLAP), [(K.OVERLAP, None, 0, 0, False)]),
    "up to the last": (STATE, (to_last := batch(7, 9)), 3, seen(STATE, to_last), [(K.INSIDE, None, 0, 0, False)]),
    "inside": (STATE, INSIDE, 3, seen(STATE, INSIDE), [(K.INSIDE, None, 0, 0, False)]),
    "behind": (LATER, (early := batch(1, 1)), 3, seen(LATER, early), [(K.BEHIND_WINDOW, None, 0, 0, False)]),
    "partly behind": (LATER, (partly := batch(1, 2)), 3, seen(LATER, partly), [(K.INSIDE, None, 0, 0, False)]),
    "nothing remembered": (
        (bare := replace(STATE, window=())),
        INSIDE,
        3,
        seen(bare, INSIDE),
        [(K.INSIDE, None, 0, 0, False)],
    ),
    "restart": (LATER, AT_ZERO, 3, anew(LATER, AT_ZERO), [(K.SEQUENCE_RESTART, None, 0, 0, False)]),
    "restart over a remembered one": (
        STATE,
        AT_ZERO,
        3,
        anew(STATE, AT_ZERO),
        [(K.SEQUENCE_RESTART, WINDOW[0], 0, 0, False)],
    ),
    "the start again": (
        LATER,
        (start := batch(0, 1, crc=100)),
        3,
        seen(LATER, start),
        [(K.BEHIND_WINDOW, None, 0, 0, False)],
    ),
    "a gap over the wrap": (
        WRAPPED,
        (wrap := batch(0, 1, offset=22, present=20)),
        3,
        adopted(WRAPPED, wrap, start_crc=77),
        [(K.GAP, None, 2, 2, True)],
    ),
    "a restart near the wrap": (
        WRAPPED,
        (no_wrap := batch(0, 1, offset=21, present=20)),
        3,
        anew(WRAPPED, no_wrap),
        [(K.SEQUENCE_RESTART, WINDOW[0], 0, 0, False)],
    ),
    "on over the wrap": (
        (highest := replace(STATE, last_sequence=HIGHEST)),
        AT_ZERO,
        3,
        adopted(highest, AT_ZERO, start_crc=77),
        [],
    ),
    "a new epoch": (
        STATE,
        AT_ZERO,
        4,
        anew(STATE, AT_ZERO, epoch=4, rebuilt_epoch=4),
        [(K.CLIENT_BUMP, None, 0, 0, False)],
    ),
    "a new epoch after a marker of the old one": (
        (marked := replace(STATE, flags=MARKED_EPOCH | AFTER_MARKER)),
        AT_ZERO,
        4,
        anew(marked, AT_ZERO, epoch=4, rebuilt_epoch=4, flags=AFTER_MARKER),
        [(K.CLIENT_BUMP, None, 0, 0, False)],
    ),
    "an epoch of version 2": (
        (version_2 := replace(STATE, flags=TV2)),
        AT_ZERO,
        4,
        anew(version_2, AT_ZERO, epoch=4, rebuilt_epoch=4),
        [],
    ),
    "an instance of version 2 after an abort": (
        (aborted_2 := replace(STATE, flags=TV2 | ABORT_BUMPED)),
        AT_ZERO,
        4,
        anew(aborted_2, AT_ZERO, epoch=4, rebuilt_epoch=4, flags=TV2),
        [(K.CLIENT_BUMP, None, 0, 0, False)],
    ),
    "an epoch of version 2, two above an abort": (
        aborted_2,
        AT_ZERO,
        5,
        anew(aborted_2, AT_ZERO, epoch=5, rebuilt_epoch=5, flags=TV2),
        [],
    ),
    "a new epoch above 0": (
        STATE,
        (above := batch(2, 3)),
        4,
        anew(STATE, above, epoch=4, rebuilt_epoch=4),
        [(K.BUMP_NONZERO, None, 2, 0, False)],
    ),
    "a new epoch above 0, after missing offsets": (
        STATE,
        HIDDEN._replace(first_sequence=2, last_sequence=3),
        4,
        anew(STATE, HIDDEN._replace(first_sequence=2, last_sequence=3), epoch=4, rebuilt_epoch=4),
        [(K.BUMP_NONZERO, None, 2, 2, True)],
    ),
    "an old epoch": (
        (raised := replace(STATE, flags=ABORT_BUMPED)),
        NEXT,
        2,
        seen(raised, NEXT, rebuilt_epoch=2),
        [(K.STALE_BATCH, None, 0, 0, False)],
    ),
    "of the epoch that an abort raised": (raised, NEXT, 3, adopted(raised, NEXT, flags=0), []),
    "the first at 0": (None, AT_ZERO, 3, anew(ProducerAuditState(3, rebuilt_epoch=3), AT_ZERO), []),
    "the first above 0": (
        None,
        (unknown := batch(5, 6)),
        3,
        anew(ProducerAuditState(3, rebuilt_epoch=3), unknown),
        [(K.UNKNOWN_START, None, 5, 0, False)],
    ),
    "the first above 0, of a log that begins later": (
        None,
        (later := batch(5, 6, present=15)),
        3,
        anew(ProducerAuditState(3, rebuilt_epoch=3), later),
        [(K.UNKNOWN_START, None, 5, 5, True)],
    ),
    "above 0 after a marker": (
        (empty := replace(STATE, last_sequence=-1, window=(), start_crc=-1)),
        (unknown_2 := batch(5, 6)),
        3,
        adopted(empty, unknown_2),
        [(K.AFTER_MARKER, None, 5, 0, False)],
    ),
    "without sequences": (STATE, (no_sequence := batch(-1, -1)), 3, adopted(STATE, no_sequence), []),
    "few epochs left": (
        (high := replace(STATE, epoch=32_000, rebuilt_epoch=32_000)),
        NEXT,
        32_000,
        adopted(high, NEXT, flags=EXHAUSTION_REPORTED),
        [(K.NEARLY_EXHAUSTED, None, 0, 0, False)],
    ),
    "few epochs left, said before": (
        (said := replace(high, flags=EXHAUSTION_REPORTED)),
        NEXT,
        32_000,
        adopted(said, NEXT),
        [],
    ),
    "epochs enough": (
        (enough := replace(STATE, epoch=31_999, rebuilt_epoch=31_999)),
        NEXT,
        31_999,
        adopted(enough, NEXT),
        [],
    ),
    "outside the open transaction": (
        OPEN,
        NEXT,
        3,
        adopted(OPEN, NEXT, flags=OUTSIDE_REPORTED),
        [(K.OUTSIDE_TRANSACTION, None, 0, 0, False)],
    ),
    "outside it once more": (
        (told := replace(OPEN, flags=OUTSIDE_REPORTED)),
        NEXT,
        3,
        adopted(told, NEXT),
        [],
    ),
    "a day later": (
        STATE,
        LATE,
        3,
        adopted(STATE, LATE, flags=SILENCE_REPORTED),
        [(K.CONTINUED_AFTER_SILENCE, None, 0, 0, False)],
    ),
    "a day later once more": (
        (silent := replace(STATE, flags=SILENCE_REPORTED)),
        LATE,
        3,
        adopted(silent, LATE),
        [],
    ),
    "less than a day later": (
        STATE,
        (soon := LATE._replace(max_timestamp=999 + DAY_MS)),
        3,
        adopted(STATE, soon),
        [],
    ),
    "less than a day after a marker": (
        (ended := replace(STATE, last_timestamp=1001)),
        LATE,
        3,
        adopted(ended, LATE),
        [],
    ),
    "less than a day after a batch, which is later than the marker after it": (
        (ended_before := replace(STATE, last_timestamp=999)),
        soon,
        3,
        adopted(ended_before, soon),
        [],
    ),
    "a day later, of a new epoch": (
        STATE,
        (late_start := batch(0, 1, time=1000 + DAY_MS)),
        4,
        anew(STATE, late_start, epoch=4, rebuilt_epoch=4),
        [(K.CLIENT_BUMP, None, 0, 0, False)],
    ),
    "a day later, with a gap": (
        STATE,
        (late_gap := GAP._replace(max_timestamp=1000 + DAY_MS)),
        3,
        adopted(STATE, late_gap),
        [(K.GAP, None, 2, 0, False)],
    ),
    "a day later, after a marker of a new epoch": (
        empty,
        (late_zero := batch(0, 1, time=1000 + DAY_MS)),
        3,
        adopted(empty, late_zero, start_crc=77),
        [],
    ),
    "a day later, in a transaction": (
        OPEN,
        LATE,
        3,
        adopted(OPEN, LATE, flags=OUTSIDE_REPORTED),
        [(K.OUTSIDE_TRANSACTION, None, 0, 0, False)],
    ),
}  # fmt: skip


def observed(
    before: ProducerAuditState | None,
    own: BoundaryBatch,
    epoch: int,
    expected: Expected,
    *,
    transactional: bool = False,
) -> list[Observation]:
    return [
        Observation(kind, 7, epoch, own, None, transactional, before, original, sequences, offsets, explained=explained)
        for kind, original, sequences, offsets, explained in expected
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace(" ", "-").replace(",", ""))
def test_what_a_batch_shows_and_leaves(case):
    before, own, epoch, after, expected = CASES[case]
    state, observations = audit_batch(before, own, epoch, False, Producer(7, sequences_count=True))
    assert state == after
    assert list(observations) == observed(before, own, epoch, expected)


@pytest.mark.parametrize("case", ["gap", "again", "overlap", "a new epoch above 0", "the first above 0", "a day later"])
def test_where_sequences_do_not_count_each_batch_is_the_next(case):
    """In __consumer_offsets coordinators write for many producers."""
    before, own, epoch, _, _ = CASES[case]
    state, observations = audit_batch(before, own, epoch, False, Producer(7, sequences_count=False))
    assert state.last == own
    assert state.last_sequence == own.last_sequence
    assert [each.kind for each in observations] == ([K.CLIENT_BUMP] if epoch == 4 else [])


def begun(before: ProducerAuditState, own: BoundaryBatch, **more) -> ProducerAuditState:
    return adopted(
        before,
        own,
        txn_first_offset=own.base_offset,
        txn_first_timestamp=own.max_timestamp,
        txn_position=2000,
        txn_segment=6,
        txn_records=3,
        **more,
    )


@pytest.mark.parametrize(
    ("before", "epoch", "own", "after", "kinds"),
    [
        (STATE, 3, NEXT, begun(STATE, NEXT), []),
        (OPEN, 3, NEXT, adopted(OPEN, NEXT, txn_records=7), []),
        # a day later: transactions are never forgotten
        (OPEN, 3, LATE, adopted(OPEN, LATE, txn_records=7), []),
        (
            (own_marker := replace(STATE, flags=MARKED_EPOCH)),
            3,
            NEXT,
            begun(own_marker, NEXT, flags=MARKED_EPOCH | AFTER_MARKER),
            [],
        ),
        (
            (before_last := replace(STATE, flags=AFTER_MARKER)),
            3,
            NEXT,
            begun(before_last, NEXT, flags=0),
            [],
        ),
        (
            own_marker,
            4,
            AT_ZERO,
            begun(replace(own_marker, window=()), AT_ZERO, epoch=4, rebuilt_epoch=4, start_crc=77, flags=0),
            [K.RESTART_BUMP],
        ),
        (
            own_marker,
            2,
            NEXT,
            replace(
                begun(own_marker, NEXT),
                last_sequence=9,
                window=WINDOW,
                last=LAST,
                rebuilt_epoch=2,
            ),
            [K.STALE_BATCH],
        ),
    ],
    ids=["begins", "goes on", "goes on late", "after a marker", "after none", "of a new epoch", "of an old one"],
)  # fmt: skip
def test_transactions(before, epoch, own, after, kinds):
    state, observations = audit_batch(before, own, epoch, True, Producer(7, sequences_count=True))
    assert state == after
    expected: Expected = [(kind, None, 0, 0, False) for kind in kinds]
    assert list(observations) == observed(before, own, epoch, expected, transactional=True)


def test_an_abort_that_raised_the_epoch_is_reported_when_nothing_followed():
    state = replace(STATE, flags=ABORT_BUMPED, marker_offset=30, marker_timestamp=1500)
    marker = EndTxnMarker(30, 7, 3, 5, 0, 1500, -1, 0, -1, 0, 1, 0)
    (found,) = audit_end(state, 7)
    assert found == Observation(K.TIMEOUT_ABORT, 7, 3, None, marker, True, state)
    assert list(audit_end(replace(state, flags=ABORT_BUMPED | TV2), 7)) == []
