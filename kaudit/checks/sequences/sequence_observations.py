"""What the checks of sequences share: observations without a pattern, texts, and causes of lost producer state."""

from collections.abc import Sequence

from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.model import sequence
from kaudit.model.batch_fields import NO_LEADER_EPOCH
from kaudit.model.finding import Explanation
from kaudit.model.impact import Impact
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import SharedProducerId, StepMismatch
from kaudit.model.sequence import SequenceRange

_DAY_MS = 86_400_000

_LOST_STATE = Explanation(
    "the broker lost the producer's state: a restart without its snapshot, DeleteRecords, or expiry"
)
TWO_WRITERS = Explanation("two producers write with one producer id")
BYPASSED_CHECKS = Explanation("data bypassed the broker's checks (a restored or copied segment)")


def sequence_observations(evidence: Evidence, *kinds: ObservationKind) -> list[Observation]:
    """Return the observations of these kinds, without those that a pattern of several observations explains."""
    patterns: Sequence[StepMismatch | SharedProducerId] = (*evidence.of(StepMismatch), *evidence.of(SharedProducerId))
    replaced = {id(observation) for pattern in patterns for observation in pattern.observations}
    return [observation for observation in evidence.observed(*kinds) if id(observation) not in replaced]


def batch_of(observation: Observation) -> BoundaryBatch:
    """Return the batch of an observation that is never about a marker."""
    assert observation.batch is not None
    return observation.batch


def batch_text(observation: Observation) -> str:
    """Name the batch: `the batch at offset 12 (sequences 0..4)`."""
    batch = batch_of(observation)
    return f"the batch at offset {batch.base_offset} ({sequences_text(batch.first_sequence, batch.last_sequence)})"


def repeated_records(evidence: Evidence, observation: Observation, *, same_bytes: bool = True) -> Impact:
    """Return how many records of an out-of-order batch had been written before it; perhaps none unless `same_bytes`.

    These are the sequences up to the last one written, except those that were missing until then: they are late, not
    repeated. Of a batch that compaction has cleaned, the late ones may be those that are left.
    """
    state, batch = observation.remembered, batch_of(observation)
    assert state is not None
    known = max(sequence.distance(batch.first_sequence, state.last_sequence) + 1, 0)
    own = observation.sequences
    repeated = SequenceRange(*own[:3], min(own.length, known))
    number = repeated.length - evidence.missing_sequences.count(repeated)
    at_most = min(number, batch.record_count)
    at_least = max(min(number, batch.record_count - (own.length - number)), 0) if same_bytes else 0
    return Impact(records_duplicated=at_least, records_duplicated_at_most=at_most)


def sequences_text(first: int, last: int) -> str:
    """Name a range of sequences, both inclusive."""
    return f"sequence {first}" if first == last else f"sequences {first}..{last}"


def lost_state_explanations(context: Context, observation: Observation) -> list[Explanation]:
    """List ways in which a broker comes to append what it should refuse; those that this log supports come first."""
    state, batch = observation.remembered, batch_of(observation)
    last = state.last if state is not None else None
    found: list[Explanation] = []
    if last is not None and NO_LEADER_EPOCH != last.leader_epoch != batch.leader_epoch:
        found.append(
            Explanation(
                "the leader changed and the new one had no record of the batch; the producer sent it again",
                speaks_for=(f"leader epoch {last.leader_epoch} before it, {batch.leader_epoch} at it",),
            )
        )
    idle = context.idleness(observation)
    if idle.apparent_ms >= _DAY_MS:
        hours = f"{idle.apparent_ms // 3_600_000} hours without a batch from it"
        found.append(
            Explanation(
                "the broker forgot the idle producer (producer.id.expiration.ms) and took the retry as new",
                speaks_for=(hours if idle.proven_ms >= _DAY_MS else f"{hours}, by timestamps of clients alone",),
            )
        )
    return [*found, _LOST_STATE]
