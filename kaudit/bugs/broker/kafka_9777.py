"""The coordinator may never notice that all markers of a transaction were written, or never send them, for a lock it does not get."""

from kaudit.bugs.broker.stuck_completions import DECIDED, LONG_AGO
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-9777",
    title="Purgatory locking bug can lead to hanging transaction",
    summary="the coordinator may never notice that all markers of a transaction were written, or never send them, for a lock it does not get",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.5.1"),),
    fixed_in=("2.6.0",),
    codes=codes("KA302"),
    traits=(DECIDED, LONG_AGO),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-9777"), "https://github.com/apache/kafka/pull/8389"),
    module=__name__,
)
