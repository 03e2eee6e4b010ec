"""A producer's epoch is close to its maximum."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import EPOCHS_USED_UP
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.observation import ObservationKind

_MAX_EPOCH = 32767
_RULE = "a transactional id moves to a new producer id at epoch 32766; a client that raises its own epoch may overflow"

_OFTEN_INITIALISED = Explanation(
    "the transactional id was initialised very often (an instance per message, a crash loop), or transactions end with "
    "errors after which the client raises the epoch"
)
_RAISED_BY_CLIENT = Explanation("the client raises its epoch at every failed send")


@check(
    "KA204",
    severity=Severity.WARNING,
    severity_note="note for a transactional producer",
    summary="a producer's epoch is 32000 or more of 32767",
    observes=(ObservationKind.NEARLY_EXHAUSTED,),
    faulty_column="epoch",
    incident=(EPOCHS_USED_UP,),
    caused_by=none_because("no log counts the epochs of a producer id"),
    simulated=none_because(
        "the shipped scenario epoch-exhaustion leaves it, but thousands of epochs are too many to search through"
    ),
)
def epoch_nearly_exhausted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such producer once."""
    for observation in evidence.observed(*epoch_nearly_exhausted.observes):
        left = _MAX_EPOCH - observation.producer_epoch
        yield observation_finding(
            epoch_nearly_exhausted,
            context,
            observation,
            f"producer {observation.producer_id} is at epoch {observation.producer_epoch}, {left} below the maximum",
            severity=Severity.NOTE if observation.is_transactional else Severity.WARNING,
            evidence=classified_evidence(observation, _RULE),
            explanations=(_OFTEN_INITIALISED if observation.is_transactional else _RAISED_BY_CLIENT,),
        )
