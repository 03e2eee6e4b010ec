"""A transaction that no coordinator will end."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import TRANSACTION
from kaudit.checks.log_causes import COORDINATED, TIMED_OUT, VERIFIED
from kaudit.checks.transactions.open_transactions import (
    abort_commands,
    duration,
    transaction_fields,
    transaction_text,
    unfinished_transactions,
)
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.transactions import OpenTransaction

_RULE = "a transaction is ended by a marker of its coordinator; until then read_committed consumers stop in front of it"


@check(
    "KA301",
    severity=Severity.ERROR,
    summary="a transaction is open in the log and no coordinator will end it",
    needs=(OpenTransaction,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(TRANSACTION,),
    caused_by=(TIMED_OUT, COORDINATED, VERIFIED),
    simulated=Simulated("hanging-transaction"),
    transactional=True,
)
def hanging_transaction(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report as certain what the coordinator does not know, as likely what is idle for longer than a timeout allows."""
    for unfinished in unfinished_transactions(context, evidence):
        if unfinished.hangs is None:
            continue
        transaction, reason = unfinished.transaction, unfinished.verdict.reason
        if unfinished.hangs is not Confidence.CERTAIN:
            reason = f"idle for {duration(unfinished.idle_ms)}, {reason}"
        ended = f"the marker at offset {transaction.marker_offset} ended this producer's transaction in the same epoch"
        yield hanging_transaction.finding(
            context,
            f"{transaction_text(transaction)} will never end: {reason}",
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
            following=abort_commands(context, unfinished),
            **transaction_fields(context, unfinished, _RULE),
        )


def _forgotten(context: Context, transaction: OpenTransaction) -> Iterator[Explanation]:
    if not transaction.in_log and context.versions.any(lambda profile: profile.forgets_on_log_start_advance):
        yield Explanation("brokers before 2.4 forgot the transaction when its last batch was deleted", innocent=True)
