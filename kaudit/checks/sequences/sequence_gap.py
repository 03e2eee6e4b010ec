"""Sequences are missing between two batches of a producer."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Simulated, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import LACKING_BY_DAMAGE, LEADER_CHANGE, PRODUCER_STATE
from kaudit.checks.log_causes import ELECTED, FORGOTTEN, REFUSED, UNCLEAN_STOP
from kaudit.checks.observations import LackingEvidence, observation_finding
from kaudit.checks.sequences.sequence_observations import batch_of, sequence_observations, sequences_text
from kaudit.checks.texts import counted
from kaudit.model import sequence
from kaudit.model.batch_fields import NO_LEADER_EPOCH
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.severity import Confidence, Severity

_RULE = (
    "within an epoch the next sequence follows the last; a leader refuses a gap with OUT_OF_ORDER_SEQUENCE_NUMBER "
    "(ProducerAppendInfo.inSequence)"
)

_LOST_EARLIER = Explanation(
    "records were lost before they reached this replica, and the leader's checks did not notice"
)
_UNCHECKED = Explanation("data bypassed the broker's checks")
_ONCE_COMPACTED = Explanation(
    "the topic was once compacted and there is no checkpoint to show it (then pass --compacted)", innocent=True
)


@check(
    "KA104",
    severity=Severity.ERROR,
    severity_note="warning when the leader epoch changes between the two batches",
    summary="sequences are missing between two batches of a producer",
    observes=(ObservationKind.GAP,),
    faulty_column="sequence",
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(LACKING_BY_DAMAGE, LEADER_CHANGE, PRODUCER_STATE),
    caused_by=(ELECTED, REFUSED, FORGOTTEN, UNCLEAN_STOP),
    simulated=Simulated(),
)
def sequence_gap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report gaps at the offsets that are missing between the two batches, or else at the second one."""
    # offsets lost to damage are reported with it, and may be anyone's
    missing = [gap for gap in evidence.of(MissingOffsets) if gap.cause is not MissingCause.DAMAGE]
    missing.sort(key=lambda gap: gap.first_offset)
    for observation in sequence_observations(evidence, *sequence_gap.observes):
        yield _gap(context, evidence, observation, missing)


def _gap(
    context: Context, evidence: Evidence, observation: Observation, missing_offsets: Sequence[MissingOffsets]
) -> Finding:
    state, batch = observation.remembered, batch_of(observation)
    assert state is not None
    assert state.last is not None
    expected = sequence.add(state.last_sequence, 1)
    moved = batch.leader_epoch != state.last.leader_epoch
    between = _between(missing_offsets, state.last, batch)
    missing = sequences_text(expected, sequence.subtract(batch.first_sequence, 1))
    return observation_finding(
        sequence_gap,
        context,
        observation,
        f"{missing} of producer {observation.producer_id} missing before offset {batch.base_offset} "
        f"({counted(observation.missing_sequences, 'record')})",
        severity=Severity.WARNING if moved else Severity.ERROR,
        confidence=Confidence.POSSIBLE if moved else Confidence.CERTAIN,
        offset=between[0].first_offset if between else observation.offset,
        last_offset=between[-1].last_offset if between else observation.last_offset,
        evidence=LackingEvidence(
            rule=_RULE,
            observation=observation,
            expected_sequence=expected,
            missing_sequences=observation.missing_sequences,
            missing_offsets=observation.missing_offsets,
        ),
        impact=_impact(context, evidence, observation, moved=moved),
        explanations=tuple(_explanations(context, state.last, batch)),
    )


def _impact(context: Context, evidence: Evidence, observation: Observation, *, moved: bool) -> Impact:
    """Return how many records are missing; at least 0 after a change of leader, which may have made the client skip."""
    lost = observation.missing_sequences - evidence.repeated_sequences.count(observation.missing)
    removed = observation.missing_offsets if context.compacted else 0
    return Impact(records_lost_at_least=0 if moved else max(lost - removed, 0), records_lost_at_most=lost)


def _between(missing: Sequence[MissingOffsets], last: BoundaryBatch, batch: BoundaryBatch) -> Sequence[MissingOffsets]:
    """Return those missing offsets, given in offset order, that lie between two batches."""
    start = bisect_right(missing, last.last_offset, key=lambda gap: gap.first_offset)
    end = bisect_left(missing, batch.base_offset, key=lambda gap: gap.last_offset)
    return missing[start:end]


def _explanations(context: Context, last: BoundaryBatch, batch: BoundaryBatch) -> Iterator[Explanation]:
    if NO_LEADER_EPOCH != last.leader_epoch != batch.leader_epoch:
        yield Explanation(
            "the leader changed: records acknowledged by the old leader alone were lost (acks=1, unclean election)",
            speaks_for=(f"leader epoch {last.leader_epoch} before the gap, {batch.leader_epoch} after it",),
        )
    yield _LOST_EARLIER
    yield _UNCHECKED
    if not context.compacted:
        yield _ONCE_COMPACTED
