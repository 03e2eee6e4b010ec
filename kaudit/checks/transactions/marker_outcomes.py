"""Markers that are not what their coordinator decided."""

import functools
from collections.abc import Iterator, Sequence

from kaudit.checks.check import COORDINATOR_LOSES_NOTHING, Check, Evidence, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DECISION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.model.transactions import MismatchedMarker

_EXPLANATIONS = (
    Explanation("an administrator aborted the transaction in this partition (kafka-transactions.sh abort)"),
    Explanation("the partition or __transaction_state was restored from another point in time"),
)


class _Evidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    transactional_id: str
    decided: str
    written: str
    decided_at_offset: int
    agreeing: Sequence[str]


def marker_finding(check: Check, context: Context, marker: MismatchedMarker) -> Finding:
    """Build the check's finding about a marker that is not what its coordinator decided."""
    written, decided = _type(marker.written), _type(marker.decided)
    message = (
        f"the coordinator decided {decided} for the transaction of {marker.transactional_id!r}, but its marker at offset "
        f"{marker.offset} is {written}"
    )
    if marker.agreeing:
        verb = "have" if len(marker.agreeing) > 1 else "has"
        message += f"; {', '.join(marker.agreeing[:3])} {verb} {decided}"
    return check.finding(
        context,
        message,
        segment=marker.segment,
        position=marker.position,
        offset=marker.offset,
        last_offset=marker.offset,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        evidence=_Evidence(
            rule="all partitions of a transaction get the marker its coordinator decided on",
            broker="serves each partition by its own markers",
            transactional_id=marker.transactional_id,
            decided=decided,
            written=written,
            decided_at_offset=marker.decided_at,
            agreeing=list(marker.agreeing[:20]),
        ),
        explanations=_EXPLANATIONS,
        following=(context.timeline_everywhere(marker.producer_id),),
    )


def _type(control_type: int) -> str:
    return "COMMIT" if control_type == 1 else "ABORT"


_marker_check = functools.partial(
    check,
    severity=Severity.ERROR,
    needs=(MismatchedMarker,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(DECISION,),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=COORDINATOR_LOSES_NOTHING,
)


@_marker_check(
    "KA306",
    summary="a partition's marker is not what __transaction_state decided",
)
def coordinator_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report markers of transactions of which no other partition was seen to end as decided."""
    for marker in evidence.of(MismatchedMarker):
        if not marker.agreeing:
            yield marker_finding(coordinator_disagrees, context, marker)


@_marker_check(
    "KA308",
    summary="partitions of one transaction ended differently",
    transactional=True,
)
def torn_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report markers that contradict the decision where other partitions of the transaction follow it."""
    for marker in evidence.of(MismatchedMarker):
        if marker.agreeing:
            yield marker_finding(torn_transaction, context, marker)
