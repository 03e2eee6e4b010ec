"""What the checks of missing offsets and leader epochs share."""

from collections.abc import Mapping

from kaudit.broker.partition.log_loading import gap_verdict
from kaudit.checks.check import Evidence
from kaudit.checks.log.consequences import consequences
from kaudit.model.continuity import MissingOffsets

NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "offsets belong to the partition, not to a producer")


def offsets_text(gap: MissingOffsets) -> str:
    """Return `offset 7` or `offsets 7..9`."""
    if gap.first_offset == gap.last_offset:
        return f"offset {gap.first_offset}"
    return f"offsets {gap.first_offset}..{gap.last_offset}"


def gap_evidence(rule: str, gap: MissingOffsets, evidence: Evidence) -> Mapping[str, object]:
    """Return the rule, what brokers do, how many offsets are missing, and the producers that lack sequences there."""
    return {
        "rule": rule,
        "broker": gap_verdict(),
        "missing_offsets": gap.count,
        **consequences(evidence, gap.first_offset, gap.last_offset),
    }
