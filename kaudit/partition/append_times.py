"""When brokers appended batches: what the times that they wrote in the same partition show."""

from typing import TYPE_CHECKING

import numpy as np

from kaudit.broker.producer_state.rules import SHORTEST_EXPIRY_MS, is_expired
from kaudit.model.audit_clock import AppendTime
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.reading.rows import Rows
from kaudit.source.layout import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kaudit.partition.replay import PartitionReplay


def has_broker_times(replay: "PartitionReplay") -> bool:
    """Whether brokers wrote the time of every batch: all have LogAppendTime, or the topic is internal."""
    return replay.counts.broker_timestamps == replay.counts.batches or replay.directory.topic in INTERNAL_TOPICS


def append_times(replay: "PartitionReplay", ended: Rows | None) -> list[AppendTime]:
    """Return those of observed batches whose producer may have been forgotten by then; `ended`: the markers, in offset order."""
    found = {}
    own = has_broker_times(replay)
    offsets = np.empty(0, dtype=np.int64) if ended is None else ended["marker_offset"]
    times = [NO_TIMESTAMP, *([] if ended is None else ended["timestamp"].tolist()), NO_TIMESTAMP]
    seen = [(each, each.batch, each.remembered) for each in replay.transitions.observations]
    places = np.searchsorted(offsets, [each.offset for each, _, _ in seen]).tolist()
    for (each, batch, before), place in zip(seen, places, strict=True):
        if batch is None or before is None:
            continue
        since, until = (batch.max_timestamp, batch.max_timestamp) if own else (times[place], times[place + 1])
        if is_expired(before.last_timestamp, max(since, batch.max_timestamp), SHORTEST_EXPIRY_MS):
            found[each.offset] = AppendTime(each.offset, since, until)
    return list(found.values())
