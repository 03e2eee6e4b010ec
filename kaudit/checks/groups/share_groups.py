"""Share groups (KIP-932): records that are never delivered again, and starts that jumped over records."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Withdrawal
from kaudit.checks.context import Context
from kaudit.checks.groups.committed_offsets import NO_FILE, group_check
from kaudit.checks.texts import counted, listed, time_text
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.group_commits import SharedOffsets, SharePartition, StartJump
from kaudit.model.impact import Impact
from kaudit.model.severity import Confidence, Severity

_LOCK_LIMIT_MS = 3_600_000
"""group.share.max.record.lock.duration.ms by default: no record stays acquired for longer."""
_FEW = 5
"""Ranges named in a sentence."""
_ABSENT = {
    **NO_FILE,
    **dict.fromkeys(("producer_id", "producer_epoch"), "share coordinators write without a producer id"),
}


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_id: str
    topic: str | None
    topic_id: str
    partition: int
    last_timestamp: int
    offsets: Sequence[SharedOffsets] = ()
    rejected: int | None = None
    exhausted: int | None = None
    start_jumps: Sequence[StartJump] = ()


@group_check(
    "KA910",
    severity=Severity.WARNING,
    summary="records were archived for a share group, rejected or delivered too often: they are never delivered to it again",
    needs=(SharePartition,),
)
def share_records_archived(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the archived offsets of each share group and partition."""
    for found in evidence.of(SharePartition):
        if not found.archived:
            continue
        numbers = ((found.rejected, "rejected"), (found.exhausted, "delivered too often"))
        causes = [f"{number:,} {what}" for number, what in numbers if number]
        yield share_records_archived.finding(
            context,
            f"records of {_place(found)} are archived for share group {found.group}: {listed(causes)}; {_ranges(found.archived)}",
            confidence=Confidence.LIKELY,
            offset=found.first_record,
            last_offset=found.last_record,
            anchor=f"archived {found.group} {_place(found)}",
            evidence=_evidence(found, found.archived, rejected=found.rejected, exhausted=found.exhausted),
            impact=Impact(records_skipped_at_most=found.rejected + found.exhausted),
            explanations=(
                Explanation("consumers rejected them (AcknowledgeType.REJECT), or released them again and again"),
                Explanation("the offsets hold no records: markers, or what compaction removed", innocent=True),
            ),
            following=(f"read {_ranges(found.archived)} of {_place(found)} with a consumer that is in no group",),
            absent=_ABSENT,
        )


@group_check(
    "KA911",
    severity=Severity.WARNING,
    summary="records stay acquired by a share group for longer than brokers let them be",
    needs=(SharePartition,),
    withdrawn_by=Withdrawal.NEXT_READING,
)
def share_records_stay_acquired(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the offsets that are acquired at the end of the log, since an hour and more."""
    for found in evidence.of(SharePartition):
        if found.acquired and context.clock.has_passed(_LOCK_LIMIT_MS, found.acquired_timestamp):
            yield share_records_stay_acquired.finding(
                context,
                f"share group {found.group} has {_ranges(found.acquired)} of {_place(found)} acquired since "
                f"{time_text(found.acquired_timestamp)}: nobody else gets them",
                confidence=Confidence.LIKELY,
                offset=max(found.last_record, 0),
                anchor=f"acquired {found.group} {_place(found)}",
                evidence=_evidence(found, found.acquired),
                explanations=(
                    Explanation("the leader of the partition does not end the acquisition, or cannot write its state"),
                    Explanation("the copy was made while the group was at work", innocent=True),
                ),
                absent=_ABSENT,
            )


@group_check(
    "KA912",
    severity=Severity.WARNING,
    severity_note="note where a tool set it",
    summary="the start offset of a share group jumped over records that were not processed, or back",
    needs=(SharePartition,),
)
def share_start_jumped(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the jumps of each share group and partition, those that a tool made apart."""
    for found in evidence.of(SharePartition):
        for is_reset in (False, True):
            jumps = [jump for jump in found.jumps if jump.is_reset is is_reset]
            if not jumps:
                continue
            first = jumps[0]
            unread, again = sum(jump.unread for jump in jumps), sum(max(jump.before - jump.after, 0) for jump in jumps)
            how = "was set" if is_reset else "jumped"
            over = f", over {counted(first.unread, 'offset')} neither acknowledged nor archived" if first.unread else ""
            yield share_start_jumped.finding(
                context,
                f"the start offset of share group {found.group} on {_place(found)} {how} from {first.before} to {first.after}{over}",
                severity=Severity.NOTE if is_reset else Severity.WARNING,
                confidence=Confidence.LIKELY,
                offset=first.offset,
                last_offset=jumps[-1].offset,
                anchor=f"{how} {found.group} {_place(found)}",
                evidence=_evidence(found, (), jumps),
                impact=Impact(records_skipped_at_most=unread or None, records_delivered_again_at_most=again or None),
                explanations=(
                    Explanation("kafka-share-groups.sh reset the offsets", innocent=True)
                    if is_reset
                    else Explanation("retention, or DeleteRecords, removed records that the group had not processed"),
                ),
                absent=_ABSENT,
            )


def _evidence(
    found: SharePartition,
    offsets: Sequence[SharedOffsets],
    jumps: Sequence[StartJump] = (),
    rejected: int | None = None,
    exhausted: int | None = None,
) -> _Evidence:
    return _Evidence(
        rule="archived records are neither delivered nor counted again (SharePartition, RecordState.ARCHIVED)",
        broker="delivers the available records from the start offset on",
        group_id=found.group,
        topic=found.topic,
        topic_id=found.topic_id,
        partition=found.partition,
        last_timestamp=jumps[-1].timestamp if jumps else max(found.last_timestamp, found.acquired_timestamp),
        offsets=offsets,
        rejected=rejected,
        exhausted=exhausted,
        start_jumps=jumps,
    )


def _place(found: SharePartition) -> str:
    return f"{found.topic or f'topic {found.topic_id}'}-{found.partition}"


def _ranges(offsets: Sequence[SharedOffsets]) -> str:
    """Name the first few ranges: `offsets 5, 16 and 20..27`, and how many more there are."""
    first = [
        str(each.first_offset) if each.first_offset == each.last_offset else f"{each.first_offset}..{each.last_offset}"
        for each in offsets[:_FEW]
    ]
    more = len(offsets) - len(first)
    names = listed([*first, counted(more, "more range")] if more else first)
    return f"offset {names}" if len(offsets) == 1 and "." not in names else f"offsets {names}"
