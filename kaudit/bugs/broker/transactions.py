"""Transactions that brokers leave open, end too early or never end."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira, logged, said
from kaudit.model.application_logs import LogEventKind
from kaudit.model.severity import Confidence


def came_late(case: Case) -> bool:
    """Whether the transaction began after the producer's transaction in the same epoch had ended (KA304)."""
    finding = case.finding
    return finding.code == "KA304" or any(
        other.offset == finding.offset for other in case.others("KA304", "producer_id")
    )


def was_made_later(case: Case) -> bool:
    """Whether the late batch was made after the marker was written: its producer knew nothing of the end."""
    first, marker = case.evidence.first_timestamp, case.evidence.previous_marker_timestamp
    return first is not None and marker is not None and 0 <= marker < first


def follows_commit(case: Case) -> bool:
    """Whether the coordinator's last decision about this epoch was to commit."""
    return case.evidence.coordinator_state == "CompleteCommit"


def follows_abort(case: Case) -> bool:
    """Whether the coordinator's last decision about this epoch was to abort."""
    return case.evidence.coordinator_state == "CompleteAbort"


CAME_LATE = Trait("the batch came after its transaction had ended, in the same epoch", came_late)
NO_END = Trait(
    "no coordinator will end the transaction it began",
    lambda case: case.evidence.coordinator == "not-ongoing",
    optional=True,
)


_LONGEST_MS = 20 * 60_000
"""transaction.max.timeout.ms (15 minutes) and what brokers add before they call a transaction late."""


def _decided(case: Case) -> bool:
    return case.evidence.coordinator_state in ("PrepareCommit", "PrepareAbort")


def _long_ago(case: Case) -> bool:
    return case.evidence.idle_ms is not None and case.evidence.idle_ms >= _LONGEST_MS


DECIDED = Trait("the coordinator has decided, and its marker is not in the log", _decided)
LONG_AGO = Trait("the transaction is idle for longer than any may take", _long_ago)


KAFKA_6119 = Bug(
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
)


KAFKA_9777 = Bug(
    id="KAFKA-9777",
    title="Purgatory locking bug can lead to hanging transaction",
    summary="the coordinator may never notice that all markers of a transaction were written, or never send them, for a lock it does not get",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.5.1"),),
    fixed_in=("2.6.0",),
    codes=codes("KA302"),
    traits=(DECIDED, LONG_AGO),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-9777"), "https://github.com/apache/kafka/pull/8389"),
)


KAFKA_12671 = Bug(
    id="KAFKA-12671",
    title="Out of order processing with a transactional producer can lead to a stuck LastStableOffset",
    summary="a produce request that is processed after its transaction's end marker opens a transaction that nobody will end",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.5.2"),),
    fixed_in=("3.6.0",),
    fix="KIP-890",
    codes=codes("KA301", "KA304"),
    traits=(CAME_LATE, NO_END),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-12671", "KAFKA-14402"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
)


def _not_added(case: Case) -> bool:
    said = case.evidence.coordinator_says
    return isinstance(said, str) and "does not include" in said


KAFKA_14402 = Bug(
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
        Trait("nothing had ended in the same epoch before", lambda case: case.evidence.previous_marker_offset is None),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-14402"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-890"),
)


KAFKA_16352 = Bug(
    id="KAFKA-16352",
    title="Transaction may get stuck in PrepareCommit or PrepareAbort state",
    summary="a completion of an older epoch removes the pending markers of a newer transaction of the same transactional id",
    program=Program.BROKER,
    affected=(Affected("2.6.0", "3.7.2"),),
    fixed_in=("3.8.0",),
    codes=codes("KA302"),
    traits=(DECIDED, LONG_AGO),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-16352"), "https://github.com/apache/kafka/pull/15524"),
)


def _torn(case: Case) -> bool:
    return bool(case.evidence.agreeing) or (follows_commit(case) and was_made_later(case))


def _ended_early(case: Case) -> bool:
    return case.finding.code == "KA308" or came_late(case)


KAFKA_17754 = Bug(
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
)


KAFKA_20785 = Bug(
    id="KAFKA-20785",
    title="A commit that comes after the transaction timed out is fatal with transactions of version 2: INVALID_TXN_STATE",
    summary="the epoch of a commit that was on its way when the coordinator aborted looks like the retry of a commit, and not like a fenced one",
    program=Program.BROKER,
    affected=(Affected("4.0.0", "4.4"),),
    fixed_in=("4.5.0",),
    codes=codes("KA813"),
    traits=(
        logged(
            "the coordinator rolled the transaction back after its timeout", LogEventKind.TRANSACTION_TIMEOUT, must=True
        ),
        said(
            "a COMMIT that came afterwards was refused with INVALID_TXN_STATE",
            "COMMIT",
            kind=LogEventKind.INVALID_TXN_STATE,
        ),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-20785"), "https://github.com/apache/kafka/pull/23204"),
)
