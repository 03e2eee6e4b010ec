"""The cleaner leaves preallocated zeros at the end of a segment."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence, Severity


def _closed(case: Case) -> bool:
    return case.finding.severity is Severity.ERROR and case.number("resynchronised_at") is None


BUG = Bug(
    id="KAFKA-5431",
    title="LogCleaner stopped due to org.apache.kafka.common.errors.CorruptRecordException",
    summary="with log.preallocate the log cleaner preallocates the segments it writes, and leaves zeros at their ends",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.0"),),
    fixed_in=("0.11.0.1", "1.0.0"),
    codes=codes("KA004"),
    traits=(
        Trait("a closed segment ends in zeros", _closed),
        Trait("the partition is compacted", lambda case: case.compacted),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-5431"), "https://github.com/apache/kafka/pull/3525"),
    module=__name__,
)
