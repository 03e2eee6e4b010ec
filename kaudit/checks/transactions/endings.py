"""How an open transaction may end: whether a commit was acknowledged, whether a checkpoint holds it, what aborting it costs.

Whose an open transaction is, and which members of its application went on without it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest

from msgspec import Struct

from kaudit.checks.context import Context
from kaudit.checks.kafka_tools import abort_transaction, describe_transaction, find_hanging, terminate_transaction
from kaudit.checks.texts import counted, listed, time_text
from kaudit.checks.transactions.unfinished import Unfinished, is_overdue
from kaudit.model.coordinator import (
    CommitDecision,
    CoordinatorView,
    MemberState,
    TransactionStanding,
    TransactionStatus,
)
from kaudit.model.evidence_parts import OwnerEvidence, SiblingsEvidence
from kaudit.model.impact import Act, Caution
from kaudit.model.transactional_ids import CONNECT_TASK, FAUST, FLINK, NUMBERED, OLD_FLINK, Name, parse_name
from kaudit.model.transactions import OpenTransaction

_SIBLINGS_NAMED = 3
_IS_NUMBER = re.compile(r"[\d_]+").fullmatch


def owner_of(view: CoordinatorView, transactional_id: str) -> OwnerEvidence | None:
    """Return whose a transactional id is, by its form and by what its application's ids have in __transaction_state."""
    name = parse_name(transactional_id)
    if name is None:
        return None
    program, source = name.format.program, name.format.source
    application, role, naming = name.application, _role(name), None
    if program in (FLINK, NUMBERED):
        group = next((group for group in view.connect_groups if transactional_id.startswith(f"{group}-")), None)
        known = view.applications.get(application)
        if group is not None:
            connector, _, task = transactional_id.removeprefix(f"{group}-").rpartition("-")
            return OwnerEvidence(
                program=CONNECT_TASK,
                application=f"{group}-{connector}",
                role=f"task {task}",
                source="Worker.taskTransactionalId, KIP-618",
            )
        if program == FLINK and known is not None and known.sends_offsets:
            program, role, source = FAUST, "partition", "TransactionManager.transactional_id_format"
        elif program == FLINK:
            naming = _naming([] if known is None else list(known.members.values()))
    return OwnerEvidence(program=program, application=application, role=role, naming=naming, source=source)


def _role(name: Name) -> str:
    return f"{name.format.role} {name.member}" if _IS_NUMBER(name.member) else name.format.role


def _naming(members: Sequence[MemberState]) -> str | None:
    """With more commits than it has ids a member uses them again (TransactionNamingStrategy.POOLING)."""
    if any(state.commits > state.highest + 1 for state in members):
        return "pooled"
    return "incrementing" if any(1 < state.commits <= state.highest for state in members) else None


def member_state(view: CoordinatorView, name: Name) -> MemberState:
    """Return what the ids of the same member have in __transaction_state."""
    known = view.applications.get(name.application)
    return MemberState() if known is None else known.members.get(name.ids, MemberState())


def siblings_of(view: CoordinatorView, transactional_id: str, after_ms: int) -> SiblingsEvidence | None:
    """Return the other members of the application that committed later than a time of the coordinator, None without any."""
    name = parse_name(transactional_id)
    known = None if name is None else view.applications.get(name.application)
    if name is None or known is None:
        return None
    later = [(state.committed_ms, ids) for ids, state in known.members.items() if ids != name.ids]
    later = [entry for entry in later if entry[0] > after_ms]
    if not later:
        return None
    newest = nlargest(_SIBLINGS_NAMED, later)
    return SiblingsEvidence(
        transactional_ids=[ids for _, ids in newest], count=len(later), committed_timestamp=newest[0][0]
    )


_CLOCKS_MS = 1000
"""What clocks of two brokers may differ by."""
NOT_ACKNOWLEDGED, MAY_BE, DECIDED = "no", "possible", "decided"
LIKELY, POSSIBLE = "likely", "possible"


