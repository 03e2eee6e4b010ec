"""KA801-KA803: producers a broker forgets, and logs it cannot load."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kaudit.broker.releases.profile import Profile
from kaudit.checks.catalogue import OBSERVERS
from kaudit.checks.context import Context
from kaudit.checks.judged import judged_finding
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import Observation, ObservationKind

_FORGETFUL = frozenset({"KA101", "KA102", "KA103", "KA105", "KA106", "KA201", "KA202"})
"""What only a broker without the producer's state lets happen."""
_DAY_MS = 86_400_000


class IdleProducer(Struct, frozen=True):
    """A producer at the log's end: its newest batch or marker, times in ms. No transaction is open."""

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_timestamp: int
    segment: int | None
    position: int | None


class EvictedProducer(Struct, frozen=True):
    """A producer whose last batch below the log start is at `last_offset`.

    `again`: its first batch above starts anew at sequence 0 in the same epoch; `repeated`: that batch's bytes are those
    of one below. Positions are bytes in `segment`.
    """

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_sequence: int
    segment: int
    position: int
    again: int | None = None
    repeated: bool = False


class EmptyMarker(Struct, frozen=True):
    """The first end marker whose record compaction took away, and how many there are."""

    offset: int
    producer_id: int
    producer_epoch: int
    segment: int
    position: int
    count: int


def report_state(
    context: Context,
    facts: Sequence[Observation],
    idle: Sequence[IdleProducer],
    evicted: Sequence[EvictedProducer],
    empty_marker: EmptyMarker | None,
) -> list[Finding]:
    """Report expired and evicted producers, and what would stop a broker loading this log."""
    limit = max(profile.expiration_default_ms for profile in context.versions.profiles())
    found = [_expired_joint(context, fact, limit) for fact in facts if _silence(fact) >= limit]
    if context.versions.any(lambda profile: profile.accepts_unknown_nonzero):
        # Before 2.5 a batch that goes on shows that its producer was still remembered.
        found += [
            _went_on(context, fact, limit)
            for fact in facts
            if fact.kind is ObservationKind.CONTINUED_AFTER_SILENCE and _gap_ms(fact) >= limit
        ]
    told = {finding.producer_id for finding in found}
    found += [
        _expired(context, producer, limit)
        for producer in idle
        if context.now_ms - producer.last_timestamp >= limit and producer.producer_id not in told
    ]
    if context.versions.all(lambda profile: profile.forgets_on_log_start_advance):
        found += [_evicted(context, producer) for producer in evicted]
    found += [_fatal_fact(context, fact) for fact in facts if fact.kind is ObservationKind.OUTSIDE_TRANSACTION]
    found += _bound_markers(context, facts)
    if empty_marker is not None:
        found += _empty_marker(context, empty_marker)
    return found


def _silence(fact: Observation) -> int:
    """Ms between a producer's newest batch or marker and the one that shows it was forgotten; -1 where neither is known."""
    return _gap_ms(fact) if not fact.explained and OBSERVERS[fact.kind] in _FORGETFUL else -1


def _gap_ms(fact: Observation) -> int:
    if fact.remembered is None or fact.remembered.last_timestamp < 0:
        return -1
    at = fact.batch.max_timestamp if fact.batch is not None else -1
    return at - fact.remembered.last_timestamp


def _expired_joint(context: Context, fact: Observation, limit: int) -> Finding:
    silence = _silence(fact)
    return judged_finding(
        context,
        fact,
        f"the broker had forgotten producer {fact.producer_id} when the batch at offset {fact.offset} came, {_days(silence)} "
        f"after the one before: {OBSERVERS[fact.kind]} there shows it",
        _rule(limit),
        code="KA801",
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
        extra={"class": "forgotten", "silence_ms": silence, "limit_ms": limit},
        explanations=(
            Explanation("the producer was idle for longer than brokers remember it"),
            Explanation("its records carry old timestamps, and the broker goes by these, not by when they arrived"),
        ),
    )


def _went_on(context: Context, fact: Observation, limit: int) -> Finding:
    silence = _gap_ms(fact)
    return judged_finding(
        context,
        fact,
        f"producer {fact.producer_id} went on at offset {fact.offset} after {_days(silence)}: brokers had forgotten it by "
        "then, and would have taken any other sequence too",
        _rule(limit),
        code="KA801",
        severity=Severity.NOTE,
        extra={"class": "went-on", "silence_ms": silence, "limit_ms": limit},
        explanations=(Explanation("a quiet producer: nothing was lost or repeated here", innocent=True),),
    )


def _expired(context: Context, producer: IdleProducer, limit: int) -> Finding:
    silence = context.now_ms - producer.last_timestamp
    return context.finding(
        "KA801",
        f"brokers have forgotten producer {producer.producer_id}: its newest record is {_days(silence)} older than the log",
        severity=Severity.NOTE,
        segment=producer.segment,
        position=producer.position,
        offset=producer.last_offset,
        last_offset=producer.last_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        evidence={
            "rule": _rule(limit),
            "class": "idle",
            "last_timestamp": producer.last_timestamp,
            "now_timestamp": context.now_ms,
            "limit_ms": limit,
        },
        explanations=(
            Explanation("the producer is done", innocent=True),
            Explanation("its records carry old timestamps: then it is forgotten while it is at work"),
        ),
        following=(context.timeline_command(producer.producer_id),),
        absent=_absent(producer.segment),
    )


