"""librdkafka raises its epoch for one partition while batches of another are retried."""

from kaudit.bugs.bug import Affected, Bug, Program, codes
from kaudit.bugs.client.rewritten_epochs import ANOTHER_LEADER, RAISED, SAME_TIMES, SENT_AGAIN
from kaudit.model.finding import Confidence

BUG = Bug(
    id="librdkafka-4953",
    title="Sporadic message duplication during leader transition with idempotent producer",
    summary="an out of order answer for one partition raises the epoch of all, and batches in flight elsewhere are renumbered",
    program=Program.LIBRDKAFKA,
    affected=(Affected("2.6.1", None),),
    fixed_in=(),
    codes=codes("KA704"),
    traits=(SENT_AGAIN, SAME_TIMES, ANOTHER_LEADER, RAISED),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/4953",),
    alike=("KAFKA-14034", "KAFKA-14397"),
    module=__name__,
)
