"""Data in a partition that was never added to its transaction."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _not_added(case: Case) -> bool:
    said = case.value("coordinator_says")
    return isinstance(said, str) and "does not include" in said


BUG = Bug(
    id="KAFKA-14402",
    title="Transactions server-side defense: brokers take transactional data for partitions that no transaction includes",
    summary="a partition leader does not ask whether the partition was added to the producer's transaction",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.5.2"),),
    fixed_in=("3.6.0",),
    fix="KIP-890",
    codes=codes("KA301"),
    traits=(
        Trait("the producer's transaction is in progress and does not include the partition", _not_added),
        Trait("nothing had ended in the same epoch before", lambda case: case.number("previous_marker_offset") is None),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-14402"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
    module=__name__,
)
