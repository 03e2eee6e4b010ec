"""KA306, KA307, KA308: the coordinator's log against itself and against the markers in the partitions."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.checks.context import Context
from kaudit.model.finding import Explanation, Finding
from kaudit.model.transaction_state import TransactionStatus, TransactionValue

_S = TransactionStatus
_BEFORE: dict[TransactionStatus, frozenset[TransactionStatus]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_ABORT, _S.COMPLETE_COMMIT}),
}
_ABORT_OF_NOTHING = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""States from which transaction version 2 may abort: a client may not know whether its transaction began."""


class Transition(Struct, frozen=True):
    """Two states of one transactional id that cannot follow one another; `offset` of the second's record."""

    transactional_id: str
    before_offset: int
    before: TransactionValue
    offset: int
    after: TransactionValue
    reason: str


class Outcome(Struct, frozen=True):
    """A marker of the other kind than its transaction's decision. Types: 1 commit, 0 abort.

    `agreeing` are other partitions of the transaction whose marker is as decided.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offset: int
    position: int
    segment: int
    written: int
    decided: int
    decided_at: int
    agreeing: Sequence[str]


def illegal_transition(
    name: str, before_offset: int, before: TransactionValue, offset: int, after: TransactionValue
) -> Transition | None:
    """Return the transition if no coordinator makes it (TransactionMetadata.validPreviousStates), else None."""
    allowed = _BEFORE.get(after.status)
    reason = None
    if allowed is not None and before.status is not _S.UNKNOWN and before.status not in allowed:
        # transaction version 2 is told by the flexible value it is written with
        aborts_nothing = after.version > 0 and after.status is _S.PREPARE_ABORT and before.status in _ABORT_OF_NOTHING
        if not aborts_nothing:
            reason = f"{status_name(after)} after {status_name(before)}"
    if after.producer_id == before.producer_id and after.producer_epoch < before.producer_epoch:
        reason = f"epoch {after.producer_epoch} after epoch {before.producer_epoch}"
    return None if reason is None else Transition(name, before_offset, before, offset, after, reason)


def status_name(value: TransactionValue) -> str:
    """The state as Kafka prints it: PrepareCommit."""
    return value.status.name.title().replace("_", "")


def report_transitions(context: Context, transitions: Sequence[Transition]) -> list[Finding]:
    """Report states of one partition of __transaction_state that cannot follow one another."""
    return [
        context.finding(
            "KA307",
            f"transactional id {entry.transactional_id!r} went to {entry.reason}",
            offset=entry.offset,
            last_offset=entry.offset,
            producer_id=entry.after.producer_id,
            producer_epoch=entry.after.producer_epoch,
            evidence={
                "rule": "a transactional id goes from Empty over Ongoing and Prepare to Complete, its epoch never falls "
                "(TransactionMetadata.validPreviousStates)",
                "broker": "believes the newest record when it loads the partition",
                "transactional_id": entry.transactional_id,
                "before_offset": entry.before_offset,
                "before_status": status_name(entry.before),
                "after_status": status_name(entry.after),
                "before_update_timestamp": entry.before.last_update_timestamp,
                "after_update_timestamp": entry.after.last_update_timestamp,
            },
            explanations=(
                Explanation("two coordinators wrote to the partition: an unclean leader election, or a stale leader"),
                Explanation("records between the two were cut out of the log"),
            ),
            following=(f"kaudit inspect --records --offset {entry.before_offset}..{entry.offset} {context.directory}",),
            absent=dict.fromkeys(("file", "segment", "position"), "the record is named by its offset"),
        )
        for entry in transitions
    ]


def report_outcomes(context: Context, outcomes: Sequence[Outcome]) -> list[Finding]:
    """Report markers that are not what the coordinator decided; torn if other partitions have what it decided."""
    return [_outcome(context, entry) for entry in outcomes]


def _outcome(context: Context, entry: Outcome) -> Finding:
    written, decided = _word(entry.written), _word(entry.decided)
    torn = bool(entry.agreeing)
    message = f"the transaction of {entry.transactional_id!r} was to {decided}, its marker at offset {entry.offset} says {written}"
    if torn:
        message += f"; {', '.join(entry.agreeing[:3])} {'have' if len(entry.agreeing) > 1 else 'has'} {decided}"
    return context.finding(
        "KA308" if torn else "KA306",
        message,
        segment=entry.segment,
        position=entry.position,
        offset=entry.offset,
        last_offset=entry.offset,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        evidence={
            "rule": "all partitions of a transaction get the marker its coordinator decided on",
            "broker": "serves each partition by its own markers",
            "transactional_id": entry.transactional_id,
            "decided": decided,
            "written": written,
            "decided_at_offset": entry.decided_at,
            "agreeing": list(entry.agreeing[:20]),
        },
        explanations=(
            Explanation("an administrator aborted the transaction in this partition (kafka-transactions.sh abort)"),
            Explanation("the partition or __transaction_state was restored from another point in time"),
        ),
        following=(context.timeline_command(entry.producer_id),),
    )


def _word(kind: int) -> str:
    return "COMMIT" if kind == 1 else "ABORT"
