"""Batches without producer ids that were sent again: copies, and batches out of order."""

import re
from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import RETRIES
from kaudit.checks.log_causes import BUMPED, RETRIED
from kaudit.checks.texts import counted
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import NonIdempotent
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.producer_patterns import RegroupedRecords, ReorderedBatches, RepeatedBatch, RepeatsAtMost
from kaudit.model.severity import Confidence, Severity

_MAX_LISTED = 100
_RULE = "without a producer id a broker cannot recognise a batch that is sent again, and appends it again"
_BATCHED_ANEW = Explanation(
    "a producer without idempotence, such as librdkafka's, put the records into new batches before it sent them again",
    speaks_for=("whole batches near them are in the log twice",),
)
_STATES = re.compile(
    r"connect-(offsets|configs|status)|mm2-(offsets|configs|status|offset-syncs)\..+\.internal|(.+\.)?(checkpoints\.internal|heartbeats)"
)
"""Compacted topics that Kafka Connect and MirrorMaker 2 make, as connect-distributed.properties and MirrorMakerConfig name them."""
_NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "the batch carries none")


def _batch_evidence(batch: NonIdempotentBatch) -> NonIdempotent:
    return NonIdempotent(
        offset=batch.base_offset,
        last_offset=batch.last_offset,
        timestamp=batch.max_timestamp,
        producer_id=NO_PRODUCER_ID,
        record_count=batch.record_count,
        crc=batch.crc,
        position=batch.position,
    )


class _CopiedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False, rename={"copied_offsets": "copies"}):
    rule: str
    previous: NonIdempotent
    offending: NonIdempotent
    batches: int
    records: int
    copied_offsets: Sequence[Sequence[int]]


