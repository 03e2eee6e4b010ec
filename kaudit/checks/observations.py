"""Findings about one observation, and batches, markers and producer state as evidence, under the keys that reports know."""

from collections.abc import Callable, Mapping, Sequence
from typing import Unpack

from kaudit.checks.check import Check, FindingFields
from kaudit.checks.context import Context
from kaudit.checks.lazy_evidence import ABSENT, LazyCommands, LazyEvidence
from kaudit.model.finding import Finding
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation
from kaudit.model.producer_state import OUTSIDE_REPORTED, ProducerAuditState


def observation_finding(
    check: Check,
    context: Context,
    observation: Observation,
    message: str,
    *,
    following: Sequence[str] = (),
    **fields: Unpack[FindingFields],
) -> Finding:
    """Build the check's finding at the observation's batch or marker, unless `fields` place it elsewhere.

    `following`: commands to run before the producer's timeline.
    """
    placed: FindingFields = {
        "position": observation.position,
        "offset": observation.offset,
        "last_offset": observation.last_offset,
        "producer_id": observation.producer_id,
        "producer_epoch": observation.producer_epoch,
        **fields,
    }
    return check.finding(
        context,
        message,
        segment=observation.segment,
        following=LazyCommands(following, context.timeline_command, observation.producer_id),
        **placed,
    )


_NOTHING: Mapping[str, object] = {}


def classified_evidence(observation: Observation, rule: str, **more: object) -> Mapping[str, object]:
    """Evidence of an observation whose check reports it by its kind, and more."""
    return LazyEvidence((observation, rule), _CLASSIFIED, more or _NOTHING)


def observation_evidence(
    observation: Observation, rule: str, more: Mapping[str, object] = _NOTHING
) -> Mapping[str, object]:
    """The rule, the batch before, the offending batch or marker, the next batch, the producer's state before it, and more."""
    return LazyEvidence((observation, rule), _PARTS, more)


_About = tuple[Observation, str]
"""An observation, and the rule it breaks."""


def _rule(about: _About) -> object:
    return about[1]


def _remembered(about: _About) -> object:
    state = about[0].remembered
    return ABSENT if state is None else _state_evidence(state)


def _previous(about: _About) -> object:
    observation, _ = about
    state = observation.remembered
    if state is None or state.last is None:
        return ABSENT
    # the epoch of an older batch is not kept: it is the state's unless a marker raised that since
    epoch = state.epoch if state.last_sequence >= 0 else None
    # nor is its flag: it is the observed batch's, which only the first batch outside of an open transaction changes
    first_outside = state.in_transaction and not state.flags & OUTSIDE_REPORTED
    is_transactional = observation.is_transactional or first_outside
    return batch_evidence(
        state.last, observation.producer_id, epoch, is_transactional=is_transactional, crc=state.last.crc
    )


def _offending(about: _About) -> object:
    observation, _ = about
    batch, epoch = observation.batch, observation.producer_epoch
    if batch is None:
        return ABSENT if observation.marker is None else _marker_evidence(observation.marker)
    return batch_evidence(
        batch, observation.producer_id, epoch, is_transactional=observation.is_transactional, crc=batch.crc
    )


def _following(about: _About) -> object:
    observation, _ = about
    batch = observation.following
    if batch is None:
        return ABSENT
    return batch_evidence(batch, observation.producer_id, observation.following_epoch, crc=batch.crc)


_PARTS: Mapping[str, Callable[[_About], object]] = {
    "rule": _rule,
    "remembered": _remembered,
    "previous": _previous,
    "offending": _offending,
    "next": _following,
}
_CLASSIFIED: Mapping[str, Callable[[_About], object]] = {**_PARTS, "class": lambda about: about[0].kind.label}


def batch_evidence(batch: BoundaryBatch, producer_id: int, epoch: int | None, **more: object) -> Mapping[str, object]:
    """A batch of a producer, as reports show batches; the epoch is None where it is not known. `more` stands in the middle."""
    return {
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_sequence": batch.first_sequence,
        "last_sequence": batch.last_sequence,
        **more,
        "position": batch.position,
        "leader_epoch": batch.leader_epoch,
    }


def _marker_evidence(marker: EndTxnMarker) -> dict[str, object]:
    return {
        "offset": marker.offset,
        "timestamp": marker.timestamp,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "type": "COMMIT" if marker.type == 1 else "ABORT",
        "position": marker.position if marker.position >= 0 else None,
    }


def _state_evidence(state: ProducerAuditState) -> dict[str, object]:
    return {
        "producer_epoch": state.epoch,
        "last_sequence": state.last_sequence if state.last_sequence >= 0 else None,
        "window": [
            {"offset": known.base_offset, "base_sequence": known.first_sequence, "last_sequence": known.last_sequence}
            for known in state.window
        ],
        "coordinator_epoch": state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        "current_txn_start_offset": state.txn_first_offset if state.txn_first_offset >= 0 else None,
    }
