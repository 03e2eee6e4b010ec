"""The law: auditing runs equals the plain reference, batch by batch, and cutting the log anywhere changes nothing."""

from collections.abc import Iterable
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.sequences.transition_audit import TransitionAudit
from kaudit.formats.log.record_batch import decode_headers
from kaudit.model.batch import Batches
from kaudit.model.columns import Row
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
    ProducerAuditState,
)
from kaudit.reading.chunk_rows import ChunkRange
from kaudit.reading.chunk_summary import compress
from kaudit.reading.producer_grouping import merge, with_records
from tests.logs import CONTROL, Log
from tests.properties.audit_reference import Observed, Placed, Reference, State
from tests.properties.histories import build, starts, steps

NO_CHANGE = settings(max_examples=400, deadline=None)


def decode(log: Log) -> Batches:
    positions, content = [], bytearray()
    for batch in log.batches:
        positions.append(len(content))
        content += batch.encode()
    return decode_headers(memoryview(bytes(content)), np.asarray(positions, dtype=np.int64), 0)


def boundary_batches_of(batches: Batches) -> list[BoundaryBatch]:
    """Every batch as a run read again has it, counted one by one."""
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


def replay_rows(
    batches: Batches, cuts: list[int], *, holes_are_normal: bool, sequences_count: bool = True
) -> TransitionAudit:
    """What the pipeline does: chunks to rows, rows to the audit of transitions."""

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


def plain(observation: Observation) -> Observed:
    """An observation as the reference has it."""
    original, following = observation.original, observation.following
    return Observed(
        observation.kind.value,
        observation.producer_id,
        observation.producer_epoch,
        observation.offset,
        observation.is_transactional,
        None if observation.remembered is None else plain_state(observation.remembered),
        None if original is None else original.base_offset,
        observation.missing_sequences,
        observation.missing_offsets,
        observation.explained,
        None if following is None else (following.base_offset, observation.following_epoch),
        observation.times_go_back,
    )


def plain_state(state: ProducerAuditState) -> State:
    """A producer's state as the reference has it."""
    flags, last = state.flags, state.last
    once = {
        EXHAUSTION_REPORTED: "epoch/nearly-exhausted",
        OUTSIDE_REPORTED: "transaction/outside-transaction",
        SILENCE_REPORTED: "state/went-on",
    }
    opened = (state.txn_first_offset, state.txn_first_timestamp, state.txn_position)
    return State(
        state.epoch,
        None if state.last_sequence == -1 else state.last_sequence,
        [(each.base_offset, each.first_sequence, each.last_sequence, each.crc) for each in state.window],
        None if last is None else Placed(*last[:-1]),
        None if state.start_crc == -1 else state.start_crc,
        state.coordinator_epoch,
        state.last_timestamp,
        opened if state.in_transaction else None,
        state.txn_records,
        None if state.marker_offset == -1 else (state.marker_offset, state.marker_timestamp),
        {kind for flag, kind in once.items() if flags & flag},
        bool(flags & TV2),
        bool(flags & ABORT_BUMPED),
        bool(flags & MARKED_EPOCH),
        bool(flags & AFTER_MARKER),
        (state.rebuilt_epoch, state.rebuilt_coordinator_epoch),
    )


def in_order(observed: Iterable[Observed]) -> list[Observed]:
    return sorted(observed, key=lambda each: (each.producer_id, each.offset, each.kind))


def states_of(replay: TransitionAudit) -> dict[int, State]:
    found = {}
    rows = replay.table.rows
    for producer_id, state in zip(rows["producer_id"].tolist(), replay.table.load(np.arange(len(rows))), strict=True):
        assert state is not None
        found[producer_id] = plain_state(state)
    return found


def assert_observed(replay: TransitionAudit, expected: Reference, *, holes_are_normal: bool) -> None:
    """What the pipeline observed and remembers is what the reference does; normal holes silence what they explain."""
    kept = [each for each in expected.observed if not (holes_are_normal and each.explained)]
    assert in_order(map(plain, replay.observations)) == in_order(kept)
    assert states_of(replay) == expected.states


@NO_CHANGE
@given(steps, starts, st.data(), st.booleans())
def test_runs_are_audited_as_batch_by_batch_wherever_the_log_is_cut(actions, first, draw, holes_are_normal):
    log = build(actions, first)
    cuts = draw.draw(st.lists(st.integers(0, len(log.batches)), max_size=6))
    replay = replay_rows(decode(log), cuts, holes_are_normal=holes_are_normal)
    assert_observed(replay, Reference().read(log.batches), holes_are_normal=holes_are_normal)


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
    log = build(actions, first)
    cuts = draw.draw(st.lists(st.integers(0, len(log.batches)), max_size=6))
    counts = replay_rows(decode(log), cuts, holes_are_normal=True).leader_changes
    expected = Reference().read(log.batches).carried_on
    newest = max((batch.leader_epoch for batch in log.batches), default=0)
    assert {epoch: counts.across(epoch) for epoch in range(newest + 1)} == {
        epoch: expected.get(epoch, 0) for epoch in range(newest + 1)
    }


@settings(max_examples=60, deadline=None)
@given(steps, starts)
def test_one_batch_a_chunk_changes_nothing(actions, first):
    log = build(actions, first)
    replay = replay_rows(decode(log), list(range(len(log.batches))), holes_are_normal=False)
    assert_observed(replay, Reference().read(log.batches), holes_are_normal=False)


@settings(max_examples=150, deadline=None)
@given(steps, starts, st.data())
def test_judging_a_chunk_in_parts_changes_nothing(actions, first, draw):
    batches = decode(build(actions, first))
    cuts = draw.draw(st.lists(st.integers(0, len(batches)), max_size=3))
    whole = replay_rows(batches, cuts, holes_are_normal=False)
    with patch("kaudit.audits.sequences.transition_audit._PART_ROWS", 1):
        parts = replay_rows(batches, cuts, holes_are_normal=False)
    assert (parts.observations, parts.runs, states_of(parts)) == (whole.observations, whole.runs, states_of(whole))
