"""A delayed EndTxn ends the transaction after the one it was meant for."""

from kaudit.bugs.bug import Affected, Bug, Program, Trait, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-17754",
    title="A delayed EndTxn message can cause aborted read, lost writes, atomicity violation",
    summary="a request to end a transaction that arrives late ends the producer's next transaction, in part",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.9.2"),),
    fixed_in=("4.0.0",),
    fix="KIP-890 (transaction.version=2)",
    codes=codes("KA308"),
    traits=(Trait("partitions of one transaction have different outcomes", lambda case: bool(case.value("agreeing"))),),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-17754"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
    module=__name__,
)
