"""Remote segments by __remote_log_metadata: offsets that are nowhere, copies that failed, segments that nobody reads."""

import functools
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaudit.checks.check import Check, Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import COPY_FAILED, DELETED_HERE
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.json_record import rfc3339
from kaudit.model.remote_segments import (
    FailingCopies,
    HoleCause,
    NotCopied,
    OrphanedSegments,
    OrphanKind,
    OverlappingSegments,
    RemoteHole,
    SegmentSummary,
    UnfinishedCopies,
)
from kaudit.model.severity import Confidence, Severity

_segment_check = functools.partial(
    check,
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a finding has all segments of one partition that are alike"),
    caused_by=none_because("brokers log each copy, and no line says that nothing came of it"),
    simulated=none_because("simulated brokers have no remote storage"),
)
"""Declares a check of segments that __remote_log_metadata names."""
_ABSENT = {
    "producer_id": "segments belong to the partition, not to a producer",
    "producer_epoch": "segments belong to the partition, not to a producer",
    "segment": "the segments are in remote storage",
    "position": "the bytes are not there",
    "file": "the records are in another topic",
}
_OUT_OF_RANGE = (
    "answers a fetch from there with OFFSET_OUT_OF_RANGE: auto.offset.reset decides where a consumer goes on"
)
_READ = "a broker reads an offset below its local log from the segment in state COPY_SEGMENT_FINISHED that has it under its leader epoch"


class _HoleEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    reason: str
    missing_offsets: int
    copied_before: int | None
    local_start_offset: int
    on_disk_of: Sequence[str]
    remote_segment_count: int
    remote_segments: Sequence[SegmentSummary]


class _SegmentsEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    reason: str
    remote_segment_count: int
    remote_bytes: int
    remote_segments: Sequence[SegmentSummary]


class _FailingEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    subject: str
    brokers: Sequence[str]
    failures: int
    first_timestamp: int | None
    last_timestamp: int | None
    copied_timestamp: int | None
    copied_to: int | None


class _NotCopiedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    offsets: int
    ranges: Sequence[tuple[int, int]]
    copied_to: int


def _hole_finding(
    made_by: Check, context: Context, hole: RemoteHole, why: str, causes: Sequence[Explanation]
) -> Finding:
    count = hole.last_offset - hole.first_offset + 1
    offsets = f"offsets {hole.first_offset}..{hole.last_offset}" if count > 1 else f"offset {hole.first_offset}"
    where = f"; {listed(list(hole.elsewhere))} still has them" if hole.elsewhere else ""
    lost = bool(hole.is_certain and not hole.elsewhere)
    return made_by.finding(
        context,
        f"{offsets} {'are' if count > 1 else 'is'} neither in the log on this disk, which begins at {hole.local_start_offset}, nor in a "
        f"readable segment in remote storage: {why}{where}",
        severity=Severity.ERROR if lost else Severity.WARNING,
        confidence=Confidence.LIKELY if lost else Confidence.POSSIBLE,
        offset=hole.first_offset,
        last_offset=hole.last_offset,
        anchor=f"remote hole {hole.first_offset}",
        evidence=_HoleEvidence(
            rule=f"{_READ} (RemoteLogManager.fetchRemoteLogSegmentMetadata)",
            broker=_OUT_OF_RANGE,
            reason=hole.cause.value,
            missing_offsets=count,
            copied_before=hole.copied_before,
            local_start_offset=hole.local_start_offset,
            on_disk_of=hole.elsewhere,
            remote_segment_count=hole.segment_count,
            remote_segments=hole.segments,
        ),
        # topics with remote storage are not compacted: each offset was a record, or a marker of a transaction
        impact=Impact(
            records_lost_at_least=count if lost and hole.only_records else 0,
            records_lost_at_most=0 if hole.elsewhere else count,
        ),
        explanations=(
            *causes,
            *(
                ()
                if hole.is_certain
                else (
                    Explanation(
                        f"{REMOTE_LOG} was copied before the log, or lacks records: the segments were copied since",
                        innocent=True,
                    ),
                )
            ),
        ),
        following=(
            "look for these offsets on the partition's other replicas before their local retention removes them",
        ),
        absent=_ABSENT,
    )


