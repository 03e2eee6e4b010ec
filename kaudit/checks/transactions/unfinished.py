"""Transactions without an end marker: which of them hang, and what they hold back."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.model.audit_clock import Idleness
from kaudit.model.coordinator import CoordinatorAnswer, TransactionStanding, TransactionStatus
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.severity import Confidence
from kaudit.model.transactions import OpenTransaction

MARKERS_MS = 10_000
"""A coordinator sends the markers as soon as it has decided (TransactionMarkerChannelManager): later the partition's leader is away."""
_COMPLETE = frozenset({TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT})


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
        if _has_just_ended(context, transaction, verdict):
            verdict = replace(verdict, standing=TransactionStanding.DECIDED)
        is_decided = verdict.entry is not None and verdict.standing is TransactionStanding.DECIDED
        decided_ms = verdict.entry.value.last_update_timestamp if verdict.entry is not None and is_decided else -1
        idle = context.clock.idleness(transaction, decided_ms)
        hangs = None
        if verdict.standing is TransactionStanding.NOT_ONGOING:
            hangs = Confidence.CERTAIN
        elif verdict.standing is TransactionStanding.UNKNOWN and idle.is_too_long:
            hangs = Confidence.LIKELY
        yield Unfinished(transaction, oldest, verdict, hangs, idle)


def _has_just_ended(context: Context, transaction: OpenTransaction, verdict: CoordinatorAnswer) -> bool:
    """Whether its coordinator ended it while the brokers' logs were copied, this one's first.

    What was written after that is no part of it, and the last marker here is of a transaction before.
    """
    entry = verdict.entry
    if (
        entry is None
        or entry.value.status not in _COMPLETE
        or context.log_dir in (entry.log_dirs or (context.log_dir,))
    ):
        return False
    value = entry.value
    own = value.producer_epoch in (transaction.producer_epoch, transaction.producer_epoch + 1)
    follows = transaction.marker_timestamp < value.start_timestamp <= value.last_update_timestamp
    within = transaction.first_timestamp <= value.last_update_timestamp
    return own and follows and within and not context.clock.has_passed(MARKERS_MS, value.last_update_timestamp)


def transaction_text(transaction: OpenTransaction) -> str:
    """Name a transaction by its producer and its beginning."""
    gone = "in remote storage" if transaction.begins_remotely else "in records that are deleted"
    where = f", {gone}," if transaction.snapshot else ""
    return (
        f"the transaction of producer {transaction.producer_id} that starts at offset {transaction.first_offset}{where}"
    )


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


def is_overdue(context: Context, unfinished: Unfinished) -> bool:
    """Return whether the coordinator should have aborted what it says is ongoing."""
    verdict = unfinished.verdict
    if verdict.entry is None or verdict.standing is TransactionStanding.DECIDED:
        return False
    value = verdict.entry.value
    # a text of kafka-dump-log may not show when it began: no later than its last change
    begun = value.start_timestamp if value.start_timestamp >= 0 else value.last_update_timestamp
    return context.clock.has_passed(value.timeout_ms + 1, begun)
