"""Bugs of the log cleaner that affect transactions and segments."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.severity import Confidence, Severity


def ended_with(state: str) -> Trait:
    """Return the trait of a transaction that its coordinator ended with this state."""
    return Trait(
        f"its coordinator ended the transaction ({state})", lambda case: case.evidence.coordinator_state == state
    )


def _no_marker(case: Case) -> bool:
    return case.evidence.previous_marker_offset is None


COMPACTED = Trait("the partition is compacted", lambda case: case.compacted)
NO_MARKER = Trait("the records are there and no marker of the producer is", _no_marker)


def _closed(case: Case) -> bool:
    return case.finding.severity is Severity.ERROR and case.evidence.resynchronised_at is None


KAFKA_5431 = Bug(
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
)


KAFKA_8351 = Bug(
    id="KAFKA-8351",
    title="Log cleaner must handle transactions spanning multiple segments",
    summary="the cleaner forgets at the end of each group of segments which transactions still have data, and removes their commit markers",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.2.1"),),
    fixed_in=("2.2.2", "2.3.0"),
    codes=codes("KA301"),
    traits=(COMPACTED, NO_MARKER, ended_with("CompleteCommit")),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-8351"), "https://github.com/apache/kafka/pull/6722"),
    rather_than=("KAFKA-14055",),
)


KAFKA_13727 = Bug(
    id="KAFKA-13727",
    title="Edge case in cleaner can result in premature removal of ABORT marker",
    summary="when a segment is cleaned in part, aborted transactions of the other part are not put into its new transaction index",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.8.1"), Affected("3.0.0", "3.0.1"), Affected("3.1.0", "3.1.0")),
    fixed_in=("2.8.2", "3.0.2", "3.1.1", "3.2.0"),
    codes=codes("KA301"),
    traits=(COMPACTED, NO_MARKER, ended_with("CompleteAbort")),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-13727"), "https://github.com/apache/kafka/pull/11891"),
    rather_than=("KAFKA-14055",),
)


def _ended(case: Case) -> bool:
    return case.evidence.coordinator_state in ("CompleteCommit", "CompleteAbort")


KAFKA_14055 = Bug(
    id="KAFKA-14055",
    title="Transaction markers may be lost during cleaning if data keys conflict with marker keys",
    summary="the cleaner takes an end marker for an older record of the same key when data has keys of the markers' four bytes",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.0.1"), Affected("3.1.0", "3.1.1"), Affected("3.2.0", "3.2.0")),
    fixed_in=("3.0.2", "3.1.2", "3.2.1", "3.3.0"),
    codes=codes("KA301"),
    traits=(VERSION_KNOWN, COMPACTED, NO_MARKER, Trait("its coordinator ended the transaction", _ended)),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14055"), "https://github.com/apache/kafka/pull/12390"),
)
