"""Batches and markers of a lower producer epoch or coordinator epoch than one before them."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE, ZOMBIE
from kaudit.checks.log_causes import COORDINATED, FENCED, FORGOTTEN
from kaudit.checks.observations import ClassifiedEvidence, observation_finding
from kaudit.model.batch_fields import NO_SEQUENCE
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import ObservationKind
from kaudit.model.severity import Confidence, Severity

_PRODUCER_RULE = (
    "an epoch below the current one is fenced: a leader answers INVALID_PRODUCER_EPOCH (ProducerAppendInfo.checkProducerEpoch); "
    "replicas and recovery only warn and adopt it; brokers up to 2.4.0 fail on a marker below the epoch they read last"
)
_ZOMBIE = (
    Explanation("a zombie: a fenced instance of the producer wrote after its successor had begun"),
    Explanation("the leader had forgotten the newer epoch: expiry, a lost tail, or a restart without its snapshot"),
)
_MARKER_FORGOTTEN = Explanation("brokers up to 2.4.0 forget a producer known by a marker alone (KAFKA-9144)")


@check(
    "KA201",
    severity=Severity.ERROR,
    summary="a batch or marker of a fenced, older epoch was appended",
    observes=(ObservationKind.STALE_BATCH, ObservationKind.STALE_MARKER),
    faulty_column="epoch",
    incident=(ZOMBIE, PRODUCER_STATE),
    caused_by=(FENCED, FORGOTTEN),
    simulated=Simulated(),
)
def stale_epoch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches and end markers whose epoch is below the producer's."""
    old = context.versions.any(lambda profile: not profile.marker_sets_timestamp)
    for observation in evidence.observed(*stale_epoch.observes):
        state = observation.remembered
        assert state is not None
        what = "batch" if observation.batch is not None else "end marker"
        yield observation_finding(
            stale_epoch,
            context,
            observation,
            f"the {what} at offset {observation.offset} has epoch {observation.producer_epoch}, but producer "
            f"{observation.producer_id} had already moved on to epoch {state.epoch}",
            evidence=ClassifiedEvidence(rule=_PRODUCER_RULE, observation=observation),
            explanations=(*_ZOMBIE, _MARKER_FORGOTTEN) if old and state.last_sequence == NO_SEQUENCE else _ZOMBIE,
        )


_COORDINATOR_RULE = (
    "a marker of an older coordinator is refused with TRANSACTION_COORDINATOR_FENCED; replicas only log it, and brokers up to "
    "2.4.0 fail on one below the last they read (ProducerAppendInfo.checkCoordinatorEpoch)"
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
            evidence=ClassifiedEvidence(rule=_COORDINATOR_RULE, observation=observation),
            explanations=(
                Explanation("an old coordinator wrote after the partition of __transaction_state had moved"),
                Explanation(
                    f"the leader had forgotten the producer{' (KAFKA-9144)' if old else ''} and took the old coordinator's marker"
                ),
                Explanation("__transaction_state was recreated, which starts its leader epochs again", innocent=True),
            ),
        )
