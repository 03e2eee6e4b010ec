"""Spark beside the local engine on generated logs: batches a second, cores, exchanged bytes, peak memory.

    python -m benchmarks.bench_spark [--mib 256] [--shape small] [--master local[2]] [--directory DIR]

Each figure is a process of its own: a scan to warm it, then the scan that is timed. Exchanged bytes are Spark's own
metric, the shuffle write of the timed scan's stages, held against LIMITS below; peak memory is
VmHWM, the driver's JVM, the driver's Python and the largest of the workers. Exit code 1: a limit is broken.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.generate import Shape, generate

MIB = 1 << 20
HEADER = 61
PARTITIONS = 4
SHAPES = {
    "large": Shape("large", records=(16, 16), value_bytes=(1000, 1040), producers=50, anomalies=0),
    "small": Shape("small", producers=100, anomalies=0),
    "short runs": Shape("short runs", producers=50_000, anomalies=0),
    "200,000 ids": Shape("200,000 ids", producers=200_000, anomalies=0),
}
LIMITS = {"large": 0.01, "small": 0.10}
"""Exchanged bytes at most, as a share of the bytes read; always at most 1.5 times the headers."""
MASTERS = ("local engine, 1 process", "local engine, 2 processes", "local[1]", "local[2]", "local-cluster[2,1,1024]")


def logs(directory: Path, shape: Shape, mib: int) -> Path:
    """Partitions of this shape, about `mib` MiB in all; made once."""
    root = directory / f"{shape.name.replace(' ', '-')}-{mib}"
    for number in range(PARTITIONS):
        partition = root / f"orders-{number}"
        if not (partition / "done").exists():
            partition.mkdir(parents=True, exist_ok=True)
            generate(partition / f"{0:020d}.log", replace(shape), mib * MIB // PARTITIONS, seed=number)
            (partition / "done").touch()
    return root


class PeakMemory:
    """The highest VmHWM of this process and of each kind below it, looked at while the body runs."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.done.set()
        self.thread.join()

    def watch(self):
        while not self.done.wait(0.2):
            self.look()

    def look(self):
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue  # it has ended
        below = {os.getpid()}
        while more := {process for process, parent in parents.items() if parent in below} - below:
            below |= more
        for process in below:
            try:
                command = Path(f"/proc/{process}/cmdline").read_text()
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue
            peak = re.search(r"VmHWM:\s+(\d+)", status)
            kind = self.kind(process, command)
            if peak is not None and kind is not None:
                self.peaks[kind] = max(self.peaks.get(kind, 0), int(peak[1]) >> 10)

    @staticmethod
    def kind(process: int, command: str) -> str | None:
        if process == os.getpid():
            return "driver's Python"
        if "pyspark.daemon" in command or "benchmarks" in command:
            return "largest worker"
        if "CoarseGrainedExecutorBackend" in command:
            return "executor's JVM"
        return "driver's JVM" if "java" in command else None


def shuffle_write(context) -> int:
    """Bytes of all stages so far, from the UI's REST interface."""
    url = re.sub(r"//[^:/]+", "//127.0.0.1", context.uiWebUrl)
    with urllib.request.urlopen(f"{url}/api/v1/applications/{context.applicationId}/stages", timeout=30) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def measure(path: str, master: str) -> dict[str, object]:
    """Scan twice in this process; the second time counts."""
    from kaudit.analysis.scan.options import ScanOptions, SilentProgress  # noqa: PLC0415
    from kaudit.engines import local, spark  # noqa: PLC0415 - only in the measured process
    from kaudit.engines.spark_session import SparkOptions, session  # noqa: PLC0415

    def timed(engine, options):
        started = time.perf_counter()
        result = engine.scan(options, SilentProgress())
        return time.perf_counter() - started, result

    sent = None
    with PeakMemory() as memory:
        if master.startswith("local engine"):
            options = ScanOptions([path], jobs=int(master.split()[2]))
            local.scan(options, SilentProgress())
            seconds, result = timed(local, options)
        else:
            options = ScanOptions([path])
            with session(SparkOptions(master), None) as started:
                spark.scan(options, SilentProgress())
                before = shuffle_write(started.sparkContext)
                seconds, result = timed(spark, options)
                sent = shuffle_write(started.sparkContext) - before
        memory.look()
    summary = result.summary
    errors = summary.findings["error"]
    return {"seconds": seconds, "batches": summary.batches, "bytes": summary.bytes, "sent": sent, "errors": errors,
            "peaks": memory.peaks}  # fmt: skip


def show(master: str, shape: Shape, found: dict[str, Any]) -> bool:
    """Print a line; tell whether the limits are kept."""
    rate = found["batches"] / found["seconds"]
    memory = ", ".join(f"{kind} {peak} MiB" for kind, peak in sorted(found["peaks"].items()))
    print(
        f"  {master:26} {found['seconds']:7.2f} s {rate:11,.0f} batches/s {found['bytes'] / found['seconds'] / 1e6:7.0f} MB/s  {memory}"
    )
    if found["sent"] is None:
        return True
    share, headers = found["sent"] / found["bytes"], found["sent"] / (HEADER * found["batches"])
    limit = LIMITS.get(shape.name, 1.0)
    kept: bool = share < limit and headers < 1.5
    print(
        f"  {'':26} exchanged {found['sent']:,} bytes: {share:.3%} of the log (limit {limit:.0%}), "
        f"{headers:.3f} of its headers (limit 1.5){'' if kept else '  BROKEN'}"
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--master", action="append")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return 0
    kept = True
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.shape or SHAPES:
            root = logs(options.directory or Path(temporary), SHAPES[name], options.mib)
            print(f"{name}: {options.mib} MiB in {PARTITIONS} partitions")
            for master in options.master or MASTERS:
                command = [sys.executable, "-m", "benchmarks.bench_spark", "--one", str(root), master]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                kept &= show(master, SHAPES[name], json.loads(done.stdout.splitlines()[-1]))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
