"""Groups that the log start has overtaken."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.texts import counted
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.group_commits import CommittedBelowLogStart, Committer
from kaudit.model.impact import Impact


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str
    group_id: str
    committed_offset: int
    log_start_offset: int
    committed_at_offset: int
    last_timestamp: int
    assigned_to: Committer | None


@check(
    "KA904",
    severity=Severity.WARNING,
    summary="records were removed before a group that is reading them had committed them",
    needs=(CommittedBelowLogStart,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=none_because("a finding has all of one group and partition"),
    caused_by=none_because("brokers log which segments they delete, not who had read them"),
    simulated=none_because("simulated clusters have no consumer groups"),
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
            evidence=_Evidence(
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
