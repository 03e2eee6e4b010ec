"""A batch whose framing holds while its CRC does not match its bytes."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, Reading, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.damage import Wording, damage_finding, damaged_ranges
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.finding import Finding, Severity


@check(
    "KA001",
    severity=Severity.ERROR,
    summary="a batch's CRC does not match its bytes",
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
    compared=True,
    reads=Reading.BATCHES,
)
def crc_mismatch(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such batch with the offsets its header claims."""
    for found in damaged_ranges(evidence, DamageKind.CRC_MISMATCH):
        damage = found.first.damage
        wording = Wording(
            message=f"the batch of offsets {damage.base_offset}..{damage.last_offset} does not match its CRC",
            rule="a batch's CRC covers everything from its attributes to its last record "
            "(DefaultRecordBatch.ensureValid); a broker recovering this segment truncates it here and deletes later "
            "segments",
            claims_offsets=True,
        )
        yield damage_finding(crc_mismatch, context, evidence, found, wording)
