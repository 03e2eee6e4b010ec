"""A transactional batch that arrives after its transaction's end marker opens a transaction that nobody ends."""

from kaudit.bugs.broker.late_writes import CAME_LATE, NO_END
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-12671",
    title="Out of order processing with a transactional producer can lead to a stuck LastStableOffset",
    summary="a produce request that is processed after its transaction's end marker opens a transaction that nobody will end",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.5.2"),),
    fixed_in=("3.6.0",),
    fix="KIP-890",
    codes=codes("KA301", "KA304"),
    traits=(CAME_LATE, NO_END),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-12671", "KAFKA-14402"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
    module=__name__,
)
