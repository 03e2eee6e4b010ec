"""What a divergence costs, counted from the copies."""

from collections.abc import Iterable

from kaudit.model.impact import Impact
from kaudit.model.replicas import MissingRecords, ReplicaEvidence


def lost_records(found: ReplicaEvidence, names: Iterable[str]) -> Impact:
    """Count the records of these replicas that the reference lacks: they go when its log is followed.

    At least those below the high watermark of their own broker were acknowledged to producers with acks=all and could be
    read. Replicas that hold the same where they part from the reference count once.
    """
    difference = found.comparison.first_difference
    batches = difference.batches if difference is not None else {}
    counted: dict[object, MissingRecords] = {}
    for name in names:
        missing = found.missing.get(name)
        if missing is None:
            return Impact(records_lost_at_least=0)
        held = batches[name].identity if name in batches else None
        if held not in counted or counted[held].records < missing.records:
            counted[held] = missing
    return Impact(
        records_lost_at_least=sum(missing.below_high_watermark for missing in counted.values()),
        records_lost_at_most=sum(missing.records for missing in counted.values()),
    )
