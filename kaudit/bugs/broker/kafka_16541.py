"""A host that stops leaves half a leader-epoch-checkpoint."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-16541",
    title="Potential leader epoch checkpoint file corruption",
    summary="leader-epoch-checkpoint is replaced without being synced to disk, and may be empty or cut after a power failure",
    program=Program.BROKER,
    affected=(Affected("3.7.0", "3.7.2"),),
    fixed_in=("3.8.0",),
    codes=codes("KA506"),
    traits=(
        VERSION_KNOWN,
        Trait("leader-epoch-checkpoint cannot be parsed", lambda case: case.value("reason") is not None),
        logged("the broker's log has the error", LogEventKind.LOG_DIR_FAILED, LogEventKind.CORRUPTION),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-16541", "KAFKA-15046"), "https://github.com/apache/kafka/pull/15993"),
    module=__name__,
)
