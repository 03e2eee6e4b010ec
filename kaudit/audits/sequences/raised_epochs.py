"""Producers in distress: epochs raised, or sessions begun, again and again within a short time.

A client of 2.5 or later raises its epoch after an error that it cannot resolve: a delivery that timed out in flight, or a batch that
the broker refused (KIP-360). One such rise is an accident of the network; many in a row are sends that fail. A transactional id whose
transactions are cut short by one new instance after another restarts in a loop, or two instances of it fence each other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from kaudit.model.application_logs import LogEvent
from kaudit.model.grouping import grouped
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import GivenUpSends, RaisedEpochs, RepeatedSession, RepeatedStarts
from kaudit.model.producer_state import ABORT_BUMPED

MIN_SERIES = 5
"""Fewer are what a rolling restart of brokers, or one deployment, may leave, unless they are close together."""
MIN_CLOSE, CLOSE_MS = 3, 60_000
"""So many rises by a client are enough where one comes this soon after the other, on average."""
MAX_PAUSE_MS = 300_000
"""Rises further apart are not of one trouble: a batch fails after delivery.timeout.ms, two minutes by default."""
_BY_CLIENT = (ObservationKind.CLIENT_BUMP, ObservationKind.BUMP_NONZERO)
_T = TypeVar("_T")


def raised_epochs(
    observations: Iterable[Observation],
    newest: Mapping[int, tuple[int, int]],
    given_up: Mapping[int, Sequence[GivenUpSends]],
    fenced: Mapping[int, Sequence[LogEvent]],
) -> Iterator[RaisedEpochs]:
    """Yield each series of rises of one producer id and kind; `newest` is the last epoch and sequence of ids, where known.

    `given_up` and `fenced` are what logs say of the partition, by producer id.
    """
    series = grouped(
        ((observation.producer_id, observation.is_transactional), observation)
        for observation in observations
        if _raised_by_client(observation) or _is_cut_short(observation)
    )
    for (producer_id, _), rises in series.items():
        ends = {rise.remembered.epoch: rise.remembered.last_sequence for rise in rises if rise.remembered is not None}
        if producer_id in newest:
            epoch, last_sequence = newest[producer_id]
            ends.setdefault(epoch, last_sequence)
        for found in _close_together(rises, [_time(rise) for rise in rises]):
            rising = RaisedEpochs(found, ends)
            if len(found) >= MIN_SERIES or _is_close(rising):
                own = range(rising.first_epoch, rising.last_epoch + 1)
                sends = [each for each in given_up.get(producer_id, ()) if each.producer_epoch in own]
                yield RaisedEpochs(found, ends, sends, fenced.get(producer_id, ()))


def often_raised(observations: Iterable[Observation]) -> Sequence[int]:
    """Return the producer ids whose clients raised their epochs so often that their last sequence is of interest."""
    rises = Counter(observation.producer_id for observation in observations if _raised_by_client(observation))
    return [producer_id for producer_id, number in rises.items() if number >= MIN_CLOSE]


def repeated_starts(sessions: Iterable[RepeatedSession]) -> Iterator[RepeatedStarts]:
    """Yield sessions, one begun soon after the other, each of which wrote again what one before it had written."""
    ordered = sorted(sessions, key=lambda session: session.first_offset)
    for found in _close_together(ordered, [session.batch.max_timestamp for session in ordered]):
        if len(found) >= MIN_SERIES:
            yield RepeatedStarts(found)


def _is_close(rising: RaisedEpochs) -> bool:
    first, last = rising.times
    number = len(rising.rises)
    return not rising.rises[0].is_transactional and number >= MIN_CLOSE and abs(last - first) <= number * CLOSE_MS


def _raised_by_client(observation: Observation) -> bool:
    return observation.kind in _BY_CLIENT and not observation.is_transactional


def _is_cut_short(observation: Observation) -> bool:
    """Whether a new instance began where the coordinator had just aborted a transaction, and not where one had ended."""
    state = observation.remembered
    return observation.kind is ObservationKind.RESTART_BUMP and state is not None and bool(state.flags & ABORT_BUMPED)


def _time(rise: Observation) -> int:
    assert rise.batch is not None
    return rise.batch.max_timestamp


def _close_together(items: Sequence[_T], times: Sequence[int]) -> Iterator[list[_T]]:
    """Yield the items in groups between pauses; times go back where applications give them."""
    group = list(items[:1])
    for item, (before, time) in zip(items[1:], pairwise(times), strict=True):
        if abs(time - before) > MAX_PAUSE_MS:
            yield group
            group = []
        group.append(item)
    if group:
        yield group
