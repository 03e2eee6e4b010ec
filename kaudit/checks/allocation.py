"""KA401: producer ids in the log that no block of the history holds."""

from msgspec import Struct

from kaudit.broker.producer_ids.allocation_verdicts import Unallocated, UnallocatedReason
from kaudit.checks.blocks import block_evidence, block_text
from kaudit.checks.context import Context
from kaudit.model.finding import Confidence, Explanation, Finding, Severity

_WHERE = {
    UnallocatedReason.NEGATIVE: "it is negative, and no allocator grants that",
    UnallocatedReason.BEYOND: "it lies beyond the last block granted",
    UnallocatedReason.BEFORE: "it lies before the first block granted",
    UnallocatedReason.BETWEEN: "it lies between two blocks granted",
}


class Appearance(Struct, frozen=True):
    """Where such an id appears first in its first partition, and in how many partitions it appears at all."""

    offset: int
    last_offset: int
    timestamp: int
    producer_epoch: int
    position: int
    segment: int
    partitions: int


def report_unallocated(
    context: Context, found: Unallocated, seen: Appearance, following: tuple[int, int] | None, origin: str
) -> Finding:
    """Report one id; `following` is the block the next broker will get, `origin` names the history's sources."""
    sure = found.proven and found.after_history is not True
    expected = f"; the next block is {following[0]}..{following[1]}" if following is not None else ""
    return context.finding(
        "KA401",
        f"producer id {found.producer_id} was never allocated: {_WHERE[found.reason]}{expected}",
        severity=Severity.ERROR if sure else Severity.WARNING,
        confidence=Confidence.CERTAIN if sure else _confidence(found),
        segment=seen.segment,
        position=seen.position,
        offset=seen.offset,
        last_offset=seen.last_offset,
        producer_id=found.producer_id,
        producer_epoch=seen.producer_epoch,
        evidence={
            "rule": "every producer id comes from a block of 1000 that a broker was granted; the first block is 0..999, "
            "the next begins where the last ended (ProducerIdManager)",
            "class": found.reason.value,
            "first_timestamp": seen.timestamp,
            "partitions": seen.partitions,
            "next_block": {"start": following[0], "end": following[1]} if following is not None else None,
            "block_below": block_evidence(found.nearest_below) if found.nearest_below is not None else None,
            "history": origin,
            "history_complete": found.proven,
            "younger_than_history": found.after_history,
        },
        explanations=_explanations(found),
        following=(context.timeline_command(found.producer_id),) if found.producer_id >= 0 else (),
    )


def _confidence(found: Unallocated) -> Confidence:
    return Confidence.POSSIBLE if found.after_history is not False else Confidence.LIKELY


def _explanations(found: Unallocated) -> list[Explanation]:
    causes: list[Explanation] = []
    if found.reason is UnallocatedReason.NEGATIVE:
        causes.append(
            Explanation("the ids were exhausted: before 3.0 the broker that holds the last block goes on below 0")
        )
    else:
        causes.append(
            Explanation("the counter was set back or lost, and the blocks granted before that are not in the history")
        )
    causes.append(Explanation("a client or a copy made the batch up: brokers do not check where an id came from"))
    if found.nearest_below is not None:
        causes[0] = Explanation(
            causes[0].cause, speaks_for=(f"the nearest block below is {block_text(found.nearest_below)}",)
        )
    if found.after_history is True:
        causes.append(Explanation("its block was granted after the history was saved: give a newer one", innocent=True))
    if not found.proven:
        causes.append(Explanation("the history is incomplete, the block is in the part that is missing", innocent=True))
    causes.append(Explanation("the log and the history are of different clusters", innocent=True))
    return causes
