"""Batches whose CRC holds and which cannot be decoded: they contradict themselves, or are too large to unpack."""

from collections.abc import Iterator
from typing import Unpack

from kaudit.checks.check import BYTES_NOT_DAMAGED, Check, Evidence, FindingFields, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.damage import MalformedBatch
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.severity import Severity


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    detail: str
    bytes: int
    limit: int | None


def _finding(
    check: Check, context: Context, batch: MalformedBatch, what: str, rule: str, **fields: Unpack[FindingFields]
) -> Finding:
    has_producer = batch.producer_id > NO_PRODUCER_ID
    placed: FindingFields = {
        "position": batch.position,
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "producer_id": batch.producer_id if has_producer else None,
        "producer_epoch": batch.producer_epoch if has_producer else None,
        "evidence": _Evidence(
            rule=rule,
            broker="appends, replicates and serves it as it is: only consumers and compaction unpack it",
            detail=batch.detail,
            bytes=batch.size,
            limit=batch.limit,
        ),
        "absent": dict.fromkeys(("producer_id", "producer_epoch"), "the batch names no producer"),
        **fields,
    }
    message = f"the batch of offsets {batch.base_offset}..{batch.last_offset} is {what}: {batch.detail}"
    following = (context.header_command(batch.segment, batch.position),)
    return check.finding(context, message, segment=batch.segment, following=following, **placed)


def _unreadable(batch: MalformedBatch) -> Impact:
    """Return what consumers may miss of a batch whose claims contradict each other: at most the largest claim."""
    offsets = batch.last_offset - batch.base_offset + 1
    return Impact(records_lost_at_least=0, records_lost_at_most=max(offsets, batch.record_count))


_AGREE = "counts, offset deltas and lengths of a batch agree, and its records fill it exactly (DefaultRecordBatch)"
_MALFORMED_CAUSES = (
    Explanation("a client wrote it so: the CRC was computed over what is wrong, so the disk did not do it"),
    Explanation("a program rewrote the batch and its CRC"),
)


@check(
    "KA005",
    severity=Severity.ERROR,
    summary="a batch's CRC holds, but its counts, deltas, codec or records contradict each other",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=BYTES_NOT_DAMAGED,
)
def malformed_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    for batch in evidence.of(MalformedBatch):
        if not batch.limited:
            yield _finding(
                malformed_batch,
                context,
                batch,
                "malformed",
                _AGREE,
                explanations=_MALFORMED_CAUSES,
                impact=_unreadable(batch),
            )


_FITS = "a batch unpacks to a size that fits into a consumer's memory"
_TOO_LARGE_CAUSES = (
    Explanation("a decompression bomb: a few bytes that unpack to more than a consumer's memory"),
    Explanation("the topic allows batches this large (give `kaudit inspect` a larger limit)", innocent=True),
)


@check(
    "KA010",
    severity=Severity.ERROR,
    summary="a batch unpacks to more than kaudit reads",
    needs=(MalformedBatch,),
    incident=(DAMAGE,),
    caused_by=none_because("the limit is kaudit's own: brokers and clients log nothing about it"),
    simulated=BYTES_NOT_DAMAGED,
)
def limit_exceeded(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch once."""
    for batch in evidence.of(MalformedBatch):
        if batch.limited:
            yield _finding(limit_exceeded, context, batch, "too large to unpack", _FITS, explanations=_TOO_LARGE_CAUSES)
