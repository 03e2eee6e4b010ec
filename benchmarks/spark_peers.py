"""Jobs that users would write with Spark: `python spark_peers.py NAME MASTER ROOT` counts batches, and sequences that do not follow.

struct        binaryFile and a UDF that unpacks the headers
kafka-python  mapInArrow over paths, with the parser of kafka-python

A file is a partition here, so that no rows are exchanged, and both answer no more than where a sequence does not follow.
"""

import os
import struct
import sys
from pathlib import Path

import crc32c
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own way to name it

HEADER, HEADER_BYTES = ">qiibIhiqqqhii", 61


def walked(content: bytes) -> tuple[int, int]:
    view, at = memoryview(content), 0
    batches, wrong = 0, 0
    following: dict[int, tuple[int, int]] = {}
    while at + HEADER_BYTES <= len(view):
        _, length, _, _, crc, _, delta, _, _, producer, epoch, sequence, _ = struct.unpack_from(HEADER, view, at)
        batches += 1
        if crc32c.crc32c(view[at + 21 : at + 12 + length]) != crc or (
            following.get(producer, (epoch, sequence)) != (epoch, sequence) and sequence
        ):
            wrong += 1
        following[producer] = epoch, sequence + delta + 1
        at += 12 + length
    return batches, wrong


def parsed(rows):
    from kafka.record import MemoryRecords  # noqa: PLC0415 - only the one measured is loaded

    for path in (path for some in rows for path in some.column("path").to_pylist()):
        records = MemoryRecords(Path(path).read_bytes())
        batches, wrong = 0, 0
        following: dict[int, tuple[int, int]] = {}
        while records.has_next():
            batch = records.next_batch()
            epoch, sequence = batch.producer_epoch, batch.base_sequence
            batches += 1
            if not batch.validate_crc() or (
                following.get(batch.producer_id, (epoch, sequence)) != (epoch, sequence) and sequence
            ):
                wrong += 1
            following[batch.producer_id] = epoch, sequence + batch.last_offset_delta + 1
        yield pa.RecordBatch.from_pydict({"batches": [batches], "wrong": [wrong]})


def main() -> None:
    name, master, root = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master(master).config("spark.driver.memory", "4g").getOrCreate()
    if name == "struct":
        content = (
            spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.log")
        )
        walk = F.udf(walked, "batches long, wrong long")
        found = content.load(root).select(walk("content").alias("found")).select("found.*")
    else:
        paths = [(str(path),) for path in sorted(Path(root).rglob("*.log"))]
        planned = spark.createDataFrame(paths, "path string").repartition(len(paths))
        found = planned.mapInArrow(parsed, "batches long, wrong long")
    print(*found.agg(F.sum("batches"), F.sum("wrong")).collect()[0])
    spark.stop()


if __name__ == "__main__":
    main()
