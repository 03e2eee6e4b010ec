"""An end marker whose record was compacted away stops brokers that load the log."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Program, Trait, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-7467",
    title="NoSuchElementException is raised because controlBatch is empty",
    summary="brokers ask a control batch for its record, and the log cleaner leaves control batches without one",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.0.0"),),
    fixed_in=("2.0.1", "2.1.0"),
    codes=codes("KA803"),
    traits=(VERSION_KNOWN, Trait("an end marker has no record", lambda case: case.value("class") == "empty-marker")),
    confidence=Confidence.CERTAIN,
    sources=(*jira("KAFKA-7467"), "https://github.com/apache/kafka/pull/5727"),
    module=__name__,
)
