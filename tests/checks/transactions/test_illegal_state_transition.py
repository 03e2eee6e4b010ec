"""States of a transactional id that cannot follow one another."""

import pytest

from kaudit.checks.transactions.illegal_state_transition import illegal_state_transition
from tests.checks.transactions.coordinator_log import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    reported,
    state,
    tombstone,
    write_states,
)


@pytest.mark.parametrize(
    ("states", "offset"),
    [
        ([ONGOING, COMPLETE_COMMIT], 1),
        ([EMPTY, PREPARE_COMMIT], 1),
        ([ONGOING, PREPARE_COMMIT, PREPARE_ABORT], 2),
        ([ONGOING, PREPARE_COMMIT, COMPLETE_ABORT], 2),
        ([ONGOING, EMPTY], 1),
        ([EMPTY, PREPARE_ABORT], 1),
    ],
)
def test_states_that_cannot_follow(tmp_path, states, offset):
    write_states(tmp_path, [state("t", status) for status in states])
    assert reported(tmp_path) == [(illegal_state_transition.code, "__transaction_state", offset)]


def test_an_epoch_never_falls(tmp_path):
    write_states(tmp_path, [state("t", EMPTY, epoch=4), state("t", EMPTY, epoch=3)])
    assert reported(tmp_path) == [(illegal_state_transition.code, "__transaction_state", 1)]


def test_states_on_both_sides_of_removed_records_are_no_neighbours(tmp_path):
    write_states(tmp_path, [state("t", ONGOING), state("t", COMPLETE_COMMIT)], offsets=[0, 5])
    assert reported(tmp_path) == []


def test_an_id_begins_anew_after_it_expired(tmp_path):
    write_states(tmp_path, [state("t", ONGOING), tombstone("t"), state("t", PREPARE_COMMIT), tombstone("t")])
    assert reported(tmp_path) == []