def _rule(limit: int) -> str:
    return (
        f"without an open transaction a producer is forgotten {limit // _DAY_MS} days after its newest record's timestamp by "
        "default (producer.id.expiration.ms, before 3.4 transactional.id.expiration.ms; ProducerStateManager.removeExpiredProducers)"
    )


def _evicted(context: Context, producer: EvictedProducer) -> Finding:
    then = "it has not written since"
    if producer.repeated:
        then = f"the batch at offset {producer.again} repeats one that was deleted"
    elif producer.again is not None:
        then = f"at offset {producer.again} it starts again at sequence 0"
    return context.finding(
        "KA802",
        f"producer {producer.producer_id} was forgotten when its last batch, at offset {producer.last_offset}, fell below the log "
        f"start: {then}",
        severity=Severity.WARNING if producer.repeated else Severity.NOTE,
        segment=producer.segment,
        position=producer.position,
        offset=producer.last_offset,
        last_offset=producer.last_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        evidence={
            "rule": "brokers before 2.4 drop every producer whose last record lies below a new log start "
            "(ProducerStateManager.truncateHead; KAFKA-7190)",
            "class": "repeated" if producer.repeated else "idle" if producer.again is None else "restarted",
            "last_sequence": producer.last_sequence,
            "next_offset": producer.again,
        },
        explanations=(
            Explanation(
                "retention or DeleteRecords moved the log start past its last record", innocent=not producer.repeated
            ),
        ),
        following=(context.timeline_command(producer.producer_id),),
    )


def _fatal_fact(context: Context, fact: Observation) -> Finding:
    return _fatal(
        context,
        fact,
        "no broker can load this log",
        "a plain batch inside an open transaction is INVALID_TXN_STATE for every origin, log loading and replication included",
        Severity.ERROR,
    )


def _bound_markers(context: Context, facts: Sequence[Observation]) -> list[Finding]:
    severity = _severity(context, lambda profile: profile.marker_checks_bind_replicas)
    if severity is None:
        return []
    return [
        _fatal(
            context,
            fact,
            "brokers up to 2.4.0 cannot load this log",
            "a marker of an older epoch or coordinator epoch throws on followers and while a log is loaded (until 2.4.0, KAFKA-9144)",
            severity,
        )
        for fact in facts
        if fact.kind in (ObservationKind.STALE_MARKER, ObservationKind.COORDINATOR_EPOCH_REGRESSION)
    ]


def _fatal(context: Context, fact: Observation, who: str, rule: str, severity: Severity) -> Finding:
    what = "batch" if fact.batch is not None else "marker"
    return judged_finding(
        context,
        fact,
        f"{who}: the {what} of producer {fact.producer_id} at offset {fact.offset} stops them ({OBSERVERS[fact.kind]})",
        rule,
        code="KA803",
        severity=severity,
        extra={"class": OBSERVERS[fact.kind]},
        explanations=(
            Explanation("a snapshot from behind this offset spares a broker reading it, until that snapshot is lost"),
        ),
        following=(f"kaudit explain {OBSERVERS[fact.kind]}",),
    )


def _empty_marker(context: Context, marker: EmptyMarker) -> list[Finding]:
    severity = _severity(context, lambda profile: profile.empty_control_batch_is_fatal)
    if severity is None:
        return []
    return [
        context.finding(
            "KA803",
            f"brokers up to 2.0.0 cannot load this log: the marker at offset {marker.offset} was emptied by the cleaner "
            f"({marker.count} such)",
            severity=severity,
            segment=marker.segment,
            position=marker.position,
            offset=marker.offset,
            last_offset=marker.offset,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            evidence={
                "rule": "a control batch without its record throws where its record is asked for (KAFKA-7467: fixed in 2.0.1, 2.1.0)",
                "class": "empty-marker",
                "markers": marker.count,
            },
            explanations=(Explanation("the cleaner kept the batch for its producer's sake", innocent=True),),
            following=(context.timeline_command(marker.producer_id),),
        )
    ]


def _severity(context: Context, fatal: Callable[[Profile], bool]) -> Severity | None:
    """Return error when all versions in question fail, a note when some do, None when none does."""
    if context.versions.all(fatal):
        return Severity.ERROR
    return Severity.NOTE if context.versions.any(fatal) else None


def _days(milliseconds: int) -> str:
    days = milliseconds / _DAY_MS
    return f"{days:.1f} days"


def _absent(segment: int | None) -> dict[str, str]:
    return {} if segment is not None else dict.fromkeys(("file", "segment", "position"), "only a marker of it is known")
