"""A leader without records in its epoch does not know where the one before ended."""

from kaudit.bugs.broker.divergence import GOES_ON, NOT_CUT
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-7415",
    title="OffsetsForLeaderEpoch may incorrectly respond with undefined epoch causing truncation to HW",
    summary="a new leader does not note its epoch before the first append, and followers cut at their high watermark instead",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.0.0"),),
    fixed_in=("2.0.1", "2.1.0"),
    codes=codes("KA009", "KA601"),
    traits=(GOES_ON, NOT_CUT),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7415"), "https://github.com/apache/kafka/pull/5678"),
    alike=("KAFKA-6361",),
    module=__name__,
)
