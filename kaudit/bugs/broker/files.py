"""Segments and side files that brokers leave damaged."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.severity import Confidence

_SHORTEST = 10
"""Bytes of a snapshot without entries: version, CRC, count."""


def _breaks_off(case: Case) -> bool:
    size = case.evidence.size
    return size is not None and (size < _SHORTEST or (size - _SHORTEST) % 46 != 0)


KAFKA_5747 = Bug(
    id="KAFKA-5747",
    title="Broker crashes on startup when trying to parse empty snapshot files",
    summary="a producer snapshot that is empty or cut throws an error that the broker does not expect when it loads the log",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.0"),),
    fixed_in=("0.11.0.1", "1.0.0"),
    codes=codes("KA501"),
    traits=(VERSION_KNOWN, Trait("a producer snapshot is empty or breaks off", _breaks_off)),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-5747"), "https://github.com/apache/kafka/pull/3688"),
)


def _missing(case: Case) -> bool:
    return case.evidence.kind == "missing"


def _offset_index_is_there(case: Case) -> bool:
    return not any(other.evidence.kind == "missing" for other in case.others("KA503", "replica"))


KAFKA_5752 = Bug(
    id="KAFKA-5752",
    title="Delete topic and re-create topic immediate will delete the new topic's timeindex",
    summary="the delayed deletion of a topic removes time and transaction indexes by their old names, which a new topic may have",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.0"),),
    fixed_in=("0.11.0.1", "1.0.0"),
    codes=codes("KA504"),
    traits=(
        VERSION_KNOWN,
        Trait("the time index is missing", _missing),
        Trait("the offset index is there", _offset_index_is_there),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-5752"), "https://github.com/apache/kafka/pull/3700"),
)


def _assigned_again(case: Case) -> bool:
    offset, expected = case.finding.offset, case.evidence.expected_offset
    if offset is None or offset + 1 != expected:
        return False
    missing, last = case.evidence.last_missing_offset, case.finding.last_offset
    return missing is None or (last is not None and missing <= last)


def _not_in_index(case: Case) -> bool:
    others = case.others("KA305", "segment")
    rows = [row for other in others for row in other.evidence.missing]
    return any(row.last_offset == case.finding.offset for row in rows)


KAFKA_7866 = Bug(
    id="KAFKA-7866",
    title="Duplicate offsets after transaction index append failure",
    summary="when the transaction index cannot be written, the abort marker stays in the log and its offset is assigned again",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.2.0"),),
    fixed_in=("2.2.1", "2.3.0"),
    codes=codes("KA006"),
    traits=(
        Trait("a batch begins at the offset of the batch before it, and no offset is missing", _assigned_again),
        Trait("the transaction index lacks the transaction that ended there", _not_in_index, optional=True),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7866"), "https://github.com/apache/kafka/pull/6570"),
)


def _no_offset_missing(case: Case) -> bool:
    return case.evidence.first_missing_offset is None and case.evidence.expected_offset is not None


def _goes_on(case: Case) -> bool:
    return case.evidence.resynchronised_at is not None


KAFKA_10778 = Bug(
    id="KAFKA-10778",
    title="Stronger log fencing after write failure",
    summary="after an append that failed with an I/O error the broker goes on appending after the part that was written",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.7.2"),),
    fixed_in=("2.8.0",),
    codes=codes("KA003", "KA005", "KA001"),
    traits=(
        Trait("valid batches follow bytes that are not a whole batch", _goes_on),
        Trait("the next batch has the offset that the broken one was to get", _no_offset_missing),
        logged("the broker's log has the error", LogEventKind.LOG_DIR_FAILED, LogEventKind.CORRUPTION),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-10778"), "https://github.com/apache/kafka/pull/9676"),
)


KAFKA_16541 = Bug(
    id="KAFKA-16541",
    title="Potential leader epoch checkpoint file corruption",
    summary="leader-epoch-checkpoint is replaced without being synced to disk, and may be empty or cut after a power failure",
    program=Program.BROKER,
    affected=(Affected("3.7.0", "3.7.2"),),
    fixed_in=("3.8.0",),
    codes=codes("KA506"),
    traits=(
        VERSION_KNOWN,
        Trait("leader-epoch-checkpoint cannot be parsed", lambda case: case.evidence.reason is not None),
        logged("the broker's log has the error", LogEventKind.LOG_DIR_FAILED, LogEventKind.CORRUPTION),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-16541", "KAFKA-15046"), "https://github.com/apache/kafka/pull/15993"),
)
