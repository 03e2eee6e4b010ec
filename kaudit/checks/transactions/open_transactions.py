"""What the checks of transactions without an end marker share: which of them hang, and findings about one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from msgspec import Struct

from kaudit.broker.releases.version import Version
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.lazy_evidence import ABSENT, LazyEvidence
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS, CoordinatorAnswer, TransactionStanding
from kaudit.model.finding import Confidence
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.transactions import OpenTransaction

_LATE_MARGIN_MS = 5 * 60_000
"""What brokers add before they call a transaction late (KAFKA-13221)."""
_DESCRIBE_PRODUCERS = Version.parse("3.0.0")


class Unfinished(Struct, frozen=True):
    """An open transaction, what its coordinator says about it, and how sure it is that it hangs: None if it does not.

    `oldest` is the partition's oldest open transaction: the last stable offset is its first. `idle_ms` is the time since
    the newest batch, by the clock of the audit; it may be negative.
    """

    transaction: OpenTransaction
    oldest: OpenTransaction
    verdict: CoordinatorAnswer
    hangs: Confidence | None
    idle_ms: int


def unfinished_transactions(context: Context, evidence: Evidence) -> Iterator[Unfinished]:
    """Yield the transactions that are open at the end of the log.

    One hangs for certain where the coordinator will not end it, and is likely to where nobody knows its coordinator and
    it is idle for longer than any transaction may take.
    """
    oldest = oldest_transaction(evidence)
    for transaction in evidence.of(OpenTransaction):
        assert oldest is not None
        verdict = context.coordinator.standing(
            transaction.producer_id, transaction.producer_epoch, context.topic, context.partition
        )
        idle = context.now_ms - transaction.last_timestamp
        hangs = None
        if verdict.standing is TransactionStanding.NOT_ONGOING:
            hangs = Confidence.CERTAIN
        elif verdict.standing is TransactionStanding.UNKNOWN and idle >= MAX_TRANSACTION_TIMEOUT_MS + _LATE_MARGIN_MS:
            hangs = Confidence.LIKELY
        yield Unfinished(transaction, oldest, verdict, hangs, idle)


def transaction_text(transaction: OpenTransaction) -> str:
    """Name a transaction by its producer and its beginning."""
    deleted = ", in records that are deleted," if transaction.snapshot else ""
    return f"the transaction of producer {transaction.producer_id} that starts at offset {transaction.first_offset}{deleted}"


def oldest_transaction(evidence: Evidence) -> OpenTransaction | None:
    """Return the open transaction that holds the last stable offset, None if none is open."""
    return min(evidence.of(OpenTransaction), key=lambda each: (each.stable_offset, each.first_offset), default=None)


def invisible_behind(context: Context, first_offset: int, oldest: OpenTransaction | None) -> Impact:
    """Return what read_committed consumers do not get because of the open transaction that begins at an offset.

    That is everything from there on if it is the oldest one, else nothing: the oldest one keeps it from them.
    """
    if oldest is None or oldest.first_offset != first_offset:
        return NO_IMPACT
    end = context.log_end_offset
    return Impact(
        last_stable_offset=oldest.stable_offset,
        offsets_invisible=None if end is None else end - oldest.stable_offset,
        invisible_since_timestamp=oldest.first_timestamp if oldest.first_timestamp >= 0 else None,
    )


class TransactionFields(TypedDict):
    """Where a transaction without an end is, and the evidence for what is said about it."""

    file: NotRequired[str]
    segment: int | None
    position: int
    offset: int
    producer_id: int
    producer_epoch: int
    evidence: Mapping[str, object]
    impact: Impact
    absent: Mapping[str, str]


def transaction_fields(context: Context, unfinished: Unfinished, rule: str) -> TransactionFields:
    """Return the fields that findings about a transaction share: its first batch, and how its coordinator sees it.

    Where the log holds no batch of it, its place is the entry of the producer snapshot that shows it.
    """
    transaction = unfinished.transaction
    fields: TransactionFields = {
        "segment": transaction.segment,
        "position": transaction.position,
        "offset": transaction.first_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "evidence": LazyEvidence((context, unfinished, rule), _EVIDENCE, {}),
        "impact": invisible_behind(context, transaction.first_offset, unfinished.oldest),
        "absent": _NO_END,
    }
    if not transaction.in_log:
        fields["file"] = context.side_file(transaction.snapshot)
        fields["segment"] = context.segment_before(transaction.snapshot_offset)
    return fields


_About = tuple[Context, Unfinished, str]
_NO_END: Mapping[str, str] = {"last_offset": "the transaction has no end"}


def _waits(about: _About) -> object:
    oldest, transaction = about[1].oldest, about[1].transaction
    if oldest is not transaction:
        return (
            f"the last stable offset already stays at {oldest.stable_offset}, where a transaction of producer "
            f"{oldest.producer_id} is open too"
        )
    if not transaction.snapshot:
        return ABSENT
    return (
        "remembers the transaction though its first batches are deleted: the last stable offset stays at the log start"
    )


def _held_back(about: _About) -> object:
    end = about[0].log_end_offset
    return None if end is None else end - about[1].transaction.stable_offset


def _coordinator_state(about: _About) -> object:
    entry = about[1].verdict.entry
    return None if entry is None else entry.value.status.label


def _known(number: int) -> int | None:
    return number if number >= 0 else None


_EVIDENCE: Mapping[str, Callable[[_About], object]] = {
    "rule": lambda about: about[2],
    "broker": _waits,
    "first_timestamp": lambda about: _known(about[1].transaction.first_timestamp),
    "last_timestamp": lambda about: about[1].transaction.last_timestamp,
    "now_timestamp": lambda about: about[0].now_ms,
    "records": lambda about: about[1].transaction.records,
    "offsets_held_back": _held_back,
    "coordinator": lambda about: about[1].verdict.standing.value,
    "coordinator_says": lambda about: about[1].verdict.reason,
    "coordinator_state": _coordinator_state,
    "transactional_id": lambda about: about[0].coordinator.transactional_id(about[1].transaction.producer_id),
    "coordinator_epoch": lambda about: _known(about[1].transaction.coordinator_epoch),
    "previous_marker_offset": lambda about: _known(about[1].transaction.marker_offset),
    "previous_marker_timestamp": lambda about: about[1].transaction.marker_timestamp,
    "snapshot": lambda about: about[1].transaction.snapshot or ABSENT,
}


def abort_commands(context: Context, unfinished: Unfinished) -> Sequence[str]:
    """Return the command that aborts the transaction, in each form a broker may need, and the one that shows it.

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
        history_command(context, unfinished),
    )


def history_command(context: Context, unfinished: Unfinished) -> str:
    """Return the command that shows the transaction's producer, at the time that made the transaction late, if any.

    Where the log holds no batch of the transaction, it shows the snapshot.
    """
    if not unfinished.transaction.in_log:
        return context.inspect_file(unfinished.transaction.snapshot)
    by_clock = unfinished.verdict.standing is not TransactionStanding.NOT_ONGOING
    return context.timeline_command(unfinished.transaction.producer_id, by_clock=by_clock)


def duration(milliseconds: int) -> str:
    """Name a duration in the largest unit of which there are two or more: `3 h`."""
    seconds = milliseconds / 1000
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
