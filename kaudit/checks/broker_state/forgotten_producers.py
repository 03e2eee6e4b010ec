"""Producers that brokers forget: by their timestamps, or with their deleted records."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because, observers
from kaudit.checks.context import Context
from kaudit.checks.epochs.epoch_bumps import epoch_bump_nonzero
from kaudit.checks.epochs.stale_epochs import stale_epoch
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import BUMPED, FORGOTTEN, HEAD_REMOVED
from kaudit.checks.observations import ObservationEvidence, observation_finding
from kaudit.checks.sequences.duplicates import duplicate_batch, old_duplicate, overlapping_batch
from kaudit.checks.sequences.first_sequences import sequence_restart, unknown_start
from kaudit.model.audit_clock import ClockSource, Idleness
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import EvictedProducer, IdleProducer
from kaudit.model.severity import Confidence, Severity

_EFFECTS = observers(
    duplicate_batch,
    old_duplicate,
    overlapping_batch,
    sequence_restart,
    unknown_start,
    stale_epoch,
    epoch_bump_nonzero,
)
"""The check for each kind of observation that only a broker without the producer's state allows."""
_DAY_MS = 86_400_000


class _SilenceEvidence(ObservationEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    silence_ms: int
    limit_ms: int


@check(
    "KA801",
    severity=Severity.WARNING,
    severity_note="note when nothing in the log shows an effect, and by timestamps of clients alone",
    summary="timestamps make the broker forget a producer",
    needs=(Observation, IdleProducer),
    observes=(ObservationKind.CONTINUED_AFTER_SILENCE,),
    incident=(PRODUCER_STATE,),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED),
    simulated=none_because("silences are measured against an expiry of days, and schedules take seconds"),
)
def state_expired(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report effects of a forgotten producer, batches after a silence, and then producers that are forgotten by now."""
    limit = max(profile.expiration_default_ms for profile in context.versions.profiles())
    reported: set[int] = set()
    for observation in evidence.observed(*_EFFECTS):
        if context.idleness(observation).apparent_ms >= limit:
            reported.add(observation.producer_id)
            yield _expired_effect(context, observation, limit)
    if context.versions.any(lambda profile: profile.accepts_unknown_nonzero):
        # before 2.5 a batch in sequence shows that its producer was still remembered
        for observation in evidence.observed(*state_expired.observes):
            if context.idleness(observation).apparent_ms >= limit:
                reported.add(observation.producer_id)
                yield _continued(context, observation, limit)
    for producer in evidence.of(IdleProducer):
        if context.clock.has_passed(limit, producer.last_timestamp) and producer.producer_id not in reported:
            yield _idle(context, producer, limit)


_BY_CLIENTS = " by timestamps of clients alone"


def _expired_effect(context: Context, observation: Observation, limit: int) -> Finding:
    idle = context.idleness(observation)
    is_proven = idle.proven_ms >= limit
    return observation_finding(
        state_expired,
        context,
        observation,
        f"the broker {'had' if is_proven else 'may have'} forgotten producer {observation.producer_id} when it received the "
        f"batch at offset {observation.offset}, {_days(idle.apparent_ms)} after the one before"
        f"{'' if is_proven else _BY_CLIENTS}: see {_EFFECTS[observation.kind].code} there",
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY if is_proven else Confidence.POSSIBLE,
        evidence=_evidence(idle, observation, "forgotten", limit),
        explanations=(
            Explanation("the producer was idle for longer than brokers remember it"),
            Explanation("its records carry old timestamps, and the broker uses these, not the time of their arrival"),
            *(() if is_proven else (Explanation("the batch is dated ahead: the producer was not idle"),)),
        ),
    )


def _continued(context: Context, observation: Observation, limit: int) -> Finding:
    idle = context.idleness(observation)
    is_proven = idle.proven_ms >= limit
    return observation_finding(
        state_expired,
        context,
        observation,
        f"producer {observation.producer_id} continued at offset {observation.offset} after {_days(idle.apparent_ms)}"
        f"{'' if is_proven else _BY_CLIENTS}: brokers {'had' if is_proven else 'may have'} forgotten it by then, and would "
        "have accepted any other sequence too",
        severity=Severity.NOTE,
        confidence=Confidence.CERTAIN if is_proven else Confidence.POSSIBLE,
        evidence=_evidence(idle, observation, ObservationKind.CONTINUED_AFTER_SILENCE.label, limit),
        explanations=(Explanation("a quiet producer: nothing was lost or repeated here", innocent=True),),
    )


def _evidence(idle: Idleness, observation: Observation, kind: str, limit: int) -> _SilenceEvidence:
    return _SilenceEvidence(
        rule=_rule(limit), observation=observation, kind=kind, silence_ms=idle.apparent_ms, limit_ms=limit
    )


class _IdleEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    last_timestamp: int
    now_timestamp: int
    limit_ms: int
    clock: ClockSource


def _idle(context: Context, producer: IdleProducer, limit: int) -> Finding:
    silence = context.clock.now_ms - producer.last_timestamp
    return state_expired.finding(
        context,
        f"brokers have forgotten producer {producer.producer_id}: its newest record is {_days(silence)} older than the log",
        severity=Severity.NOTE,
        segment=producer.segment,
        position=producer.position,
        offset=producer.last_offset,
        last_offset=producer.last_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        evidence=_IdleEvidence(
            rule=_rule(limit),
            kind="idle",
            last_timestamp=producer.last_timestamp,
            now_timestamp=context.clock.now_ms,
            limit_ms=limit,
            clock=context.clock.source,
        ),
        explanations=(
            Explanation("the producer is done", innocent=True),
            Explanation("its records carry old timestamps: then it is forgotten while it is at work"),
        ),
        following=(context.timeline_command(producer.producer_id, by_clock=True),),
        absent={}
        if producer.segment is not None
        else dict.fromkeys(("file", "segment", "position"), "only a marker of it is known"),
    )


def _rule(limit: int) -> str:
    return (
        f"without an open transaction a producer is forgotten {limit // _DAY_MS} days after its newest record's timestamp by "
        "default (producer.id.expiration.ms, before 3.4 transactional.id.expiration.ms; ProducerStateManager.removeExpiredProducers)"
    )


def _days(milliseconds: int) -> str:
    return f"{milliseconds / _DAY_MS:.1f} days"


_EVICTION_RULE = (
    "brokers before 2.4 drop every producer whose last record lies below a new log start "
    "(ProducerStateManager.truncateHead; KAFKA-7190)"
)


class _EvictedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    last_sequence: int
    next_offset: int | None


@check(
    "KA802",
    severity=Severity.WARNING,
    severity_note="note when nothing in the log shows an effect",
    summary="a producer is forgotten because its data was deleted (brokers before 2.4)",
    needs=(EvictedProducer,),
    incident=none_because("that the log start moved past a producer's last record is no fault by itself"),
    caused_by=(FORGOTTEN, HEAD_REMOVED, BUMPED),
    simulated=none_because(
        "it takes --broker-version below 2.4, and schedules are scanned without; with 2.0.1, unknown-producer-id leaves it"
    ),
)
def state_evicted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report evicted producers, as a warning where one repeats a deleted batch."""
    if not context.versions.all(lambda profile: profile.forgets_on_log_start_advance):
        return
    for producer in evidence.of(EvictedProducer):
        kind, then = _eviction_effect(producer)
        yield state_evicted.finding(
            context,
            f"producer {producer.producer_id} was forgotten when its last batch, at offset {producer.last_offset}, fell below "
            f"the log start: {then}",
            severity=Severity.WARNING if producer.repeated else Severity.NOTE,
            segment=producer.segment,
            position=producer.position,
            offset=producer.last_offset,
            last_offset=producer.last_offset,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            evidence=_EvictedEvidence(
                rule=_EVICTION_RULE,
                kind=kind,
                last_sequence=producer.last_sequence,
                next_offset=producer.again,
            ),
            explanations=(
                Explanation(
                    "retention or DeleteRecords moved the log start past its last record",
                    innocent=not producer.repeated,
                ),
            ),
            following=(context.timeline_command(producer.producer_id),),
        )


def _eviction_effect(producer: EvictedProducer) -> tuple[str, str]:
    """Return the class and the text of what the producer wrote above the log start."""
    if producer.repeated:
        return "repeated", f"the batch at offset {producer.again} repeats one that was deleted"
    if producer.again is not None:
        return "restarted", f"at offset {producer.again} it starts again at sequence 0"
    return "idle", "it has not written since"
