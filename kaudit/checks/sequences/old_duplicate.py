"""A batch from before the duplicate window is in the log again."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import FORGOTTEN, HEAD_REMOVED, REFUSED, RETRIED, SNAPSHOT
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.checks.sequences.sequence_observations import (
    BYPASSED_CHECKS,
    batch_text,
    lost_state_explanations,
    repeated_records,
    sequence_observations,
)
from kaudit.model.finding import Finding, Severity
from kaudit.model.observation import ObservationKind

_RULE = (
    "only the last five batches of a producer are known as duplicates; what ends before them is answered with "
    "OUT_OF_ORDER_SEQUENCE_NUMBER (ProducerAppendInfo.checkSequence)"
)


@check(
    "KA102",
    severity=Severity.ERROR,
    summary="a batch from behind the duplicate window is in the log again",
    observes=(ObservationKind.BEHIND_WINDOW,),
    faulty_column="sequence",
    incident=(PRODUCER_STATE,),
    caused_by=(FORGOTTEN, HEAD_REMOVED, SNAPSHOT, REFUSED, RETRIED),
    simulated=Simulated(),
)
def old_duplicate(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches whose last sequence lies before the oldest of the five batches a broker keeps."""
    for observation in sequence_observations(evidence, *old_duplicate.observes):
        state = observation.remembered
        assert state is not None
        start = state.window[0].first_sequence if state.window else None
        yield observation_finding(
            old_duplicate,
            context,
            observation,
            f"{batch_text(observation)} ends before the duplicate window, which starts at sequence {start}",
            evidence=classified_evidence(observation, _RULE, window_first_sequence=start),
            impact=repeated_records(evidence, observation),
            explanations=(*lost_state_explanations(observation), BYPASSED_CHECKS),
        )
