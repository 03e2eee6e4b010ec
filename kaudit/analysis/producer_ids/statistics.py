"""Figures over all producer ids: how many an hour, how many alive, how fast the blocks go."""

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.producer_ids.block_sources import ClusterBlocks
from kaudit.analysis.producer_ids.histograms import COUNTS, IDLE_TIMES_MS, LIFETIMES_MS, histogram, steps_of_time
from kaudit.analysis.producer_ids.partition_join import Joined
from kaudit.broker.producer_ids.blocks import MAX_PRODUCER_ID
from kaudit.broker.producer_ids.consumption_rate import measure_burn
from kaudit.model.producer_ids import EntryKind

_HOUR_MS = 3_600_000
_DAY_MS = 86_400_000
ALIVE_DAYS = (1, 7)
"""The default expiry of producer ids: a day from 3.4 on, seven days before."""


def id_summary(joined: Joined, chosen: NDArray[np.int64], now_ms: int) -> dict[str, object]:
    """Return the figures of the chosen ids; `now_ms` is the directory's clock."""
    first, last = joined.first_timestamp[chosen], joined.last_timestamp[chosen]
    batches = joined.batches[chosen]
    known = first[first >= 0]
    summary: dict[str, object] = {
        "found": len(joined.ids),
        "chosen": len(chosen),
        "transactional": int(joined.is_transactional[chosen].sum()),
        "batches": int(batches.sum()),
        "records": int(joined.records[chosen].sum()),
        "first_timestamp": int(known.min()) if len(known) else None,
        "last_timestamp": int(last.max()) if len(known) else None,
        "per_hour": None,
        "busiest_hour": None,
        "batches_per_id": None,
        "alive": {f"{days}d": int((now_ms - last < days * _DAY_MS).sum()) for days in ALIVE_DAYS},
        "histograms": {
            "batches": histogram(batches, COUNTS),
            "epochs": histogram(joined.epochs[chosen], COUNTS),
            "lifetime_ms": histogram((last - first)[first >= 0], LIFETIMES_MS),
            "idle_ms": histogram(np.maximum(now_ms - last, 0)[last >= 0], IDLE_TIMES_MS),
            "first_seen": steps_of_time(known),
        },
    }
    if len(known):
        span = max(int(last.max()) - int(known.min()), _HOUR_MS)
        summary["per_hour"] = round(len(known) * _HOUR_MS / span, 2)
        hours, counts = np.unique(known // _HOUR_MS, return_counts=True)
        peak = int(np.argmax(counts))
        summary["busiest_hour"] = {"start_timestamp": int(hours[peak]) * _HOUR_MS, "ids": int(counts[peak])}
    if len(batches):
        summary["batches_per_id"] = {
            "least": int(batches.min()),
            "median": float(np.median(batches)),
            "mean": round(float(batches.mean()), 2),
            "most": int(batches.max()),
        }
    return summary


def block_summary(blocks: ClusterBlocks) -> dict[str, object]:
    """Return the figures of one cluster's blocks: granted, how fast, and how long the ids last."""
    granted = [entry for entry in blocks.history.entries if entry.kind is EntryKind.GRANTED]
    burn = measure_burn(blocks.steps)
    bounds = blocks.coverage.bounds
    left = max(MAX_PRODUCER_ID - bounds[1], 0) if bounds is not None else None
    return {
        "source": blocks.origin,
        "granted": len(granted),
        "complete": blocks.complete,
        "next": {"start": blocks.following[0], "end": blocks.following[1]} if blocks.following else None,
        "ids_left": burn.ids_left if burn is not None else left,
        "per_day": round(burn.blocks_per_day, 3) if burn is not None else None,
        "days_left": burn.days_left if burn is not None else None,
        "first_timestamp": burn.since_ms if burn is not None else None,
        "last_timestamp": burn.until_ms if burn is not None else None,
    }
