"""A producer starts again at sequence 0 in the same epoch."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import BUMPED, FORGOTTEN, HEAD_REMOVED
from kaudit.checks.observations import classified_evidence, observation_finding
from kaudit.checks.sequences.sequence_observations import TWO_WRITERS, batch_text, sequence_observations
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import ObservationKind
from kaudit.model.producer_state import NO_CRC, ProducerAuditState

_OLD_BROKER = Explanation(
    "a broker before 2.4 forgot the producer when its records were deleted; a client before 2.5 then starts again at 0 "
    "with the same id and epoch (UNKNOWN_PRODUCER_ID, KAFKA-7190)",
    innocent=True,
)
_RULE = "sequence 0 in an epoch that has data is out of order unless the broker has forgotten the producer"


@check(
    "KA105",
    severity=Severity.WARNING,
    severity_note="note if the broker may be older than 2.4",
    summary="a producer starts again at sequence 0 in the same epoch",
    confidence=Confidence.LIKELY,
    observes=(ObservationKind.SEQUENCE_RESTART,),
    faulty_column="sequence",
    incident=(PRODUCER_STATE,),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED),
    simulated=none_because("no drawn schedule has been seen to leave it"),
)
def sequence_restart(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report restarts with other records than the epoch's first batch had."""
    old = context.versions.any(lambda profile: profile.forgets_on_log_start_advance)
    for observation in sequence_observations(evidence, *sequence_restart.observes):
        state = observation.remembered
        assert state is not None
        yield observation_finding(
            sequence_restart,
            context,
            observation,
            f"{batch_text(observation)} {_what(state)}",
            severity=Severity.NOTE if old else Severity.WARNING,
            evidence={**classified_evidence(observation, _RULE), "times_go_back": observation.times_go_back},
            explanations=(
                *([_OLD_BROKER] if old else ()),
                Explanation("the broker had forgotten the producer: expiry, or a restart without its snapshot"),
                TWO_WRITERS,
            ),
        )


def _what(state: ProducerAuditState) -> str:
    after = f"at sequence 0 after {state.last_sequence}, in the same epoch"
    if state.start_crc == NO_CRC:
        return f"starts {after}, of which the log holds no earlier batch at sequence 0"
    return f"starts again {after} and with different records"
