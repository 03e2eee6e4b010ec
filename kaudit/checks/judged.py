"""Findings about one judged batch or marker, as all families of checks build them."""

from collections.abc import Mapping, Sequence

from kaudit.checks.catalogue import OBSERVERS
from kaudit.checks.context import Context
from kaudit.checks.evidence import fact_evidence
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.observation import Observation


def judged_finding(
    context: Context,
    fact: Observation,
    message: str,
    rule: str,
    *,
    code: str | None = None,
    severity: Severity | None = None,
    confidence: Confidence = Confidence.CERTAIN,
    offsets: tuple[int, int] | None = None,
    explanations: Sequence[Explanation] = (),
    extra: Mapping[str, object] | None = None,
    following: Sequence[str] = (),
) -> Finding:
    """Build a finding about `fact`: where it is, whose, and by what it was judged.

    `code` where it is not the fact's own, whose kind is then not its class. `offsets`, first and last, where it is about
    others than the fact's. `extra` evidence, and commands to run before the producer's timeline (`following`).
    """
    first, last = offsets or (fact.offset, fact.last_offset)
    kind = {"class": fact.kind.label} if code is None else {}
    return context.finding(
        code or OBSERVERS[fact.kind],
        message,
        severity=severity,
        confidence=confidence,
        segment=fact.segment,
        position=fact.position,
        offset=first,
        last_offset=last,
        producer_id=fact.producer_id,
        producer_epoch=fact.producer_epoch,
        evidence={**fact_evidence(fact, rule), **kind, **(extra or {})},
        explanations=explanations,
        following=(*following, context.timeline_command(fact.producer_id)),
    )
