"""The Spark engine by Spark's own metrics, on generated logs: exchanged bytes, results, cores; beside the local engine.

    python -m benchmarks.bench_spark [exchange pieces results engines cores] [--mib 256] [--cores-mib 4096] [--directory DIR]

exchange  shuffle write of an audit's stages, as a share of the log
pieces    what a partition of --cores-mib / 4 gives the task that puts it together, by how much a reading task takes; without Spark
results   what each task sends the driver: healthy logs, and 100,000 and 200,000 gaps
engines   seconds, CPU seconds and memory of a warm audit: the local engine, and Spark on one and two cores and as a cluster
cores     a warm audit on one and two cores; its seconds say nothing on a busy machine, so it must be asked for there

Audits run in a process of its own for each master; "warm" is the second in its session. CPU seconds are those of the JVM
and its Python workers together; memory is VmHWM. Exit code 1: one of LIMITS is broken.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import msgspec
import pyarrow as pa
from msgspec import Struct

from benchmarks.partition_logs import SHAPES, gaps, logs
from benchmarks.process_tree import PeakMemory, cpu_seconds
from benchmarks.stage_metrics import StageMetrics, Stages
from kaudit.reading.shuffle_codec import pack

EXCHANGE_LIMITS = {"large": 0.01, "small": 0.01, "short runs": 0.15, "200,000 ids": 0.15}
"""Shuffle write at most, as a share of the log."""
RESULT_LIMIT = 64 << 10
"""Bytes that a task over a healthy log sends the driver at most."""
MOST_GAPS = 100_000
"""Gaps that an audit keeps of a partition: the result of twice as many is hardly larger."""
SPEED_UP = 1.6
"""Minimum speed-up of two cores over one."""
WARM_AUDITS = 6
"""Audits in one session; the first is cold, and the fastest of the others counts."""
QUIET = 1.0
"""Load average of a machine on which seconds mean something."""
LOCAL_ENGINE = "local engine"
MASTERS = ("local engine, 1 process", "local engine, 2 processes", "local[1]", "local[2]", "local-cluster[2,1,1024]")


class Measured(Struct, frozen=True):
    """One audit: seconds, CPU seconds of all processes, what it read and found, memory (MiB) by kind of process."""

    seconds: float
    cpu: float
    bytes: int
    batches: int
    findings: int
    peaks: dict[str, int]
    stages: list[StageMetrics] = []

    @property
    def shuffled(self) -> int:
        """Bytes of all stages."""
        return sum(stage.shuffled for stage in self.stages)

    @property
    def largest(self) -> tuple[int, str]:
        """The largest result of a task, and whose."""
        return max((size, stage.description) for stage in self.stages for size in stage.results)


def measure(master: str, paths: list[str]) -> list[Measured]:
    """Audit the paths one after the other in one session."""
    from kaudit.engines import local  # noqa: PLC0415 - only in the measured process
    from kaudit.engines.progress import SilentProgress  # noqa: PLC0415
    from kaudit.model.result import ScanResult  # noqa: PLC0415
    from kaudit.scanning.options import ScanOptions  # noqa: PLC0415
    from kaudit.spark import engine as spark  # noqa: PLC0415 - only in the measured process
    from kaudit.spark.session import SparkOptions, session  # noqa: PLC0415

    def audited(
        scan: Callable[[ScanOptions, SilentProgress], ScanResult], path: str, stages: Stages | None
    ) -> Measured:
        options = ScanOptions([path], jobs=jobs)
        cpu, started = cpu_seconds(), time.perf_counter()
        with PeakMemory() as memory:
            summary = scan(options, SilentProgress()).summary
            seconds = time.perf_counter() - started
        found = sum(summary.findings.values())
        cost = seconds, cpu_seconds() - cpu
        return Measured(*cost, summary.bytes, summary.batches, found, memory.peaks, stages.take() if stages else [])

    if master.startswith(LOCAL_ENGINE):
        jobs: int | None = int(master.split()[2])
        return [audited(local.scan, path, None) for path in paths]
    jobs = None
    with session(SparkOptions(master), None) as started:
        stages = Stages(started.sparkContext)
        return [audited(spark.scan, path, stages) for path in paths]


def in_a_process(master: str, paths: list[Path], cores: frozenset[int] | None = None) -> list[Measured]:
    """Measure in a process of its own, which keeps to these cores if any are given."""
    command = [sys.executable, "-m", "benchmarks.bench_spark", "--inside", master, *map(str, paths)]
    if cores is not None:
        command = ["taskset", "--cpu-list", ",".join(map(str, sorted(cores))), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=list[Measured])


def exchange(arguments: argparse.Namespace, directory: Path) -> bool:
    """Shuffled bytes of each shape."""
    kept = True
    shapes = arguments.shape or list(EXCHANGE_LIMITS)
    measured = in_a_process("local[2]", [logs(directory, SHAPES[shape], arguments.mib) for shape in shapes])
    for shape, audit in zip(shapes, measured, strict=True):
        share, limit = audit.shuffled / audit.bytes, EXCHANGE_LIMITS[shape]
        kept &= verdict(
            f"{shape}, {arguments.mib} MiB: {audit.shuffled:,} bytes exchanged, {share:.3%} of the log (limit {limit:.0%})",
            share < limit,
        )
    return kept


def pieces(arguments: argparse.Namespace, directory: Path) -> bool:
    """Bytes of the rows of one partition where its producers write in turn, from tasks of a block and of 1 GiB."""
    for shape in arguments.shape or ("short runs", "200,000 ids"):
        path = logs(directory, SHAPES[shape], arguments.cores_mib)
        for task_mib in (128, 1024):
            total, sent, joined = in_pieces(path, task_mib << 20)
            print(
                f"  {shape}, {total >> 20} MiB in tasks of {task_mib} MiB: {sent:,} bytes in {joined} series of ranges, "
                f"{sent / total:.2%} of the log",
                flush=True,
            )
    return True


def in_pieces(path: Path, task_bytes: int) -> tuple[int, int, int]:
    """Read a log's first partition in tasks of that many bytes; return its bytes, those of the rows, and the number of their series."""
    from kaudit.scanning.options import ScanOptions  # noqa: PLC0415 - as above
    from kaudit.scanning.plan import all_needs, find_input, plan_jobs  # noqa: PLC0415
    from kaudit.source.schemes import open_segment  # noqa: PLC0415
    from kaudit.spark import plan as spark_plan  # noqa: PLC0415
    from kaudit.spark.tasks import reading  # noqa: PLC0415

    options = ScanOptions([str(path)])
    jobs = plan_jobs(options, find_input(options), all_needs)[:1]
    with mock.patch.object(spark_plan, "task_bytes", return_value=task_bytes):
        plan = spark_plan.share(jobs, 1)
    works = (pa.RecordBatch.from_pylist([{"work": pack(work)}]) for work in plan.works)
    read = reading(works, open_segment, 0, lambda _: None)
    rows = [len(data.as_py()) for row in read if row["ranges"][0].as_py() for data in row["data"]]
    return plan.bytes, sum(rows), len(rows)


