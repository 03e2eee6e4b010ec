"""A delayed EndTxn ends the transaction after the one it was meant for."""

from kaudit.bugs.broker.late_writes import came_late, follows_commit, was_made_later
from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _torn(case: Case) -> bool:
    return bool(case.value("agreeing")) or (follows_commit(case) and was_made_later(case))


def _ended_early(case: Case) -> bool:
    return case.finding.code == "KA308" or came_late(case)


BUG = Bug(
    id="KAFKA-17754",
    title="A delayed EndTxn message can cause aborted read, lost writes, atomicity violation",
    summary="a request to end a transaction that arrives late ends the producer's next transaction, in part",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.9.2"),),
    fixed_in=("4.0.0",),
    fix="KIP-890 (transaction.version=2)",
    codes=codes("KA301", "KA304", "KA308"),
    traits=(
        Trait("a transaction was ended before its producer had written all of it", _ended_early),
        Trait("the producer went on in the same epoch after the commit, or other partitions were aborted", _torn),
    ),
    rather_than=("KAFKA-12671",),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-17754"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
    module=__name__,
)
