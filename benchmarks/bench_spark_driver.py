"""Memory of the driver of an audit on Spark as the input grows: its Python process, and the bytes of tasks' results.

    python -m benchmarks.bench_spark_driver [findings timelines producers partitions segments listing plan] [--scale 1.0] [--master local[2]]

Each case is run at a third, at half and at the whole of its size, each in a process of its own; bytes each are the slope of the
least-squares line through the three.

findings    gaps, 100,000 a partition, which is what an audit keeps of one
timelines   producer ids of one partition, their timelines written as tables
producers   producer ids of one partition, the first of them listed and all written as a table
partitions  partitions of one small segment
segments    segments of one partition, listed and planned and not read
listing     segments of a simulated store, ten of 1 GiB a partition with their indexes, listed and planned
plan        partitions of a simulated store, one segment of 1 GB each with its indexes: 100,000 of them are 100 TB

Results are what tasks sent, as Spark serialised it, of tasks whose results the driver keeps until the job's end. The worker's
memory is that of the largest Python worker (VmHWM).
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from benchmarks.partition_logs import MIB, gaps, one_record_batches
from benchmarks.process_tree import PeakMemory, cpu_seconds
from benchmarks.stage_metrics import Stages
from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query
from kaudit.model.limits import OBSERVATIONS
from kaudit.reading.shuffle_codec import pack
from kaudit.report.machine.tables import listed_producers, recorded_tables
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.filesystem import FileStatus
from kaudit.source.uri import Uri
from kaudit.spark import engine as spark
from kaudit.spark.plan import share
from kaudit.spark.session import SparkOptions, session

FIRST_SEGMENT = f"{0:020d}.log"
GIB, GB = 1 << 30, 10**9


def findings(root: Path, number: int) -> None:
    """Partitions of one producer with as many gaps as are kept, and one with the rest."""
    for partition, first in enumerate(range(0, number, OBSERVATIONS)):
        gaps(root, min(OBSERVATIONS, number - first), partition)


def timelines(root: Path, number: int) -> None:
    """Producer ids with two batches each."""
    sent = [(producer_id, sequence) for sequence in range(2) for producer_id in range(number)]
    one_record_batches(root / "orders-0" / FIRST_SEGMENT, sent)


def partitions(root: Path, number: int) -> None:
    """Partitions of one small segment."""
    for partition in range(number):
        one_record_batches(root / f"orders-{partition}" / FIRST_SEGMENT, [(100, sequence) for sequence in range(5)])


def segments(root: Path, number: int) -> None:
    """One partition of segments with one batch each; only their names and sizes are read."""
    first = root / "orders-0" / FIRST_SEGMENT
    one_record_batches(first, [(100, 0)])
    content = first.read_bytes()
    for offset in range(number):
        (root / "orders-0" / f"{offset:020d}.log").write_bytes(content)


def nothing(root: Path, number: int) -> None:
    """Its files are simulated."""


class Store:
    """A file system of partitions with segments of one size, each with its two indexes, as a broker leaves them."""

    is_remote = False

    def __init__(self, partitions: int, segments: int, segment_bytes: int) -> None:
        self._partitions, self._segments, self._segment_bytes = partitions, segments, segment_bytes

    def status(self, uri: Uri) -> FileStatus:
        if uri.path != "/":
            raise FileNotFoundError(2, "no such file", str(uri))
        return FileStatus("", is_directory=True)

    def entries(self, uri: Uri) -> list[FileStatus]:
        if uri.path == "/":
            return sorted(
                (FileStatus(f"orders-{number}", is_directory=True) for number in range(self._partitions)),
                key=lambda entry: entry.name,
            )
        return [
            FileStatus(f"{number * 1_000_000:020d}{suffix}", False, size, 1_700_000_000_000)
            for number in range(self._segments)
            for suffix, size in ((".index", 2 << 20), (".log", self._segment_bytes), (".timeindex", 3 << 20))
        ]

    def tree(self, uri: Uri) -> None:
        """List one directory at a time."""

    def identity(self, uri: Uri) -> str:
        return str(uri)

    def read_start(self, uri: Uri, limit: int) -> bytes:  # noqa: ARG002 - as of file systems
        raise FileNotFoundError(2, "no such file", str(uri))


STORES: dict[str, Callable[[int], Store]] = {
    "listing": lambda number: Store(number // 10, 10, GIB),
    "plan": lambda number: Store(number, 1, GB),
}
CASES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "findings": (findings, 1_000_000),
    "timelines": (timelines, 200_000),
    "producers": (timelines, 200_000),
    "partitions": (partitions, 5_000),
    "segments": (segments, 100_000),
    "listing": (nothing, 1_000_000),
    "plan": (nothing, 100_000),
}
CORES = 100
"""Of the cluster that plans are made for."""


def listed_and_planned(case: str, root: Path, number: int) -> dict[str, float]:
    """List and plan; return CPU seconds, by how much the process has grown, and the tasks."""
    before, started = _peak(), time.process_time()
    options = ScanOptions([str(root)] if case == "segments" else ["webhdfs://store/"])
    if case == "segments":
        layout = find_input(options)
    else:
        with patch("kaudit.source.schemes._connect", return_value=STORES[case](number)):
            layout = find_input(options)
    listed = time.process_time() - started
    plan = share(plan_jobs(options, layout, all_needs), CORES)
    packed = sum(len(pack(work)) for work in plan.works)
    return {
        "CPU seconds": round(time.process_time() - started, 1),
        "of them listing": round(listed, 1),
        "driver": _peak() - before,
        "packed plan": packed,
        "reading tasks": len(plan.works),
        "replaying tasks": plan.shuffle_partitions,
    }


def audited(case: str, root: Path, master: str) -> dict[str, float]:
    """Audit; return CPU seconds, by how much the process has grown, the results' bytes and the worker's memory."""
    options = ScanOptions([str(root)])
    with session(SparkOptions(master), None) as started_session, PeakMemory() as memory:
        stages = Stages(started_session.sparkContext)
        before, started = _peak(), cpu_seconds()
        if case == "timelines":
            with spark.record(options, SilentProgress()) as recorded:
                result = recorded.result
                tables = recorded_tables(result, RenderOptions(recorded={None: recorded}))
                assert tables.write_to is not None
                tables.write_to(f"{root.parent.as_uri()}/tables/run_id=bench")
        elif case == "producers":
            with spark.listed_producers(options, SilentProgress(), Query()) as found:
                result = found.result.scan
                tables = listed_producers(found.result, RenderOptions(listed=found.tables))
                assert tables.write_to is not None
                tables.write_to(f"{root.parent.as_uri()}/tables/run_id=bench")
        else:
            result = spark.scan(options, SilentProgress())
        seconds, grown = cpu_seconds() - started, _peak() - before
        kept = [
            stage for stage in stages.take() if not stage.shuffled
        ]  # the others' tasks answer with where they wrote
    return {
        "CPU seconds": round(seconds, 1),
        "driver": grown,
        "results": sum(sum(stage.results) for stage in kept),
        "worker": memory.peaks["largest worker"] * MIB,
        "findings": sum(result.summary.findings.values()),
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(case: str, scale: float, master: str) -> None:
    """Measure a case at three sizes; print a line for each, and the fitted lines."""
    make, whole = CASES[case]
    found: dict[int, dict[str, float]] = {}
    for number in (int(whole * scale / part) for part in (3, 2, 1)):
        with tempfile.TemporaryDirectory(prefix="kaudit-bench-") as directory:
            root = Path(directory, "logs")
            make(root, number)
            command = [sys.executable, "-m", "benchmarks.bench_spark_driver", "--master", master]
            inside = ["--inside", case, str(root), str(number)]
            done = subprocess.run([*command, *inside], stdout=subprocess.PIPE, text=True, check=True)
        found[number] = json.loads(done.stdout.strip().splitlines()[-1])
        shown = ", ".join(f"{name} {value:,}" for name, value in found[number].items())
        print(f"{case:10} {number:>9,}  {shown}", flush=True)
    for name in ("driver", "results", "worker", "packed plan", "CPU seconds"):
        sizes = [measured[name] for measured in found.values() if name in measured]
        if not sizes:
            continue
        line = statistics.linear_regression(list(found), sizes)
        if name == "CPU seconds":
            shown = f"{line.slope * 1000:.2f} ms each, and {line.intercept:.1f} s"
        else:
            shown = f"{line.slope:,.0f} bytes each, and {line.intercept / MIB:,.1f} MiB"
        print(f"{case:10} {name}: {shown}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--inside", nargs=3, metavar=("CASE", "DIRECTORY", "NUMBER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        case, root, number = arguments.inside[0], Path(arguments.inside[1]), int(arguments.inside[2])
        simulated = case in STORES or case == "segments"
        print(
            json.dumps(listed_and_planned(case, root, number) if simulated else audited(case, root, arguments.master))
        )
        return 0
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    print(f"load {os.getloadavg()[0]:.1f}")
    for case in arguments.cases or CASES:
        run(case, arguments.scale, arguments.master)
    return 0


if __name__ == "__main__":
    sys.exit(main())
