"""A transaction that the coordinator aborts for its age does not fence its producer."""

from kaudit.bugs.broker.late_writes import CAME_LATE, NO_END, follows_abort
from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Program, Trait, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-6119",
    title="Silent data loss with transactions in 0.11.0.0: the coordinator does not bump the epoch of what it times out",
    summary="the abort of a transaction by its timeout keeps the producer's epoch, so that the producer goes on writing",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.1"),),
    fixed_in=("0.11.0.2", "1.0.0"),
    codes=codes("KA301", "KA304"),
    traits=(
        VERSION_KNOWN,
        CAME_LATE,
        Trait("the coordinator had aborted the transaction before", follows_abort),
        NO_END,
    ),
    confidence=Confidence.POSSIBLE,
    sources=jira("KAFKA-6119"),
    rather_than=("KAFKA-12671",),
    module=__name__,
)
