"""KA005, KA010: batches that are whole, and yet cannot be read or are too large to be."""

from collections.abc import Sequence

from kaudit.checks.context import Context, quote
from kaudit.model.batch_fields import NO_PRODUCER_ID
from kaudit.model.finding import Explanation, Finding
from kaudit.model.malformed import MalformedBatch


def report_malformed(context: Context, malformed: Sequence[MalformedBatch]) -> list[Finding]:
    """Report every batch once."""
    return [_report(context, batch) for batch in malformed]


def _report(context: Context, batch: MalformedBatch) -> Finding:
    has_producer = batch.producer_id > NO_PRODUCER_ID
    path = quote(f"{context.directory}/{context.segments[batch.segment]}")
    return context.finding(
        "KA010" if batch.limited else "KA005",
        f"the batch of offsets {batch.base_offset}..{batch.last_offset} "
        + ("is too large to unpack: " if batch.limited else "is malformed: ")
        + batch.detail,
        segment=batch.segment,
        position=batch.position,
        offset=batch.base_offset,
        last_offset=batch.last_offset,
        producer_id=batch.producer_id if has_producer else None,
        producer_epoch=batch.producer_epoch if has_producer else None,
        evidence={
            "rule": "a batch unpacks to a size consumers can hold"
            if batch.limited
            else "counts, offset deltas and lengths of a batch agree, and its records fill it exactly (DefaultRecordBatch)",
            "broker": "appends, replicates and serves it as it is: only consumers and compaction unpack it",
            "detail": batch.detail,
            "bytes": batch.size,
            "limit": batch.limit,
        },
        explanations=_LIMIT_CAUSES if batch.limited else _CAUSES,
        following=(f"kaudit inspect --at {batch.position} {path}",),
        absent={
            "producer_id": "the batch names no producer",
            "producer_epoch": "the batch names no producer",
        },
    )


_CAUSES = (
    Explanation("a client wrote it so: the CRC was computed over what is wrong, so the disk did not do it"),
    Explanation("a program rewrote the batch and its CRC"),
)
_LIMIT_CAUSES = (
    Explanation("a decompression bomb: a few bytes that unpack to more than a consumer can hold"),
    Explanation(
        "the topic allows batches this large (pass a larger --max-decompressed to `kaudit inspect`)", innocent=True
    ),
)
