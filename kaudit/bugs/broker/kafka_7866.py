"""A failed append to the transaction index gives its offsets away again."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _repeats_marker_offset(case: Case) -> bool:
    offset, expected = case.finding.offset, case.number("expected_offset")
    return offset is not None and expected is not None and offset == expected - 1


def _not_in_index(case: Case) -> bool:
    for other in case.others():
        missing = other.evidence.get("missing")
        if other.code == "KA305" and isinstance(missing, list | tuple):
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
        Trait("a batch begins at the offset of the marker before it", _repeats_marker_offset),
        Trait("the transaction index lacks the transaction which that marker aborted", _not_in_index),
    ),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-7866"), "https://github.com/apache/kafka/pull/6570"),
    module=__name__,
)
