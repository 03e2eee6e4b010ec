"""A producer that raises its epoch gives batches in flight new sequences."""

from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.bugs.client.rewritten_epochs import ANOTHER_LEADER, RAISED, SAME_TIMES, SENT_AGAIN
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-14034",
    title="Idempotent producer should wait for preceding in-flight batches to complete before resetting the sequence number",
    summary="when one batch fails for good, the producer raises its epoch and renumbers batches that may have been written",
    program=Program.JAVA,
    affected=(Affected("2.5.0", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14034"), "https://github.com/apache/kafka/pull/13796"),
    alike=("KAFKA-14397", "librdkafka-4953"),
    module=__name__,
)
