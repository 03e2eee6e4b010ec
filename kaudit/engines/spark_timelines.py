"""Timelines made in Spark's tasks, of partitions that are judged there: the driver gets those that are listed."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from kaudit.engines.spark_judging import Judging, replicas
from kaudit.engines.spark_tasks import ArrowMap, Batches
from kaudit.listings.timeline import by_replica, partition_timelines, producer_ids_of
from kaudit.reading.shuffle_codec import pack

if TYPE_CHECKING:
    from kaudit.scanning.log_comparison import ComparedLogs

COUNTS_SCHEMA = "job_index int, timelines long"
TIMELINES_SCHEMA = "job_index int, number long, timeline binary"
_COUNTS = pa.schema([("job_index", pa.int32()), ("timelines", pa.int64())])
_TIMELINES = pa.schema([("job_index", pa.int32()), ("number", pa.int64()), ("timeline", pa.binary())])


def counting_timelines() -> ArrowMap:
    """Return the function that counts the timelines of each partition replica."""

    def count(rows: Batches) -> Batches:
        for job_index, _, kept in replicas(rows):
            row = {"job_index": job_index, "timelines": len(producer_ids_of(kept))}
            yield pa.RecordBatch.from_pylist([row], _COUNTS)

    return count


def first_timelines(counts: Sequence[int], most: int | None) -> dict[int, int]:
    """Return how many timelines of each job are listed: the first `most` of all, every one if None."""
    listed, left = {}, sum(counts) if most is None else most
    for job_index, count in enumerate(counts):
        if count and left:
            listed[job_index] = min(count, left)
            left -= listed[job_index]
    return listed


def making_timelines(
    judging: Judging, across: Mapping[int, Mapping[int, str]], listed: Mapping[int, int], logs: "ComparedLogs | None"
) -> ArrowMap:
    """Return the function that judges partitions, and makes so many timelines of each replica as `listed` says."""

    def make(rows: Batches) -> Batches:
        for judged in judging.topic_partitions(rows, listed):
            own = by_replica(judged.findings(across))
            for job_index, (part, kept) in enumerate(zip(judged.replicas, judged.kept, strict=True), judged.job_index):
                place = part.directory
                findings = own.get((place.topic, place.partition, place.replica), ())
                events = None if logs is None else logs.of_partition(place.topic, place.partition)
                made = partition_timelines(part, kept, findings, events)
                for number, timeline in enumerate(islice(made, listed.get(job_index, 0))):
                    row = {"job_index": job_index, "number": number, "timeline": pack(timeline)}
                    yield pa.RecordBatch.from_pylist([row], _TIMELINES)

    return make
