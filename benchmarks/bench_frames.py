"""DataFrames of kaudit.spark beside the local engine, on generated logs: seconds, bytes a second, exchanged bytes.

    python -m benchmarks.bench_frames [--mib 256] [--shape small] [--master local[2]] [--directory DIR]

Each figure is measured twice in one session, and the second one counts: Python workers run by then. Exchanged bytes are
Spark's own metric, the shuffle write of the stages, held against LIMITS below. Exit code 1: a limit is broken.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.partition_logs import MIB, SHAPES, logs
from benchmarks.stage_metrics import Stages

LIMITS = {"large": 0.01, "small": 0.10}
"""Bytes that findings exchange at most, as a share of the bytes read."""


def measure(root: Path, master: str) -> dict[str, tuple[float, int]]:
    """Return seconds and exchanged bytes of each way to read, by its name."""
    from kaudit.engines import local  # noqa: PLC0415
    from kaudit.engines.progress import SilentProgress  # noqa: PLC0415
    from kaudit.scanning.options import ScanOptions  # noqa: PLC0415
    from kaudit.spark.session import SparkOptions, session  # noqa: PLC0415

    settings = ["spark.sql.adaptive.enabled=true", "spark.sql.execution.arrow.maxRecordsPerBatch=10000"]
    with session(SparkOptions(master, settings), None) as spark:
        import kaudit.spark as ks  # noqa: PLC0415

        batches = ks.batches(spark, root)
        ways: dict[str, Callable[[], object]] = {
            "local engine, scan": lambda: local.scan(ScanOptions([str(root)], jobs=1), SilentProgress()),
            "batches, counted by producer": lambda: batches.groupBy("producer_id").count().count(),
            "batches, to Spark and dropped": lambda: batches.write.format("noop").mode("overwrite").save(),
            "findings(path)": lambda: ks.findings(spark, root).count(),
            "findings(runs(batches))": lambda: ks.findings(ks.runs(batches)).count(),
        }
        measured, stages = {}, Stages(spark.sparkContext)
        for name, way in ways.items():
            way()
            stages.take()
            started = time.perf_counter()
            way()
            seconds = time.perf_counter() - started
            measured[name] = seconds, sum(stage.shuffled for stage in stages.take())
        return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    kept = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.shape or ["large", "small"]:
            root = logs(arguments.directory or Path(scratch), SHAPES[name], arguments.mib)
            size = sum(path.stat().st_size for path in root.rglob("*.log"))
            print(f"{name}: {size / MIB:.0f} MiB, {arguments.master}")
            for way, (seconds, sent) in measure(root, arguments.master).items():
                share = sent / size
                print(
                    f"  {way:32} {seconds:7.2f} s {size / seconds / 1e6:7.0f} MB/s   exchanged {sent:11,} bytes, {share:.3%}"
                )
                kept = kept and not (way.startswith("findings") and share > LIMITS[name])
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
