"""What the driver of an audit on Spark holds: its Python's peak memory, and the bytes of results, as the input's parts grow.

    python -m benchmarks.bench_spark_driver [findings timelines partitions segments] [--scale 1.0] [--master local[2]]

Each case is run at a third of its size and at its whole size, each in a process of its own: bytes each are the difference. Cases:
gaps of one partition (113,000 findings), a partition with 200,000 producer ids whose timelines are written as tables, 5,000
partitions, and 100,000 segments, which are listed and planned and not read.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.analysis.scan.planning import all_needs, find_input, plan_jobs
from kaudit.engines import spark
from kaudit.engines.spark_plan import share
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.report.render_options import RenderOptions
from kaudit.report.streamed_tables import recorded_tables
from tests.logs import Log, data

MIB = 1 << 20


def findings(root: Path, number: int) -> None:
    """One producer with so many gaps, no two alike in a row."""
    log = Log()
    sequence = 0
    for index in range(number):
        log.append(data(100, 0, sequence))
        sequence = (sequence + 2 + index * index % 97 + index % 11) % (1 << 31)
    log.write(root / "orders-0")


def timelines(root: Path, number: int) -> None:
    """So many producer ids with two batches each."""
    log = Log()
    for sequence in range(2):
        for producer_id in range(number):
            log.append(data(producer_id, 0, sequence))
    log.write(root / "orders-0")


def partitions(root: Path, number: int) -> None:
    """So many partitions of one small segment."""
    log = Log()
    for sequence in range(5):
        log.append(data(100, 0, sequence))
    content = b"".join(batch.encode() for batch in log.batches)
    for partition in range(number):
        directory = root / f"orders-{partition}"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(content)


def segments(root: Path, number: int) -> None:
    """One partition of so many segments of one batch each, of which only names and sizes are read."""
    directory = root / "orders-0"
    directory.mkdir(parents=True)
    content = data(100, 0, 0).encode()
    for offset in range(number):
        (directory / f"{offset:020d}.log").write_bytes(content)


CASES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "findings": (findings, 113_000),
    "timelines": (timelines, 200_000),
    "partitions": (partitions, 5_000),
    "segments": (segments, 100_000),
}


def measure(case: str, root: Path, master: str) -> dict[str, object]:
    """Audit, or list and plan; return seconds, and by how much the process has grown."""

    options = ScanOptions([str(root)])
    with session(SparkOptions(master, ["spark.ui.enabled=false"]), None):
        before, started = _peak(), time.monotonic()
        findings_count = 0
        if case == "segments":
            plan = share(plan_jobs(options, find_input(options), all_needs), 100)
            findings_count = len(plan.works)
        elif case == "timelines":
            with spark.record(options, SilentProgress()) as recorded:
                view = RenderOptions(recorded={None: recorded})
                tables = recorded_tables(recorded.result, view)
                assert tables.write_to is not None
                tables.write_to(f"{root.parent.as_uri()}/tables/run_id=bench")
        else:
            result = spark.scan(options, SilentProgress())
            findings_count = sum(result.summary.findings.values())
        seconds = time.monotonic() - started
    return {"seconds": round(seconds, 1), "grown": _peak() - before, "counted": findings_count}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Print a line for each case and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--inside", nargs=2, metavar=("CASE", "DIRECTORY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments.inside[0], Path(arguments.inside[1]), arguments.master)))
        return 0
    for case in arguments.cases or CASES:
        make, whole = CASES[case]
        grown: dict[int, int] = {}
        for number in (int(whole * arguments.scale / 3), int(whole * arguments.scale)):
            with tempfile.TemporaryDirectory() as directory:
                make(Path(directory, "logs"), number)
                command = [sys.executable, "-m", "benchmarks.bench_spark_driver", "--master", arguments.master]
                done = subprocess.run(
                    [*command, "--inside", case, str(Path(directory, "logs"))],
                    capture_output=True,
                    text=True,
                    check=True,
                )
            found = json.loads(done.stdout.strip().splitlines()[-1])
            grown[number] = found["grown"]
            print(
                f"{case:12} {number:>8,}  driver's Python +{found['grown'] / MIB:.0f} MiB  {found['seconds']} s  {found}",
                flush=True,
            )
        few, many = grown
        print(f"{case:12} {(grown[many] - grown[few]) / (many - few):,.0f} bytes each", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
