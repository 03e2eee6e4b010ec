"""The epoch is raised after every error and overflows at 32767."""

from kaudit.bugs.bug import Affected, Bug, Program, codes
from kaudit.bugs.client.spent_epochs import NEARLY_SPENT, RAISED_OFTEN
from kaudit.model.finding import Confidence

BUG = Bug(
    id="librdkafka-3720",
    title="Idempotent producer does not check for epoch exhaustion",
    summary="the epoch is raised after every error and overflows at 32767",
    program=Program.LIBRDKAFKA,
    affected=(Affected("1.8.2", None),),
    fixed_in=(),
    codes=codes("KA204"),
    traits=(NEARLY_SPENT, RAISED_OFTEN),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/3720",),
    alike=("sarama-2178",),
    module=__name__,
)
