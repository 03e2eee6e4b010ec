"""A partition's marker is not what its coordinator decided."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DECISION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.checks.transactions.marker_outcomes import marker_finding
from kaudit.model.finding import Finding, Severity
from kaudit.model.transactions import MismatchedMarker


@check(
    "KA306",
    severity=Severity.ERROR,
    summary="a partition's marker is not what __transaction_state decided",
    needs=(MismatchedMarker,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(DECISION,),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=none_because("no drawn schedule has been seen to leave it"),
)
def coordinator_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report markers of transactions of which no other partition was seen to end as decided."""
    for marker in evidence.of(MismatchedMarker):
        if not marker.agreeing:
            yield marker_finding(coordinator_disagrees, context, marker)
