"""Offsets missing exactly between two segments, or an empty segment."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, check, none_because
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import DAMAGE
from kaudit.checks.log.missing_offsets import NO_PRODUCER, gap_fields, offsets_text
from kaudit.checks.log_causes import UNCLEAN_STOP
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.finding import Explanation, Finding, Severity
from kaudit.source.layout import LeftoverFile

_RULE = "a segment begins where the one before it ends"
_CAUSES = (
    Explanation("a segment was deleted or not copied"),
    Explanation("the segment before it was cut at a batch boundary by an unclean recovery"),
)


@check(
    "KA008",
    severity=Severity.ERROR,
    summary="offsets are missing exactly between two segments",
    needs=(MissingOffsets,),
    incident=(DAMAGE,),
    caused_by=(UNCLEAN_STOP,),
    simulated=none_because("schedules damage no bytes on disk"),
)
def missing_segment(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each such gap; none in a compacted partition. A leftover file of that name may hold what is missing."""
    if context.compacted:
        return
    leftovers = [file.name for file in evidence.of(LeftoverFile)]
    for gap in evidence.of(MissingOffsets):
        if gap.cause is not MissingCause.MISSING_SEGMENT:
            continue
        wanted = f"{gap.first_offset:020d}.log"
        beside = [name for name in leftovers if name.startswith(wanted)]
        is_empty = gap.empty_segment is not None
        what = f"segment {wanted} is empty" if is_empty else f"no segment holds {offsets_text(gap)}"
        yield missing_segment.finding(
            context,
            f"{what}: {offsets_text(gap)} ({gap.count}) missing between two segments",
            segment=gap.empty_segment if gap.empty_segment is not None else max(gap.segment - 1, 0),
            position=0 if is_empty else None,
            explanations=[
                *(Explanation(f"{name} lies beside the segments: it may hold them", (name,)) for name in beside),
                *_CAUSES,
            ],
            following=("copy the missing segment from another replica or from the original host",),
            absent={**NO_PRODUCER, "position": "the bytes are not there"},
            **gap_fields(context, evidence, gap, _RULE, next_segment=context.segments[gap.segment], leftovers=beside),
        )
