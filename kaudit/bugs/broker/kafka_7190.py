"""Deleting a producer's records makes the broker forget the producer, and take its retry again."""

from kaudit.bugs.bug import Affected, Bug, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-7190",
    title="Under low traffic conditions purging repartition topics cause WARN statements about UNKNOWN_PRODUCER_ID",
    summary="when the log start moves past a producer's last record, the leader forgets the producer",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.3.1"),),
    fixed_in=("2.4.0",),
    fix="KIP-360",
    codes=codes("KA802"),
    traits=(
        Trait("the producer's last batch lies below the log start", lambda case: case.finding.code == "KA802"),
        Trait("what it had sent was appended again above it", lambda case: case.value("class") == "repeated"),
        logged("it was answered UNKNOWN_PRODUCER_ID", LogEventKind.UNKNOWN_PRODUCER_ID),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7190"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-360"),
    module=__name__,
)
