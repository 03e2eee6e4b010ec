"""Committed offsets of consumer groups: that went back, were set or removed, that the log start overtook, and that wait for a marker."""

import functools
from collections.abc import Iterator, Mapping, Sequence

from kaudit.checks.check import Check, Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.texts import counted, duration, listed, time_text
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.group_commits import (
    CommitsInTransaction,
    CommitStep,
    CommittedBelowLogStart,
    CommittedSteps,
    Committer,
    StepKind,
    StepSum,
)
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.severity import Confidence, Severity

group_check = functools.partial(
    check,
    incident=none_because("a finding has all of one group and partition, or of a producer and its inputs"),
    caused_by=none_because("brokers log neither commits nor acknowledgements, and clients log commits that fail"),
    simulated=none_because("simulated clusters have no consumer groups"),
)
"""Declares a check of what groups wrote to internal topics."""
NO_FILE = dict.fromkeys(("segment", "position"), "a record of an internal topic is placed by its offset")
_STORED = "a member of the current generation may commit a lower offset (OffsetMetadataManager.commitOffset)"
_RULES = {
    "two-writers-of-one-offset": "a commit in a transaction is fenced by generation only if its producer sends it (KIP-447); a group "
    "without members takes a commit from anybody (ConsumerGroup.validateOffsetCommit)",
    "committed-offset-set": "a group without members takes a commit from anybody (ConsumerGroup.validateOffsetCommit)",
    "removed-offset-read-again": "offsets of a group without members expire after offsets.retention.minutes (KIP-211)",
}
_FROM_THERE = "gives the offset to the next member that is assigned the partition, which reads on from there"
_FROM_NONE = "has no offset for the next member that is assigned the partition: auto.offset.reset decides"


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_id: str
    topic: str
    partition: int
    kind: str
    times: int
    records: int
    commits: int
    first_timestamp: int
    last_timestamp: int
    changes: Sequence[CommitStep]


