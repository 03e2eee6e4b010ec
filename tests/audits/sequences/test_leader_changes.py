"""Who wrote on in sequence across a change of leader, and who raised the epoch there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.sequences import leader_changes as module
from kaudit.audits.sequences.leader_changes import LeaderChangeCounts, leader_changes
from kaudit.model.log_rows import BoundaryBatch
from kaudit.reading.rows import LEADER_EPOCH_START
from tests.logs import Log, data, marker
from tests.properties.test_law import decode, replay_rows


def batch(leader_epoch):
    fields = dict.fromkeys(BoundaryBatch._fields, 0)
    return BoundaryBatch(**{**fields, "leader_epoch": leader_epoch})


@pytest.mark.parametrize(
    ("runs", "across"),
    [
        ([(1, 3)], [0, 0, 1, 1, 0]),
        ([(1, 2), (2, 3)], [0, 0, 1, 1, 0]),
        ([(1, 3), (2, 3), (3, 4)], [0, 0, 1, 2, 1]),
        ([(2, 2)], [0, 0, 0, 0, 0]),
        ([(3, 2)], [0, 0, 0, 0, 0]),
        ([(-1, 2)], [0, 0, 0, 0, 0]),  # no leader epoch: nobody knows
        ([(0, 1)], [0, 1, 0, 0, 0]),
    ],
)
def test_a_producer_counts_at_each_leader_epoch_that_began_between_its_batches(runs, across):
    counts = LeaderChangeCounts()
    for first, last in runs:
        counts.add_run(batch(first), batch(last))
    assert [counts.across(epoch) for epoch in range(5)] == across


def test_of_many_leader_epochs_so_many_are_counted(monkeypatch):
    monkeypatch.setattr(module, "_MAX_LEADER_EPOCHS", 3)
    counts = LeaderChangeCounts()
    for epoch in (1, 4, 7):
        counts.add_run(batch(epoch), batch(epoch + 1))
    assert [counts.across(epoch) for epoch in range(9)] == [0, 0, 1, 0, 0, 1, 0, 0, 0]


def test_epochs_that_clients_raised_at_a_change_of_leader():
    """In a compacted log, a batch that is gone may have raised the epoch under the old leader."""
    log = Log()
    for each in (data(1, 0, 0), data(2, 0, 0), data(3, 0, 0), data(4, 0, 0, transactional=True)):
        log.append(replace(each, leader_epoch=1))
    for each in (data(1, 1, 0), data(2, 0, 1), data(1, 2, 0), data(4, 1, 0, transactional=True)):
        log.append(replace(each, leader_epoch=2))
    log.skip(1)
    for each in (data(2, 1, 0), data(3, 1, 0), data(1, 2, 1)):
        log.append(replace(each, leader_epoch=5))
    audit = replay_rows(decode(log), [], holes_are_normal=True)
    epoch_starts = np.zeros(3, dtype=LEADER_EPOCH_START)
    epoch_starts["leader_epoch"], epoch_starts["base_offset"] = (1, 2, 5), (0, 4, 9)

    def found(*, compacted):
        changes = leader_changes(audit.observations, epoch_starts, audit.leader_changes, compacted=compacted)
        return [
            (each.leader_epoch, each.start_offset, [bump.offset for bump in each.bumps], each.continued)
            for each in changes
        ]

    assert found(compacted=False) == [(2, 4, [4], 1), (5, 9, [9, 10], 1)]
    assert found(compacted=True) == [(2, 4, [4], 1)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=30), st.booleans())
def test_who_wrote_on_is_who_has_a_batch_before_and_behind_the_change(steps, in_parts):
    """Leader epochs only rise, and every producer writes on in sequence."""
    log, leader_epoch, sequences = Log(), 0, dict.fromkeys((1, 2, 3), 0)
    written: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for producer, rise in steps:
        leader_epoch += rise
        log.append(replace(data(producer, 0, sequences[producer]), leader_epoch=leader_epoch))
        sequences[producer] += 1
        written[producer].append(leader_epoch)
    batches = decode(log)
    cuts = list(range(1, len(batches))) if in_parts else []
    audit = replay_rows(batches, cuts, holes_are_normal=False)
    for epoch in range(leader_epoch + 2):
        expected = sum(1 for epochs in written.values() if epochs and epochs[0] < epoch <= epochs[-1])
        assert audit.leader_changes.across(epoch) == expected


@pytest.mark.parametrize(
    ("leader_epochs", "across"),
    [
        ((-1, 2), [0, 0, 0, 0]),
        ((0, 2), [0, 1, 1, 0]),
        ((2, 2), [0, 0, 0, 0]),
        ((2, 1), [0, 0, 0, 0]),
        ((-1, -1), [0] * 4),
    ],
)
@pytest.mark.parametrize("cuts", [[], [1]])
def test_without_a_leader_epoch_nobody_knows(leader_epochs, across, cuts):
    log = Log()
    for sequence, leader_epoch in enumerate(leader_epochs):
        log.append(replace(data(1, 0, sequence), leader_epoch=leader_epoch))
    audit = replay_rows(decode(log), cuts, holes_are_normal=False)
    assert [audit.leader_changes.across(epoch) for epoch in range(4)] == across


@pytest.mark.parametrize(
    ("epoch", "sequence", "counts"), [(0, 1, 1), (0, 2, 0), (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 5, 0)]
)
@pytest.mark.parametrize("cuts", [[], [1]])
def test_only_who_goes_on_in_sequence_and_epoch_counts(epoch, sequence, counts, cuts):
    log = Log()
    log.append(replace(data(1, 0, 0), leader_epoch=1))
    log.append(replace(data(1, epoch, sequence, payload=b"y"), leader_epoch=2))
    audit = replay_rows(decode(log), cuts, holes_are_normal=False)
    assert audit.leader_changes.across(2) == counts


@pytest.mark.parametrize("in_parts", [False, True])
def test_transactions_go_on_in_sequence_too(in_parts):
    """Of several transactions in a chunk the one right before the change determines where the next has to begin."""
    log = Log()
    for sequence, leader_epoch in enumerate((1, 1, 1, 2)):
        log.append(replace(data(1, 0, sequence, transactional=True), leader_epoch=leader_epoch))
        log.append(replace(marker(1, 0), leader_epoch=leader_epoch))
    cuts = list(range(1, len(log.batches))) if in_parts else []
    audit = replay_rows(decode(log), cuts, holes_are_normal=False)
    assert audit.observations == []
    assert [audit.leader_changes.across(epoch) for epoch in range(4)] == [0, 0, 1, 0]


@pytest.mark.parametrize("in_parts", [False, True])
def test_who_begins_again_behind_a_marker_that_raised_the_epoch_does_not_go_on(in_parts):
    """Nothing is remembered of an epoch that only the marker had."""
    log = Log()
    log.append(replace(data(1, 0, 0, transactional=True), leader_epoch=1))
    log.append(replace(marker(1, 1, commit=False), leader_epoch=1))
    log.append(replace(data(1, 1, 0, transactional=True), leader_epoch=2))
    audit = replay_rows(decode(log), [1, 2] if in_parts else [], holes_are_normal=False)
    assert [audit.leader_changes.across(epoch) for epoch in range(4)] == [0, 0, 0, 0]


def test_leader_epochs_have_all_the_bits_there_are():
    log, last = Log(), 2**31 - 1
    for sequence, leader_epoch in enumerate((0, last - 1, last)):
        log.append(replace(data(1, 0, sequence), leader_epoch=leader_epoch))
    for cuts in ([], [1], [1, 2]):
        counts = replay_rows(decode(log), cuts, holes_are_normal=False).leader_changes
        assert [counts.across(epoch) for epoch in (0, 1, last - 1, last)] == [0, 1, 1, 1]
