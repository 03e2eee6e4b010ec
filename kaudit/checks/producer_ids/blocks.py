"""Blocks of producer ids: blocks that are wrong, granted twice or the last ones, and ids that no block holds."""

import functools
from collections.abc import Iterator, Sequence

from kaudit.checks.check import ALLOCATIONS_NOT_LOGGED, BLOCKS_NOT_SCANNED, Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import SHARED_PRODUCER_ID, UNALLOCATED_IDS
from kaudit.checks.texts import block_text
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BlockEvidence, BlockRange
from kaudit.model.finding import Explanation, Finding
from kaudit.model.producer_ids import (
    BlockEntry,
    MalformedBlock,
    NearEnd,
    RegressionCause,
    SharedBlock,
    UnallocatedId,
    UnallocatedReason,
)
from kaudit.model.severity import Confidence, Severity

_ABSENT = dict.fromkeys(
    ("topic", "partition", "replica", "log_dir", "segment", "offset", "last_offset"),
    "about the blocks of producer ids, not about a partition",
)


def block_evidence(entry: BlockEntry) -> BlockEvidence:
    """Return a grant as evidence."""
    return BlockEvidence(
        entry.start,
        entry.end,
        entry.broker,
        entry.version,
        entry.zxid,
        entry.offset,
        entry.at_ms,
        entry.source,
        entry.position,
    )


def entry_anchor(entry: BlockEntry) -> str:
    """Return an identity of an entry that does not depend on where its files lie."""
    for name in ("zxid", "offset", "version"):
        value = getattr(entry, name)
        if value is not None:
            return f"{name}{value}"
    return f"{entry.start}-{entry.end}"


_WHERE = {
    UnallocatedReason.NEGATIVE: "it is negative, and no allocator grants that",
    UnallocatedReason.BEYOND: "it lies beyond the last block granted",
    UnallocatedReason.BEFORE: "it lies before the first block granted",
    UnallocatedReason.BETWEEN: "it lies between two blocks granted",
}


class _UnallocatedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    first_timestamp: int | None
    partitions: int
    next_block: BlockRange | None
    block_below: BlockEvidence | None
    history: str
    history_complete: bool
    younger_than_history: bool | None
    older_by_client: bool


_BY_CLIENT = "; it was in use before the history ends by its client's timestamp alone"

_block_check = functools.partial(
    check, withdrawn_by=Withdrawal.NEXT_READING, caused_by=ALLOCATIONS_NOT_LOGGED, simulated=BLOCKS_NOT_SCANNED
)


