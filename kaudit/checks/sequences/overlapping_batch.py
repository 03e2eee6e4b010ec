"""A batch that repeats part of the sequences before it."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import FORGOTTEN, HEAD_REMOVED, REFUSED, RETRIED, SNAPSHOT
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.checks.sequences.sequence_observations import (
    TWO_WRITERS,
    batch_text,
    lost_state_explanations,
    repeated_records,
    sequence_observations,
)
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.observation import ObservationKind

_RULE = (
    "a batch is either wholly new or exactly a known one: partial repeats are refused in every version "
    "(ProducerAppendInfo.checkSequence)"
)

_REGROUPED = Explanation("a client split or regrouped a batch before it sent it again")


@check(
    "KA103",
    severity=Severity.ERROR,
    summary="a batch repeats part of the sequences before it",
    observes=(ObservationKind.OVERLAP, ObservationKind.INSIDE),
    faulty_column="sequence",
    incident=(PRODUCER_STATE,),
    caused_by=(FORGOTTEN, HEAD_REMOVED, SNAPSHOT, REFUSED, RETRIED),
    simulated=none_because("it takes a client that breaks the protocol, and simulated clients follow it"),
)
def overlapping_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches that overlap earlier ones, whether they end beyond them or inside them."""
    for observation in sequence_observations(evidence, *overlapping_batch.observes):
        state = observation.remembered
        assert state is not None
        yield observation_finding(
            overlapping_batch,
            context,
            observation,
            f"{batch_text(observation)} overlaps earlier batches: sequences up to {state.last_sequence} had already been "
            "written",
            evidence=classified_evidence(observation, _RULE),
            impact=repeated_records(evidence, observation),
            explanations=(
                _REGROUPED,
                TWO_WRITERS,
                *lost_state_explanations(observation),
            ),
        )
