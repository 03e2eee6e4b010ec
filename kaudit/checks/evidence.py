"""Batches and memories as evidence: the keys every report knows."""

from collections.abc import Mapping

from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation
from kaudit.model.producer_state import ProducerAuditState


def batch_evidence(batch: BoundaryBatch, producer_id: int, epoch: int, *, is_transactional: bool) -> dict[str, object]:
    """One data batch."""
    return {
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_sequence": batch.first_sequence,
        "last_sequence": batch.last_sequence,
        "is_transactional": is_transactional,
        "crc": batch.crc,
        "position": batch.position,
        "leader_epoch": batch.leader_epoch,
    }


def marker_evidence(marker: EndTxnMarker) -> dict[str, object]:
    """One end marker."""
    return {
        "offset": marker.offset,
        "timestamp": marker.timestamp,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "type": "COMMIT" if marker.type == 1 else "ABORT",
        "position": marker.position,
    }


def remembered_evidence(state: ProducerAuditState) -> dict[str, object]:
    """What was remembered of the producer when the batch came."""
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


def fact_evidence(fact: Observation, rule: str) -> dict[str, object]:
    """The rule, the batch before, the offending batch or marker, the next batch, and the memory it was judged by."""
    evidence: dict[str, object] = {"rule": rule}
    state = fact.remembered
    if state is not None:
        evidence["remembered"] = remembered_evidence(state)
        if state.last is not None:
            # the epoch of an older batch is not kept: it is the remembered one unless a marker raised that since
            epoch = state.epoch if state.last_sequence >= 0 else None
            previous: Mapping[str, object] = batch_evidence(
                state.last, fact.producer_id, epoch if epoch is not None else -1, is_transactional=fact.is_transactional
            )
            evidence["previous"] = {**previous, "producer_epoch": epoch}
    if fact.batch is not None:
        evidence["offending"] = batch_evidence(
            fact.batch, fact.producer_id, fact.producer_epoch, is_transactional=fact.is_transactional
        )
    elif fact.marker is not None:
        evidence["offending"] = marker_evidence(fact.marker)
    if fact.following is not None:
        following = batch_evidence(fact.following, fact.producer_id, fact.following_epoch, is_transactional=False)
        del following["is_transactional"]
        evidence["next"] = following
    return evidence