@_block_check(
    "KA401",
    severity=Severity.ERROR,
    severity_note="warning when the block history is incomplete or may be older than the id",
    summary="a producer id that no block of the cluster's history holds",
    needs=(UnallocatedId,),
    incident=(UNALLOCATED_IDS,),
)
def unallocated_producer_id(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each id once, in the partition where it appears first."""
    for entry in evidence.of(UnallocatedId):
        yield _unallocated(context, entry)


def _unallocated(context: Context, entry: UnallocatedId) -> Finding:
    found, first, following = entry.found, entry.first, entry.next_block
    certain = found.proven and found.after_history is not True and not entry.by_client
    is_known = found.after_history is False and not entry.by_client
    confidence = Confidence.LIKELY if is_known else Confidence.POSSIBLE
    expected = f"; the next block is {following[0]}..{following[1]}" if following is not None else ""
    return unallocated_producer_id.finding(
        context,
        f"producer id {found.producer_id} was never allocated: {_WHERE[found.reason]}{expected}"
        f"{_BY_CLIENT if entry.by_client else ''}",
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.CERTAIN if certain else confidence,
        segment=first.segment,
        position=first.position,
        offset=first.offset,
        last_offset=first.last_offset,
        producer_id=found.producer_id,
        producer_epoch=first.producer_epoch,
        evidence=_UnallocatedEvidence(
            rule="every producer id comes from a block of 1000 that a broker was granted; the first block is 0..999, "
            "the next begins where the last ended (ProducerIdManager)",
            kind=found.reason.value,
            first_timestamp=first.timestamp,
            partitions=entry.partitions,
            next_block=BlockRange(*following) if following is not None else None,
            block_below=block_evidence(found.nearest_below) if found.nearest_below is not None else None,
            history=entry.history,
            history_complete=found.proven,
            younger_than_history=found.after_history,
            older_by_client=entry.by_client,
        ),
        explanations=list(_unallocated_explanations(entry)),
        following=(context.timeline_command(found.producer_id),) if found.producer_id >= 0 else (),
    )


def _unallocated_explanations(entry: UnallocatedId) -> Iterator[Explanation]:
    found = entry.found
    cause = "the counter was set back or lost, and the blocks granted before that are not in the history"
    if found.reason is UnallocatedReason.NEGATIVE:
        cause = "the ids were exhausted: before 3.0 the broker that holds the last block goes on below 0"
    nearest = found.nearest_below
    yield Explanation(cause, () if nearest is None else (f"the nearest block below is {block_text(nearest)}",))
    yield Explanation("a client or a copy made the batch up: brokers do not check where an id came from")
    if found.after_history is True or entry.by_client:
        yield Explanation("its block was granted after the history was saved: pass a newer one", innocent=True)
    if not found.proven:
        yield Explanation("the history is incomplete, the block is in the part that is missing", innocent=True)
    yield Explanation("the log and the history are of different clusters", innocent=True)


_OVERLAP_CAUSES = {
    RegressionCause.MIGRATION: "the migration from ZooKeeper to KRaft copied the block in use instead of the next one "
    "(KAFKA-15552, fixed in 3.5.2 and 3.6.1)",
    RegressionCause.RECREATED: "the znode was deleted, and the blocks began again at 0",
    RegressionCause.SAME_BLOCK: "one block went to two brokers: the conditional update of the znode did not hold",
    RegressionCause.SET_BACK: "the znode holds an older value again: a restored ZooKeeper backup, or an edit by hand",
}
_UNKNOWN_CAUSE = "the history does not show what set the counter back"


class _OverlapEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    first_id: int
    last_id: int
    earlier: BlockEvidence
    later: BlockEvidence
    seen: int
    seen_ids: Sequence[int]


@_block_check(
    "KA402",
    severity=Severity.ERROR,
    summary="producer ids that were granted twice",
    needs=(SharedBlock,),
    incident=(SHARED_PRODUCER_ID,),
)
def block_overlap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of ids, with those of them the logs show."""
    for found in evidence.of(SharedBlock):
        overlap, cause = found.overlap, found.cause
        seen = "none of them is in these logs"
        if found.seen_count:
            seen = f"{found.seen_count} of these ids {'is' if found.seen_count == 1 else 'are'} in the logs"
        yield block_overlap.finding(
            context,
            f"producer ids {overlap.first}..{overlap.last} were granted twice: as {block_text(overlap.earlier)}, then as "
            f"{block_text(overlap.later)}; {seen}",
            anchor=f"{overlap.first}-{overlap.last}-{entry_anchor(overlap.later)}",
            evidence=_OverlapEvidence(
                rule="a block begins where the last one ended: no id is granted twice",
                kind=cause.value if cause is not None else "unknown",
                first_id=overlap.first,
                last_id=overlap.last,
                earlier=block_evidence(overlap.earlier),
                later=block_evidence(overlap.later),
                seen=found.seen_count,
                seen_ids=list(found.seen),
            ),
            explanations=(Explanation(_UNKNOWN_CAUSE if cause is None else _OVERLAP_CAUSES[cause]),),
            file=overlap.later.source,
            position=overlap.later.position,
            absent=_ABSENT,
        )


_MALFORMED_CAUSES = (
    Explanation("the znode was written by hand or by another tool"),
    Explanation("a broker of a version kaudit does not know wrote it", innocent=True),
)


class _MalformedEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    defects: Sequence[str]
    block: BlockEvidence


@_block_check(
    "KA403",
    severity=Severity.WARNING,
    summary="a block of producer ids that no broker writes",
    needs=(MalformedBlock,),
    incident=none_because("a malformed block is one record or znode"),
)
def block_malformed(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such entry of the history."""
    for found in evidence.of(MalformedBlock):
        yield block_malformed.finding(
            context,
            f"a block of producer ids is not as brokers write it: {'; '.join(found.defects)}",
            anchor=entry_anchor(found.entry),
            evidence=_MalformedEvidence(
                rule='brokers write {"version":1,"broker":B,"block_start":"S","block_end":"S+999"}',
                defects=list(found.defects),
                block=block_evidence(found.entry),
            ),
            explanations=_MALFORMED_CAUSES,
            file=found.entry.source,
            position=found.entry.position,
            absent=_ABSENT,
        )


_NEAR_END_CAUSES = (
    Explanation("the counter was set near its end by hand: no cluster gets there by itself"),
    Explanation("an application opens producers in a loop"),
)


class _NearEndEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    kind: str
    ids_left: int
    days_left: float | None
    block: BlockEvidence


@_block_check(
    "KA406",
    severity=Severity.WARNING,
    summary="the range of producer ids is nearly used up",
    needs=(NearEnd,),
    incident=none_because("the end of the range of producer ids concerns the whole cluster, and is one finding"),
)
def block_range_near_end(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the block with which the counter came near its end, and blocks after which none can follow."""
    for found in evidence.of(NearEnd):
        block = block_text(found.entry)
        message = f"{found.ids_left:,} producer ids are left after {block}"
        if found.exhausted:
            message = f"no block can follow {block}: the producer ids are used up"
        elif found.days_left is not None:
            message += f", {found.days_left:,.1f} days at the observed rate"
        yield block_range_near_end.finding(
            context,
            message,
            anchor=entry_anchor(found.entry),
            evidence=_NearEndEvidence(
                rule="a block that ends beyond 2^63 - 1 - 1000 cannot be followed by another",
                kind="exhausted" if found.exhausted else "near",
                ids_left=found.ids_left,
                days_left=found.days_left,
                block=block_evidence(found.entry),
            ),
            explanations=_NEAR_END_CAUSES,
            file=found.entry.source,
            position=found.entry.position,
            absent=_ABSENT,
        )
