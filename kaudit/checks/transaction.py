"""KA301-KA304: transactions that do not end, and writes outside of them."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.checks.context import Context
from kaudit.model.coordinator import Standing, Verdict
from kaudit.checks.judged import judged_finding
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import Observation, ObservationKind

MAX_TRANSACTION_TIMEOUT_MS = 15 * 60_000
"""transaction.max.timeout.ms: no transaction may stay open longer."""
LATE_MARGIN_MS = 5 * 60_000
"""What brokers add before they call a transaction late (KAFKA-13221)."""


class OpenTransaction(Struct, frozen=True):
    """A transaction without an end marker at the end of the log.

    `began_after_marker`: the producer's transaction before it ended in the same epoch, at `marker_offset`.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_timestamp: int
    last_timestamp: int
    records: int
    position: int
    segment: int
    coordinator_epoch: int
    began_after_marker: bool
    marker_offset: int
    marker_timestamp: int


def report_transactions(
    context: Context, opened: Sequence[OpenTransaction], facts: Sequence[Observation]
) -> list[Finding]:
    """Report open and hanging transactions, late writes, and writes outside an open transaction."""
    found = [_outside(context, fact) for fact in facts if fact.kind is ObservationKind.OUTSIDE_TRANSACTION]
    for transaction in opened:
        verdict = context.coordinator.standing(
            transaction.producer_id, transaction.producer_epoch, context.topic, context.partition
        )
        found += _report_open(context, transaction, verdict)
    return found


def _report_open(context: Context, transaction: OpenTransaction, verdict: Verdict) -> list[Finding]:
    idle = context.now_ms - transaction.last_timestamp
    overdue = idle >= MAX_TRANSACTION_TIMEOUT_MS + LATE_MARGIN_MS
    if verdict.standing is Standing.NOT_ONGOING:
        found = [_hanging(context, transaction, verdict, Confidence.CERTAIN)]
        if transaction.began_after_marker and _ended_before(transaction, verdict):
            found.append(_late_write(context, transaction, verdict, certain=True))
        return found
    if verdict.standing is Standing.UNKNOWN and overdue:
        found = [_hanging(context, transaction, verdict, Confidence.LIKELY)]
        if transaction.began_after_marker:
            found.append(_late_write(context, transaction, verdict, certain=False))
        return found
    return [_open(context, transaction, verdict)]


def _ended_before(transaction: OpenTransaction, verdict: Verdict) -> bool:
    """Tell whether the coordinator's last word came before this write, not after it (then its marker is what is missing)."""
    if transaction.first_timestamp <= transaction.marker_timestamp or verdict.entry is None:
        return True
    return verdict.entry.value.last_update_timestamp <= transaction.first_timestamp


def _hanging(context: Context, transaction: OpenTransaction, verdict: Verdict, confidence: Confidence) -> Finding:
    idle = context.now_ms - transaction.last_timestamp
    reason = verdict.reason if confidence is Confidence.CERTAIN else f"idle for {_duration(idle)}, {verdict.reason}"
    explanations = [
        Explanation("a write arrived after its transaction had ended and opened a new one that no coordinator knows"),
        Explanation("the end marker was lost: an unclean leader election, or records cut out of the log"),
        Explanation("the coordinator lost the transaction (KAFKA-9144, KIP-664)"),
    ]
    if transaction.began_after_marker:
        explanations[0] = Explanation(
            explanations[0].cause,
            speaks_for=(
                f"the marker at offset {transaction.marker_offset} ended this producer's transaction in the same epoch",
            ),
        )
    return _finding(
        context,
        "KA301",
        transaction,
        f"the transaction of producer {transaction.producer_id} from offset {transaction.first_offset} on will never end: {reason}",
        "a transaction is ended by a marker of its coordinator; until then read_committed consumers stop in front of it",
        verdict,
        severity=Severity.ERROR,
        confidence=confidence,
        explanations=explanations,
        following=_abort_commands(context, transaction),
    )


