"""A producer takes a batch it gave up for one that was never written."""

from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.bugs.client.rewritten_epochs import ANOTHER_LEADER, RAISED, SAME_TIMES, SENT_AGAIN
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-14397",
    title="Don't reset producer sequence number after delivery timeout",
    summary="after delivery.timeout.ms the producer gives the sequences of a batch that may have been written to other records",
    program=Program.JAVA,
    affected=(Affected("2.1.0", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14397", "KAFKA-14831"), "https://github.com/apache/kafka/pull/12922"),
    alike=("KAFKA-14034", "librdkafka-4953"),
    module=__name__,
)
