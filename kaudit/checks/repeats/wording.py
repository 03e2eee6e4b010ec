"""What the checks of repeated records share."""

from collections.abc import Mapping

from kaudit.checks.context import Context
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch

NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch"), "the batch carries none")


def batch_evidence(batch: NonIdempotentBatch) -> Mapping[str, object]:
    """A batch without a producer id, as reports show batches."""
    return {
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.max_timestamp,
        "producer_id": -1,
        "record_count": batch.record_count,
        "crc": batch.crc,
        "position": batch.position,
    }


def producer_batch_evidence(batch: BoundaryBatch, producer_id: int, producer_epoch: int) -> Mapping[str, object]:
    """A batch of a producer, as reports show batches."""
    return {
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": batch.first_sequence,
        "last_sequence": batch.last_sequence,
        "position": batch.position,
        "leader_epoch": batch.leader_epoch,
    }


def records_text(number: int) -> str:
    """Return `1 record` or `1,234 records`."""
    return f"{number:,} record" + ("" if number == 1 else "s")


def inspect_around(context: Context, offset: int) -> str:
    """The command that shows the records around an offset."""
    return context.inspect_command("--records", "--around", str(offset))
