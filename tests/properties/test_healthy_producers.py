"""Healthy producers are audited in numpy alone: a million of them may not be looked at batch by batch."""

from unittest.mock import patch

import pytest

from kaudit.audits.sequences.transition_audit import TransitionAudit
from tests.logs import WRAP, Batch, Log, data, marker
from tests.properties.audit_reference import Reference
from tests.properties.test_law import assert_observed, decode, replay_rows

DAY_MS = 86_400_000


def version_2(producer_id, first_epoch, transactions):
    """Transactions of version 2: each commit or abort raises the epoch of its data by one (KIP-890)."""
    return [
        batch
        for epoch in range(first_epoch, first_epoch + transactions)
        for batch in (
            data(producer_id, epoch, 0, 2, transactional=True),
            data(producer_id, epoch, 2, transactional=True),
            marker(producer_id, epoch + 1, coordinator_epoch=epoch // 2),
        )
    ]


HEALTHY: dict[str, list[Batch | tuple[str, int]]] = {
    "producers taking turns": [data(who, 0, 3 * turn, 3) for turn in range(6) for who in (1, 2, 3)],
    "transactions": [
        data(1, 0, 0, 2, transactional=True),
        data(2, 7, 0, transactional=True),
        data(1, 0, 2, transactional=True),
        marker(1, 0),
        data(1, 0, 3, transactional=True),
        marker(2, 7, commit=False, coordinator_epoch=3),
        marker(1, 0, commit=False, coordinator_epoch=1),
        data(2, 7, 1, transactional=True),
        marker(2, 7, coordinator_epoch=3),
    ],
    "transactions of version 2": [*version_2(1, 0, 3), data(2, 0, 0), *version_2(1, 3, 2)],
    "a marker before any data": [marker(1, 5), data(1, 5, 0, transactional=True), marker(1, 5)],
    "data after a transaction, outside of any": [
        data(1, 0, 0, transactional=True),
        marker(1, 0),
        data(1, 0, 1),
        data(1, 0, 2),
    ],
    "a day less a millisecond": [data(1, 0, 0), ("pause", DAY_MS - 2), data(1, 0, 1)],
    "days of silence in an open transaction": [
        data(1, 0, 0, transactional=True),
        ("pause", 400_000),
        data(1, 0, 1, transactional=True),
        marker(1, 0),
    ],
    "what missing offsets explain": [data(1, 0, 0, 2), ("hole", 3), data(1, 0, 5, 2), ("hole", 9), data(1, 0, 9)],
    "without a producer id": [Batch(count=3), data(1, 0, 0), Batch(count=1), data(1, 0, 1)],
}


def log_of(parts):
    log = Log()
    for part in parts:
        if isinstance(part, Batch):
            log.append(part)
        elif part[0] == "pause":
            log.clock += part[1]
        else:
            log.skip(part[1])
    return log


def audited_one_by_one(log, *, cut):
    """The producers audited batch by batch, after the whole audit was compared with the reference."""
    audited = []
    own = TransitionAudit._audit_producer

    def noting(self, state, merged, group, runs):
        audited.append(int(merged.producer_ids[group]))
        return own(self, state, merged, group, runs)

    with patch.object(TransitionAudit, "_audit_producer", noting):
        replay = replay_rows(decode(log), list(range(len(log.batches))) if cut else [], holes_are_normal=True)
    assert_observed(replay, Reference().read(log.batches), holes_are_normal=True)
    return audited


@pytest.mark.parametrize("cut", [False, True], ids=["one chunk", "a batch a chunk"])
@pytest.mark.parametrize("story", HEALTHY)
def test_healthy_producers_are_not_audited_batch_by_batch(story, cut):
    assert audited_one_by_one(log_of(HEALTHY[story]), cut=cut) == []


def test_a_wrap_is_not_looked_at():
    """But the unknown start is, and the batch that follows it."""
    log = log_of([data(1, 0, 0), *(data(2, 4, WRAP - 6 + 2 * turn, 2) for turn in range(5))])
    assert audited_one_by_one(log, cut=True) == [2, 2]


def test_epochs_near_their_end_are_looked_at_once():
    log = log_of([data(1, 32_000, sequence) for sequence in range(5)])
    assert audited_one_by_one(log, cut=True) == [1, 1]


@pytest.mark.parametrize("cut", [False, True], ids=["one chunk", "a batch a chunk"])
def test_nor_are_those_whose_sequences_mean_nothing(cut):
    """As the coordinator's own: batches without sequences, producers known by any epoch, epochs raised by version 2."""
    log = log_of(
        [
            data(1, 3, 0, transactional=True),
            marker(1, 4),
            data(1, 4, 0, transactional=True),
            data(2, 9, 0, transactional=True),
            marker(2, 9),
            marker(1, 5),
            data(1, 5, 0, transactional=True),
        ]
    )
    for index, batch in enumerate(log.batches):
        log.batches[index] = Batch(**{**vars(batch), "sequence": -1})
    with patch.object(TransitionAudit, "_audit_producer") as audited:
        replay = replay_rows(
            decode(log), list(range(len(log.batches))) if cut else [], holes_are_normal=True, sequences_count=False
        )
    assert_observed(replay, Reference(sequences_count=False).read(log.batches), holes_are_normal=True)
    assert not audited.called
