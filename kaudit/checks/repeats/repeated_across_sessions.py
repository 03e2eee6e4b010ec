"""A producer whose first records are those another session had written."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Reading, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import SESSION
from kaudit.checks.log_causes import BUMPED, RETRIED
from kaudit.checks.repeats.wording import inspect_around, producer_batch_evidence, records_text
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.impact import Impact
from kaudit.model.producer_patterns import RepeatedSession


@check(
    "KA701",
    severity=Severity.WARNING,
    summary="a producer's first records are those another session had written",
    needs=(RepeatedSession,),
    incident=(SESSION,),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("cross-session"),
    reads=Reading.RECORDS,
)
def repeated_across_sessions(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each session that begins with what another had written."""
    for found in evidence.of(RepeatedSession):
        yield _repeated(context, found)


def _repeated(context: Context, found: RepeatedSession) -> Finding:
    times = ", timestamps included" if found.same_times else ""
    return repeated_across_sessions.finding(
        context,
        f"producer {found.producer_id} begins with {records_text(found.records)} that producer {found.previous_id} had "
        f"written at offsets {found.copied_first}..{found.copied_last}{times}",
        confidence=Confidence.LIKELY if found.same_times else Confidence.POSSIBLE,
        segment=found.batch.segment,
        position=found.batch.position,
        offset=found.first_offset,
        last_offset=found.last_offset,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        evidence={
            "rule": "idempotence ends with the producer id and epoch: what a new session sends is new to the broker",
            "previous": producer_batch_evidence(found.previous, found.previous_id, found.previous_epoch),
            "offending": producer_batch_evidence(found.batch, found.producer_id, found.producer_epoch),
            "records": found.records,
            "same_timestamps": found.same_times,
            "copied_producer_id": found.previous_id,
            "copied_producer_epoch": found.previous_epoch,
            "copied_first_offset": found.copied_first,
            "copied_last_offset": found.copied_last,
        },
        explanations=(
            Explanation("an application was restarted and sent again what it did not know to be acknowledged"),
            Explanation("the application means to write these records again", innocent=True),
        ),
        impact=Impact(records_duplicated=found.records),
        following=(
            inspect_around(context, found.first_offset),
            context.timeline_command(*sorted({found.previous_id, found.producer_id})),
        ),
    )
