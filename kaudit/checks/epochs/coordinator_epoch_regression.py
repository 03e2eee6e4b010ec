"""A marker of an older coordinator epoch than one before it."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import COORDINATED
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import ObservationKind

_RULE = (
    "a marker of an older coordinator is refused with TRANSACTION_COORDINATOR_FENCED; replicas only log it, and brokers up to "
    "2.4.0 fail on it (ProducerAppendInfo.checkCoordinatorEpoch)"
)


@check(
    "KA205",
    severity=Severity.WARNING,
    summary="a marker carries a lower coordinator epoch than one before it",
    confidence=Confidence.LIKELY,
    observes=(ObservationKind.COORDINATOR_EPOCH_REGRESSION,),
    incident=(PRODUCER_STATE,),
    caused_by=(COORDINATED,),
    simulated=none_because("simulated coordinators raise their epochs as brokers do"),
)
def coordinator_epoch_regression(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report end markers whose coordinator epoch is below that of an earlier marker of the producer."""
    old = context.versions.any(lambda profile: not profile.marker_sets_timestamp)
    for observation in evidence.observed(*coordinator_epoch_regression.observes):
        state, marker = observation.remembered, observation.marker
        assert state is not None
        assert marker is not None
        yield observation_finding(
            coordinator_epoch_regression,
            context,
            observation,
            f"the marker at offset {marker.offset} has coordinator epoch {marker.coordinator_epoch}, after one with "
            f"{state.coordinator_epoch}",
            evidence=classified_evidence(observation, _RULE),
            explanations=(
                Explanation("an old coordinator wrote after the partition of __transaction_state had moved"),
                Explanation(
                    f"the leader had forgotten the producer{' (KAFKA-9144)' if old else ''} and took the old coordinator's marker"
                ),
                Explanation("__transaction_state was recreated, which starts its leader epochs again", innocent=True),
            ),
        )
