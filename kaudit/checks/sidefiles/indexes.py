"""The offset index and the time index of a segment: rows that are wrong, and files that are missing."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Check, Evidence, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import INDEX_OF_DAMAGE
from kaudit.checks.sidefiles.about_file import FaultEvidence, file_finding, side_file_check
from kaudit.checks.texts import first_of
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Severity
from kaudit.model.side_files import IndexFault, IndexKind, MissingIndexes

_RULES = {
    IndexKind.OFFSET: ("rows rise, and each leads to a batch of its segment", "a fetch may start at a wrong byte"),
    IndexKind.TIME: (
        "timestamps rise strictly, offsets do not fall, and both belong to the segment",
        "lookups by time and retention by time go wrong",
    ),
}
"""By kind: the rule of the rows, and the consequence when a broker reads an index that breaks it."""
_CAUSES = (
    Explanation("the file was damaged on disk, or copied while the broker was writing it"),
    Explanation("the index belongs to another state of the segment: one was restored without the other"),
)
_MISSING_CAUSES = (
    Explanation("the copy was made without it", innocent=True),
    Explanation("it was removed to have the broker build it anew", innocent=True),
)
_MAX_LISTED = 20


class _RowEvidence(FaultEvidence, frozen=True, kw_only=True, gc=False):
    row: int | None = None


class _MissingEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    kind: str
    count: int
    files: Sequence[str]


def _findings(check: Check, context: Context, evidence: Evidence, kind: IndexKind) -> Iterator[Finding]:
    """Yield a finding for each index of one kind that is wrong, and a note for all that are missing."""
    for fault in evidence.of(IndexFault):
        if fault.kind is kind:
            yield _fault(check, context, fault)
    for missing in evidence.of(MissingIndexes):
        if missing.kind is kind:
            yield _missing(check, context, missing)


def _fault(check: Check, context: Context, fault: IndexFault) -> Finding:
    torn = fault.row is None
    rule, consequence = _RULES[fault.kind]
    return file_finding(
        check,
        context,
        fault.file,
        f"the index ends inside a row: {fault.detail}"
        if torn
        else f"row {fault.row} of the index is wrong: {fault.detail}",
        severity=Severity.WARNING,
        segment=fault.segment,
        position=fault.position,
        evidence=_RowEvidence(
            rule="an index consists of whole rows (AbstractIndex.sanityCheck)" if torn else rule,
            broker="rebuilds it from the segment when the sanity check at start fails (always after an unclean stop above "
            f"the recovery point); else {consequence}",
            detail=fault.detail,
            row=fault.row,
        ),
        explanations=_CAUSES,
    )


def _missing(check: Check, context: Context, missing: MissingIndexes) -> Finding:
    first, segment = missing.files[0]
    return file_finding(
        check,
        context,
        first,
        f"there is no {first_of([name for name, _ in missing.files])}",
        severity=Severity.NOTE,
        segment=segment,
        evidence=_MissingEvidence(
            rule="every segment has an offset and a time index",
            broker="logs an error at start, recovers the segment and builds its indexes anew",
            kind="missing",
            count=len(missing.files),
            files=[name for name, _ in missing.files[:_MAX_LISTED]],
        ),
        explanations=_MISSING_CAUSES,
    )


_REBUILT_WITHOUT_REASON = none_because("brokers build indexes again without saying what was wrong with a row")


@side_file_check(
    "KA503",
    severity=Severity.WARNING,
    severity_note="note where it is missing",
    summary="an offset index does not lead to its batches",
    needs=(IndexFault, MissingIndexes),
    incident=(INDEX_OF_DAMAGE,),
    caused_by=_REBUILT_WITHOUT_REASON,
)
def index_broken(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first wrong row of each index, and indexes that are missing."""
    yield from _findings(index_broken, context, evidence, IndexKind.OFFSET)


@side_file_check(
    "KA504",
    severity=Severity.WARNING,
    severity_note="note where it is missing",
    summary="a time index is out of order",
    needs=(IndexFault, MissingIndexes),
    incident=(INDEX_OF_DAMAGE,),
    caused_by=_REBUILT_WITHOUT_REASON,
)
def timeindex_broken(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the first wrong row of each index, and indexes that are missing."""
    yield from _findings(timeindex_broken, context, evidence, IndexKind.TIME)
