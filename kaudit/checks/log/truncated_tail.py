"""A segment that ends inside a batch."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.damage import Wording, damage_finding, damaged_ranges
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import DamageKind, PlacedDamage
from kaudit.model.finding import Explanation, Finding, Severity

_LAST_SEGMENT_CAUSES = (
    Explanation("the broker or its disk stopped in the middle of an append"),
    Explanation("the disk was full: the rest of the batch did not fit"),
    Explanation("the copy was taken while the broker was appending", innocent=True),
)
_CLOSED_SEGMENT_CAUSES = (
    Explanation("the file was cut: an incomplete copy, or a repaired file system"),
    Explanation("blocks were lost with a power failure before they were flushed"),
)


@check(
    "KA002",
    severity=Severity.ERROR,
    severity_note="warning in the last segment",
    summary="a segment ends inside a batch",
    needs=(PlacedDamage,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
    compared=True,
)
def truncated_tail(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such segment; a crash leaves the last one like that."""
    for found in damaged_ranges(evidence, DamageKind.TORN):
        damage, is_last = found.first.damage, found.in_last_segment(context)
        wording = Wording(
            message=f"the segment breaks off at byte {damage.position}: {damage.detail}{found.unreadable}",
            rule="a segment consists of whole batches; a broker that was not shut down cleanly truncates the rest",
            explanations=_LAST_SEGMENT_CAUSES if is_last else _CLOSED_SEGMENT_CAUSES,
            severity=Severity.WARNING if is_last else Severity.ERROR,
        )
        yield damage_finding(truncated_tail, context, evidence, found, wording)
