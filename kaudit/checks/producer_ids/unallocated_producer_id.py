"""A producer id in the log that no block of the cluster's history holds."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import UNALLOCATED_IDS
from kaudit.checks.producer_ids.wording import block_evidence, block_text
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.producer_ids import Unallocated, UnallocatedId, UnallocatedReason

_WHERE = {
    UnallocatedReason.NEGATIVE: "it is negative, and no allocator grants that",
    UnallocatedReason.BEYOND: "it lies beyond the last block granted",
    UnallocatedReason.BEFORE: "it lies before the first block granted",
    UnallocatedReason.BETWEEN: "it lies between two blocks granted",
}


@check(
    "KA401",
    severity=Severity.ERROR,
    severity_note="warning when the block history is incomplete or older than the id",
    summary="a producer id that no block of the cluster's history holds",
    needs=(UnallocatedId,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(UNALLOCATED_IDS,),
    caused_by=none_because("controllers and brokers log no allocation that names the ids in question"),
    simulated=none_because("no history of producer id blocks is scanned with a schedule"),
)
def unallocated_producer_id(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each id once, in the partition where it appears first."""
    for entry in evidence.of(UnallocatedId):
        yield _unallocated(context, entry)


def _unallocated(context: Context, entry: UnallocatedId) -> Finding:
    found, first, following = entry.found, entry.first, entry.next_block
    certain = found.proven and found.after_history is not True
    confidence = Confidence.POSSIBLE if found.after_history is not False else Confidence.LIKELY
    expected = f"; the next block is {following[0]}..{following[1]}" if following is not None else ""
    return unallocated_producer_id.finding(
        context,
        f"producer id {found.producer_id} was never allocated: {_WHERE[found.reason]}{expected}",
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.CERTAIN if certain else confidence,
        segment=first.segment,
        position=first.position,
        offset=first.offset,
        last_offset=first.last_offset,
        producer_id=found.producer_id,
        producer_epoch=first.producer_epoch,
        evidence={
            "rule": "every producer id comes from a block of 1000 that a broker was granted; the first block is 0..999, "
            "the next begins where the last ended (ProducerIdManager)",
            "class": found.reason.value,
            "first_timestamp": first.timestamp,
            "partitions": entry.partitions,
            "next_block": {"start": following[0], "end": following[1]} if following is not None else None,
            "block_below": block_evidence(found.nearest_below) if found.nearest_below is not None else None,
            "history": entry.history,
            "history_complete": found.proven,
            "younger_than_history": found.after_history,
        },
        explanations=list(_explanations(found)),
        following=(context.timeline_command(found.producer_id),) if found.producer_id >= 0 else (),
    )


def _explanations(found: Unallocated) -> Iterator[Explanation]:
    cause = "the counter was set back or lost, and the blocks granted before that are not in the history"
    if found.reason is UnallocatedReason.NEGATIVE:
        cause = "the ids were exhausted: before 3.0 the broker that holds the last block goes on below 0"
    nearest = found.nearest_below
    yield Explanation(cause, () if nearest is None else (f"the nearest block below is {block_text(nearest)}",))
    yield Explanation("a client or a copy made the batch up: brokers do not check where an id came from")
    if found.after_history is True:
        yield Explanation("its block was granted after the history was saved: pass a newer one", innocent=True)
    if not found.proven:
        yield Explanation("the history is incomplete, the block is in the part that is missing", innocent=True)
    yield Explanation("the log and the history are of different clusters", innocent=True)
