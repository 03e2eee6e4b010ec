"""A new epoch that does not start at sequence 0."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import EPOCH_BUMP, PRODUCER_STATE
from kaudit.checks.log_causes import BUMPED, FENCED
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.observation import ObservationKind


@check(
    "KA202",
    severity=Severity.ERROR,
    summary="a new epoch starts at a sequence other than 0",
    observes=(ObservationKind.BUMP_NONZERO,),
    faulty_column="sequence",
    incident=(EPOCH_BUMP, PRODUCER_STATE),
    caused_by=(FENCED, BUMPED),
    simulated=none_because("no drawn schedule has been seen to leave it"),
)
def epoch_bump_nonzero(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report new epochs whose first sequences are missing and not explained by missing offsets."""
    for observation in evidence.observed(*epoch_bump_nonzero.observes):
        assert observation.batch is not None
        yield observation_finding(
            epoch_bump_nonzero,
            context,
            observation,
            f"epoch {observation.producer_epoch} of producer {observation.producer_id} starts at sequence "
            f"{observation.batch.first_sequence} instead of 0",
            evidence=classified_evidence(
                observation,
                "a new epoch starts at sequence 0 (ProducerAppendInfo.checkSequence)",
                missing_sequences=observation.missing_sequences,
                missing_offsets=observation.missing_offsets,
            ),
            impact=Impact(records_lost_at_least=0, records_lost_at_most=observation.missing_sequences),
            explanations=(
                Explanation("the first records of the new epoch were lost"),
                Explanation("a client raised its epoch without resetting its sequences"),
            ),
        )
