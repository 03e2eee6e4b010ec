"""Partitions of one transaction ended differently."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DECISION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.checks.transactions.marker_outcomes import marker_finding
from kaudit.model.finding import Finding, Severity
from kaudit.model.transactions import MismatchedMarker


@check(
    "KA308",
    severity=Severity.ERROR,
    summary="partitions of one transaction ended differently",
    needs=(MismatchedMarker,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(DECISION,),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=none_because("no drawn schedule has been seen to leave it"),
    transactional=True,
)
def torn_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report markers that contradict the decision where other partitions of the transaction follow it."""
    for marker in evidence.of(MismatchedMarker):
        if marker.agreeing:
            yield marker_finding(torn_transaction, context, marker)
