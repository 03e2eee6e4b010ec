"""Transactions without an end marker: which of them hang, and findings about each."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Unpack

from msgspec.structs import replace

from kaudit.checks.check import Check, Evidence, FindingFields, Simulated, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import TRANSACTION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT, VERIFIED
from kaudit.checks.texts import counted, duration
from kaudit.checks.transactions.endings import Ending, commands, ending_of, remarks, states_begun_later
from kaudit.checks.transactions.unfinished import (
    MARKERS_MS,
    Unfinished,
    held_back_from,
    is_overdue,
    transaction_text,
    unfinished_transactions,
)
from kaudit.model.audit_clock import ClockSource
from kaudit.model.coordinator import TransactionStanding
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import OwnerEvidence, SiblingsEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.model.transactions import OpenTransaction


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
    owner: OwnerEvidence | None = None
    siblings: SiblingsEvidence | None = None
    commit_acknowledged: str
    in_checkpoint: str | None = None
    aborted_at_timestamp: int | None = None
    remarks: Mapping[str, str]


def _transaction_finding(
    check: Check, context: Context, unfinished: Unfinished, message: str, rule: str, **fields: Unpack[FindingFields]
) -> Finding:
    """Build a finding at a transaction's first batch, with what its coordinator says of it.

    Where the log holds no batch of it, its place is the entry of the producer snapshot that shows it.
    """
    transaction = unfinished.transaction
    segment: int | None = transaction.segment
    ending = ending_of(context, unfinished)
    placed: FindingFields = {
        "position": transaction.position,
        "offset": transaction.first_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "evidence": _evidence(context, unfinished, ending, rule),
        "impact": replace(
            held_back_from(context, transaction.first_offset, unfinished.oldest), cautions=ending.cautions(transaction)
        ),
        "absent": {"last_offset": "the transaction has no end"},
        **fields,
    }
    if not transaction.in_log:
        placed["file"] = context.side_file(transaction.snapshot)
        segment = context.segment_before(transaction.snapshot_offset)
    following = (*commands(context, unfinished, ending), _history_command(context, unfinished))
    return check.finding(context, message, segment=segment, following=following, **placed)


def _evidence(context: Context, unfinished: Unfinished, ending: Ending, rule: str) -> _Evidence:
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
        transactional_id=ending.transactional_id,
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
        owner=ending.owner,
        siblings=ending.siblings,
        commit_acknowledged=ending.commit.acknowledged,
        in_checkpoint=None if ending.checkpoint is None else ending.checkpoint.holds,
        aborted_at_timestamp=ending.aborted_at,
        remarks=remarks(context, ending, unfinished),
    )


def _broker(unfinished: Unfinished) -> str | None:
    oldest, transaction = unfinished.oldest, unfinished.transaction
    if oldest is not transaction:
        return (
            f"the last stable offset already stays at {oldest.stable_offset}, where a transaction of producer "
            f"{oldest.producer_id} is open too"
        )
    if not transaction.snapshot or transaction.begins_remotely:
        return None
    return (
        "remembers the transaction though its first batches are deleted: the last stable offset stays at the log start"
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None


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
    if not (transaction.in_log or transaction.begins_remotely) and context.versions.any(
        lambda profile: profile.forgets_on_log_start_advance
    ):
        yield Explanation("brokers before 2.4 forgot the transaction when its last batch was deleted", innocent=True)


_OPEN_RULE = "a transaction in progress is healthy; it holds back read_committed consumers from its first offset on"
_OPEN_EXPLANATIONS = (
    Explanation("the producer is still at work", innocent=True),
    Explanation("the producer died; its coordinator aborts the transaction when its timeout is over"),
)
_JUST_DECIDED_EXPLANATIONS = (
    Explanation("its marker was on the way when the log was copied, or when the brokers stopped", innocent=True),
)


@_open_check(
    "KA302",
    severity=Severity.WARNING,
    severity_note="note when the coordinator says Ongoing within its timeout, or decided a few seconds before",
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
        severity, state, explanations = _state(context, unfinished)
        yield _transaction_finding(
            open_transaction,
            context,
            unfinished,
            f"{transaction_text(transaction)} is {state} ({_details(unfinished)})",
            _OPEN_RULE,
            severity=severity,
            explanations=explanations,
        )


def _details(unfinished: Unfinished) -> str:
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    whose = f"transactional id {entry.transactional_id!r}, " if entry is not None else ""
    none_left = f"no record of it is {'on this disk' if transaction.begins_remotely else 'left'}"
    left = counted(transaction.records, "record") if transaction.in_log else none_left
    idle = unfinished.idle
    by = " by timestamps of clients alone" if idle.seems_too_long else ""
    return f"{whose}{left}, idle for {duration(max(idle.apparent_ms, 0))}{by}"


def _state(context: Context, unfinished: Unfinished) -> tuple[Severity, str, Sequence[Explanation]]:
    verdict = unfinished.verdict
    if verdict.entry is None:
        return Severity.WARNING, "open at the end of the log", _OPEN_EXPLANATIONS
    value = verdict.entry.value
    if verdict.standing is TransactionStanding.DECIDED:
        state = "decided by its coordinator, but its marker is not in this log yet"
        if context.clock.has_passed(MARKERS_MS, value.last_update_timestamp):
            return Severity.WARNING, state, _OPEN_EXPLANATIONS
        return Severity.NOTE, state, _JUST_DECIDED_EXPLANATIONS
    if is_overdue(context, unfinished):
        return Severity.WARNING, f"ongoing beyond its timeout of {duration(value.timeout_ms)}", _OPEN_EXPLANATIONS
    return Severity.NOTE, "ongoing within its timeout", _OPEN_EXPLANATIONS


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
        if not _ended_before(context, unfinished):
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
                    "a request of the producer was delayed in the network and arrived after the end marker",
                    speaks_for=("its timestamp is older than the marker's",) if older else (),
                ),
                Explanation("a producer continued without AddPartitionsToTxn"),
            ),
        )


def _ended_before(context: Context, unfinished: Unfinished) -> bool:
    """Whether the coordinator's newest state is older than this write; if it is newer, the marker of that state is missing.

    A coordinator whose log was made anew may have forgotten the transaction.
    """
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    if entry is None:
        return not states_begun_later(context, transaction)
    if transaction.first_timestamp <= transaction.marker_timestamp:
        return True
    return entry.value.last_update_timestamp <= transaction.first_timestamp
