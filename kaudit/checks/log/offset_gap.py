"""Offsets missing inside a segment."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.missing_offsets import NO_PRODUCER, gap_fields, offsets_text
from kaudit.checks.log_causes import ELECTED, UNCLEAN_STOP
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.finding import Explanation, Finding, Severity

_RULE = "in a partition that is not compacted every offset from the log start on is covered by a batch"
_CAUSES = (
    Explanation("records were cut out of the segment"),
    Explanation(
        "the topic was compacted in the past, and no checkpoint says so (then pass --compacted)", innocent=True
    ),
)


@check(
    "KA007",
    severity=Severity.ERROR,
    summary="offsets are missing inside a segment",
    needs=(MissingOffsets,),
    incident=(DAMAGE,),
    caused_by=(ELECTED, UNCLEAN_STOP),
    simulated=none_because("simulated logs are neither compacted nor cut: they have no gaps"),
)
def offset_gap(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report offsets nobody can explain; none in a compacted partition. Those lost to damage are reported with it."""
    if context.compacted:
        return
    for gap in evidence.of(MissingOffsets):
        if gap.cause is not MissingCause.UNKNOWN:
            continue
        offsets = "1 offset" if gap.count == 1 else f"{gap.count} offsets"
        yield offset_gap.finding(
            context,
            f"{offsets_text(gap)} missing: the next batch{context.at_byte(gap.position)} starts {offsets} too high",
            segment=gap.segment,
            position=gap.position,
            explanations=_CAUSES,
            following=("look for these offsets on the partition's other replicas",),
            absent=NO_PRODUCER,
            **gap_fields(context, evidence, gap, _RULE),
        )
