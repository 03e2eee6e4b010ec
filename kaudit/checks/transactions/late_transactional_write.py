"""Transactional data that arrived after its transaction had ended."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import TRANSACTION
from kaudit.checks.log_causes import COORDINATED, FENCED, TIMED_OUT
from kaudit.checks.transactions.open_transactions import (
    Unfinished,
    abort_commands,
    transaction_fields,
    unfinished_transactions,
)
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.transactions import OpenTransaction

_RULE = (
    "a write delayed past its transaction's end opens a new one on brokers without verification (KIP-890: 3.6, and "
    "transaction version 2)"
)


@check(
    "KA304",
    severity=Severity.ERROR,
    severity_note="warning without the coordinator's log",
    summary="transactional data arrived after its transaction had ended",
    needs=(OpenTransaction,),
    withdrawn_by=Withdrawal.NEXT_READING,
    incident=(TRANSACTION,),
    caused_by=(COORDINATED, TIMED_OUT, FENCED),
    simulated=Simulated("hanging-transaction"),
    transactional=True,
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
        yield late_transactional_write.finding(
            context,
            f"the batch at offset {transaction.first_offset} of producer {transaction.producer_id} came after its transaction "
            f"had ended at offset {transaction.marker_offset}",
            severity=Severity.ERROR if certain else Severity.WARNING,
            confidence=Confidence.CERTAIN if certain else Confidence.POSSIBLE,
            explanations=(
                Explanation(
                    "a request of the producer was held up in the network and arrived after the end marker",
                    speaks_for=("its timestamp is older than the marker's",) if older else (),
                ),
                Explanation("a producer continued without AddPartitionsToTxn"),
            ),
            following=abort_commands(context, unfinished),
            **transaction_fields(context, unfinished, _RULE),
        )


def _ended_before(unfinished: Unfinished) -> bool:
    """Whether the coordinator's newest state is from before this write; from after it, its marker is what is missing."""
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    if transaction.first_timestamp <= transaction.marker_timestamp or entry is None:
        return True
    return entry.value.last_update_timestamp <= transaction.first_timestamp
