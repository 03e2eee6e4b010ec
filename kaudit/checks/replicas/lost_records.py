"""What a divergence costs, counted from the copies."""

from collections import defaultdict
from collections.abc import Iterable

from kaudit.model.impact import Impact
from kaudit.model.replicas import MissingRecords, ReplicaEvidence


def lost_records(found: ReplicaEvidence, names: Iterable[str]) -> Impact:
    """Count the records of these replicas that the reference lacks: they go when its log is followed.

    At least those below the high watermark of their own broker were acknowledged to producers with acks=all and could be
    read. Replicas that hold the same where they part from the reference count once: with the most that one of them holds, and with
    the highest of their high watermarks.
    """
    difference = found.comparison.first_difference
    batches = difference.batches if difference is not None else {}
    copies: defaultdict[object, list[MissingRecords]] = defaultdict(list)
    for name in names:
        missing = found.missing.get(name)
        if missing is None:
            return Impact(records_lost_at_least=0)
        copies[batches[name].identity if name in batches else None].append(missing)
    return Impact(
        records_lost_at_least=sum(max(missing.below_high_watermark for missing in same) for same in copies.values()),
        records_lost_at_most=sum(max(missing.records for missing in same) for same in copies.values()),
    )
