"""Every failed send raises the epoch, and the epoch overflows at 32767."""

from kaudit.bugs.bug import Affected, Bug, Program, codes
from kaudit.bugs.client.spent_epochs import NEARLY_SPENT, RAISED_OFTEN
from kaudit.model.finding import Confidence

BUG = Bug(
    id="sarama-2178",
    title="Prevent idempotent producer epoch exhaustion",
    summary="every failed send raises the epoch, and the epoch overflows at 32767",
    program=Program.SARAMA,
    affected=(Affected("1.26.0", "1.32.0"),),
    fixed_in=("1.33.0",),
    codes=codes("KA204"),
    traits=(NEARLY_SPENT, RAISED_OFTEN),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/IBM/sarama/pull/2178",),
    alike=("librdkafka-3720",),
    module=__name__,
)
