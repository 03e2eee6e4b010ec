"""What reading some of a partition once more shows, right after it was read."""

from kaudit.audits.repeats.non_idempotent_repeats import without_equal_records
from kaudit.audits.repeats.restarts import handovers, one_for_each_bump, repeated_epochs
from kaudit.audits.repeats.sessions import compare_sessions
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import INTERNAL_TOPICS


def find_repeats(partition: PartitionAudit, open_source: OpenSource) -> None:
    """Read again what may be there twice, or written by two, and keep what is."""
    directory = partition.directory
    partition.repeats = without_equal_records(partition.repeats, directory, open_source)
    sessions = [*partition.sessions, *handovers(partition.restarts, directory, open_source)]
    partition.repeated_sessions, epochs = compare_sessions(sessions, directory, open_source)
    partition.restarts_compared, partition.sessions = len(partition.restarts), ()
    partition.restarts = ()
    if not partition.coverage_gaps and directory.topic not in INTERNAL_TOPICS:
        of_batches, partition.bumps_not_compared = repeated_epochs(partition.observations, directory, open_source)
        partition.repeated_epochs = one_for_each_bump([*epochs, *of_batches])
    if partition.observations:
        # imported here: few logs have observations
        from kaudit.partition.interleaved_writers import shared_producer_ids  # noqa: PLC0415

        partition.shared = shared_producer_ids(partition, open_source)
