"""When a segment is cleaned in part, aborted transactions of the other part are not put into its new transaction index."""

from kaudit.bugs.broker.lost_markers import COMPACTED, NO_MARKER, ended_with
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-13727",
    title="Edge case in cleaner can result in premature removal of ABORT marker",
    summary="when a segment is cleaned in part, aborted transactions of the other part are not put into its new transaction index",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.8.1"), Affected("3.0.0", "3.0.1"), Affected("3.1.0", "3.1.0")),
    fixed_in=("2.8.2", "3.0.2", "3.1.1", "3.2.0"),
    codes=codes("KA301"),
    traits=(COMPACTED, NO_MARKER, ended_with("CompleteAbort")),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-13727"), "https://github.com/apache/kafka/pull/11891"),
    rather_than=("KAFKA-14055",),
    module=__name__,
)
