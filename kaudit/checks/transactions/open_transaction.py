"""A transaction that is open at the end of the log, and may still end."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.lazy_evidence import LazyCommands
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
)
def open_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the open transactions that are not known to hang."""
    place = f"--topic {context.topic} --partition {context.partition}"
    find_hanging = (f"kafka-transactions.sh {context.bootstrap_arguments} find-hanging {place}",)
    for unfinished in unfinished_transactions(context, evidence):
        if unfinished.hangs is not None:
            continue
        transaction = unfinished.transaction
        severity, state = _state(context, unfinished)
        yield open_transaction.finding(
            context,
            f"{transaction_text(transaction)} is {state} ({_left(transaction)}, idle for {duration(max(unfinished.idle_ms, 0))})",
            severity=severity,
            explanations=_EXPLANATIONS,
            following=LazyCommands(find_hanging, history_command, context, unfinished),
            **transaction_fields(context, unfinished, _RULE),
        )


def _left(transaction: OpenTransaction) -> str:
    return records_text(transaction.records) if transaction.in_log else "no record of it is left"


def _state(context: Context, unfinished: Unfinished) -> tuple[Severity, str]:
    verdict = unfinished.verdict
    if verdict.standing is TransactionStanding.DECIDED:
        return Severity.WARNING, "decided by its coordinator, but its marker is not in this log yet"
    if verdict.entry is None:
        return Severity.WARNING, "open at the end of the log"
    value = verdict.entry.value
    # a text of kafka-dump-log may not show when it began: no later than its last change
    begun = value.start_timestamp if value.start_timestamp >= 0 else value.last_update_timestamp
    if context.now_ms - begun > value.timeout_ms:
        return Severity.WARNING, f"ongoing beyond its timeout of {duration(value.timeout_ms)}"
    return Severity.NOTE, "ongoing within its timeout"