class Commit(Struct, frozen=True):
    """Whether a transaction's commit may have been acknowledged, and why."""

    acknowledged: str
    because: str


class Checkpoint(Struct, frozen=True):
    """Whether a checkpoint of Flink may hold a transaction, and why."""

    holds: str
    because: str


class Ending(Struct, frozen=True):
    """What is known of an open transaction beyond its partition. `cost` says what is lost if it is aborted."""

    transactional_id: str | None
    owner: OwnerEvidence | None
    siblings: SiblingsEvidence | None
    commit: Commit
    checkpoint: Checkpoint | None
    aborted_at: int | None
    cost: str

    @property
    def warning(self) -> str:
        """What to know before the transaction is aborted."""
        if self.commit.acknowledged == MAY_BE:
            reason = ", whose commit may have been acknowledged: copy them first"
        elif self.commit.acknowledged == DECIDED:
            reason = ", whose commit was decided: copy them first"
        elif self.checkpoint is not None:
            reason = ": they are lost for good if a checkpoint of Flink holds them"
        else:
            reason = ""
        return f"destroys {self.cost}{reason}"

    def cautions(self, transaction: OpenTransaction) -> Sequence[Caution]:
        """Return that the transaction must not be aborted, where what it destroys may have been promised to somebody."""
        promised = self.commit.acknowledged != NOT_ACKNOWLEDGED or (
            self.checkpoint is not None and self.checkpoint.holds == LIKELY
        )
        named = f"the transaction of producer {transaction.producer_id} epoch {transaction.producer_epoch}"
        what = self.warning.replace(f" from offset {transaction.first_offset} on", "")
        return (Caution(Act.ABORT, named, f"that {what}"),) if promised else ()


def ending_of(context: Context, unfinished: Unfinished) -> Ending:
    """Return what is known of how an open transaction may end."""
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    name = context.coordinator.transactional_id(transaction.producer_id)
    owner = None if name is None else owner_of(context.coordinator, name)
    updated = transaction.last_timestamp if entry is None else entry.value.last_update_timestamp
    siblings = None if name is None else siblings_of(context.coordinator, name, updated)
    commit = _commit(context, unfinished)
    ongoing = entry is not None and unfinished.verdict.standing is TransactionStanding.ONGOING
    times_out = None
    if entry is not None and ongoing and entry.value.start_timestamp >= 0:
        times_out = entry.value.start_timestamp + entry.value.timeout_ms
    return Ending(
        name,
        owner,
        siblings,
        commit,
        _checkpoint(context, unfinished, owner) if ongoing else None,
        times_out,
        _cost(context, unfinished),
    )


def _cost(context: Context, unfinished: Unfinished) -> str:
    """Return what an abort destroys: by its coordinator in all partitions, by a marker of its own in this one."""
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    records = counted(transaction.records, "record") if transaction.in_log else "its records"
    here = f"{records} from offset {transaction.first_offset} on"
    if entry is None or unfinished.hangs is not None:
        return here
    written = [(part.topic, number) for part in entry.value.partitions or () for number in part.partitions]
    others = len([place for place in written if place != (context.topic, context.partition)])
    return f"{here}, and what it has in {counted(others, 'other partition')}" if others else here


def _commit(context: Context, unfinished: Unfinished) -> Commit:
    """Return whether a commit may have been acknowledged: a coordinator answers as soon as PrepareCommit is written (KIP-98)."""
    standing, entry = unfinished.verdict.standing, unfinished.verdict.entry
    if standing is TransactionStanding.ONGOING:
        return Commit(NOT_ACKNOWLEDGED, "its coordinator has decided nothing: no commit was acknowledged")
    if entry is not None and standing is TransactionStanding.DECIDED:
        at = time_text(entry.value.last_update_timestamp)
        if entry.value.status in (TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT):
            return Commit(NOT_ACKNOWLEDGED, f"its coordinator decided ABORT at {at}")
        return Commit(DECIDED, f"its coordinator decided COMMIT at {at}, and may have acknowledged it")
    decision = _decision(context, unfinished)
    return _commit_of_hanging(context, unfinished) if decision is None else _decided(unfinished.transaction, decision)