@group_check(
    "KA900",
    severity=Severity.WARNING,
    severity_note="note where it was corrected at once, and where compaction hides how",
    summary="the committed offset of a consumer group went back",
    needs=(CommittedSteps,),
    withdrawn_by=Withdrawal.NEXT_READING,
)
def committed_offset_went_back(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group and partition whose commits went back, apart from those of two that commit in turn."""
    for found in evidence.of(CommittedSteps):
        if found.alternating:
            continue
        if StepKind.BACK in found.sums:
            yield _finding(committed_offset_went_back, context, found, StepKind.BACK, explanations=_BACK)
        for kind, text, explanations in (
            (StepKind.CORRECTED, ", and was corrected at once by whoever had committed before", _CORRECTED),
            (StepKind.COMPACTED, "; the records in between were compacted away", _COMPACTED),
        ):
            if kind in found.sums:
                yield _finding(
                    committed_offset_went_back,
                    context,
                    found,
                    kind,
                    text,
                    severity=Severity.NOTE,
                    explanations=explanations,
                )


_BACK = (
    Explanation("the application sought back, and committed from there", innocent=True),
    Explanation("a program that had lost the partition, or an older position of its own, committed what it remembered"),
    Explanation("the group had lost its place, and began again where auto.offset.reset says"),
)
_CORRECTED = (
    Explanation("a commit was late: the group rebalanced, or its coordinator moved or restarted", innocent=True),
)
_COMPACTED = (
    Explanation("a tool set the offset while the group had no members", innocent=True),
    Explanation("the offset expired, or was deleted, and the group began again", innocent=True),
    *_BACK,
)


@group_check(
    "KA901",
    severity=Severity.ERROR,
    summary="two writers commit different offsets of one group and partition in turn",
    needs=(CommittedSteps,),
    withdrawn_by=Withdrawal.NEXT_READING,
)
def two_writers_of_one_offset(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group and partition whose offset goes back again and again, as one of two writers commits."""
    for found in evidence.of(CommittedSteps):
        if found.alternating:
            step = found.steps[0]
            kind = StepKind.BACK if StepKind.BACK in found.sums else StepKind.RESET
            by_producers = step.by.producer_id is not None and step.by.producer_id != step.before.producer_id
            yield _finding(
                two_writers_of_one_offset,
                context,
                found,
                kind,
                f" while {_who(step.before)} is active" if by_producers else ": two commit in turn",
                confidence=Confidence.CERTAIN if by_producers else Confidence.LIKELY,
                explanations=(
                    Explanation("a replaced instance goes on: commits without the group's generation are not fenced"),
                    Explanation("two applications use one group, and assign the partition to themselves"),
                ),
                following=("find both programs by their client and transactional ids, and stop the older one",),
            )


@group_check(
    "KA902",
    severity=Severity.NOTE,
    summary="the committed offset of a group without members was set by a tool",
    needs=(CommittedSteps,),
)
def committed_offset_set(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group and partition whose offset was set while the group had no members."""
    for found in evidence.of(CommittedSteps):
        if StepKind.RESET in found.sums and not found.alternating:
            yield _finding(
                committed_offset_set,
                context,
                found,
                StepKind.RESET,
                confidence=Confidence.LIKELY,
                explanations=(
                    Explanation("it was planned: kafka-consumer-groups.sh --reset-offsets or alike", innocent=True),
                    Explanation("a program without a group's membership committed a position of its own"),
                ),
            )


@group_check(
    "KA903",
    severity=Severity.WARNING,
    summary="a group's committed offset was removed, and the group began again below it",
    needs=(CommittedSteps,),
)
def removed_offset_read_again(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group and partition that went on below an offset that had expired or been deleted."""
    for found in evidence.of(CommittedSteps):
        step = next((each for each in found.steps if each.kind is StepKind.REMOVED), None)
        if step is None or found.alternating:
            continue
        removed = step.removed_timestamp or step.timestamp
        yield _finding(
            removed_offset_read_again,
            context,
            found,
            StepKind.REMOVED,
            f", after it was removed on {time_text(removed)}, {duration(removed - step.before_timestamp)} after its last commit",
            explanations=(
                Explanation(
                    "the group had no members for offsets.retention.minutes (7 days by default), and its offset expired"
                ),
                Explanation("the group or its offsets were deleted on purpose", innocent=True),
                Explanation("the topic was deleted and created again", innocent=True),
            ),
        )


_WORDS = {StepKind.RESET: "was set", StepKind.REMOVED: "began again lower"}
_BY = {StepKind.RESET: " while it had no members", StepKind.REMOVED: ""}
_COSTS = {StepKind.BACK, StepKind.REMOVED}


def _impact(found: CommittedSteps, steps: StepSum, kind: StepKind) -> Impact:
    """Bound what was read again. Whoever committed less may have begun as low as the log did then, which is known where it still begins at 0."""
    return Impact(
        commits_went_back=None if kind is StepKind.REMOVED else steps.times,
        records_delivered_again=0 if found.alternating else steps.read_again,
        records_delivered_again_at_most=steps.committed if found.log_start_offset == 0 else None,
    )


def _finding(  # noqa: PLR0913 - what findings of the four checks differ in
    own: Check,
    context: Context,
    found: CommittedSteps,
    kind: StepKind,
    text: str = "",
    *,
    severity: Severity | None = None,
    confidence: Confidence = Confidence.CERTAIN,
    explanations: Sequence[Explanation] = (),
    following: Sequence[str] = (),
) -> Finding:
    steps = [step for step in found.steps if step.kind is kind] or list(found.steps)
    added = found.sums[kind]
    times = added.times
    first, last = steps[0], steps[-1]
    how_often = "" if times == 1 else f" {times:,} times"
    by = _BY.get(kind, f", by {_who(first.by)}")
    message = (
        f"the committed offset of {found.group} on {found.topic}-{found.partition} {_WORDS.get(kind, 'went back')}{how_often}"
        f"{by}{text}; {'first ' if times > 1 else ''}from {first.committed_before} to {first.committed}"
    )
    return own.finding(
        context,
        message,
        severity=own.severity if severity is None else severity,
        confidence=confidence,
        offset=first.offset,
        last_offset=last.offset,
        producer_id=first.by.producer_id,
        producer_epoch=first.by.producer_epoch,
        anchor=f"{kind.value} {found.group} {found.topic}-{found.partition}",
        evidence=_Evidence(
            rule=_RULES.get(own.name, _STORED),
            broker=_FROM_NONE if kind is StepKind.REMOVED else _FROM_THERE,
            group_id=found.group,
            topic=found.topic,
            partition=found.partition,
            kind=kind.value,
            times=times,
            records=added.offsets,
            commits=found.commits,
            first_timestamp=first.timestamp,
            last_timestamp=last.timestamp,
            changes=steps,
        ),
        impact=_impact(found, added, kind) if kind in _COSTS or found.alternating else NO_IMPACT,
        explanations=explanations,
        following=following,
        absent=_absent(first.by),
    )


def _who(by: Committer) -> str:
    if by.producer_id is not None:
        return f"producer {by.producer_id}"
    if by.member_id is not None:
        return f"member {by.member_id} in generation {by.generation}"
    return f"one of {counted(by.members, 'member')} in generation {by.generation}" if by.members else "no member"


def _absent(by: Committer) -> Mapping[str, str]:
    return NO_FILE if by.producer_id is not None else NO_FILE | _NO_PRODUCER


_NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "the commit is in no transaction")


class _BelowStartEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_id: str
    committed_offset: int
    log_start_offset: int
    committed_at_offset: int
    last_timestamp: int
    assigned_to: Committer | None


@group_check(
    "KA904",
    severity=Severity.WARNING,
    summary="records were removed before a group that is reading them had committed them",
    needs=(CommittedBelowLogStart,),
    withdrawn_by=Withdrawal.NEXT_READING,
)
def committed_below_log_start(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each group with a member for the partition whose newest commit lies below the start of the log."""
    for found in evidence.of(CommittedBelowLogStart):
        commit, start = found.commit, found.log_start_offset
        group, offset = commit.committed.group, commit.committed.offset
        removed = start - offset
        yield committed_below_log_start.finding(
            context,
            f"group {group} has committed up to {offset}, and the log begins at {start}: {counted(removed, 'offset')} were removed "
            "before it had committed them",
            confidence=Confidence.LIKELY,
            offset=offset,
            last_offset=start - 1,
            anchor=f"below the start {group}",
            evidence=_BelowStartEvidence(
                rule="retention and DeleteRecords do not look at committed offsets (UnifiedLog.deleteOldSegments)",
                broker="answers a fetch from there with OFFSET_OUT_OF_RANGE: with auto.offset.reset=earliest the group goes on at the "
                "log start, with latest at the log end",
                group_id=group,
                committed_offset=offset,
                log_start_offset=start,
                committed_at_offset=commit.offset,
                last_timestamp=commit.timestamp,
                assigned_to=commit.owner,
            ),
            impact=Impact(records_skipped_at_most=removed),
            explanations=(
                Explanation("the group lagged for longer than the topic keeps its records"),
                Explanation("the member has read on, and has not committed yet", innocent=True),
                Explanation("the copy of __consumer_offsets is older than that of the log", innocent=True),
            ),
            absent={**NO_PRODUCER, "segment": "the offsets are in none", "position": "the bytes are not there"},
        )


class _PendingEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_ids: Sequence[str]
    first_timestamp: int
    last_timestamp: int


@group_check(
    "KA905",
    severity=Severity.WARNING,
    summary="commits of a group are in a transaction that does not end: its members cannot fetch their offsets",
    needs=(CommitsInTransaction,),
    withdrawn_by=Withdrawal.END_OF_TRANSACTION,
    transactional=True,
)
def commits_never_decided(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each transaction with commits that is open for longer than brokers let it be."""
    for found in evidence.of(CommitsInTransaction):
        if not context.clock.has_passed(MAX_TRANSACTION_TIMEOUT_MS, found.timestamp):
            continue
        groups = sorted({group for group, _, _ in found.partitions})
        yield commits_never_decided.finding(
            context,
            f"the commits of {listed(groups)} in the transaction of producer {found.producer_id} wait for its end since "
            f"{time_text(found.timestamp)}",
            confidence=Confidence.LIKELY,
            offset=found.offset,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            evidence=_PendingEvidence(
                rule="offsets that a transaction commits count from its marker on (KIP-447, OffsetMetadataManager)",
                broker="answers OffsetFetch with UNSTABLE_OFFSET_COMMIT: consumers of Kafka Streams and those with "
                "isolation.level=read_committed wait",
                group_ids=groups,
                first_timestamp=found.timestamp,
                last_timestamp=found.timestamp,
            ),
            explanations=(
                Explanation("the transaction hangs: no coordinator ends it"),
                Explanation("its marker is beyond the end of this copy", innocent=True),
            ),
            absent=NO_FILE,
        )
