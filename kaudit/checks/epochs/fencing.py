"""A producer's epoch was raised: who held the lower one is fenced."""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.epochs.client_bumps import without_finding
from kaudit.checks.incident_rules import EPOCH_BUMP
from kaudit.checks.log_causes import FENCED, REFUSED, TIMED_OUT
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.model.finding import Confidence, Finding, Severity
from kaudit.model.observation import Observation, ObservationKind

_CAUSES = {
    ObservationKind.RESTART_BUMP: "the transactional producer was initialised again, by a new instance or, since 2.5, after an error",
    ObservationKind.TIMEOUT_ABORT: "the coordinator aborted its transaction and fenced it (timeout, or a new instance)",
    ObservationKind.CLIENT_BUMP: "the client raised its own epoch after an error it could not resolve (2.5 and later)",
}
_NOT_KEPT = dict.fromkeys(("file", "segment", "position"), "only the marker's offset is kept to the end of the log")


@check(
    "KA203",
    severity=Severity.NOTE,
    summary="a producer's epoch was raised",
    confidence=Confidence.LIKELY,
    observes=tuple(_CAUSES),
    incident=(EPOCH_BUMP,),
    caused_by=(TIMED_OUT, FENCED, REFUSED),
    simulated=Simulated("zombie-producer"),
)
def fencing(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report raised epochs, but not where each transaction raises it anyway (transaction version 2, KIP-890)."""
    every_transaction = context.versions.all(lambda profile: profile.transaction_version2)
    for observation in without_finding(evidence, evidence.observed(*fencing.observes)):
        if not (every_transaction and observation.is_transactional):
            yield _raised(context, observation)


def _raised(context: Context, observation: Observation) -> Finding:
    state = observation.remembered
    assert state is not None
    cause = _CAUSES[observation.kind]
    where = f"at offset {observation.offset}" if observation.offset >= 0 else "at the end of the log"
    by_abort = observation.kind is ObservationKind.TIMEOUT_ABORT
    before = "" if by_abort else f" from {state.epoch}"
    message = (
        f"the epoch of producer {observation.producer_id} rose{before} to {observation.producer_epoch} {where}: {cause}"
    )
    found = observation_finding(
        fencing,
        context,
        observation,
        message,
        evidence=classified_evidence(observation, "a higher epoch fences every writer of the lower one"),
        following=context.compare_records_command() if observation.kind is ObservationKind.CLIENT_BUMP else (),
    )
    return replace(found, file=None, segment=None, position=None, absent=_NOT_KEPT) if by_abort else found
