"""A producer that starts its sequences again may swap batches in flight."""

from kaudit.bugs.bug import Affected, Bug, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-8483",
    title="Possible reordering of messages by producer after UNKNOWN_PRODUCER_ID_EXCEPTION",
    summary="sequences are assigned anew to the batches in flight in the order of a queue that has none",
    program=Program.JAVA,
    affected=(Affected("1.0.0", "2.2.2"),),
    fixed_in=("2.3.0",),
    codes=codes("KA105"),
    traits=(
        Trait("the producer starts again at sequence 0 in its epoch", lambda case: case.finding.code == "KA105"),
        Trait(
            "of the batches in flight with it, a later one has older records",
            lambda case: case.value("times_go_back") is True,
        ),
        logged("it was answered UNKNOWN_PRODUCER_ID", LogEventKind.UNKNOWN_PRODUCER_ID),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-8483", "KAFKA-8484"), "https://github.com/apache/kafka/pull/6883"),
    module=__name__,
)
