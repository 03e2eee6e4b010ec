"""Transactions without an end marker: which of them hang, and findings about each."""

import functools
from collections.abc import Iterator, Sequence
from typing import Unpack

from msgspec import Struct

from kaudit.broker.releases.version import Version
from kaudit.checks.check import Check, Evidence, FindingFields, Simulated, Withdrawal, check
from kaudit.checks.command_line import quote_text
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import TRANSACTION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT, VERIFIED
from kaudit.checks.texts import counted
from kaudit.model.audit_clock import ClockSource, Idleness
from kaudit.model.coordinator import CoordinatorAnswer, TransactionStanding
from kaudit.model.evidence import FindingEvidence
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.transactions import OpenTransaction

_DESCRIBE_PRODUCERS = Version.parse("3.0.0")


class Unfinished(Struct, frozen=True):
    """An open transaction, what its coordinator says about it, and how sure it is that it hangs: None if it does not.

    `oldest` is the partition's oldest open transaction: the last stable offset is its first.
    """

    transaction: OpenTransaction
    oldest: OpenTransaction
    verdict: CoordinatorAnswer
    hangs: Confidence | None
    idle: Idleness


def unfinished_transactions(context: Context, evidence: Evidence) -> Iterator[Unfinished]:
    """Yield the transactions that are open at the end of the log.

    One hangs for certain where the coordinator will not end it, and is likely to where nobody knows its coordinator and
    it is idle for longer than any transaction may take, by times that brokers wrote.
    """
    oldest = oldest_transaction(evidence)
    for transaction in evidence.of(OpenTransaction):
        assert oldest is not None
        verdict = context.coordinator.standing(
            transaction.producer_id, transaction.producer_epoch, context.topic, context.partition
        )
        is_decided = verdict.entry is not None and verdict.standing is TransactionStanding.DECIDED
        decided_ms = verdict.entry.value.last_update_timestamp if verdict.entry is not None and is_decided else -1
        idle = context.clock.idleness(transaction, decided_ms)
        hangs = None
        if verdict.standing is TransactionStanding.NOT_ONGOING:
            hangs = Confidence.CERTAIN
        elif verdict.standing is TransactionStanding.UNKNOWN and idle.is_too_long:
            hangs = Confidence.LIKELY
        yield Unfinished(transaction, oldest, verdict, hangs, idle)


def transaction_text(transaction: OpenTransaction) -> str:
    """Name a transaction by its producer and its beginning."""
    deleted = ", in records that are deleted," if transaction.snapshot else ""
    return f"the transaction of producer {transaction.producer_id} that starts at offset {transaction.first_offset}{deleted}"


def oldest_transaction(evidence: Evidence) -> OpenTransaction | None:
    """Return the open transaction that holds the last stable offset, None if none is open."""
    return min(evidence.of(OpenTransaction), key=lambda each: (each.stable_offset, each.first_offset), default=None)


def held_back_from(context: Context, first_offset: int, oldest: OpenTransaction | None) -> Impact:
    """Return what read_committed consumers do not get because of the open transaction that begins at an offset.

    The oldest open transaction holds back everything after its first offset; a later one holds back nothing more.
    """
    if oldest is None or oldest.first_offset != first_offset:
        return NO_IMPACT
    end = context.log_end_offset
    return Impact(
        last_stable_offset=oldest.stable_offset,
        offsets_invisible=None if end is None else end - oldest.stable_offset,
        invisible_since_timestamp=oldest.first_timestamp if oldest.first_timestamp >= 0 else None,
    )


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    broker: str | None = None
    first_timestamp: int | None
    last_timestamp: int
    now_timestamp: int
    records: int
    offsets_held_back: int | None
    coordinator: str
    coordinator_says: str
    coordinator_state: str | None
    transactional_id: str | None
    coordinator_epoch: int | None
    previous_marker_offset: int | None
    previous_marker_timestamp: int | None
    snapshot: str | None = None
    idle_ms: int
    clock: ClockSource | None = None
    appended_by_timestamp: int | None = None


