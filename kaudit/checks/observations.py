"""Findings about one observation, and batches, markers and producer states as their evidence."""

from collections.abc import Sequence
from typing import Unpack

from msgspec.structs import replace

from kaudit.checks.check import Check, FindingFields
from kaudit.checks.context import Context
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import BatchEvidence, MarkerBatch, ProducerBatch, StateEvidence, WindowBatch
from kaudit.model.finding import Finding
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation
from kaudit.model.producer_state import NO_SEGMENT, OUTSIDE_REPORTED, ProducerAuditState


class ObservationEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of an observation: the rule, the batches around the offending one, the producer's state before it.

    A log may deserve a hundred thousand findings: batches and state are made of the observation when they are asked for.
    """

    rule: str
    observation: Observation

    @property
    def remembered(self) -> StateEvidence | None:
        """The state of the producer before the offending batch."""
        state = self.observation.remembered
        return None if state is None else _state_evidence(state)

    @property
    def previous(self) -> BatchEvidence | None:
        """The producer's batch before."""
        state = self.observation.remembered
        if state is None or state.last is None or state.last.segment == NO_SEGMENT:
            return None
        # the epoch of an older batch is not kept: it is the state's unless a marker raised that since
        epoch = state.epoch if state.last_sequence >= 0 else None
        # nor is its flag: it is the observed batch's, which only the first batch outside of an open transaction changes
        first_outside = state.in_transaction and not state.flags & OUTSIDE_REPORTED
        return self._batch(state.last, epoch, is_transactional=self.observation.is_transactional or first_outside)

    @property
    def offending(self) -> BatchEvidence | None:
        """The batch or marker in question."""
        batch, marker = self.observation.batch, self.observation.marker
        if batch is not None:
            epoch, is_transactional = self.observation.producer_epoch, self.observation.is_transactional
            return self._batch(batch, epoch, is_transactional=is_transactional)
        return None if marker is None else _marker_evidence(marker, placeless=self.placeless)

    @property
    def next(self) -> BatchEvidence | None:
        """The producer's batch after the offending one."""
        batch = self.observation.following
        return None if batch is None else self._batch(batch, self.observation.following_epoch)

    def _batch(self, batch: BoundaryBatch, epoch: int | None, *, is_transactional: bool | None = None) -> BatchEvidence:
        shown = batch_evidence(
            batch,
            self.observation.producer_id,
            epoch,
            is_transactional=is_transactional,
            crc=None if self.without_crcs else batch.crc,
        )
        return replace(shown, position=None) if self.placeless else shown

    def own_fields(self) -> dict[str, object]:
        """Return the JSON form of what the check saw."""
        own = super().own_fields()
        del own["rule"], own["observation"]
        return {"rule": self.rule, **self.parts(), **own}

    def parts(self) -> dict[str, object]:
        """Return the JSON form of what is made of the observation."""
        made = {name: getattr(self, name) for name in ("remembered", "previous", "offending", "next")}
        return {name: part.to_dict() for name, part in made.items() if part is not None}


class ClassifiedEvidence(ObservationEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of an observation whose check reports it by its kind."""

    @property
    def kind(self) -> str:
        """The kind of the observation."""
        return self.observation.kind.label

    def parts(self) -> dict[str, object]:
        """Return the JSON form of what is made of the observation."""
        return super().parts() | {"class": self.kind}


class LackingEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of sequences that are missing before a batch, and of offsets that are missing there."""

    expected_sequence: int | None = None
    missing_sequences: int
    missing_offsets: int


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
        following=(*following, context.timeline_command(observation.producer_id)),
        **placed,
    )


def batch_evidence(
    batch: BoundaryBatch,
    producer_id: int,
    epoch: int | None,
    *,
    is_transactional: bool | None = None,
    crc: int | None = None,
) -> ProducerBatch:
    """A batch of a producer, as reports show batches; the epoch is None where it is not known."""
    return ProducerBatch(
        offset=batch.base_offset,
        last_offset=batch.last_offset,
        timestamp=batch.max_timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=batch.first_sequence,
        last_sequence=batch.last_sequence,
        is_transactional=is_transactional,
        crc=crc,
        position=batch.position,
        leader_epoch=batch.leader_epoch,
    )


def _marker_evidence(marker: EndTxnMarker, *, placeless: bool) -> MarkerBatch:
    return MarkerBatch(
        offset=marker.offset,
        timestamp=marker.timestamp,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        type="COMMIT" if marker.type == 1 else "ABORT",
        position=None if placeless or marker.position < 0 else marker.position,
    )


def _state_evidence(state: ProducerAuditState) -> StateEvidence:
    return StateEvidence(
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence if state.last_sequence >= 0 else None,
        window=[WindowBatch(known.base_offset, known.first_sequence, known.last_sequence) for known in state.window],
        coordinator_epoch=state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        current_txn_start_offset=state.txn_first_offset if state.txn_first_offset >= 0 else None,
    )
