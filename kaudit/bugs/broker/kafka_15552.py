"""The migration to KRaft grants a block of producer ids twice."""

from kaudit.bugs.bug import Affected, Bug, Program, Trait, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-15552",
    title="Duplicate producer id blocks during ZK migration",
    summary="the migration from ZooKeeper copies the block of producer ids in use to KRaft instead of the next one",
    program=Program.BROKER,
    affected=(Affected("3.4.0", "3.5.1"), Affected("3.6.0", "3.6.0")),
    fixed_in=("3.5.2", "3.6.1"),
    codes=codes("KA402"),
    traits=(
        Trait(
            "KRaft granted the block that ZooKeeper had granted last", lambda case: case.value("class") == "migration"
        ),
        Trait("producer ids of that block are in these logs", lambda case: bool(case.number("seen")), optional=True),
    ),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-15552"), "https://github.com/apache/kafka/pull/14506"),
    module=__name__,
)
