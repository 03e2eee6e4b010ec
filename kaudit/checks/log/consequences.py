"""Producers whose sequences are missing exactly where offsets are: part of the finding about the offsets, and what it cost."""

from collections.abc import Mapping, Sequence

from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.model.impact import Impact
from kaudit.model.observation import Observation, ObservationKind

_MAX_LISTED = 20


def lacking_producers(evidence: Evidence, first: int | None, last: int | None) -> Sequence[Observation]:
    """Return the observations of producers that lack sequences across the missing offsets first..last, by offset."""
    if first is None or last is None:
        return ()
    return sorted(evidence.explained_across(first, last), key=lambda found: (found.offset, found.producer_id))


def consequences(lacking: Sequence[Observation]) -> Mapping[str, object]:
    """Return `{"consequences": [...]}` for the producers that lack sequences, {} if there are none."""
    if not lacking:
        return {}
    found = [
        {
            "producer_id": observation.producer_id,
            "producer_epoch": observation.producer_epoch,
            "missing_sequences": observation.missing_sequences,
            "offset": observation.offset,
        }
        for observation in lacking[:_MAX_LISTED]
    ]
    more = len(lacking) - _MAX_LISTED
    return {"consequences": [*found, {"more": more}] if more > 0 else found}


def lost_records(context: Context, evidence: Evidence, offsets: int, lacking: Sequence[Observation]) -> Impact:
    """Return what missing offsets cost: at most a record for each, at least the sequences that are missing there.

    Of a producer's missing sequences only those count that did not come later, and that no other missing offsets between
    its two batches can have held. Compaction or a change of leader may be why they are missing: then none count.
    """
    sequences = 0
    for observation in lacking:
        if observation.kind is ObservationKind.GAP and not context.compacted and _has_one_leader(observation):
            elsewhere = observation.missing_offsets - offsets
            late = evidence.repeated_sequences.count(observation.missing)
            sequences += max(observation.missing_sequences - elsewhere - late, 0)
    return Impact(records_lost_at_least=min(sequences, offsets), records_lost_at_most=offsets)


def _has_one_leader(observation: Observation) -> bool:
    state, batch = observation.remembered, observation.batch
    if state is None or state.last is None or batch is None:
        return False
    return state.last.leader_epoch == batch.leader_epoch
