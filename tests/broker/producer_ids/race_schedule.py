"""Races of brokers for blocks: a schedule of choices, a seed's or a test's, decides whose exchange comes next.

The same choices give the same run, so an interleaving that breaks a rule can be shown and run again.
"""

import random
from collections.abc import Generator, Iterable, Iterator
from enum import IntEnum
from itertools import pairwise

from msgspec import Struct, field

from kaudit.broker.producer_ids.allocators import Exchange, ExchangeOutcome, Grant, Store, acquire

_SEEDED_RANGE = 2**16


class _Turn(IntEnum):
    ANSWERED = 0
    ANSWER_LOST = 1
    REQUEST_LOST = 2
    CRASH = 3
    CRASH_WITH_WRITE_ON_ITS_WAY = 4
    LATE_WRITE_ARRIVES = 5


_FATES = {
    _Turn.ANSWERED: ExchangeOutcome.ANSWERED,
    _Turn.ANSWER_LOST: ExchangeOutcome.ANSWER_LOST,
    _Turn.REQUEST_LOST: ExchangeOutcome.REQUEST_LOST,
}


class Race(Struct):
    """What happened: the blocks brokers believe to be theirs, in order, and a line for every exchange."""

    grants: list[Grant] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def granted_twice(self) -> list[tuple[Grant, Grant]]:
        """List pairs of grants that share ids."""
        ordered = sorted(self.grants, key=lambda grant: grant.start)
        return [(one, two) for one, two in pairwise(ordered) if two.start <= one.end]


def seeded_choices(seed: int, count: int) -> Iterator[int]:
    """Yield `count` choices that depend on `seed` alone."""
    source = random.Random(seed)
    return (source.randrange(_SEEDED_RANGE) for _ in range(count))


def race(store: Store, brokers: int, choices: Iterable[int]) -> Race:
    """Let `brokers` (> 0) brokers acquire blocks one after the other, each choice (>= 0) being one turn.

    A choice's remainder by `brokers` is the broker, the quotient's remainder by 6 what happens: an exchange answered,
    its answer lost, its request lost, a crash and restart, the same with its write still on the way, a late write of a
    dead process arriving.
    """
    outcome = Race()
    processes = [_Process(broker, store) for broker in range(brokers)]
    late: list[Exchange] = []
    for choice in choices:
        process = processes[choice % brokers]
        turn = _Turn(choice // brokers % len(_Turn))
        if turn in _FATES:
            process.exchange(_FATES[turn], outcome)
        elif turn is _Turn.LATE_WRITE_ARRIVES:
            _deliver(late, store, outcome)
        else:
            if turn is _Turn.CRASH_WITH_WRITE_ON_ITS_WAY and process.pending.grant:
                late.append(process.pending)
            outcome.lines.append(f"broker {process.broker} restarts")
            processes[process.broker] = _Process(process.broker, store)
    return outcome


def _deliver(late: list[Exchange], store: Store, outcome: Race) -> None:
    if late:
        write = late.pop(0)
        assert write.grant is not None
        done = store.update(write.grant.value(), write.expected_version)
        outcome.lines.append(f"late: broker {write.grant.broker} {write.what}: {'written' if done else 'refused'}")


class _Process:
    """One incarnation of a broker, always about to do `pending`."""

    def __init__(self, broker: int, store: Store) -> None:
        self.broker = broker
        self._store = store
        self._begin()

    def _begin(self) -> None:
        self._steps: Generator[Exchange, ExchangeOutcome, Grant] = acquire(self.broker, self._store)
        self.pending = next(self._steps)

    def exchange(self, fate: ExchangeOutcome, outcome: Race) -> None:
        """Do what is pending, with this fate."""
        outcome.lines.append(f"broker {self.broker} {self.pending.what}: {fate}")
        try:
            self.pending = self._steps.send(fate)
        except StopIteration as finished:
            grant: Grant = finished.value
            outcome.grants.append(grant)
            outcome.lines.append(f"broker {self.broker} has {grant.start}-{grant.end}")
            self._begin()
