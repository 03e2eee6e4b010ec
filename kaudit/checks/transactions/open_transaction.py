"""A transaction that is open at the end of the log, and may still end."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Simulated, Withdrawal, check
from kaudit.checks.command_line import quote_text
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import TRANSACTION
from kaudit.checks.lazy_evidence import LazyCommands
from kaudit.checks.log_causes import COORDINATED, TIMED_OUT, VERIFIED
from kaudit.checks.repeats.wording import records_text
from kaudit.checks.transactions.open_transactions import (
    Unfinished,
    duration,
    history_command,
    transaction_fields,
    transaction_text,
    unfinished_transactions,
)
from kaudit.model.coordinator import TransactionStanding
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.model.transactions import OpenTransaction

_RULE = "a transaction in progress is healthy; it holds back read_committed consumers from its first offset on"
_EXPLANATIONS = (
    Explanation("the producer is still at work", innocent=True),
    Explanation("the producer died; its coordinator aborts the transaction when its timeout is over"),
)


@check(
    "KA302",
    severity=Severity.WARNING,
    severity_note="note when the coordinator says Ongoing within its timeout",
    summary="a transaction is open at the end of the log",
    needs=(OpenTransaction,),
    withdrawn_by=Withdrawal.END_OF_TRANSACTION,
    incident=(TRANSACTION,),
    caused_by=(TIMED_OUT, COORDINATED, VERIFIED),
    simulated=Simulated(),
    transactional=True,
)
def open_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the open transactions that are not known to hang."""
    for unfinished in unfinished_transactions(context, evidence):
        if unfinished.hangs is not None:
            continue
        transaction = unfinished.transaction
        severity, state = _state(context, unfinished)
        yield open_transaction.finding(
            context,
            f"{transaction_text(transaction)} is {state} ({_details(unfinished)})",
            severity=severity,
            explanations=_EXPLANATIONS,
            following=LazyCommands(_at_the_coordinator(context, unfinished), history_command, context, unfinished),
            **transaction_fields(context, unfinished, _RULE),
        )


def _details(unfinished: Unfinished) -> str:
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    whose = f"transactional id {entry.transactional_id!r}, " if entry is not None else ""
    left = records_text(transaction.records) if transaction.in_log else "no record of it is left"
    return f"{whose}{left}, idle for {duration(max(unfinished.idle_ms, 0))}"


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
    return context.now_ms - begun > value.timeout_ms


def _at_the_coordinator(context: Context, unfinished: Unfinished) -> Sequence[str]:
    """Return the commands that ask the coordinator, and the one that makes it abort what is overdue (KAFKA-19003)."""
    transactions, entry = f"kafka-transactions.sh {context.bootstrap_arguments}", unfinished.verdict.entry
    if entry is None:
        return (f"{transactions} find-hanging --topic {context.topic} --partition {context.partition}",)
    transactional_id = quote_text(entry.transactional_id)
    describe = f"{transactions} describe --transactional-id {transactional_id}"
    if not _is_overdue(context, unfinished):
        return (describe,)
    return describe, f"{transactions} forceTerminateTransaction --transactionalId {transactional_id}"
