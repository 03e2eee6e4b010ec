"""A partition's log that a broker begins with, instead of an empty one."""

from collections.abc import Iterable

from msgspec import Struct

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.broker.producer_state.rebuild import LogReader
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_TIMESTAMP


class RecordedLog(Struct, frozen=True):
    """The content of a partition's log.

    `now` is the log's own clock, its newest timestamp in ms. `restarts`: the broker has just been restarted, so that
    only the newest batch of a producer is remembered; otherwise as if it had been up since the log began.
    """

    key: TopicPartition
    batches: tuple[DataBatch | MarkerBatch, ...]
    log_start: int
    log_end: int
    now: int
    restarts: bool

    @classmethod
    def of_segments(
        cls, key: TopicPartition, segments: Iterable[memoryview], log_start: int, *, restarts: bool
    ) -> "RecordedLog":
        """Return what a log's segments hold, in order, up to the first damage: there a broker would truncate it."""
        reader = LogReader(segments)
        batches = tuple(reader)
        now = max((_timestamp(batch) for batch in batches), default=NO_TIMESTAMP)
        return cls(key, batches, log_start, max(reader.end.offset, log_start), max(now, 0), restarts)


def _timestamp(batch: DataBatch | MarkerBatch) -> int:
    return batch.timestamp if isinstance(batch, MarkerBatch) else batch.max_timestamp
