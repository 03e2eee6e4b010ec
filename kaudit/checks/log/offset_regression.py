"""Batches whose offsets do not follow their neighbours'."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.damage import Wording, damage_finding, damaged_ranges
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.finding import Explanation, Finding, Severity

_CAUSES = (
    Explanation("a bit of the base offset flipped: the CRC does not cover it"),
    Explanation("parts of segments were put together by hand or by a faulty copy"),
)


@check(
    "KA006",
    severity=Severity.ERROR,
    summary="a batch's offsets do not follow its neighbours'",
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
    compared=True,
)
def offset_regression(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each batch, and batches one after the other once."""
    for found in damaged_ranges(evidence, DamageKind.OUT_OF_ORDER):
        damage, number = found.first.damage, len(found.parts)
        which = f"the batch of offsets {damage.base_offset}..{damage.last_offset} is"
        if number > 1:
            which = f"{number} batches from offset {damage.base_offset} on are"
        wording = Wording(
            message=f"{which} out of order: {damage.detail}",
            rule="offsets rise from batch to batch and stay within their segment; brokers do not check this when they "
            "load a log",
            explanations=_CAUSES,
            claims_offsets=True,
        )
        yield damage_finding(offset_regression, context, evidence, found, wording)
