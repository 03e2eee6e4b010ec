"""Replicas that end before the others."""

from collections.abc import Iterator, Mapping

from kaudit.checks.check import REPLICAS_NOT_COMPARED, Evidence, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import COPY_OF_DAMAGE, DIVERGENCE
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.checks.replicas.wording import ABSENT
from kaudit.checks.texts import counted, listed
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.replicas import Relation, ReplicaLag
from kaudit.model.severity import Severity

_CAUSES = (
    Explanation("the replica's broker was stopped, slow, or starting when it was copied", innocent=True),
    Explanation("the copies were made one after the other while the brokers ran", innocent=True),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    count: int
    reference: str
    lags: Mapping[str, int]
    end_offsets: Mapping[str, int]


@check(
    "KA602",
    severity=Severity.NOTE,
    summary="a replica ends before the others",
    needs=(ReplicaLag,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(COPY_OF_DAMAGE, DIVERGENCE),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=REPLICAS_NOT_COMPARED,
    compared=True,
)
def replica_behind(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report all replicas of a partition that lag in one finding, without those whose logs end in damage."""
    for each in evidence.of(ReplicaLag):
        found, comparison = each.found, each.found.comparison
        lagging = [
            name
            for name, relation in comparison.relations.items()
            if relation is Relation.BEHIND and name not in found.torn
        ]
        if not lagging:
            continue
        reference = comparison.reference
        assert reference is not None
        end = comparison.end_offsets[reference]
        name = min(lagging, key=lambda key: found.comparison.end_offsets[key])
        start = comparison.end_offsets[name]
        lags = {key: end - comparison.end_offsets[key] for key in lagging}
        lag = counted(lags[name], "offset")
        message = f"{name} ends at offset {start}, {lag} before {reference}"
        if len(lagging) > 1:
            message = f"{listed(lagging)} lag {reference} by up to {lag}"
        yield replica_behind.finding(
            context.replicas[name],
            message,
            offset=start,
            last_offset=end - 1,
            evidence=_Evidence(
                rule="a follower holds a prefix of the leader's log: it lags by what it has not fetched yet",
                broker=f"lets it fetch from offset {start} on",
                kind="behind",
                count=len(lagging),
                reference=reference,
                lags=lags,
                end_offsets=dict(comparison.replica_ends),
            ),
            explanations=_CAUSES,
            impact=Impact(records_lost_at_most=0),
            absent=ABSENT,
        )