def results(arguments: argparse.Namespace, directory: Path) -> bool:
    """Result bytes of the tasks over healthy logs, and over gaps, once more than an audit keeps."""
    kept = True
    shapes = arguments.shape or list(SHAPES)
    numbers = [MOST_GAPS, 2 * MOST_GAPS]
    paths = [logs(directory, SHAPES[shape], arguments.mib) for shape in shapes]
    measured = in_a_process("local[2]", paths + [gaps(directory / f"gaps-{number}", number) for number in numbers])
    for shape, audit in zip(shapes, measured, strict=False):
        size, stage = audit.largest
        kept &= verdict(
            f"{shape}, {arguments.mib} MiB: a task sends {size:,} bytes at most ({stage})", size < RESULT_LIMIT
        )
    once, twice = measured[-2:]
    for number, audit in zip(numbers, (once, twice), strict=True):
        size, stage = audit.largest
        print(f"  {number:,} gaps, {audit.findings:,} findings: a task sends {size:,} bytes at most ({stage})")
    kept &= verdict("twice the gaps send at most 1.1 times as much", twice.largest[0] < 1.1 * once.largest[0])
    return kept


def engines(arguments: argparse.Namespace, directory: Path) -> bool:
    """Cost of a warm audit of each shape on each engine."""
    for shape in arguments.shape or ("large", "small"):
        path = logs(directory, SHAPES[shape], arguments.mib)
        for master in arguments.master or MASTERS:
            cost = in_a_process(master, [path, path])[-1]
            memory = ", ".join(f"{kind} {peak} MiB" for kind, peak in sorted(cost.peaks.items()))
            print(
                f"  {shape}, {arguments.mib} MiB, {master}: {cost.seconds:.2f} s, {cost.cpu:.2f} CPU s, "
                f"{cost.batches / cost.cpu:,.0f} batches and {cost.bytes / cost.cpu / 1e6:,.0f} MB a CPU s; {memory}",
                flush=True,
            )
    return True


def cores(arguments: argparse.Namespace, directory: Path) -> bool:
    """Seconds of a warm audit on one and two cores, and of its longest stage, which reads the log.

    On one core the whole process keeps to it: `local[1]` alone leaves the JVM's scheduler and network the others.
    """
    load = os.getloadavg()[0]
    if load >= QUIET and "cores" not in arguments.cases:
        print(f"  not measured: the load average is {load:.1f}")
        return True
    path = logs(directory, SHAPES["large"], arguments.cores_mib)
    available = sorted(os.sched_getaffinity(0))
    audits = [
        in_a_process(f"local[{number}]", [path] * WARM_AUDITS, frozenset(available[:number]))[1:] for number in (1, 2)
    ]
    one, two = (min(turns, key=lambda audit: audit.seconds) for turns in audits)
    reads = [max(audit.stages, key=lambda stage: stage.seconds).seconds for audit in (one, two)]
    print(f"  {arguments.cores_mib} MiB, load {load:.1f}; reading stage {reads[0]:.2f} and {reads[1]:.2f} s, "
          f"{reads[0] / reads[1]:.2f} times as fast; CPU seconds {one.cpu:.2f} and {two.cpu:.2f}")  # fmt: skip
    text = f"a warm audit {one.seconds:.2f} and {two.seconds:.2f} s, {one.seconds / two.seconds:.2f} times as fast"
    return verdict(text, one.seconds / two.seconds >= SPEED_UP)


def verdict(text: str, kept: bool) -> bool:
    """Print a line that says whether a limit is kept; return it."""
    print(f"  {text}{'' if kept else '  BROKEN'}", flush=True)
    return kept


CASES = {case.__name__: case for case in (exchange, pieces, results, engines, cores)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--mib", type=int, default=256, help="size of each log")
    parser.add_argument("--cores-mib", type=int, default=4096, help="size of the log for the case cores")
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--master", choices=MASTERS, action="append", help="for the case engines")
    parser.add_argument("--directory", type=Path, help="where logs are kept for the next run")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        master, *paths = arguments.inside
        print(msgspec.json.encode(measure(master, paths)).decode())
        return 0
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    kept = True
    with tempfile.TemporaryDirectory(prefix="kaudit-bench-") as temporary:
        for name in arguments.cases or CASES:
            print(f"{name} (load {os.getloadavg()[0]:.1f})", flush=True)
            kept &= CASES[name](arguments, arguments.directory or Path(temporary))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
