"""Every history of three or four steps over small alphabets, all in one log, one producer id each, against the reference.

Generated histories (test_law.py) have three producers and long lives; here are thousands of producers side by side, so that
what numpy does for many at once meets every neighbourhood of steps, in one chunk and with a cut after each step.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from unittest.mock import patch

import pytest

from kaudit.audits.sequences.transition_audit import TransitionAudit
from tests.logs import BASE_TIMESTAMP, WRAP, Batch, Log, data, marker
from tests.properties.audit_reference import DAY_MS, Reference
from tests.properties.test_law import assert_observed, decode, replay_rows

LEADER_EPOCHS = (1, 1, 2, 4)
"""By step: a change of leader between steps, and one that skips an epoch."""
HOUR_MS = 3_600_000
HOLE_BEFORE, HOLE = 2, 2
"""Offsets that no batch covers, before the third step; in one world more than there are sequences."""


@dataclass
class Producer:
    """What a producer would send next."""

    producer_id: int
    epoch: int
    sequence: int
    clock: int = BASE_TIMESTAMP
    sent: Batch | None = None
    """Its last batch of data."""

    def send(
        self, epoch: int = 0, sequence: int | None = None, count: int = 1, *, transactional: bool = False
    ) -> Batch:
        """The next batch; `epoch`: how far it is raised, `sequence`: where it begins, if not with the next one."""
        self.clock += 1
        first = self.sequence if sequence is None else sequence
        batch = data(
            self.producer_id, self.epoch + epoch, first, count, transactional=transactional, timestamp=self.clock
        )
        if epoch >= 0:
            self.epoch, self.sequence, self.sent = self.epoch + epoch, (first + count) % WRAP, batch
        return batch

    def end(self, epoch: int = 0, *, commit: bool = True, coordinator_epoch: int = 3, heeded: bool = True) -> Batch:
        """An end marker; one of a higher epoch is the producer's next epoch, which begins at 0 if it is heeded."""
        self.clock += 1
        batch = marker(
            self.producer_id,
            self.epoch + epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=self.clock,
        )
        if epoch > 0:
            self.epoch, self.sequence = self.epoch + epoch, 0 if heeded else self.sequence
        return batch

    def again(self, payload: bytes) -> Batch:
        """The last batch once more, its records those of `payload`."""
        return self.send() if self.sent is None else replace(self.sent, payload=payload)

    def later(self, milliseconds: int, epoch: int = 0) -> Batch:
        """The next batch, so much later than the one before."""
        self.clock += milliseconds - 1
        return self.send(epoch)


Step = Callable[[Producer], Batch]

