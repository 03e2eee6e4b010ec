"""Zeros where batches should be."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.damage import HOST_CAUSES, Wording, damage_finding, damaged_ranges
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.finding import Explanation, Finding, Severity

_PREALLOCATED = (Explanation("log.preallocate is on: the segment was created at full size", innocent=True),)


@check(
    "KA004",
    severity=Severity.ERROR,
    severity_note="note for zeros to the end of the last segment (preallocated)",
    summary="zeros where batches should be",
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
    compared=True,
)
def zero_filled(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each range of zeros; those at the end of the last segment are healthy."""
    for found in damaged_ranges(evidence, DamageKind.ZEROS):
        damage = found.first.damage
        preallocated = found.in_last_segment(context) and not damage.resynchronised
        wording = Wording(
            message=f"zeros from byte {damage.position} on: {damage.detail}{found.unreadable}",
            rule="no batch has a length of zero; only a preallocated last segment ends in zeros",
            explanations=_PREALLOCATED if preallocated else HOST_CAUSES,
            severity=Severity.NOTE if preallocated else Severity.ERROR,
        )
        yield damage_finding(zero_filled, context, evidence, found, wording)
