"""Batches that repeat sequences: exactly a batch within the duplicate window, one from before it, or parts of batches."""

import functools
from collections.abc import Iterator

from kaudit.checks.check import CLIENTS_FOLLOW_PROTOCOL, Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import PRODUCER_STATE
from kaudit.checks.log_causes import FORGOTTEN, HEAD_REMOVED, REFUSED, RETRIED, SNAPSHOT
from kaudit.checks.observations import ClassifiedEvidence, observation_finding
from kaudit.checks.sequences.sequence_observations import (
    BYPASSED_CHECKS,
    TWO_WRITERS,
    batch_text,
    lost_state_explanations,
    repeated_records,
    sequence_observations,
)
from kaudit.model.finding import Explanation, Finding
from kaudit.model.observation import ObservationKind
from kaudit.model.severity import Confidence, Severity

_DUPLICATE_RULE = (
    "a batch with the epoch and exact sequences of one of the last five is a duplicate: a leader answers it with "
    "that batch's offset and appends nothing (ProducerStateEntry.findDuplicateBatch)"
)
_CHANGED_CRC = Explanation(
    "it is a retry that the broker compressed again or gave its own timestamp, or one copy was compacted: the CRCs differ, the "
    "records are the same (kaudit dedup compares them)"
)
_SEQUENCES_REUSED = Explanation(
    "the first batch was written but answered with an error, and the client gave its sequences to other records: nothing is "
    "repeated then"
)


class _DuplicateEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    original_offset: int
    original_crc: int


_repeat_check = functools.partial(
    check,
    severity=Severity.ERROR,
    faulty_column="sequence",
    incident=(PRODUCER_STATE,),
    caused_by=(FORGOTTEN, HEAD_REMOVED, SNAPSHOT, REFUSED, RETRIED),
)


@_repeat_check(
    "KA101",
    severity_note="warning when the CRC differs",
    summary="a batch within the duplicate window is in the log twice",
    observes=(ObservationKind.EXACT_DUPLICATE, ObservationKind.SAME_SEQUENCES),
    simulated=Simulated("forgotten-duplicate"),
)
def duplicate_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report exact duplicates as certain, those of another CRC as likely."""
    for observation in sequence_observations(evidence, *duplicate_batch.observes):
        original = observation.original
        assert original is not None
        exact = observation.kind is ObservationKind.EXACT_DUPLICATE
        lost_state = lost_state_explanations(context, observation)
        yield observation_finding(
            duplicate_batch,
            context,
            observation,
            f"{batch_text(observation)} repeats the batch at offset {original.base_offset}: "
            f"{'same bytes' if exact else 'same sequences, different bytes'}",
            severity=Severity.ERROR if exact else Severity.WARNING,
            confidence=Confidence.CERTAIN if exact else Confidence.LIKELY,
            evidence=_DuplicateEvidence(
                rule=_DUPLICATE_RULE,
                observation=observation,
                original_offset=original.base_offset,
                original_crc=original.crc,
            ),
            impact=repeated_records(evidence, observation, same_bytes=exact),
            explanations=(*lost_state, BYPASSED_CHECKS)
            if exact
            else (_CHANGED_CRC, *lost_state, _SEQUENCES_REUSED, TWO_WRITERS),
        )


_OLD_DUPLICATE_RULE = (
    "only the last five batches of a producer are known as duplicates; what ends before them is answered with "
    "OUT_OF_ORDER_SEQUENCE_NUMBER (ProducerAppendInfo.checkSequence)"
)


class _OldDuplicateEvidence(ClassifiedEvidence, frozen=True, kw_only=True, gc=False):
    window_first_sequence: int | None


@_repeat_check(
    "KA102",
    summary="a batch from before the duplicate window is in the log again",
    observes=(ObservationKind.BEHIND_WINDOW,),
    simulated=Simulated(),
)
def old_duplicate(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches whose last sequence lies before the oldest of the five batches a broker keeps."""
    for observation in sequence_observations(evidence, *old_duplicate.observes):
        state = observation.remembered
        assert state is not None
        start = state.window[0].first_sequence if state.window else None
        yield observation_finding(
            old_duplicate,
            context,
            observation,
            f"{batch_text(observation)} ends before the duplicate window, which starts at sequence {start}",
            evidence=_OldDuplicateEvidence(
                rule=_OLD_DUPLICATE_RULE, observation=observation, window_first_sequence=start
            ),
            impact=repeated_records(evidence, observation),
            explanations=(*lost_state_explanations(context, observation), BYPASSED_CHECKS),
        )


_OVERLAP_RULE = (
    "a batch is either wholly new or exactly a known one: partial repeats are refused in every version "
    "(ProducerAppendInfo.checkSequence)"
)

_REGROUPED = Explanation("a client split or regrouped a batch before it sent it again")


@_repeat_check(
    "KA103",
    summary="a batch repeats part of the sequences before it",
    observes=(ObservationKind.OVERLAP, ObservationKind.INSIDE),
    simulated=CLIENTS_FOLLOW_PROTOCOL,
)
def overlapping_batch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report batches that overlap earlier ones, whether they end beyond them or inside them."""
    for observation in sequence_observations(evidence, *overlapping_batch.observes):
        state = observation.remembered
        assert state is not None
        yield observation_finding(
            overlapping_batch,
            context,
            observation,
            f"{batch_text(observation)} overlaps earlier batches: sequences up to {state.last_sequence} had already been "
            "written",
            evidence=ClassifiedEvidence(rule=_OVERLAP_RULE, observation=observation),
            impact=repeated_records(evidence, observation),
            explanations=(
                _REGROUPED,
                TWO_WRITERS,
                *lost_state_explanations(context, observation),
            ),
        )
