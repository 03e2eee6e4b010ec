"""Producers that wrote the records of an older session or epoch again."""

from collections.abc import Iterator, Sequence

from kaudit.checks.check import Evidence, Reading, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import EPOCH_BUMP, LEADER_CHANGE, OF_DISTRESS, SESSION
from kaudit.checks.log_causes import BUMPED, REFUSED, RETRIED
from kaudit.checks.observations import batch_evidence
from kaudit.checks.texts import counted
from kaudit.model.evidence import FindingEvidence
from kaudit.model.evidence_parts import ProducerBatch, RangeEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Impact
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.producer_patterns import RepeatedEpoch, RepeatedSession
from kaudit.model.severity import Confidence, Severity


class _SessionEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    previous: ProducerBatch
    offending: ProducerBatch
    records: int
    same_timestamps: bool
    copied_producer_id: int
    copied_producer_epoch: int
    copied_first_offset: int
    copied_last_offset: int


@check(
    "KA701",
    severity=Severity.WARNING,
    summary="a producer's first records repeat those of another session",
    needs=(RepeatedSession,),
    incident=(SESSION, OF_DISTRESS),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("cross-session"),
    reads=Reading.RECORDS,
)
def repeated_across_sessions(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each session that begins with what another had written."""
    for found in evidence.of(RepeatedSession):
        yield _across_sessions(context, found)


def _across_sessions(context: Context, found: RepeatedSession) -> Finding:
    times = ", timestamps included" if found.same_times else ""
    return repeated_across_sessions.finding(
        context,
        f"producer {found.producer_id} begins with {counted(found.records, 'record')} that producer {found.previous_id} had "
        f"written at offsets {found.copied_first}..{found.copied_last}{times}",
        confidence=Confidence.LIKELY if found.same_times else Confidence.POSSIBLE,
        segment=found.batch.segment,
        position=found.batch.position,
        offset=found.first_offset,
        last_offset=found.last_offset,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        evidence=_SessionEvidence(
            rule="idempotence ends with the producer id and epoch: what a new session sends is new to the broker",
            previous=batch_evidence(found.previous, found.previous_id, found.previous_epoch),
            offending=batch_evidence(found.batch, found.producer_id, found.producer_epoch),
            records=found.records,
            same_timestamps=found.same_times,
            copied_producer_id=found.previous_id,
            copied_producer_epoch=found.previous_epoch,
            copied_first_offset=found.copied_first,
            copied_last_offset=found.copied_last,
        ),
        explanations=(
            Explanation("an application was restarted and sent again what it did not know to be acknowledged"),
            Explanation("the application means to write these records again", innocent=True),
        ),
        impact=Impact(records_duplicated=found.records, records_duplicated_at_most=found.records_at_most),
        following=(
            context.inspect_around(found.first_offset),
            context.count_repeats_command(),
            context.timeline_command(*sorted({found.previous_id, found.producer_id})),
        ),
    )


_SENT_AGAIN = (
    "the client could not know whether its requests in flight had been appended, raised its epoch and sent them again under "
    "new sequences"
)


class _EpochEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    previous: ProducerBatch
    offending: ProducerBatch
    records: int
    distinct: int
    same_timestamps: bool
    copied: RangeEvidence
    again: RangeEvidence


@check(
    "KA704",
    severity=Severity.ERROR,
    summary="the last records of a producer's old epoch are in the log again under its new one",
    severity_note="warning where one record alone is repeated, timestamps differ, or other records lie between",
    needs=(RepeatedEpoch,),
    incident=(LEADER_CHANGE, EPOCH_BUMP, OF_DISTRESS),
    caused_by=(BUMPED, REFUSED, RETRIED),
    simulated=Simulated("six-in-flight"),
)
def repeated_across_epochs(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each epoch bump after which the old epoch's tail stands again."""
    for found in evidence.of(RepeatedEpoch):
        yield _across_epochs(context, found)


def _across_epochs(context: Context, found: RepeatedEpoch) -> Finding:
    proven = found.same_times and found.to_the_end and found.distinct > 1
    times = ", timestamps included" if found.same_times else ", with other timestamps"
    first, batches = found.again[0], len(found.again)
    explanations = [
        Explanation(_SENT_AGAIN, speaks_for=(f"{batches} batches in the same order",) if batches > 1 else ())
    ]
    if not proven:
        meant = "the application means to write equal records on both sides of the bump"
        explanations.append(Explanation(meant, innocent=True))
    return repeated_across_epochs.finding(
        context,
        f"producer {found.producer_id} begins epoch {found.producer_epoch} with {counted(found.records, 'record')} it had already "
        f"written in epoch {found.previous_epoch}, at offsets {found.copied_first}..{found.copied_last}{times}",
        severity=Severity.ERROR if proven else Severity.WARNING,
        confidence=Confidence.CERTAIN if proven else Confidence.LIKELY,
        segment=first.segment,
        position=first.position,
        offset=found.first_offset,
        last_offset=found.last_offset,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        evidence=_EpochEvidence(
            rule="a higher epoch at sequence 0 is a new producer to the broker: what it sends is never a duplicate",
            previous=batch_evidence(found.copied[0], found.producer_id, found.previous_epoch),
            offending=batch_evidence(first, found.producer_id, found.producer_epoch),
            records=found.records,
            distinct=found.distinct,
            same_timestamps=found.same_times,
            copied=_range(found.copied, found.copied_first, found.copied_last, found.previous_epoch),
            again=_range(found.again, found.first_offset, found.last_offset, found.producer_epoch),
        ),
        explanations=explanations,
        impact=Impact(records_duplicated=found.records, records_duplicated_at_most=found.records_at_most),
        following=(
            context.inspect_around(found.first_offset),
            context.count_repeats_command(),
            context.timeline_command(found.producer_id),
        ),
    )


def _range(batches: Sequence[BoundaryBatch], first_offset: int, last_offset: int, epoch: int) -> RangeEvidence:
    """Where the records of one side lie."""
    return RangeEvidence(
        first_offset=first_offset,
        last_offset=last_offset,
        first_sequence=batches[0].first_sequence,
        last_sequence=batches[-1].last_sequence,
        producer_epoch=epoch,
        first_leader_epoch=batches[0].leader_epoch,
        last_leader_epoch=batches[-1].leader_epoch,
        batches=len(batches),
    )