@check(
    "KA702",
    severity=Severity.WARNING,
    summary="a batch without a producer id is in the log twice",
    severity_note="note for a single record under another timestamp, and in a compacted topic",
    needs=(RepeatedBatch,),
    incident=(RETRIES,),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("retry-without-idempotence"),
)
def retry_duplicate(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each burst of copies once; what else may be there again counts in the first that costs anything."""
    bursts, regrouped = _bursts(evidence.of(RepeatedBatch)), evidence.of(RegroupedRecords)
    costs = [_records(burst) for burst in bursts if not _is_free(context, burst)] + [each.records for each in regrouped]
    most = [
        each.same_times if all(burst[0].same_times or _is_free(context, burst) for burst in bursts) else each.any_times
        for each in evidence.of(RepeatsAtMost)
    ]
    more = max(most[0] - sum(costs), 0) if most else None
    for burst in bursts:
        free = _is_free(context, burst)
        yield _copied(context, burst, NO_IMPACT if free else _impact(_records(burst), more))
        more = more if free or more is None else 0
    for each in regrouped:
        yield _batched_anew(context, each, _impact(each.records, more))
        more = None if more is None else 0


def _impact(records: int, more: int | None) -> Impact:
    return Impact(records_duplicated=records, records_duplicated_at_most=None if more is None else records + more)


def _records(burst: Sequence[RepeatedBatch]) -> int:
    return sum(repeat.again.record_count for repeat in burst)


def _is_alone(burst: Sequence[RepeatedBatch]) -> bool:
    """A person, or an application, may write one record twice; Java's client and librdkafka keep its time when they retry."""
    return _records(burst) == 1 and not burst[0].same_times


def _is_of_states(context: Context, burst: Sequence[RepeatedBatch]) -> bool:
    return not burst[0].same_times and (context.compacted or _STATES.fullmatch(context.topic or "") is not None)


def _is_free(context: Context, burst: Sequence[RepeatedBatch]) -> bool:
    return _is_alone(burst) or _is_of_states(context, burst)


def _batched_anew(context: Context, found: RegroupedRecords, impact: Impact) -> Finding:
    return retry_duplicate.finding(
        context,
        f"{counted(found.records, 'record')} at offsets {found.first_offset}..{found.last_offset} are repeats of records at "
        f"{found.copied_first}..{found.copied_last}, timestamps included, in batches of other sizes",
        confidence=Confidence.LIKELY,
        segment=found.again.segment,
        position=found.again.position,
        offset=found.first_offset,
        last_offset=found.last_offset,
        evidence=_CopiedEvidence(
            rule=_RULE,
            previous=_batch_evidence(found.first),
            offending=_batch_evidence(found.again),
            batches=0,
            records=found.records,
            copied_offsets=[[found.copied_first, found.first_offset]],
        ),
        explanations=(_BATCHED_ANEW,),
        impact=impact,
        following=(context.inspect_around(found.first_offset), context.count_repeats_command()),
        absent=_NO_PRODUCER,
    )


def _bursts(repeats: Sequence[RepeatedBatch]) -> list[list[RepeatedBatch]]:
    """Group copies that follow one another: they are one event."""
    bursts: list[list[RepeatedBatch]] = []
    for repeat in repeats:
        before = bursts[-1][-1] if bursts else None
        follows = before is not None and repeat.again.ordinal == before.again.ordinal + 1
        if follows and repeat.same_times == bursts[-1][-1].same_times:
            bursts[-1].append(repeat)
        else:
            bursts.append([repeat])
    return bursts


def _copied(context: Context, burst: Sequence[RepeatedBatch], impact: Impact) -> Finding:
    first, again, last, records = burst[0].first, burst[0].again, burst[-1].again, _records(burst)
    same = "the same records" + ("" if burst[0].same_times else " under new timestamps")
    alone, states = _is_alone(burst), _is_of_states(context, burst)
    if alone:
        message = f"the record at offset {again.base_offset} equals that at offset {first.base_offset}, under another timestamp"
    elif len(burst) == 1:
        message = f"the batch at offset {again.base_offset} ({counted(records, 'record')}) is a repeat of the batch at offset "
        message += f"{first.base_offset}: {same}"
    else:
        low = min(repeat.first.base_offset for repeat in burst)
        high = max(repeat.first.last_offset for repeat in burst)
        message = f"{len(burst)} batches at offsets {again.base_offset}..{last.last_offset} ({counted(records, 'record')}) are "
        message += f"repeats of batches at {low}..{high}: {same}"
    return retry_duplicate.finding(
        context,
        message,
        severity=Severity.NOTE if alone or states else Severity.WARNING,
        confidence=Confidence.LIKELY if burst[0].same_times or len(burst) > 1 else Confidence.POSSIBLE,
        segment=again.segment,
        position=again.position,
        offset=again.base_offset,
        last_offset=last.last_offset,
        evidence=_CopiedEvidence(
            rule=_RULE,
            previous=_batch_evidence(first),
            offending=_batch_evidence(again),
            batches=len(burst),
            records=records,
            copied_offsets=[[repeat.first.base_offset, repeat.again.base_offset] for repeat in burst[:_MAX_LISTED]],
        ),
        explanations=_written_twice(burst[0], alone=alone, states=states),
        impact=impact,
        following=(context.inspect_around(again.base_offset), *(() if alone else (context.count_repeats_command(),))),
        absent=_NO_PRODUCER,
    )


def _written_twice(repeat: RepeatedBatch, *, alone: bool, states: bool) -> tuple[Explanation, ...]:
    late = "because the answer to the first request was late or lost"
    retried = f"a producer without idempotence sent the batch again, {late}"
    if alone:
        retried = (
            f"a client that gives a record a new timestamp when it retries, as kafkajs does, sent it again, {late}"
        )
        meant = "an application, or a person at a console, wrote the record twice"
    elif states:
        meant = "an application that keeps its states in a compacted topic, as Kafka Connect does, wrote those that had not changed again"
    elif repeat.same_times:
        meant = "an application sends equal records in equal batches within one millisecond, as load generators do"
    else:
        meant = "an application means to write these records again"
    return Explanation(retried, speaks_for=(_likeness(repeat),)), Explanation(meant, innocent=True)


def _likeness(repeat: RepeatedBatch) -> str:
    apart = repeat.again.ordinal - repeat.first.ordinal
    where = f"{apart} batches apart" if apart > 1 else "right after it"
    if repeat.same_times:
        return f"same records and timestamps, {where}"
    return f"same records, {where}, and nothing else around is repeated; stamped {_later(repeat)} ms later"


def _later(repeat: RepeatedBatch) -> int:
    return repeat.again.base_timestamp - repeat.first.base_timestamp


_REORDERED_CAUSES = (
    Explanation(
        "max.in.flight.requests.per.connection is above 1 without idempotence, and a request failed",
        speaks_for=("batches near it are in the log twice (KA702)",),
    ),
    Explanation("two producers write here, and both retried", innocent=True),
)


class _ReorderedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    previous: NonIdempotent
    offending: NonIdempotent
    batches: int
    kind: str


@check(
    "KA703",
    severity=Severity.WARNING,
    summary="a retry has put batches without producer ids out of order",
    needs=(ReorderedBatches,),
    incident=(RETRIES,),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("retry-without-idempotence"),
)
def reordered_retry(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the batches that one retry has put out of order as one finding."""
    for found in evidence.of(ReorderedBatches):
        first, last, number = found.late[0], found.late[-1], len(found.late)
        which = f"the batch at offset {first.base_offset} comes"
        how = "its records are older"
        if number > 1:
            which = f"{number} batches at offsets {first.base_offset}..{last.last_offset} come"
            how = "their records are older"
        if found.reversed:
            how = "copies in the opposite order of what they copy"
        yield reordered_retry.finding(
            context,
            f"{which} after later records because of a retry: {how}",
            confidence=Confidence.LIKELY if found.reversed else Confidence.POSSIBLE,
            segment=first.segment,
            position=first.position,
            offset=first.base_offset,
            last_offset=last.last_offset,
            evidence=_ReorderedEvidence(
                rule="with several requests in flight and no idempotence, a batch that is retried lands after those that "
                "were sent after it",
                previous=_batch_evidence(found.overtaken_by),
                offending=_batch_evidence(first),
                batches=number,
                kind="reversed" if found.reversed else "older",
            ),
            explanations=_REORDERED_CAUSES,
            following=(context.inspect_around(first.base_offset),),
            absent=_NO_PRODUCER,
        )
