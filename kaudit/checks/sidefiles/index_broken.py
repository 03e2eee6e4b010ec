"""An offset index that does not lead to its segment's batches."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import INDEX_OF_DAMAGE
from kaudit.checks.sidefiles.indexes import Wording, index_findings
from kaudit.model.finding import Finding, Severity
from kaudit.model.side_files import IndexFault, IndexKind, MissingIndexes

_WORDING = Wording("rows rise, and each leads to a batch of its segment", "a fetch may start at a wrong byte")


@check(
    "KA503",
    severity=Severity.WARNING,
    severity_note="note where it is missing",
    summary="an offset index does not lead to its batches",
    needs=(IndexFault, MissingIndexes),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(INDEX_OF_DAMAGE,),
    caused_by=none_because("brokers build indexes again without saying what was wrong with a row"),
    simulated=none_because("side files are written from the simulated state, and schedules damage none"),
)
def index_broken(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first wrong row of each index, and indexes that are missing."""
    yield from index_findings(index_broken, context, evidence, IndexKind.OFFSET, _WORDING)
