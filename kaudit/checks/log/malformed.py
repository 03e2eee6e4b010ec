"""Batches whose CRC holds and which cannot be decoded: they contradict themselves, or are too large to unpack."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kaudit.checks.check import Check, Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.damage import MalformedBatch
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.impact import Impact

_NO_PRODUCER = "the batch names no producer"


class Wording(Struct, frozen=True):
    """What is wrong with a batch, the rule it breaks, and what may have done it."""

    what: str
    rule: str
    explanations: Sequence[Explanation]


def malformed_findings(
    check: Check, context: Context, evidence: Evidence, wording: Wording, *, limited: bool
) -> Iterator[Finding]:
    """Yield a finding for each batch; `limited`: of those over a limit, else of those that contradict themselves."""
    for batch in evidence.of(MalformedBatch):
        if batch.limited is not limited:
            continue
        has_producer = batch.producer_id > NO_PRODUCER_ID
        yield check.finding(
            context,
            f"the batch of offsets {batch.base_offset}..{batch.last_offset} is {wording.what}: {batch.detail}",
            segment=batch.segment,
            position=batch.position,
            offset=batch.base_offset,
            last_offset=batch.last_offset,
            producer_id=batch.producer_id if has_producer else None,
            producer_epoch=batch.producer_epoch if has_producer else None,
            evidence={
                "rule": wording.rule,
                "broker": "appends, replicates and serves it as it is: only consumers and compaction unpack it",
                "detail": batch.detail,
                "bytes": batch.size,
                "limit": batch.limit,
            },
            explanations=wording.explanations,
            impact=Impact() if limited else _unreadable(batch),
            following=(context.header_command(batch.segment, batch.position),),
            absent={"producer_id": _NO_PRODUCER, "producer_epoch": _NO_PRODUCER},
        )


def _unreadable(batch: MalformedBatch) -> Impact:
    """Return what consumers may not get of a batch whose claims contradict each other: at most what one of them claims."""
    offsets = batch.last_offset - batch.base_offset + 1
    return Impact(records_lost_at_least=0, records_lost_at_most=max(offsets, batch.record_count))


_CONTRADICTS_ITSELF = Wording(
    "malformed",
    "counts, offset deltas and lengths of a batch agree, and its records fill it exactly (DefaultRecordBatch)",
    (
        Explanation("a client wrote it so: the CRC was computed over what is wrong, so the disk did not do it"),
        Explanation("a program rewrote the batch and its CRC"),
    ),
)


@check(
    "KA005",
    severity=Severity.ERROR,
    summary="a batch's CRC holds, but its counts, deltas, codec or records contradict each other",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
)
def malformed_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    yield from malformed_findings(malformed_batch, context, evidence, _CONTRADICTS_ITSELF, limited=False)


_TOO_LARGE = Wording(
    "too large to unpack",
    "a batch unpacks to a size consumers can hold",
    (
        Explanation("a decompression bomb: a few bytes that unpack to more than a consumer can hold"),
        Explanation("the topic allows batches this large (give `kaudit inspect` a larger limit)", innocent=True),
    ),
)


@check(
    "KA010",
    severity=Severity.ERROR,
    summary="a batch unpacks to more than kaudit is willing to hold",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=none_because("the limit is kaudit's own: brokers and clients log nothing about it"),
    simulated=none_because("schedules damage no bytes on disk"),
)
def limit_exceeded(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    yield from malformed_findings(limit_exceeded, context, evidence, _TOO_LARGE, limited=True)
