"""Lost, duplicated and reordered records of a run, and whether the log of their partition's leader shows them.

A log shows what lies in it: offsets, sequences, epochs, leader epochs, timestamps, and which batches hold equal records. So
- a lost tail shows where its idempotent producer raised its epoch for it (KIP-360: 2.5 and later) and has batches before the
  tail and after it; or where it goes on in the same epoch, as only a broker without its state lets it;
- a batch that was written twice shows by its sequences or its records, unless its first copy was deleted;
- reordered batches without producer ids show by their timestamps beside a copy, if these never go back elsewhere.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.broker.response import TopicPartition
from kaudit.simulate.application import TransactionEnding
from kaudit.simulate.cluster.partition import ReplicatedPartition, election_that_lost
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.output.record_outcomes import Acknowledgement, BatchOutcome, DeliveryOutcome, leader_log
from kaudit.simulate.simulation import Simulation

LOST, DUPLICATES, REORDERED, FAILED = "acknowledged_but_lost", "duplicates", "out_of_order", "failed"
"""What became of the records."""
_NOT_LOOKED_AT = "offsets are the order of the log; that of sending is in the payload, if anywhere"


class Trouble(NamedTuple):
    """Records of one partition that were lost, duplicated or reordered together.

    `kind` says how, or why no log shows it. `offset` is the batch at which the leader's log shows it, None where it cannot.
    """

    what: str
    kind: str
    partition: TopicPartition
    records: int
    offset: int | None = None


def troubles(
    simulation: Simulation, key: TopicPartition, partition: ReplicatedPartition, outcomes: list[BatchOutcome]
) -> Iterator[Trouble]:
    """Yield what happened to the records of one partition; `outcomes` are those of its batches."""
    tails: dict[tuple[object, ...], list[tuple[BatchOutcome, StoredBatch]]] = {}
    for outcome in outcomes:
        batch = outcome.batch
        if outcome.delivery is DeliveryOutcome.TWICE:
            yield from _copies(key, outcome, partition)
        if outcome.delivery is not DeliveryOutcome.NOWHERE:
            continue
        if outcome.acknowledgement is Acknowledgement.FAILED:
            yield Trouble(FAILED, "what was refused or never arrived leaves no trace", key, batch.record_count)
        if outcome.acknowledgement is not Acknowledgement.ACKNOWLEDGED:
            continue
        writes = partition.writes.get(id(batch), [])
        if writes:
            producer = (batch.payload.producer, batch.payload.session, batch.producer_id, batch.epoch)
            tails.setdefault((*producer, election_that_lost(writes[-1], partition.elections)), []).append(
                (outcome, writes[-1])
            )
        else:
            yield Trouble(LOST, "what was never written leaves no trace", key, batch.record_count)
    for tail in tails.values():
        yield _lost_tail(simulation, key, partition, tail)
    yield from _reordered(key, partition, outcomes)


# -- lost ----------------------------------------------------------------------------------------------------------------
def _lost_tail(
    simulation: Simulation,
    key: TopicPartition,
    partition: ReplicatedPartition,
    tail: list[tuple[BatchOutcome, StoredBatch]],
) -> Trouble:
    """Say whether a tail that was cut off is missed: all of one producer, epoch and election."""
    records = sum(outcome.batch.record_count for outcome, _ in tail)
    shown_at, why = _missed_at(simulation, partition, tail)
    if shown_at is None and any(outcome.elsewhere for outcome, _ in tail):
        why = "only another replica has them still: kaudit diff compares the replicas"
    return Trouble(LOST, why, key, records, shown_at)


def _missed_at(
    simulation: Simulation, partition: ReplicatedPartition, tail: list[tuple[BatchOutcome, StoredBatch]]
) -> tuple[int | None, str]:
    batch, first = tail[0][0].batch, min((write for _, write in tail), key=lambda write: write.base_offset)
    log = leader_log(partition)
    mine = [
        (stored, stored.state)
        for stored in log.batches
        if stored.last_offset >= log.log_start
        and stored.state is not None
        and stored.state.producer_id == batch.producer_id
    ]
    if not simulation.applications[batch.payload.producer].spec.config.idempotent:
        return None, "without producer ids no sequence is missing"
    same_epoch = [
        (state.base_sequence > batch.base_sequence, stored.base_offset)
        for stored, state in mine
        if isinstance(state, DataBatch) and state.producer_epoch == batch.epoch
    ]
    later = [offset for is_later, offset in same_epoch if is_later]
    if later and len(later) < len(same_epoch):
        return min(later), "went on in the same epoch"
    if batch.transactional and not later:
        committed = (
            "committed" if _is_committed(simulation, batch.payload.producer, batch.numbers[0]) else "not committed"
        )
        return None, f"a transaction without them looks whole ({committed})"
    # one of the same epoch is older: sent before the tail, and written again after it
    after = [
        stored
        for stored, state in mine
        if stored.leader_epoch > first.leader_epoch and (later or state.producer_epoch > batch.epoch)
    ]
    if not after:
        return None, "the producer wrote nothing more under that producer id"
    if later or all(stored.leader_epoch > first.leader_epoch for stored, _ in mine):
        return None, "nothing of the producer lies before them"
    return after[0].base_offset, "wrote before and after"


def _is_committed(simulation: Simulation, producer: str, number: int) -> bool:
    return any(
        first <= number <= last
        for first, last, end in simulation.applications[producer].transactions
        if end is TransactionEnding.COMMITTED
    )


# -- twice ---------------------------------------------------------------------------------------------------------------
def _copies(key: TopicPartition, outcome: BatchOutcome, partition: ReplicatedPartition) -> Iterator[Trouble]:
    log = leader_log(partition)
    by_offset = {stored.base_offset: stored for stored in log.batches}
    first, *again = (by_offset[offset] for offset in outcome.copies)
    for copy in again:
        one, other = first.state, copy.state
        if first.base_offset < log.log_start:
            yield Trouble(DUPLICATES, "the first copy was deleted", key, outcome.batch.record_count)
            first = copy
            continue
        if one is None or other is None:
            kind = "retried without idempotence"
        elif one.producer_id != other.producer_id:
            kind = "under another producer id"
        elif one.producer_epoch != other.producer_epoch:
            kind = "under another epoch"
        else:
            kind = "same sequences"
        yield Trouble(DUPLICATES, kind, key, outcome.batch.record_count, copy.base_offset)


# -- out of order --------------------------------------------------------------------------------------------------------
def _reordered(key: TopicPartition, partition: ReplicatedPartition, outcomes: list[BatchOutcome]) -> Iterator[Trouble]:
    records = sum(len(outcome.out_of_order) for outcome in outcomes)
    if not records:
        return
    shown_at = _older_beside_copies(partition)
    if shown_at is None:
        yield Trouble(REORDERED, _NOT_LOOKED_AT, key, records)
    else:
        yield Trouble(REORDERED, "older than those before them", key, records, shown_at)


def _older_beside_copies(partition: ReplicatedPartition) -> int | None:
    """Return the first batch without a producer id that a retry put after later ones, None where timestamps do not show it.

    They show nothing where they go back elsewhere too, as with several producers.
    """
    log = leader_log(partition)
    plain = [
        stored for stored in log.batches if stored.state is None and stored.sent and stored.last_offset >= log.log_start
    ]
    first_at: dict[int, int] = {}
    between: set[int] = set()
    copies: dict[int, int] = {}
    for index, stored in enumerate(plain):
        first = first_at.setdefault(id(stored.sent), index)
        if first != index:
            between.update(range(first + 1, index + 1))
            copies[index] = first
    times = [stored.sent.timestamps[0] if stored.sent else 0 for stored in plain]  # as in a batch's header
    older = [index for index in range(1, len(plain)) if times[index] < times[index - 1]]
    if not between.issuperset(older):
        return None
    late = [index for index in older if index not in copies]
    late += [index for index, first in copies.items() if copies.get(index - 1) == first + 1]
    return plain[min(late)].base_offset if late else None
