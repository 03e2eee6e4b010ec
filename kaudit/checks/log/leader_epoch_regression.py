"""A batch that carries a lower leader epoch than one before it."""

from collections.abc import Iterator

from kaudit.broker.partition.log_loading import gap_effect
from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.missing_offsets import NO_PRODUCER
from kaudit.checks.log_causes import ELECTED
from kaudit.model.damage import LeaderEpochRegression
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity

_CAUSES = (
    Explanation("a bit of the field flipped on disk or in memory: the CRC does not cover it"),
    Explanation("the log was written by two leaders that did not know of each other"),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    leader_epoch: int
    expected_leader_epoch: int


@check(
    "KA009",
    severity=Severity.ERROR,
    summary="a batch carries a lower leader epoch than one before it",
    needs=(LeaderEpochRegression,),
    incident=(DAMAGE,),
    caused_by=(ELECTED,),
    simulated=none_because("simulated leaders raise their epochs as KRaft does"),
    withdrawn_by=Withdrawal.NEXT_READING,  # which of two epochs at a log's end is the odd one, the batches after them say
)
def leader_epoch_regression(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches whose leader epoch does not fit between their neighbours'."""
    for found in evidence.of(LeaderEpochRegression):
        yield leader_epoch_regression.finding(
            context,
            f"the batch at offset {found.base_offset} has leader epoch {found.leader_epoch} "
            f"among batches of leader epoch {found.expected_epoch}",
            segment=found.segment,
            position=found.position,
            offset=found.base_offset,
            last_offset=found.last_offset,
            evidence=_Evidence(
                rule="leader epochs never fall along a log (LeaderEpochFileCache); the CRC does not cover the field",
                broker=gap_effect(),
                leader_epoch=found.leader_epoch,
                expected_leader_epoch=found.expected_epoch,
            ),
            explanations=_CAUSES,
            following=("compare the leader epochs with those of the other replicas and leader-epoch-checkpoint",),
            absent=NO_PRODUCER,
        )
