"""Consumer groups that have consumed more than a log holds."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.texts import counted
from kaudit.model.coordinator import CommittedBeyondLogEnd
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.severity import Confidence, Severity

_LOST_CAUSES = (
    Explanation("a replica that lacked the records became leader: an unclean election, or a log that was lost before"),
    Explanation("the topic was deleted and created again, and these are commits of the old one", innocent=True),
    Explanation("a program set the offset and its leader epoch", innocent=True),
)
_CAUSES = (
    Explanation("the copy is of a follower that lags, or older than __consumer_offsets", innocent=True),
    Explanation("a program set the offset, or mirrored it from another cluster", innocent=True),
    Explanation("the end of the log was lost: with the page cache, by an incomplete copy, or by an unclean election"),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    group: str
    committed_offset: int
    committed_leader_epoch: int | None
    log_end_offset: int
    log_leader_epoch: int | None


@check(
    "KA016",
    severity=Severity.ERROR,
    severity_note="note where the log has no later leader epoch than the commit: the copy may lag",
    summary="a consumer group has consumed more than any copy of the log holds",
    needs=(CommittedBeyondLogEnd,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(DAMAGE,),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("simulated clusters have no consumer groups"),
)
def consumed_beyond_log_end(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report for a partition the furthest commit that proves a loss, and the furthest of all."""
    for found in evidence.of(CommittedBeyondLogEnd):
        yield _finding(context, found)


def _finding(context: Context, found: CommittedBeyondLogEnd) -> Finding:
    commit, end, epoch = found.committed, found.log_end_offset, found.log_leader_epoch
    count = commit.offset - end
    shows = (
        f", in leader epoch {commit.leader_epoch}; the log goes on in leader epoch {epoch} without them"
        if epoch is not None
        else ": no later leader epoch shows whether they are lost"
    )
    return consumed_beyond_log_end.finding(
        context,
        f"the log ends at {end}, but group {commit.group} has consumed up to {commit.offset}{shows}",
        severity=Severity.NOTE if epoch is None else Severity.ERROR,
        confidence=Confidence.POSSIBLE if epoch is None else Confidence.LIKELY,
        offset=end,
        last_offset=commit.offset - 1,
        anchor=f"consumed {'beyond the end' if epoch is None else 'and lost'}",
        evidence=_Evidence(
            rule="consumers get only records below the high watermark (UnifiedLog.read), and each leader begins with all of them "
            "(KIP-101); commits are not compared with the log (OffsetMetadataManager.commitOffset)",
            broker="answers a fetch from there with OFFSET_OUT_OF_RANGE: auto.offset.reset decides where the group goes on",
            group=commit.group,
            committed_offset=commit.offset,
            committed_leader_epoch=commit.leader_epoch if commit.leader_epoch >= 0 else None,
            log_end_offset=end,
            log_leader_epoch=epoch,
        ),
        impact=Impact() if epoch is None else Impact(records_lost_at_most=count),
        explanations=_CAUSES if epoch is None else _LOST_CAUSES,
        following=(f"look for these {counted(count, 'offset')} on the partition's other replicas",),
        absent={**NO_PRODUCER, "segment": "the offsets are in none", "position": "the bytes are not there"},
    )
