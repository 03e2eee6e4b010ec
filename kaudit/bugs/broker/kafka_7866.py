"""A failed append to the transaction index gives its offsets away again."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _assigned_again(case: Case) -> bool:
    offset, expected = case.finding.offset, case.number("expected_offset")
    if offset is None or offset + 1 != expected:
        return False
    missing, last = case.number("last_missing_offset"), case.finding.last_offset
    return missing is None or (last is not None and missing <= last)


def _not_in_index(case: Case) -> bool:
    for other in case.others("KA305", "segment"):
        missing = other.evidence.get("missing")
        if isinstance(missing, list | tuple):
            ends = {row.get("last_offset") for row in missing if isinstance(row, dict)}
            if case.finding.offset in ends:
                return True
    return False


BUG = Bug(
    id="KAFKA-7866",
    title="Duplicate offsets after transaction index append failure",
    summary="when the transaction index cannot be written, the abort marker stays in the log and its offset is assigned again",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.2.0"),),
    fixed_in=("2.2.1", "2.3.0"),
    codes=codes("KA006"),
    traits=(
        Trait("a batch begins at the offset of the batch before it, and no offset is missing", _assigned_again),
        Trait("the transaction index lacks the transaction that ended there", _not_in_index, optional=True),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7866"), "https://github.com/apache/kafka/pull/6570"),
    module=__name__,
)
