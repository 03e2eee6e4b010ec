"""A completion of an older epoch removes the pending markers of a newer transaction of the same transactional id."""

from kaudit.bugs.broker.stuck_completions import DECIDED, LONG_AGO
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-16352",
    title="Transaction may get stuck in PrepareCommit or PrepareAbort state",
    summary="a completion of an older epoch removes the pending markers of a newer transaction of the same transactional id",
    program=Program.BROKER,
    affected=(Affected("2.6.0", "3.7.2"),),
    fixed_in=("3.8.0",),
    codes=codes("KA302"),
    traits=(DECIDED, LONG_AGO),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-16352"), "https://github.com/apache/kafka/pull/15524"),
    module=__name__,
)
