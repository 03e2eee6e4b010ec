"""Neighbouring gaps and overlaps of a producer that move its sequence by one rule, against a naive search for them."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.partition.find_repeats import step_mismatches


def edge(offset, first, records):
    return BoundaryBatch(offset, offset + records - 1, first, first + records - 1, records, 0, 0, 0, 0, 100, 0, 0)


def joints(moves):
    """One fact a move (how far the base sequence moves, records of the batch before, is the joint a neighbour's)."""
    facts, before = [], edge(0, 0, moves[0][1] if moves else 1)
    for moved, records, neighbour in moves:
        before = before._replace(last_sequence=before.first_sequence + records - 1)
        batch = edge(before.base_offset + 10, before.first_sequence + moved, 1)
        remembered: Any = SimpleNamespace(
            last=before if neighbour else before._replace(base_offset=before.base_offset - 1)
        )
        facts.append(Observation(ObservationKind.GAP, 7, 0, batch, None, False, remembered))
        before = batch
    return facts


def alike(moves):
    return len({moved for moved, _, _ in moves}) == 1 or len({moved - records for moved, records, _ in moves}) == 1


def naive(moves):
    """Lengths of the chains: each as long as all of it follows one pattern, from the first joint on."""
    chains: list[list[Any]] = []
    for move in moves:
        if chains and move[2] and alike([*chains[-1], move]):
            chains[-1].append(move)
        else:
            chains.append([move])
    return [len(chain) for chain in chains if len(chain) >= 3]


@given(
    st.lists(st.tuples(st.integers(2, 4), st.integers(1, 3), st.sampled_from([True, True, True, False])), max_size=30)
)
def test_chains_are_those_a_naive_search_finds(moves):
    assert [len(chain.observations) for chain in step_mismatches(joints(moves))] == naive(moves)


def test_a_client_that_counts_one_a_batch_and_one_that_skips_one():
    assert [
        len(chain.observations) for chain in step_mismatches(joints([(1, records, True) for records in (2, 5, 3, 4)]))
    ] == [4]
    assert [len(chain.observations) for chain in step_mismatches(joints([(r + 1, r, True) for r in (2, 5, 3, 4)]))] == [
        4
    ]
    assert step_mismatches(joints([(2, 1, True), (4, 1, True), (3, 1, True)])) == []


def test_a_chain_keeps_to_the_one_pattern_that_all_of_it_follows():
    """The second move leaves one of both patterns for good, though the third would follow it again."""
    assert step_mismatches(joints([(2, 1, True), (3, 2, True), (2, 2, True)])) == []
    assert step_mismatches(joints([(2, 1, True), (2, 2, True), (3, 2, True)])) == []


def test_without_a_batch_before_it_nothing_shows_how_far_a_step_went():
    batch = edge(10, 5, 1)
    remembered: Any = SimpleNamespace(last=None)
    for known in (None, remembered):
        facts = [Observation(ObservationKind.GAP, 7, 0, batch, None, False, known) for _ in range(3)]
        assert step_mismatches(facts) == []
