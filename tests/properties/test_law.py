"""The law: replaying runs equals replaying batches, and cutting the log anywhere changes nothing."""

from collections import Counter
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.analysis.scan.chunk_rows import ChunkRange
from kaudit.analysis.scan.chunk_summary import compress
from kaudit.analysis.scan.producer_grouping import merge, with_records
from kaudit.analysis.sequences.sequence_audit import Producer, audit_batch, audit_end, audit_marker
from kaudit.analysis.sequences.transition_audit import TransitionAudit
from kaudit.formats.log.record_batch import decode_headers
from kaudit.model.batch import Batches
from kaudit.model.columns import Row
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation
from kaudit.model.producer_state import ProducerAuditState
from tests.logs import CONTROL, TRANSACTIONAL, Log
from tests.properties.histories import build, starts, steps

NO_CHANGE = settings(max_examples=400, deadline=None)


def decode(log: Log) -> Batches:
    positions, content = [], bytearray()
    for batch in log.batches:
        positions.append(len(content))
        content += batch.encode()
    return decode_headers(memoryview(bytes(content)), np.asarray(positions, dtype=np.int64), 0)


def boundary_batches_of(batches: Batches) -> list[BoundaryBatch]:
    """Every batch as the judge sees it, counted one by one."""
    boundary_batches, present = [], 0
    for row in batches:
        base, delta, sequence = int(row["base_offset"]), int(row["last_offset_delta"]), int(row["base_sequence"])
        last_sequence = sequence if sequence < 0 else (sequence + delta) % 2**31
        boundary_batches.append(
            BoundaryBatch(
                base,
                base + delta,
                sequence,
                last_sequence,
                int(row["record_count"]),
                int(row["crc"]),
                int(row["max_timestamp"]),
                present,
                int(row["position"]),
                int(row["size"]),
                int(row["leader_epoch"]),
                0,
            )
        )
        present += delta + 1
    return boundary_batches


def replay_batches(
    batches: Batches, *, sequences_count: bool = True
) -> tuple[dict[int, ProducerAuditState], list[Observation]]:
    """The reference: one batch after the other, nothing compressed, nothing skipped."""
    states: dict[int, ProducerAuditState] = {}
    observations: list[Observation] = []
    waiting: dict[int, list[int]] = {}
    for row, batch in zip(batches, boundary_batches_of(batches), strict=True):
        producer_id, epoch = int(row["producer_id"]), int(row["producer_epoch"])
        if producer_id < 0:
            continue
        if int(row["attributes"]) & CONTROL:
            found = EndTxnMarker(
                batch.base_offset,
                producer_id,
                epoch,
                int(row["coordinator_epoch"]),
                int(row["control_type"]),
                batch.max_timestamp,
                batch.leader_epoch,
                batch.present_before,
                batch.position,
                batch.size,
                batch.record_count,
                0,
            )
            state, new = audit_marker(states.get(producer_id), found)
        else:
            for index in waiting.pop(producer_id, []):
                observations[index] = observations[index]._replace(following=batch, following_epoch=epoch)
            transactional = bool(int(row["attributes"]) & TRANSACTIONAL)
            producer = Producer(producer_id, sequences_count)
            state, new = audit_batch(states.get(producer_id), batch, epoch, transactional, producer)
        for observation in new:
            if observation.batch is not None:
                waiting.setdefault(producer_id, []).append(len(observations))
            observations.append(observation)
        if state is not None:
            states[producer_id] = state
    for producer_id, state in states.items():
        observations.extend(audit_end(state, producer_id))
    return states, observations


def replay_rows(
    batches: Batches, cuts: list[int], *, holes_are_normal: bool, sequences_count: bool = True
) -> TransitionAudit:
    """What the pipeline does: chunks to rows, rows to the joint replay."""

    def fetch(run: Row) -> list[BoundaryBatch]:
        mine = (batches["producer_id"] == run["producer_id"]) & (batches["attributes"] & CONTROL == 0)
        inside = (batches["base_offset"] >= run["first_offset"]) & (batches["base_offset"] <= run["last_offset"])
        boundary_batches = boundary_batches_of(batches)
        return [boundary_batches[index] for index in np.flatnonzero(mine & inside)]

    replay = TransitionAudit(fetch, sequences_count=sequences_count)
    replay.holes_are_normal = holes_are_normal
    present = 0
    bounds = [0, *sorted(cuts), len(batches)]
    for first, last in pairwise(bounds):
        part = batches[first:last]
        rows = compress(part, ChunkRange(0, 0, 0, 0), log_start_offset=None, latest_timestamp=2**62)
        rows.count_from(present)
        present += rows.offsets_present
        replay.feed(merge(rows.runs, with_records(rows.markers)), rows.boundary_batches)
    replay.finish()
    return replay


