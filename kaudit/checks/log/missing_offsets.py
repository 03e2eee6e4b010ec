"""What the checks of missing offsets and leader epochs share."""

from collections.abc import Mapping
from typing import TypedDict

from kaudit.broker.partition.log_loading import gap_verdict
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.log.consequences import consequences, lacking_producers, lost_records
from kaudit.model.damage import MissingOffsets
from kaudit.model.impact import Impact

NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "offsets belong to the partition, not to a producer")


def offsets_text(gap: MissingOffsets) -> str:
    """Return `offset 7` or `offsets 7..9`."""
    if gap.first_offset == gap.last_offset:
        return f"offset {gap.first_offset}"
    return f"offsets {gap.first_offset}..{gap.last_offset}"


class GapFields(TypedDict):
    """What findings about a gap say alike."""

    offset: int
    last_offset: int
    evidence: Mapping[str, object]
    impact: Impact


def gap_fields(context: Context, evidence: Evidence, gap: MissingOffsets, rule: str, **more: object) -> GapFields:
    """Return its offsets, the rule, what brokers do, the producers that lack sequences there, `more` evidence, and its cost."""
    lacking = lacking_producers(evidence, gap.first_offset, gap.last_offset)
    return {
        "offset": gap.first_offset,
        "last_offset": gap.last_offset,
        "evidence": {
            "rule": rule,
            "broker": gap_verdict(),
            "missing_offsets": gap.count,
            **consequences(lacking),
            **more,
        },
        "impact": lost_records(context, evidence, gap.count, lacking),
    }
