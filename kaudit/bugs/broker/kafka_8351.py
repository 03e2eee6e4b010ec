"""The cleaner forgets at the end of each group of segments which transactions still have data, and removes their commit markers."""

from kaudit.bugs.broker.lost_markers import COMPACTED, NO_MARKER, ended_with
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-8351",
    title="Log cleaner must handle transactions spanning multiple segments",
    summary="the cleaner forgets at the end of each group of segments which transactions still have data, and removes their commit markers",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.2.1"),),
    fixed_in=("2.2.2", "2.3.0"),
    codes=codes("KA301"),
    traits=(COMPACTED, NO_MARKER, ended_with("CompleteCommit")),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-8351"), "https://github.com/apache/kafka/pull/6722"),
    rather_than=("KAFKA-14055",),
    module=__name__,
)