def continued_across(batches: Batches) -> Counter[int]:
    """How many producers went on in sequence across each leader epoch's beginning, batch by batch."""
    states: dict[int, ProducerAuditState] = {}
    found: Counter[int] = Counter()
    for row, batch in zip(batches, boundary_batches_of(batches), strict=True):
        producer_id, epoch = int(row["producer_id"]), int(row["producer_epoch"])
        state = states.get(producer_id)
        if producer_id < 0:
            continue
        if int(row["attributes"]) & CONTROL:
            if state is not None and epoch > state.epoch:
                states[producer_id] = state._replace(epoch=epoch, last_sequence=-1)
            continue
        if state is not None and state.last is not None and (state.epoch, state.last_sequence >= 0) == (epoch, True):
            goes_on = batch.first_sequence == (state.last_sequence + 1) % 2**31
            found.update(range(state.last.leader_epoch + 1, batch.leader_epoch + 1) if goes_on else ())
        states[producer_id], _ = audit_batch(state, batch, epoch, False, Producer(producer_id))
    return found


def in_order(observations: list[Observation]) -> list[Observation]:
    return sorted(
        observations, key=lambda observation: (observation.producer_id, observation.offset, observation.kind.value)
    )


def states_of(replay: TransitionAudit) -> dict[int, ProducerAuditState]:
    found = {}
    for slot, row in enumerate(replay.table.rows):
        state = replay.table.load(slot)
        assert state is not None
        found[int(row["producer_id"])] = state
    return found


@NO_CHANGE
@given(steps, starts, st.data())
def test_replaying_runs_equals_replaying_batches_wherever_the_log_is_cut(actions, first, draw):
    batches = decode(build(actions, first))
    expected_states, expected = replay_batches(batches)
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=6))
    replay = replay_rows(batches, cuts, holes_are_normal=False)
    assert in_order(replay.observations) == in_order(expected)
    assert states_of(replay) == expected_states


@NO_CHANGE
@given(steps, starts, st.data())
def test_holes_taken_for_normal_silence_what_they_explain_and_nothing_else(actions, first, draw):
    batches = decode(build(actions, first))
    expected_states, expected = replay_batches(batches)
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=6))
    replay = replay_rows(batches, cuts, holes_are_normal=True)
    assert in_order(replay.observations) == in_order(
        [observation for observation in expected if not observation.explained]
    )
    assert states_of(replay) == expected_states


@NO_CHANGE
@given(steps, starts, st.data())
def test_the_number_of_runs_does_not_depend_on_the_cuts(actions, first, draw):
    batches = decode(build(actions, first))
    whole = replay_rows(batches, [], holes_are_normal=True)
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=10))
    assert replay_rows(batches, cuts, holes_are_normal=True).runs == whole.runs


@settings(max_examples=200, deadline=None)
@given(steps, starts, st.data())
def test_who_went_on_across_a_change_of_leader_does_not_depend_on_the_cuts(actions, first, draw):
    batches = decode(build(actions, first))
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=6))
    counts = replay_rows(batches, cuts, holes_are_normal=True).leader_changes
    expected = continued_across(batches)
    newest = int(batches["leader_epoch"].max()) if len(batches) else 0
    assert {epoch: counts.across(epoch) for epoch in range(newest + 1)} == {
        epoch: expected[epoch] for epoch in range(newest + 1)
    }


@settings(max_examples=60, deadline=None)
@given(steps, starts)
def test_one_batch_a_chunk_changes_nothing(actions, first):
    batches = decode(build(actions, first))
    expected_states, expected = replay_batches(batches)
    replay = replay_rows(batches, list(range(len(batches))), holes_are_normal=False)
    assert in_order(replay.observations) == in_order(expected)
    assert states_of(replay) == expected_states


@settings(max_examples=150, deadline=None)
@given(steps, starts, st.data())
def test_judging_a_chunk_in_parts_changes_nothing(actions, first, draw):
    batches = decode(build(actions, first))
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=3))
    whole = replay_rows(batches, cuts, holes_are_normal=False)
    with patch("kaudit.analysis.sequences.transition_audit._PART_ROWS", 1):
        parts = replay_rows(batches, cuts, holes_are_normal=False)
    assert (parts.observations, parts.runs, states_of(parts)) == (whole.observations, whole.runs, states_of(whole))
