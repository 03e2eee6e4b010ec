"""Producers whose first sequence is not 0, or that start again at sequence 0 in the same epoch."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import OF_DISTRESS, PRODUCER_STATE
from kaudit.checks.log_causes import BUMPED, FORGOTTEN, HEAD_REMOVED, OVERTAKEN
from kaudit.checks.observations import ClassifiedEvidence, LackingEvidence, observation_finding
from kaudit.checks.sequences.sequence_observations import TWO_WRITERS, batch_of, batch_text, sequence_observations
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import NO_CRC, ProducerAuditState
from kaudit.model.severity import Confidence, Severity

_FIRST_RULE = (
    "an unknown producer starts at sequence 0; from 2.5 on a leader takes any first sequence (KIP-360), before it "
    "answers UNKNOWN_PRODUCER_ID"
)

_EXPLANATIONS = (
    Explanation("earlier records of this producer were deleted, and no log start offset shows it", innocent=True),
    Explanation(
        "the broker forgot an idle producer and took its next batch without a check (2.5 and later)",
        innocent=True,
    ),
    Explanation("records before it were lost"),
)


@check(
    "KA106",
    severity=Severity.WARNING,
    severity_note="note when the broker may be 2.5 or later",
    summary="a producer's first sequence is not 0 and nothing explains it",
    confidence=Confidence.POSSIBLE,
    observes=(ObservationKind.UNKNOWN_START, ObservationKind.AFTER_MARKER),
    faulty_column="sequence",
    incident=(PRODUCER_STATE, OF_DISTRESS),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED, OVERTAKEN),
    simulated=Simulated("sequence-wrap"),
)
def unknown_start(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report first batches, in the log or after nothing but an end marker, whose sequences before them are missing."""
    for observation in sequence_observations(evidence, *unknown_start.observes):
        first = batch_of(observation).first_sequence
        since = " after only an end marker" if observation.remembered is not None else ""
        yield observation_finding(
            unknown_start,
            context,
            observation,
            f"{batch_text(observation)} is the first of this producer{since}: sequences before {first} are not in the log",
            severity=Severity.NOTE if _accepted(context, observation) else Severity.WARNING,
            evidence=LackingEvidence(
                rule=_FIRST_RULE,
                observation=observation,
                missing_sequences=observation.missing_sequences,
                missing_offsets=observation.missing_offsets,
            ),
            explanations=_EXPLANATIONS,
        )


def _accepted(context: Context, observation: Observation) -> bool:
    """Whether some version in question takes any first sequence of such a producer."""
    accepts = context.versions.any(lambda profile: profile.accepts_unknown_nonzero)
    state = observation.remembered
    if state is None or not accepts:
        return accepts
    # a marker keeps the producer known: only its expiry, by brokers' own time, makes the broker take any sequence again
    limit = min(profile.expiration_default_ms for profile in context.versions.profiles())
    return context.idleness(observation).proven_ms >= limit


_OLD_BROKER = Explanation(
    "a broker before 2.4 forgot the producer when its records were deleted; a client before 2.5 then starts again at 0 "
    "with the same id and epoch (UNKNOWN_PRODUCER_ID, KAFKA-7190)",
    innocent=True,
)
_RESTART_RULE = "sequence 0 in an epoch that has data is out of order unless the broker has forgotten the producer"


class _RestartEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    times_go_back: bool


@check(
    "KA105",
    severity=Severity.WARNING,
    severity_note="note if the broker may be older than 2.4",
    summary="a producer starts again at sequence 0 in the same epoch",
    confidence=Confidence.LIKELY,
    observes=(ObservationKind.SEQUENCE_RESTART,),
    faulty_column="sequence",
    incident=(PRODUCER_STATE, OF_DISTRESS),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED),
    simulated=Simulated(),
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
            evidence=_RestartEvidence(
                rule=_RESTART_RULE, observation=observation, times_go_back=observation.times_go_back
            ),
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
