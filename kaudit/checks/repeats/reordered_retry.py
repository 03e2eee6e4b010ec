"""Batches without producer ids that a retry has put out of order."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Simulated, check
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import RETRIES
from kaudit.checks.log_causes import BUMPED, RETRIED
from kaudit.checks.repeats.wording import NO_PRODUCER, batch_evidence, inspect_around
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.producer_patterns import ReorderedBatches

_CAUSES = (
    Explanation(
        "max.in.flight.requests.per.connection is above 1 without idempotence, and a request failed",
        speaks_for=("batches near it are in the log twice (KA702)",),
    ),
    Explanation("two producers write here, and both retried", innocent=True),
)


@check(
    "KA703",
    severity=Severity.WARNING,
    summary="a retry has put batches without producer ids out of order",
    needs=(ReorderedBatches,),
    incident=(RETRIES,),
    caused_by=(RETRIED, BUMPED),
    simulated=Simulated("retry-without-idempotence"),
)
def reordered_retry(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the batches one retry has put out of order once."""
    for found in evidence.of(ReorderedBatches):
        first, last, number = found.late[0], found.late[-1], len(found.late)
        which = f"the batch at offset {first.base_offset} comes"
        how = "its records are older"
        if number > 1:
            which = f"{number} batches at offsets {first.base_offset}..{last.last_offset} come"
            how = "their records are older"
        if found.reversed:
            how = "copies in the opposite order of what they copy"
        yield reordered_retry.finding(
            context,
            f"{which} behind later records because of a retry: {how}",
            confidence=Confidence.LIKELY if found.reversed else Confidence.POSSIBLE,
            segment=first.segment,
            position=first.position,
            offset=first.base_offset,
            last_offset=last.last_offset,
            evidence={
                "rule": "with several requests in flight and no idempotence, a batch that is retried lands behind those that "
                "were sent after it",
                "previous": batch_evidence(found.overtaken_by),
                "offending": batch_evidence(first),
                "batches": number,
                "class": "reversed" if found.reversed else "older",
            },
            explanations=_CAUSES,
            following=(inspect_around(context, first.base_offset),),
            absent=NO_PRODUCER,
        )
