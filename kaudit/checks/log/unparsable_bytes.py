"""Bytes that are not a batch: garbage, an unknown magic, or a length that lost the framing."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.damage import Wording, damage_finding, damaged_ranges
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.finding import Finding, Severity


@check(
    "KA003",
    severity=Severity.ERROR,
    summary="bytes that are not a batch: garbage, an unknown magic, or a length that lost the framing",
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
    compared=True,
)
def unparsable_bytes(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the bytes up to the next valid batch, or to the segment's end."""
    for found in damaged_ranges(evidence, DamageKind.UNPARSABLE):
        damage = found.first.damage
        where = f"{found.size} bytes at {damage.position}" if context.fetched is None else "bytes that the broker sent"
        wording = Wording(
            message=f"{where} are not a valid batch ({damage.detail}){found.unreadable}",
            rule="every batch begins where the one before it ends, with a magic of 0, 1 or 2",
        )
        yield damage_finding(unparsable_bytes, context, evidence, found, wording)
