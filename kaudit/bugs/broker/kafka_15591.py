"""A new partition takes any first sequence, and an earlier batch in flight is then dropped."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence


def _just_created(case: Case) -> bool:
    return case.number("offending", "leader_epoch") == 0 and case.finding.producer_epoch == 0


BUG = Bug(
    id="KAFKA-15591",
    title="Idempotent producer loses its first batch: out of order first requests are taken by empty partitions",
    summary="a leader without state takes any first sequence of a producer, even as the first batch of a partition",
    program=Program.BROKER,
    affected=(Affected("2.5.0", "4.4"),),
    fixed_in=("4.5.0",),
    codes=codes("KA106"),
    traits=(
        Trait("the batch is the first of the partition", lambda case: case.finding.offset == 0),
        Trait("it was written by the partition's first leader and in the producer's first epoch", _just_created),
        Trait("its first sequence is not 0", lambda case: bool(case.number("offending", "base_sequence"))),
        # without it, a topic that was created again under a running producer looks the same, and is healthy
        logged(
            "batches of the producer were refused there as out of order", LogEventKind.OUT_OF_ORDER_SEQUENCE, must=True
        ),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-15591", "KAFKA-14312", "KAFKA-19880"), "https://github.com/apache/kafka/pull/23234"),
    module=__name__,
)
