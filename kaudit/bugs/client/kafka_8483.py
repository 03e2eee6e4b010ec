"""A producer that starts its sequences again may swap batches in flight."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _times(case: Case) -> tuple[int, int] | None:
    restarted, following = case.number("offending", "timestamp"), case.number("next", "timestamp")
    return None if restarted is None or following is None else (restarted, following)


def _goes_back(case: Case) -> bool:
    times = _times(case)
    return times is not None and 0 <= times[1] < times[0]


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
        Trait("the batch that follows was made before it", _goes_back),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-8483", "KAFKA-8484"), "https://github.com/apache/kafka/pull/6883"),
    module=__name__,
)
