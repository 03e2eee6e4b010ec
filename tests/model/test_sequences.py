"""Sequence arithmetic at its wrap, and what an observation says of the sequences around it."""

import pytest

from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import OUT_OF_ORDER, Observation, ObservationKind
from kaudit.model.producer_patterns import sequence_step
from kaudit.model.producer_state import ProducerAuditState
from kaudit.model.sequence import add, distance, next_sequence, subtract

HIGHEST = 2**31 - 1


@pytest.mark.parametrize(("first", "steps", "second"), [
    (0, 0, 0), (0, 1, 1), (5, 7, 12), (HIGHEST, 1, 0), (HIGHEST - 1, 3, 1), (0, HIGHEST, HIGHEST), (7, 2**31, 7),
])  # fmt: skip
def test_steps_forwards_and_back(first, steps, second):
    assert add(first, steps) == second
    assert subtract(second, steps) == first


@pytest.mark.parametrize(("last", "following"), [(-1, 0), (0, 1), (HIGHEST - 1, HIGHEST), (HIGHEST, 0)])
def test_the_next_sequence(last, following):
    assert next_sequence(last) == following


@pytest.mark.parametrize(("first", "second", "steps"), [
    (3, 3, 0), (3, 4, 1), (4, 3, -1), (HIGHEST, 0, 1), (0, HIGHEST, -1), (0, 2**30 - 1, 2**30 - 1), (0, 2**30, -(2**30)),
    (2**30, 0, -(2**30)), (2**30 + 1, 0, 2**30 - 1),
])  # fmt: skip
def test_the_shortest_way(first, second, steps):
    assert distance(first, second) == steps


def boundary(first, last, *, epoch=4, base=100):
    return BoundaryBatch(base, base + 9, first, last, 10, 1, 5, 0, 830, 83, epoch, 2)


def observed(batch=None, marker=None, before: BoundaryBatch | None = None, *, missing=0, state=True):
    remembered = ProducerAuditState(epoch=3, last=before) if state else None
    return Observation(ObservationKind.GAP, 1000, 3, batch, marker, False, remembered, missing_sequences=missing)


def test_of_a_batch():
    seen = observed(boundary(20, 29), missing=5)
    assert (seen.offset, seen.last_offset, seen.position, seen.segment) == (100, 109, 830, 2)
    assert tuple(seen.sequences) == (1000, 3, 20, 10)
    assert tuple(seen.missing) == (1000, 3, 15, 5)
    assert tuple(observed(boundary(HIGHEST, 0), missing=1).sequences) == (1000, 3, HIGHEST, 2)
    assert tuple(observed(boundary(1, 1), missing=3).missing) == (1000, 3, HIGHEST - 1, 3)
    # a batch that ends before it begins has none
    assert tuple(observed(boundary(20, 19)).sequences) == (1000, 3, 20, 0)
    assert tuple(observed(boundary(20, 10)).sequences) == (1000, 3, 20, 0)


def test_of_a_marker():
    marker = EndTxnMarker(130, 1000, 3, 7, 1, 5, 4, 0, 990, 78, 1, 6)
    seen = observed(marker=marker)
    assert (seen.offset, seen.last_offset, seen.position, seen.segment) == (130, 130, 990, 6)
    assert tuple(seen.sequences) == (1000, 3, 0, 0)
    assert not observed(marker=marker, before=boundary(0, 9, epoch=0)).is_after_leader_change


@pytest.mark.parametrize(("before", "epoch", "changed"), [
    (3, 4, True), (0, 1, True), (4, 4, False), (5, 4, False), (-1, 4, False), (3, -1, False), (-1, -1, False),
])  # fmt: skip
def test_a_leader_change_between_two_batches(before, epoch, changed):
    assert observed(boundary(0, 9, epoch=epoch), before=boundary(0, 9, epoch=before)).is_after_leader_change is changed


def test_without_a_batch_before_no_leader_change_is_known():
    assert not observed(boundary(0, 9)).is_after_leader_change
    assert not observed(boundary(0, 9), state=False).is_after_leader_change


def test_how_far_a_sequence_moved():
    assert sequence_step(observed(boundary(50, 59), before=boundary(20, 24))) == (30, 5)
    assert sequence_step(observed(boundary(3, 3), before=boundary(HIGHEST, 1))) == (4, 3)


def test_what_is_out_of_order_begins_before_the_last_sequence():
    assert [kind.label for kind in OUT_OF_ORDER] == ["exact", "same-sequences", "behind-window", "overlap", "inside"]
    assert ObservationKind.GAP.label == "gap"
