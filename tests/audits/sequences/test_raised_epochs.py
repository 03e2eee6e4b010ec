"""Series of raised epochs and of repeated starts: both sides of each bound."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.audits.sequences.raised_epochs import often_raised, raised_epochs, repeated_starts
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import GivenUpSends, RaisedEpochs, RepeatedSession, RepeatedStarts
from kaudit.model.producer_state import ABORT_BUMPED, TV2, ProducerAuditState

MINUTE = 60_000
CLIENT, ABOVE_ZERO, RESTART = ObservationKind.CLIENT_BUMP, ObservationKind.BUMP_NONZERO, ObservationKind.RESTART_BUMP


def rise(
    epoch: int, time: int, kind=CLIENT, *, transactional=False, flags: int = 0, producer_id: int = 7
) -> Observation:
    """The first batch of an epoch, after one that ended at sequence 10 times the epoch before."""
    batch = BoundaryBatch(epoch, epoch, 0, 0, 1, 1, time, epoch, 0, 90, 0, 0)
    state = ProducerAuditState(epoch - 1, 10 * (epoch - 1), flags=flags)
    return Observation(kind, producer_id, epoch, batch, None, transactional, state)


def rises(count: int, step: int, kind=CLIENT, **more) -> list[Observation]:
    return [rise(1 + number, 1000 + step * number, kind, **more) for number in range(count)]


def found(observations, newest=None, given_up=None, fenced=None) -> list[RaisedEpochs]:
    return list(raised_epochs(observations, newest or {}, given_up or {}, fenced or {}))


@pytest.mark.parametrize(
    ("observations", "series"),
    [
        (rises(5, 4 * MINUTE), [[1, 2, 3, 4, 5]]),
        (rises(4, 4 * MINUTE), []),
        # three are enough at one a minute on average
        (rises(3, 90_000), [[1, 2, 3]]),
        ([rise(1, 1000), rise(2, 2000), rise(3, 1000 + 3 * MINUTE)], [[1, 2, 3]]),
        ([rise(1, 1000), rise(2, 2000), rise(3, 1001 + 3 * MINUTE)], []),
        ([rise(1, 1000 + 3 * MINUTE), rise(2, 2000), rise(3, 1000)], [[1, 2, 3]]),
        ([rise(1, 1001 + 3 * MINUTE), rise(2, 2000), rise(3, 1000)], []),
        (rises(2, 1000), []),
        # five minutes apart are still one trouble
        (rises(5, 5 * MINUTE), [[1, 2, 3, 4, 5]]),
        (rises(5, 5 * MINUTE + 1), []),
        (rises(5, -5 * MINUTE), [[1, 2, 3, 4, 5]]),
        (rises(5, -5 * MINUTE - 1), []),
        (rises(3, 1000) + [rise(number, 10**9 + number) for number in (7, 8, 9)], [[1, 2, 3], [7, 8, 9]]),
        (rises(3, 1000, ABOVE_ZERO), [[1, 2, 3]]),
        # a transactional producer's epochs are raised by its coordinator: only new instances after an abort count, from five on
        (rises(5, 1000, transactional=True), []),
        (rises(5, 1000, ABOVE_ZERO, transactional=True), []),
        (rises(5, 1000, RESTART, transactional=True, flags=ABORT_BUMPED), [[1, 2, 3, 4, 5]]),
        (rises(5, 1000, RESTART, transactional=True, flags=ABORT_BUMPED | TV2), [[1, 2, 3, 4, 5]]),
        (rises(4, 1000, RESTART, transactional=True, flags=ABORT_BUMPED), []),
        (rises(5, 1000, RESTART, transactional=True), []),
        ([replace(each, remembered=None) for each in rises(5, 1000, RESTART, transactional=True)], []),
        (rises(5, 1000, ObservationKind.GAP), []),
        # each producer id by itself
        (rises(2, 1000) + rises(2, 1000, producer_id=8), []),
        (rises(3, 1000) + rises(3, 1000, producer_id=8), [[1, 2, 3], [1, 2, 3]]),
        ([], []),
    ],
)  # fmt: skip
def test_which_rises_are_a_series(observations, series):
    assert [[each.producer_epoch for each in one.rises] for one in found(observations)] == series


def test_what_is_known_of_a_series():
    sends = [GivenUpSends(epoch, 5, 9) for epoch in (0, 1, 3, 4)]
    fenced: list[Any] = ["of 7"]
    observations = rises(3, 1000)
    (one,) = found(observations, {7: (3, 44), 8: (1, 1)}, {7: sends, 8: sends}, {7: fenced, 8: ["of 8"]})
    assert one == RaisedEpochs(observations, {0: 0, 1: 10, 2: 20, 3: 44}, sends[:3], fenced)
    # the newest epoch is one of those before a rise: that it had ended is known better
    (one,) = found(observations, {7: (2, 44)})
    assert one == RaisedEpochs(observations, {0: 0, 1: 10, 2: 20}, [], ())


def test_producers_whose_last_sequence_is_of_interest():
    observations = [*rises(3, 1), *rises(2, 1, producer_id=8), *rises(3, 1, RESTART, producer_id=9)]
    observations += rises(3, 1, transactional=True, producer_id=10)
    assert list(often_raised(observations)) == [7]


def sessions(count: int, step: int, start: int = 0) -> list[RepeatedSession]:
    def one(number: int) -> RepeatedSession:
        offset = start + 100 * number
        batch = BoundaryBatch(offset, offset, 0, 0, 1, 1, 1000 + step * number, offset, 0, 90, 0, 0)
        return RepeatedSession(7 + number, 0, offset, offset + 9, 6, 0, 0, 9, 10, True, batch, batch)

    return [one(number) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "step", "series"),
    [(5, 5 * MINUTE, 1), (6, 1000, 1), (4, 1000, 0), (5, 5 * MINUTE + 1, 0)],
)
def test_which_starts_are_a_series(count, step, series):
    given = sessions(count, step)
    assert list(repeated_starts(reversed(given))) == [RepeatedStarts(given)] * series