def _decided(transaction: OpenTransaction, decision: CommitDecision) -> Commit:
    """Return what a decision says of a transaction that no coordinator ends any more; one just before may be the marker's."""
    at = time_text(decision.decided_ms)
    said = f"__transaction_state has PrepareCommit of this producer id at {at}, offset {decision.offset}"
    latest = max(transaction.marker_timestamp, transaction.last_timestamp) + _CLOCKS_MS
    if not transaction.began_after_marker or decision.decided_ms > latest:
        return Commit(DECIDED, f"{said}: its commit was acknowledged, and only the marker is missing here")
    return Commit(MAY_BE, f"{said}, about when the marker at offset {transaction.marker_offset} was written")


def _commit_of_hanging(context: Context, unfinished: Unfinished) -> Commit:
    """Return whether a commit may have been acknowledged where no decision is known."""
    acknowledged = "a commit may have been acknowledged"
    if unfinished.verdict.standing is TransactionStanding.UNKNOWN:
        return Commit(MAY_BE, f"what its coordinator decided is not among the inputs: {acknowledged}")
    entry = unfinished.verdict.entry
    if entry is None:
        return Commit(MAY_BE, f"{_why_unknown(context, unfinished.transaction)}: {acknowledged}")
    updated = entry.value.last_update_timestamp
    if updated <= unfinished.transaction.first_timestamp:
        return Commit(NOT_ACKNOWLEDGED, "its coordinator has decided nothing since: no commit was acknowledged")
    if entry.value.status is TransactionStatus.COMPLETE_ABORT:
        return Commit(NOT_ACKNOWLEDGED, f"its coordinator finished an abort at {time_text(updated)}")
    return Commit(MAY_BE, f"no record of __transaction_state says how it ended: {acknowledged}")


def _why_unknown(context: Context, transaction: OpenTransaction) -> str:
    """Say why what was decided is not known, though __transaction_state is there."""
    later = states_begun_later(context, transaction)
    if not later:
        return "no record of __transaction_state says how it ended"
    at = time_text(context.coordinator.begun[later[0]])
    return f"__transaction_state-{later[0]} has nothing from before {at}, when the transaction was open already"


def states_begun_later(context: Context, transaction: OpenTransaction) -> list[int]:
    """Return the partitions of __transaction_state whose logs were made anew after the transaction had begun."""
    first = transaction.first_timestamp + _CLOCKS_MS
    begun = context.coordinator.begun.items()
    return [] if transaction.first_timestamp < 0 else sorted(number for number, at in begun if at > first)


def _decision(context: Context, unfinished: Unfinished) -> CommitDecision | None:
    """Return the last decision to commit that may be this transaction's: of its epoch or, with version 2, the next."""
    transaction = unfinished.transaction
    epochs = transaction.producer_epoch, transaction.producer_epoch + 1
    for decision in reversed(context.coordinator.commits.get(transaction.producer_id, ())):
        is_later = decision.decided_ms >= max(transaction.first_timestamp, transaction.marker_timestamp)
        if decision.producer_epoch in epochs and is_later and decision.includes(context.topic, context.partition):
            return decision
    return None


