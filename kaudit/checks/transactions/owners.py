"""Whose an open transaction is, and which members of its application went on without it."""

import re
from collections.abc import Sequence
from heapq import nlargest

from kaudit.model.coordinator import CoordinatorView, MemberState
from kaudit.model.evidence_parts import OwnerEvidence, SiblingsEvidence
from kaudit.model.transactional_ids import CONNECT_TASK, FAUST, FLINK, NUMBERED, Name, parse_name

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