@_segment_check(
    "KA510",
    severity=Severity.ERROR,
    severity_note="warning where the metadata may be older than the log, or another replica has the offsets",
    summary="offsets are neither on a disk nor in remote storage",
    confidence=Confidence.LIKELY,
    needs=(RemoteHole,),
    caused_by=(COPY_FAILED, DELETED_HERE),
)
def remote_log_hole(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range below the local log that no copy has, or whose copies never finished."""
    for hole in evidence.of(RemoteHole):
        if hole.cause is HoleCause.DELETED:
            continue
        copies = counted(hole.segment_count, "copy", "copies")
        unfinished = hole.cause is HoleCause.UNFINISHED
        why = f"{copies} of them had begun, none finished" if unfinished else hole.cause.value
        causes = (
            Explanation("the segments on the disk were deleted before they had been copied: by hand, or with a disk"),
            Explanation("a broker deleted them here although the copy had not finished"),
        )
        yield _hole_finding(remote_log_hole, context, hole, why, causes)


@_segment_check(
    "KA511",
    severity=Severity.ERROR,
    severity_note="warning where another replica has the offsets",
    summary="a segment in remote storage was deleted although the log needs it",
    confidence=Confidence.LIKELY,
    needs=(RemoteHole,),
)
def needed_segment_deleted(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range whose segments had been copied and were deleted, though the log start is not above them."""
    for hole in evidence.of(RemoteHole):
        if hole.cause is not HoleCause.DELETED:
            continue
        last = hole.segments[-1]
        why = f"the segment {last.segment_id} that had them is in state {last.state.value}, and the log start is below"
        causes = (
            Explanation(
                "two leaders of one partition: one with an older log start offset deleted what it took for expired"
            ),
            Explanation("a program or a person deleted the segment"),
            Explanation("the log start offset on the disk is older than the deletion", innocent=True),
        )
        yield _hole_finding(needed_segment_deleted, context, hole, why, causes)


@_segment_check(
    "KA512",
    severity=Severity.WARNING,
    summary="offsets were not copied to remote storage although later ones were",
    confidence=Confidence.LIKELY,
    needs=(NotCopied,),
    caused_by=(COPY_FAILED,),
)
def offsets_not_copied(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report once what is only on disks and will not be copied: copying goes on after the highest offset that is copied."""
    for found in evidence.of(NotCopied):
        first, last, count = found.first_offset, found.last_offset, found.offsets
        yield offsets_not_copied.finding(
            context,
            f"{counted(count, 'offset')} of {first}..{last} are on this disk only, although segments up to {found.copied_to} are in remote "
            "storage: local retention will delete them",
            offset=first,
            last_offset=last,
            anchor="not copied",
            evidence=_NotCopiedEvidence(
                rule="copying goes on after the highest offset in remote storage (RemoteLogManager.findHighestRemoteOffset), and local "
                "retention deletes what lies below it (UnifiedLog.deletableSegments)",
                broker="never copies them, and deletes them here when local.retention.ms or local.retention.bytes is reached",
                offsets=count,
                ranges=found.ranges,
                copied_to=found.copied_to,
            ),
            impact=NO_IMPACT,
            explanations=(
                Explanation("their segment in remote storage was deleted by a program or a person"),
                Explanation("a leader took up copying at an offset that was too high"),
            ),
            following=(
                "raise local.retention.ms and local.retention.bytes of the topic until their records are saved elsewhere",
            ),
            absent=_ABSENT,
        )


@_segment_check(
    "KA513",
    severity=Severity.WARNING,
    severity_note="note where other copies of all these offsets finished",
    summary="copies to remote storage were begun and never finished",
    needs=(UnfinishedCopies,),
    caused_by=(COPY_FAILED,),
)
def unfinished_copies(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report once the copies that a later one followed, which a broker begins only after the one before has ended."""
    for found in evidence.of(UnfinishedCopies):
        copies = counted(found.segment_count, "copy", "copies")
        again = (
            f"; of {found.alone} no other copy is readable"
            if found.alone
            else "; other copies of these offsets finished"
        )
        yield unfinished_copies.finding(
            context,
            f"{copies} to remote storage of offsets {found.first_offset}..{found.last_offset} were begun and never finished{again}",
            severity=Severity.WARNING if found.alone else Severity.NOTE,
            offset=found.first_offset,
            last_offset=found.last_offset,
            anchor="unfinished copies",
            evidence=_SegmentsEvidence(
                rule="a broker copies one segment of a partition at a time, each attempt under an id of its own "
                "(RemoteLogManager.copyLogSegment)",
                broker="begins again with another id; what the attempt left is deleted with its offsets' retention (from 4.0 on at once)",
                reason="state COPY_SEGMENT_STARTED, and another copy was begun later",
                remote_segment_count=found.segment_count,
                remote_bytes=found.size,
                remote_segments=found.segments,
            ),
            impact=NO_IMPACT,
            explanations=(
                Explanation(
                    "remote storage refused or failed: brokers log 'Error occurred while copying log segments'"
                ),
                Explanation("the leader stopped, or another one was elected, during the copy", innocent=True),
            ),
            absent=_ABSENT,
        )


def _at(line: EventEvidence) -> str:
    """Say when a line was written, by its log's clock."""
    return "a time that the log does not state" if line.timestamp is None else str(rfc3339(line.timestamp)).rstrip("Z")


@_segment_check(
    "KA517",
    severity=Severity.WARNING,
    summary="copies to remote storage keep failing, or one does not end",
    confidence=Confidence.LIKELY,
    needs=(FailingCopies,),
    caused_by=none_because("the lines that show it are its evidence"),
)
def failing_copies(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition once whose last copies failed, as lines of brokers say."""
    for found in evidence.of(FailingCopies):
        own = replace(context, topic=found.topic, partition=found.partition)
        segment = "a segment" if found.offset is None else f"the segment that begins at {found.offset}"
        how = (
            f"{found.failures} copies in a row failed, from {_at(found.first)} to {_at(found.last)}; {segment} is not copied"
            if found.failures
            else f"the copy of {segment} was begun at {_at(found.first)} and had not ended at {_at(found.last)}"
        )
        before = f", the last copy that finished did so at {_at(found.copied)}" if found.copied is not None else ""
        yield failing_copies.finding(
            own,
            f"{own.name} is not copied to remote storage any more by lines of {listed(found.brokers)}: {how}{before}",
            offset=found.offset,
            anchor="failing copies",
            evidence=_FailingEvidence(
                rule="local retention deletes only what has been copied (UnifiedLog.deletableSegments)",
                broker="tries again every remote.log.manager.task.interval.ms while it leads, and deletes no segment here that is not copied: the "
                "disk fills up, nothing is lost",
                subject=own.name,
                brokers=found.brokers,
                failures=found.failures,
                first_timestamp=found.first.timestamp,
                last_timestamp=found.last.timestamp,
                copied_timestamp=None if found.copied is None else found.copied.timestamp,
                copied_to=found.copied_to,
                events=found.shown,
            ),
            impact=NO_IMPACT,
            explanations=(
                Explanation("remote storage, the network or the plugin refuses: the lines have its exception")
                if found.failures
                else Explanation("the plugin waits for remote storage without a timeout: only a restart of the broker ends that"),
                Explanation("copying went on after these lines, or another broker took over", innocent=True),
            ),
            following=("watch the disks of the brokers: nothing is deleted there that is not copied",),
            absent={**_ABSENT, "last_offset": "lines name where a segment begins"},
        )  # fmt: skip


_ORPHAN_CAUSES = {
    OrphanKind.OTHER_LINEAGE: Explanation(
        "an unclean election: the leader that copied them had records that the log does not have"
    ),
    OrphanKind.BELOW_LOG_START: Explanation(
        "DeleteRecords moved the log start, and the next run of the expiration task deletes them", innocent=True
    ),
    OrphanKind.AT_LOCAL_START: Explanation(
        "a broker took the log start offset from its disk when it was started or elected (KAFKA-15351, KAFKA-16146): it will delete them "
        "as expired"
    ),
    OrphanKind.DELETE_UNFINISHED: Explanation("remote storage refused the deletion: brokers try again"),
    OrphanKind.FORMER_TOPIC: Explanation(
        "the topic was deleted while remote storage could not be reached, or by brokers that were stopped"
    ),
}

_EXPIRED = Explanation("all of them have expired, and the next run of the expiration task deletes them", innocent=True)


@_segment_check(
    "KA514",
    severity=Severity.WARNING,
    severity_note="note where brokers will delete them",
    summary="segments are left in remote storage that nobody reads",
    confidence=Confidence.LIKELY,
    needs=(OrphanedSegments,),
)
def orphaned_remote_segments(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each kind once."""
    for found in evidence.of(OrphanedSegments):
        brokers_delete = found.kind in (
            OrphanKind.BELOW_LOG_START,
            OrphanKind.AT_LOCAL_START,
            OrphanKind.DELETE_UNFINISHED,
        )
        is_note = brokers_delete and found.kind is not OrphanKind.AT_LOCAL_START
        yield orphaned_remote_segments.finding(
            context,
            f"{counted(found.segment_count, 'segment')} in remote storage, {found.size:,} bytes, of offsets "
            f"{found.first_offset}..{found.last_offset}: {found.kind.value}",
            severity=Severity.NOTE if is_note else Severity.WARNING,
            offset=found.first_offset,
            last_offset=found.last_offset,
            anchor=f"orphans {found.kind.name}",
            evidence=_SegmentsEvidence(
                rule=f"{_READ}; it deletes those of its lineage below the log start, and those of leader epochs before its first "
                "(RemoteLogManager.cleanupExpiredRemoteLogSegments)",
                broker="deletes them when its expiration task runs" if brokers_delete else "leaves them where they are",
                reason=found.kind.value,
                remote_segment_count=found.segment_count,
                remote_bytes=found.size,
                remote_segments=found.segments,
            ),
            impact=NO_IMPACT,
            explanations=(
                _ORPHAN_CAUSES[found.kind],
                *([_EXPIRED] if found.kind is OrphanKind.AT_LOCAL_START else ()),
            ),
            absent=_ABSENT,
        )


@_segment_check(
    "KA515",
    severity=Severity.NOTE,
    summary="two segments in remote storage have the same offsets",
    needs=(OverlappingSegments,),
)
def overlapping_remote_segments(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report once the offsets that the log's lineage has in two readable segments."""
    for found in evidence.of(OverlappingSegments):
        yield overlapping_remote_segments.finding(
            context,
            f"{counted(found.offsets, 'offset')} of {found.first_offset}..{found.last_offset} are in two segments in remote storage "
            f"({counted(found.pairs, 'pair')})",
            offset=found.first_offset,
            last_offset=found.last_offset,
            anchor="remote overlaps",
            evidence=_SegmentsEvidence(
                rule="each offset is copied once: copying goes on after the highest offset in remote storage "
                "(RemoteLogManager.findHighestRemoteOffset)",
                broker="reads one of them; retention deletes both",
                reason=f"{found.offsets} offsets are there twice",
                remote_segment_count=len(found.segments),
                remote_bytes=sum(segment.size for segment in found.segments),
                remote_segments=found.segments,
            ),
            impact=NO_IMPACT,
            explanations=(
                Explanation(
                    "another leader went on with the segment that has the next offset to copy: its segments begin elsewhere",
                    innocent=True,
                ),
                Explanation("two brokers took themselves for the leader and copied at the same time"),
            ),
            absent=_ABSENT,
        )
