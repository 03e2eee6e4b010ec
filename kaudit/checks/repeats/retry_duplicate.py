"""A batch without a producer id that is in the log twice."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import RETRIES
from kaudit.checks.log_causes import BUMPED, RETRIED
from kaudit.checks.repeats.wording import NO_PRODUCER, batch_evidence, inspect_around, records_text
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.producer_patterns import RepeatedBatch

_MAX_LISTED = 100


@check(
    "KA702",
    severity=Severity.WARNING,
    summary="a batch without a producer id is in the log twice",
    needs=(RepeatedBatch,),
    incident=(RETRIES,),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("retry-without-idempotence"),
)
def retry_duplicate(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each burst of copies once."""
    for burst in _bursts(evidence.of(RepeatedBatch)):
        yield _repeated(context, burst)


def _bursts(repeats: Sequence[RepeatedBatch]) -> list[list[RepeatedBatch]]:
    """Copies right behind one another are one event."""
    bursts: list[list[RepeatedBatch]] = []
    for repeat in repeats:
        before = bursts[-1][-1] if bursts else None
        follows = before is not None and repeat.again.ordinal == before.again.ordinal + 1
        if follows and repeat.same_times == bursts[-1][-1].same_times:
            bursts[-1].append(repeat)
        else:
            bursts.append([repeat])
    return bursts


def _repeated(context: Context, burst: Sequence[RepeatedBatch]) -> Finding:
    first, again, last = burst[0].first, burst[0].again, burst[-1].again
    records = sum(repeat.again.record_count for repeat in burst)
    same = "the same records" + ("" if burst[0].same_times else " under new timestamps")
    if len(burst) == 1:
        message = (
            f"the batch at offset {again.base_offset} ({records_text(records)}) is a repeat of the batch at offset "
        )
        message += f"{first.base_offset}: {same}"
    else:
        low = min(repeat.first.base_offset for repeat in burst)
        high = max(repeat.first.last_offset for repeat in burst)
        message = (
            f"{len(burst)} batches at offsets {again.base_offset}..{last.last_offset} ({records_text(records)}) are "
        )
        message += f"repeats of batches at {low}..{high}: {same}"
    return retry_duplicate.finding(
        context,
        message,
        confidence=Confidence.LIKELY if burst[0].same_times or len(burst) > 1 else Confidence.POSSIBLE,
        segment=again.segment,
        position=again.position,
        offset=again.base_offset,
        last_offset=last.last_offset,
        evidence={
            "rule": "without a producer id a broker cannot recognise a batch that is sent again, and appends it again",
            "previous": batch_evidence(first),
            "offending": batch_evidence(again),
            "batches": len(burst),
            "records": records,
            "copies": [[repeat.first.base_offset, repeat.again.base_offset] for repeat in burst[:_MAX_LISTED]],
        },
        explanations=(
            Explanation(
                "a producer without idempotence sent the batch again, because the answer to the first request was late or "
                "lost",
                speaks_for=(_likeness(burst[0]),),
            ),
            Explanation(
                "an application sends equal records in equal batches within one millisecond, as load generators do"
                if burst[0].same_times
                else "an application means to write these records again",
                innocent=True,
            ),
        ),
        impact=Impact(records_duplicated=records),
        following=(inspect_around(context, again.base_offset),),
        absent=NO_PRODUCER,
    )


def _likeness(repeat: RepeatedBatch) -> str:
    apart = repeat.again.ordinal - repeat.first.ordinal
    where = f"{apart} batches apart" if apart > 1 else "right behind it"
    if repeat.same_times:
        return f"same records and timestamps, {where}"
    return f"same records, {where}, and nothing else around is repeated; stamped {_later(repeat)} ms later"


def _later(repeat: RepeatedBatch) -> int:
    return repeat.again.base_timestamp - repeat.first.base_timestamp