def _open(context: Context, transaction: OpenTransaction, verdict: Verdict) -> Finding:
    idle = max(context.now_ms - transaction.last_timestamp, 0)
    severity = Severity.WARNING
    state = "open at the end of the log"
    if verdict.standing is Standing.DECIDED:
        state = "decided by its coordinator, but its marker is not in this log yet"
    elif verdict.standing is Standing.ONGOING and verdict.entry is not None:
        value = verdict.entry.value
        # a text of kafka-dump-log may not tell when it began: no later than its last change
        begun = value.start_timestamp if value.start_timestamp >= 0 else value.last_update_timestamp
        timed_out = context.now_ms - begun > value.timeout_ms
        severity = Severity.WARNING if timed_out else Severity.NOTE
        state = "ongoing" + (
            f" beyond its timeout of {_duration(value.timeout_ms)}" if timed_out else " within its timeout"
        )
    return _finding(
        context,
        "KA302",
        transaction,
        f"the transaction of producer {transaction.producer_id} from offset {transaction.first_offset} on is {state} "
        f"({transaction.records} records, idle for {_duration(idle)})",
        "a transaction in progress is healthy; it holds back read_committed consumers from its first offset on",
        verdict,
        severity=severity,
        confidence=Confidence.CERTAIN,
        explanations=(
            Explanation("the producer is still at work", innocent=True),
            Explanation("the producer died; its coordinator aborts the transaction when its timeout is over"),
        ),
        following=(
            f"kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --topic {context.topic} --partition {context.partition}",
            context.timeline_command(transaction.producer_id),
        ),
    )


def _late_write(context: Context, transaction: OpenTransaction, verdict: Verdict, *, certain: bool) -> Finding:
    return _finding(
        context,
        "KA304",
        transaction,
        f"the batch at offset {transaction.first_offset} of producer {transaction.producer_id} came after its transaction had "
        f"ended at offset {transaction.marker_offset}",
        "a write delayed past its transaction's end opens a new one on brokers without verification (KIP-890: 3.6, and "
        "transaction version 2)",
        verdict,
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.CERTAIN if certain else Confidence.POSSIBLE,
        explanations=(
            Explanation(
                "a request of the producer was held up in the network and arrived after the end marker",
                speaks_for=("its timestamp is older than the marker's",)
                if transaction.first_timestamp <= transaction.marker_timestamp
                else (),
            ),
            Explanation("a producer went on without AddPartitionsToTxn"),
        ),
        following=_abort_commands(context, transaction),
    )


def _outside(context: Context, fact: Observation) -> Finding:
    state = fact.remembered
    assert state is not None
    return judged_finding(
        context,
        fact,
        f"the batch at offset {fact.offset} of producer {fact.producer_id} is not transactional, while its transaction from offset "
        f"{state.txn_first_offset} on is open",
        "a producer with an open transaction writes inside it: INVALID_TXN_STATE for every origin, so that loading this log "
        "or replicating it fails (ProducerAppendInfo.appendDataBatch)",
        code="KA303",
        explanations=(
            Explanation("the end marker between them is missing from this log"),
            Explanation("data was put into the log past the broker's checks"),
        ),
    )


def _abort_commands(context: Context, transaction: OpenTransaction) -> tuple[str, ...]:
    abort = f"kafka-transactions.sh --bootstrap-server HOST:9092 abort --topic {context.topic} --partition {context.partition}"
    old = (
        f"{abort} --producer-id {transaction.producer_id} --producer-epoch {transaction.producer_epoch} "
        f"--coordinator-epoch {max(transaction.coordinator_epoch, 0)}"
    )
    return (
        f"{abort} --start-offset {transaction.first_offset}",
        old,
        context.timeline_command(transaction.producer_id),
    )


def _finding(
    context: Context,
    code: str,
    transaction: OpenTransaction,
    message: str,
    rule: str,
    verdict: Verdict,
    *,
    severity: Severity,
    confidence: Confidence,
    explanations: Sequence[Explanation],
    following: Sequence[str],
) -> Finding:
    end = context.log_end_offset
    return context.finding(
        code,
        message,
        severity=severity,
        confidence=confidence,
        segment=transaction.segment,
        position=transaction.position,
        offset=transaction.first_offset,
        last_offset=None,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        evidence={
            "rule": rule,
            "first_timestamp": transaction.first_timestamp,
            "last_timestamp": transaction.last_timestamp,
            "now_timestamp": context.now_ms,
            "records": transaction.records,
            "offsets_held_back": None if end is None else end - transaction.first_offset,
            "coordinator": verdict.standing.value,
            "coordinator_says": verdict.reason,
            "transactional_id": context.coordinator.transactional_id(transaction.producer_id),
            "coordinator_epoch": transaction.coordinator_epoch if transaction.coordinator_epoch >= 0 else None,
            "previous_marker_offset": transaction.marker_offset if transaction.marker_offset >= 0 else None,
        },
        explanations=explanations,
        following=following,
        absent={"last_offset": "the transaction has no end"},
    )


def _duration(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