def _transaction_finding(
    check: Check, context: Context, unfinished: Unfinished, message: str, rule: str, **fields: Unpack[FindingFields]
) -> Finding:
    """Build a finding at a transaction's first batch, with what its coordinator says of it.

    Where the log holds no batch of it, its place is the entry of the producer snapshot that shows it.
    """
    transaction = unfinished.transaction
    segment: int | None = transaction.segment
    placed: FindingFields = {
        "position": transaction.position,
        "offset": transaction.first_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "evidence": _evidence(context, unfinished, rule),
        "impact": held_back_from(context, transaction.first_offset, unfinished.oldest),
        "absent": {"last_offset": "the transaction has no end"},
        **fields,
    }
    if not transaction.in_log:
        placed["file"] = context.side_file(transaction.snapshot)
        segment = context.segment_before(transaction.snapshot_offset)
    following = (*_coordinator_commands(context, unfinished), _history_command(context, unfinished))
    return check.finding(context, message, segment=segment, following=following, **placed)


def _evidence(context: Context, unfinished: Unfinished, rule: str) -> _Evidence:
    transaction, verdict = unfinished.transaction, unfinished.verdict
    broker, entry, end = _broker(unfinished), verdict.entry, context.log_end_offset
    return _Evidence(
        rule=rule,
        broker=broker,
        first_timestamp=_known(transaction.first_timestamp),
        last_timestamp=transaction.last_timestamp,
        now_timestamp=context.clock.now_ms,
        records=transaction.records,
        offsets_held_back=None if end is None else end - transaction.stable_offset,
        coordinator=verdict.standing.value,
        coordinator_says=verdict.reason,
        coordinator_state=None if entry is None else entry.value.status.label,
        transactional_id=context.coordinator.transactional_id(transaction.producer_id),
        coordinator_epoch=_known(transaction.coordinator_epoch),
        previous_marker_offset=_known(transaction.marker_offset),
        previous_marker_timestamp=transaction.marker_timestamp,
        snapshot=transaction.snapshot or None,
        idle_ms=unfinished.idle.proven_ms,
        clock=None if verdict.standing is TransactionStanding.NOT_ONGOING else context.clock.source,
        # a copied file is as new as the copy: that shows nothing, and changes from copy to copy
        appended_by_timestamp=_known(transaction.appended_by)
        if transaction.appended_by <= context.clock.now_ms
        else None,
    )