def _checkpoint(context: Context, unfinished: Unfinished, owner: OwnerEvidence | None) -> Checkpoint | None:
    """Return whether Flink may have flushed it for a checkpoint: then its subtask begins the next one (ExactlyOnceKafkaWriter)."""
    entry = unfinished.verdict.entry
    if owner is None or entry is None or owner.program not in (FLINK, OLD_FLINK):
        return None
    name = parse_name(entry.transactional_id)
    newest = -1 if name is None else member_state(context.coordinator, name).started_ms
    if owner.program == FLINK and newest > entry.value.start_timestamp >= 0:
        why = f"{owner.role} began a later transaction at {time_text(newest)}: this one was flushed for a checkpoint, which likely holds it"
        return Checkpoint(LIKELY, why)
    which = f"producer id {entry.value.producer_id}, epoch {entry.value.producer_epoch}"
    newest_of = f"{owner.role} began none later: " if owner.program == FLINK else ""
    why = f"{newest_of}a checkpoint holds it only if it names {which}; if none does, it may be aborted"
    return Checkpoint(POSSIBLE, why)


def remarks(context: Context, ending: Ending, unfinished: Unfinished) -> Mapping[str, str]:
    """Return what to tell people of a transaction's owner, its commit and its abort, beyond what commands warn of."""
    found: dict[str, str] = {}
    if ending.owner is not None:
        found["owner"] = _owner_text(ending)
    if ending.checkpoint is not None:
        found["commit"] = " ".join(_commit_from_checkpoint(ending.checkpoint, ending, unfinished))
    elif unfinished.hangs is not None or unfinished.verdict.standing is TransactionStanding.DECIDED:
        by_hand = unfinished.hangs is not None and ending.commit.acknowledged != NOT_ACKNOWLEDGED
        found["commit"] = ending.commit.because + (_BY_HAND if by_hand else "")
    if ending.aborted_at is not None and not is_overdue(context, unfinished):
        found["abort"] = f"its coordinator does it at {time_text(ending.aborted_at)}; it {ending.warning}"
    return found


_BY_HAND = " (no tool of Kafka's writes the missing COMMIT: copy the records, and write them again)"


def _owner_text(ending: Ending) -> str:
    owner = ending.owner
    assert owner is not None
    naming = f", {owner.naming} ids" if owner.naming else ""
    text = f"{owner.program}, application {owner.application}, {owner.role}{naming} (by the form of the id: {owner.source})"
    siblings = ending.siblings
    if siblings is None or siblings.committed_timestamp is None:
        return text
    others = (siblings.count or 0) - len(siblings.transactional_ids)
    names = listed([*siblings.transactional_ids, *([f"{others} more"] if others else [])])
    return f"{text}; {names} went on, the last commit at {time_text(siblings.committed_timestamp)}"


def _commit_from_checkpoint(checkpoint: Checkpoint, ending: Ending, unfinished: Unfinished) -> Iterator[str]:
    transaction = unfinished.transaction
    state = "KafkaTransactionState" if ending.owner and ending.owner.program == OLD_FLINK else "KafkaCommittable"
    yield checkpoint.because + "."
    yield (
        f"To commit it: transactional id {ending.transactional_id}, producer id {transaction.producer_id}, epoch "
        f"{transaction.producer_epoch}, as in the checkpoint's {state} (resumeTransaction; a tool: FLINK-39218)"
    )


def commands(context: Context, unfinished: Unfinished, ending: Ending) -> Sequence[str]:
    """Return the commands that ask the coordinator about a transaction that may still end, or abort one that will not."""
    transaction, entry = unfinished.transaction, unfinished.verdict.entry
    if unfinished.hangs is None:
        if entry is None:
            return find_hanging(context)
        describe = describe_transaction(context, entry.transactional_id)
        if not is_overdue(context, unfinished):
            return describe
        return (*describe, *terminate_transaction(context, entry.transactional_id, ending.warning))
    abort = abort_transaction(
        context,
        (transaction.producer_id, transaction.producer_epoch),
        transaction.coordinator_epoch,
        transaction.first_offset,
        ending.warning,
    )
    if ending.commit.acknowledged == NOT_ACKNOWLEDGED or not transaction.in_log:
        return abort
    last = "" if context.log_end_offset is None else str(context.log_end_offset - 1)
    own = ("--producer-id", str(transaction.producer_id), "--offset", f"{transaction.first_offset}..{last}")
    return (context.inspect_command("--records", *own), *abort)
