"""A time index whose rows are out of order or do not belong to its segment."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import INDEX_OF_DAMAGE
from kaudit.checks.sidefiles.indexes import Wording, index_findings
from kaudit.model.finding import Finding, Severity
from kaudit.model.side_files import IndexFault, IndexKind, MissingIndexes

_WORDING = Wording(
    "timestamps rise strictly, offsets do not fall, and both belong to the segment",
    "lookups by time and retention by time go wrong",
)


@check(
    "KA504",
    severity=Severity.WARNING,
    severity_note="note where it is missing",
    summary="a time index is out of order",
    needs=(IndexFault, MissingIndexes),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(INDEX_OF_DAMAGE,),
    caused_by=none_because("brokers build indexes again without saying what was wrong with a row"),
    simulated=none_because("side files are written from the simulated state, and schedules damage none"),
)
def timeindex_broken(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first wrong row of each index, and indexes that are missing."""
    yield from index_findings(timeindex_broken, context, evidence, IndexKind.TIME, _WORDING)