def _broker(unfinished: Unfinished) -> str | None:
    oldest, transaction = unfinished.oldest, unfinished.transaction
    if oldest is not transaction:
        return (
            f"the last stable offset already stays at {oldest.stable_offset}, where a transaction of producer "
            f"{oldest.producer_id} is open too"
        )
    if not transaction.snapshot:
        return None
    return (
        "remembers the transaction though its first batches are deleted: the last stable offset stays at the log start"
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _coordinator_commands(context: Context, unfinished: Unfinished) -> Sequence[str]:
    """Return the commands that ask the coordinator about a transaction that may still end, or abort one that hangs."""
    return (
        _at_the_coordinator(context, unfinished) if unfinished.hangs is None else _abort_commands(context, unfinished)
    )


def _abort_commands(context: Context, unfinished: Unfinished) -> Sequence[str]:
    """Return the command that aborts the transaction, in each form a broker may need.

    From 3.0 on a broker describes its producers (KIP-664), so that the first offset is enough.
    """
    transaction = unfinished.transaction
    abort = f"kafka-transactions.sh {context.bootstrap_arguments} abort --topic {context.topic} --partition {context.partition}"
    by_producer = (
        f"{abort} --producer-id {transaction.producer_id} --producer-epoch {transaction.producer_epoch} "
        f"--coordinator-epoch {max(transaction.coordinator_epoch, 0)}"
    )
    by_offset = f"{abort} --start-offset {transaction.first_offset}"
    return (
        *((by_offset,) if context.versions.at_most >= _DESCRIBE_PRODUCERS else ()),
        *((by_producer,) if context.versions.at_least < _DESCRIBE_PRODUCERS else ()),
    )


def _history_command(context: Context, unfinished: Unfinished) -> str:
    """Return the command that shows the transaction's producer, or the snapshot where the log has no batch of it.

    The command has the audit's time where that has a part in it. It does not where only clients' timestamps show the time:
    a time that is given is a proof.
    """
    if not unfinished.transaction.in_log:
        return context.inspect_file(unfinished.transaction.snapshot)
    by_coordinator = unfinished.verdict.standing is TransactionStanding.NOT_ONGOING
    by_clock = context.clock.source.is_proof and not by_coordinator and not unfinished.idle.seems_too_long
    return context.timeline_command(unfinished.transaction.producer_id, by_clock=by_clock)


def duration(milliseconds: int) -> str:
    """Name a duration in the largest unit of which there are two or more: `3 h`."""
    seconds = milliseconds / 1000
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


_HANGING_RULE = (
    "a transaction is ended by a marker of its coordinator; until then read_committed consumers stop in front of it"
)


_open_check = functools.partial(
    check,
    needs=(OpenTransaction,),
    incident=(TRANSACTION,),
    transactional=True,
)


@_open_check(
    "KA301",
    severity=Severity.ERROR,
    summary="a transaction is open in the log and no coordinator will end it",
    withdrawn_by=Withdrawal.NEXT_READING,
    caused_by=(TIMED_OUT, COORDINATED, VERIFIED),
    simulated=Simulated("hanging-transaction"),
)
def hanging_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report transactions that no coordinator knows as certain, and those idle for longer than any timeout as likely."""
    for unfinished in unfinished_transactions(context, evidence):
        if unfinished.hangs is None:
            continue
        transaction, reason = unfinished.transaction, unfinished.verdict.reason
        if unfinished.hangs is not Confidence.CERTAIN:
            by = " by times that brokers wrote" if context.clock.source is ClockSource.BROKERS else ""
            reason = f"idle for {duration(unfinished.idle.proven_ms)}{by}, {reason}"
        ended = f"the marker at offset {transaction.marker_offset} ended this producer's transaction in the same epoch"
        yield _transaction_finding(
            hanging_transaction,
            context,
            unfinished,
            f"{transaction_text(transaction)} will never end: {reason}",
            _HANGING_RULE,
            confidence=unfinished.hangs,
            explanations=(
                Explanation(
                    "a write arrived after its transaction had ended and opened a new one that no coordinator knows",
                    speaks_for=(ended,) if transaction.began_after_marker else (),
                ),
                Explanation("the end marker was lost: an unclean leader election, or records cut out of the log"),
                Explanation("the coordinator lost the transaction (KAFKA-9144, KIP-664)"),
                *_forgotten(context, transaction),
            ),
        )


def _forgotten(context: Context, transaction: OpenTransaction) -> Iterator[Explanation]:
    if not transaction.in_log and context.versions.any(lambda profile: profile.forgets_on_log_start_advance):
        yield Explanation("brokers before 2.4 forgot the transaction when its last batch was deleted", innocent=True)


_OPEN_RULE = "a transaction in progress is healthy; it holds back read_committed consumers from its first offset on"
_OPEN_EXPLANATIONS = (
    Explanation("the producer is still at work", innocent=True),
    Explanation("the producer died; its coordinator aborts the transaction when its timeout is over"),
)


@_open_check(
    "KA302",
    severity=Severity.WARNING,
    severity_note="note when the coordinator says Ongoing within its timeout",
    summary="a transaction is open at the end of the log",
    withdrawn_by=Withdrawal.END_OF_TRANSACTION,
    caused_by=(TIMED_OUT, COORDINATED, VERIFIED),
    simulated=Simulated(),
)
def open_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the open transactions that are not known to hang."""
    for unfinished in unfinished_transactions(context, evidence):
        if unfinished.hangs is not None:
            continue
        transaction = unfinished.transaction
        severity, state = _state(context, unfinished)
        yield _transaction_finding(
            open_transaction,
            context,
            unfinished,
            f"{transaction_text(transaction)} is {state} ({_details(unfinished)})",
            _OPEN_RULE,
            severity=severity,
            explanations=_OPEN_EXPLANATIONS,
        )


def _details(unfinished: Unfinished) -> str:
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    whose = f"transactional id {entry.transactional_id!r}, " if entry is not None else ""
    left = counted(transaction.records, "record") if transaction.in_log else "no record of it is left"
    idle = unfinished.idle
    by = " by timestamps of clients alone" if idle.seems_too_long else ""
    return f"{whose}{left}, idle for {duration(max(idle.apparent_ms, 0))}{by}"


def _state(context: Context, unfinished: Unfinished) -> tuple[Severity, str]:
    verdict = unfinished.verdict
    if verdict.entry is None:
        return Severity.WARNING, "open at the end of the log"
    if verdict.standing is TransactionStanding.DECIDED:
        return Severity.WARNING, "decided by its coordinator, but its marker is not in this log yet"
    timeout = duration(verdict.entry.value.timeout_ms)
    if _is_overdue(context, unfinished):
        return Severity.WARNING, f"ongoing beyond its timeout of {timeout}"
    return Severity.NOTE, "ongoing within its timeout"


def _is_overdue(context: Context, unfinished: Unfinished) -> bool:
    """Return whether the coordinator should have aborted what it says is ongoing."""
    verdict = unfinished.verdict
    if verdict.entry is None or verdict.standing is TransactionStanding.DECIDED:
        return False
    value = verdict.entry.value
    # a text of kafka-dump-log may not show when it began: no later than its last change
    begun = value.start_timestamp if value.start_timestamp >= 0 else value.last_update_timestamp
    return context.clock.has_passed(value.timeout_ms + 1, begun)


def _at_the_coordinator(context: Context, unfinished: Unfinished) -> Sequence[str]:
    """Return commands that ask the coordinator, and one that makes it abort an overdue transaction (KAFKA-19003)."""
    transactions, entry = f"kafka-transactions.sh {context.bootstrap_arguments}", unfinished.verdict.entry
    if entry is None:
        return (f"{transactions} find-hanging --topic {context.topic} --partition {context.partition}",)
    transactional_id = quote_text(entry.transactional_id)
    describe = f"{transactions} describe --transactional-id {transactional_id}"
    if not _is_overdue(context, unfinished):
        return (describe,)
    return describe, f"{transactions} forceTerminateTransaction --transactionalId {transactional_id}"


_LATE_RULE = (
    "a write delayed past its transaction's end opens a new one on brokers without verification (KIP-890: 3.6, and "
    "transaction version 2)"
)


@_open_check(
    "KA304",
    severity=Severity.ERROR,
    severity_note="warning without the coordinator's log",
    summary="transactional data arrived after its transaction had ended",
    withdrawn_by=Withdrawal.NEXT_READING,
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=Simulated("hanging-transaction"),
)
def late_transactional_write(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report hanging transactions that follow a marker of their own epoch."""
    for unfinished in unfinished_transactions(context, evidence):
        transaction = unfinished.transaction
        if unfinished.hangs is None or not transaction.began_after_marker:
            continue
        certain = unfinished.hangs is Confidence.CERTAIN
        if not _ended_before(unfinished):
            continue
        older = transaction.first_timestamp <= transaction.marker_timestamp
        yield _transaction_finding(
            late_transactional_write,
            context,
            unfinished,
            f"the batch at offset {transaction.first_offset} of producer {transaction.producer_id} came after its transaction "
            f"had ended at offset {transaction.marker_offset}",
            _LATE_RULE,
            severity=Severity.ERROR if certain else Severity.WARNING,
            confidence=Confidence.CERTAIN if certain else Confidence.POSSIBLE,
            explanations=(
                Explanation(
                    "a request of the producer was held up in the network and arrived after the end marker",
                    speaks_for=("its timestamp is older than the marker's",) if older else (),
                ),
                Explanation("a producer continued without AddPartitionsToTxn"),
            ),
        )


def _ended_before(unfinished: Unfinished) -> bool:
    """Whether the coordinator's newest state is older than this write; if it is newer, the marker of that state is missing."""
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    if transaction.first_timestamp <= transaction.marker_timestamp or entry is None:
        return True
    return entry.value.last_update_timestamp <= transaction.first_timestamp
