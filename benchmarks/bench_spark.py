"""Spark beside the local engine on generated logs: batches a second, cores, exchanged bytes, peak memory.

    python benchmarks/bench_spark.py LOG_DIRECTORY...

Prints one line per engine and master. Exchanged bytes are what Spark's own stage metrics call shuffle write.
"""

import json
import re
import resource
import sys
import time
import urllib.request

from kaudit.engines import local, spark
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.pipeline.options import ScanOptions, SilentProgress


def timed(engine, options):
    started = time.perf_counter()
    result = engine.scan(options, SilentProgress())
    return time.perf_counter() - started, result


def shuffle_bytes(started):
    """Shuffle write of all stages so far, from the UI's REST interface."""
    context = started.sparkContext
    url = re.sub(r"//[^:/]+", "//127.0.0.1", context.uiWebUrl)
    with urllib.request.urlopen(f"{url}/api/v1/applications/{context.applicationId}/stages", timeout=30) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def main(paths):
    for path in paths:
        options = ScanOptions([path])
        seconds, expected = timed(local, options)
        batches, size = expected.summary.batches, expected.summary.bytes
        print(f"{path}: {size / 1e6:.0f} MB, {batches} batches")
        print(f"  local, all cores       {seconds:7.2f} s  {batches / seconds:10.0f} batches/s")
        for master in ("local[1]", "local[2]", "local-cluster[2,1,1024]"):
            with session(SparkOptions(master), None) as started:
                spark.scan(options, SilentProgress())  # starts the workers
                before = shuffle_bytes(started)
                seconds, result = timed(spark, options)
                sent = shuffle_bytes(started) - before
            assert result == expected
            print(
                f"  {master:22} {seconds:7.2f} s  {batches / seconds:10.0f} batches/s  "
                f"exchanged {sent / 1e6:.2f} MB, {100 * sent / size:.3f}% of the bytes, {sent / batches:.2f} a batch"
            )
        print(f"  driver's peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