GOOD: dict[str, Step] = {
    "next": Producer.send,
    "next of a transaction": lambda producer: producer.send(count=2, transactional=True),
    "new epoch": lambda producer: producer.send(1, 0, transactional=True),
    "commit": Producer.end,
    "abort": lambda producer: producer.end(commit=False, coordinator_epoch=4),
    "commit of version 2": lambda producer: producer.end(1),
    "raising abort": lambda producer: producer.end(1, commit=False),
}
ODD: dict[str, Step] = {
    **{name: GOOD[name] for name in ("next", "next of a transaction", "new epoch", "commit", "raising abort")},
    "two of the next": lambda producer: producer.send(count=2),
    "zero": lambda producer: producer.send(sequence=0),
    "gap as wide as the hole": lambda producer: producer.send(sequence=producer.sequence + HOLE),
    "gap wider than the hole": lambda producer: producer.send(sequence=producer.sequence + HOLE + 1),
    "half of the sequences ahead": lambda producer: producer.send(sequence=producer.sequence + WRAP // 2),
    "overlap": lambda producer: producer.send(sequence=producer.sequence - 1, count=2),
    "inside": lambda producer: producer.send(sequence=producer.sequence - 1),
    "far behind": lambda producer: producer.send(sequence=producer.sequence - 9),
    "two short of the wrap": lambda producer: producer.send(sequence=WRAP - 1 - HOLE),
    "to the wrap": lambda producer: producer.send(sequence=WRAP - 1),
    "over the wrap": lambda producer: producer.send(sequence=WRAP - 1, count=2),
    "again": lambda producer: producer.again(b"x"),
    "again with other records": lambda producer: producer.again(b"y"),
    "new epoch above zero": lambda producer: producer.send(1, 1),
    "stale": lambda producer: producer.send(-1),
    "a day later": lambda producer: producer.later(DAY_MS),
    "a new epoch a day later": lambda producer: producer.later(DAY_MS, 1),
    "raising abort that goes unheeded": lambda producer: producer.end(1, commit=False, heeded=False),
    "stale marker of an old coordinator": lambda producer: producer.end(-1, coordinator_epoch=2),
}


BEGINNINGS = {
    name: ODD[name]
    for name in ("next", "two of the next", "next of a transaction", "to the wrap", "commit", "raising abort")
}


def world(alphabets: list[dict[str, Step]], epoch: int, hole: int) -> tuple[Log, list[int]]:
    """The log of all histories with a step of each alphabet, and the number of batches before each step but the first."""
    histories = list(product(*(steps.values() for steps in alphabets)))
    producers = [Producer(1000 + number, epoch, 0) for number in range(len(histories))]
    log, cuts = Log(), []
    for number in range(len(alphabets)):
        log.skip(hole if number == HOLE_BEFORE else 0)
        for producer, history in zip(producers, histories, strict=True):
            log.append(replace(history[number](producer), leader_epoch=LEADER_EPOCHS[number]), keep_time=True)
        cuts.append(len(log.batches))
    return log, cuts[:-1]


def number_of_runs(batches: list[Batch]) -> int:
    """Data batches that do not go on, in epoch, sequence and flag, with the one before of their producer; sequence 0 goes on with none."""
    runs, before = 0, dict[int, Batch | None]()
    for batch in batches:
        last = before.get(batch.producer_id)
        before[batch.producer_id] = batch if batch.control is None else None
        runs += batch.control is None and (
            last is None
            or (batch.epoch, batch.attributes) != (last.epoch, last.attributes)
            or batch.sequence != (last.sequence + last.count) % WRAP
            or batch.sequence == 0
            or batch.timestamp - last.timestamp >= HOUR_MS
        )
    return runs


@pytest.mark.parametrize(
    ("alphabets", "epoch", "hole"),
    [([GOOD] * 4, 0, HOLE), ([BEGINNINGS, ODD, ODD], 31_999, HOLE), ([BEGINNINGS, GOOD, ODD], 0, WRAP)],
    ids=["good", "odd", "hole wider than sequences"],
)
def test_every_short_history_is_audited_as_batch_by_batch(alphabets, epoch, hole):
    log, cuts = world(alphabets, epoch, hole)
    batches, expected = decode(log), Reference().read(log.batches)
    assert len(expected.states) == prod(map(len, alphabets))
    odd = {each.producer_id for each in expected.observed if not (each.kind == "sequence/gap" and each.explained)}
    one_by_one, audit_producer = set(), TransitionAudit._audit_producer

    def noting(self, state, merged, group, runs):
        one_by_one.add(int(merged.producer_ids[group]))
        return audit_producer(self, state, merged, group, runs)

    for chunks, holes_are_normal in ((cuts, False), ([], True), (cuts[1:], True)):
        one_by_one.clear()
        with patch.object(TransitionAudit, "_audit_producer", noting):
            audit = replay_rows(batches, chunks, holes_are_normal=holes_are_normal)
        assert_observed(audit, expected, holes_are_normal=holes_are_normal)
        assert audit.runs == number_of_runs(log.batches)
        for leader_epoch in range(1, 5):
            assert audit.leader_changes.across(leader_epoch) == expected.carried_on.get(leader_epoch, 0)
        if holes_are_normal and hole == HOLE:
            assert one_by_one <= odd  # nobody is audited one by one without a reason
