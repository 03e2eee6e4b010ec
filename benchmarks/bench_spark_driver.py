"""What the driver of an audit on Spark holds: its Python's peak memory, and the bytes of results, as the input's parts grow.

    python -m benchmarks.bench_spark_driver [findings timelines producers partitions segments listing] [--scale 1.0] [--master local[2]]

Each case is run at a third, at half and at the whole of its size, each in a process of its own: bytes each are the slope of the
least-squares line through the three. Cases: gaps of one partition (113,000 findings), a partition with 200,000 producer ids whose
timelines are written as tables, and one whose ids are listed and written as tables, 5,000 partitions, 100,000 segments of one partition, which are listed and planned and not read,
and so are 1,000,000 segments in 100,000 partitions of a store that is simulated.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from kaudit.analysis.producer_ids.query import Query
from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.analysis.scan.planning import all_needs, find_input, plan_jobs
from kaudit.analysis.scan.shuffle_codec import pack
from kaudit.engines import spark
from kaudit.engines.spark_plan import share
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.report.render_options import RenderOptions
from kaudit.report.streamed_tables import listed_producers, recorded_tables
from kaudit.source.filesystem import FileStatus
from kaudit.source.uri import Uri
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


def nothing(root: Path, number: int) -> None:
    """Its files are simulated."""


class Store:
    """A file system of so many segments of 1 GiB, ten a partition, each with its two indexes, as a broker leaves them."""

    is_remote = False

    def __init__(self, segments: int) -> None:
        self._partitions = segments // 10

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
            for number in range(10)
            for suffix, size in ((".index", 2 << 20), (".log", 1 << 30), (".timeindex", 3 << 20))
        ]

    def identity(self, uri: Uri) -> str:
        return str(uri)

    def read_start(self, uri: Uri, limit: int) -> bytes:  # noqa: ARG002 - as of file systems
        raise FileNotFoundError(2, "no such file", str(uri))


CASES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "findings": (findings, 113_000),
    "timelines": (timelines, 200_000),
    "producers": (timelines, 200_000),
    "partitions": (partitions, 5_000),
    "segments": (segments, 100_000),
    "listing": (nothing, 1_000_000),
}


def measure(case: str, root: Path, master: str, number: int) -> dict[str, object]:
    """Audit, or list and plan; return seconds, and by how much the process has grown."""
    options = ScanOptions([str(root)])
    if case in ("segments", "listing"):
        before, started = _peak(), time.monotonic()
        if case == "listing":
            with patch("kaudit.source.schemes._connect", return_value=Store(number)):
                layout = find_input(ScanOptions(["webhdfs://store/"]))
        else:
            layout = find_input(options)
        listed = time.monotonic() - started
        jobs = plan_jobs(options, layout, all_needs)
        plan = share(jobs, 100)
        packed = sum(len(pack(work)) for work in plan.works)
        more = {"counted": len(plan.works), "listing": round(listed, 1), "packed": packed}
        return {"seconds": round(time.monotonic() - started, 1), "grown": _peak() - before, **more}
    with session(SparkOptions(master, ["spark.ui.enabled=false"]), None):
        before, started = _peak(), time.monotonic()
        findings_count = 0
        if case == "timelines":
            with spark.record(options, SilentProgress()) as recorded:
                view = RenderOptions(recorded={None: recorded})
                tables = recorded_tables(recorded.result, view)
                assert tables.write_to is not None
                tables.write_to(f"{root.parent.as_uri()}/tables/run_id=bench")
        elif case == "producers":
            with spark.listed_producers(options, SilentProgress(), Query()) as found:
                tables = listed_producers(found.result, RenderOptions(listed=found.tables))
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
    parser.add_argument("--inside", nargs=3, metavar=("CASE", "DIRECTORY", "NUMBER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        case, root, number = arguments.inside
        print(json.dumps(measure(case, Path(root), arguments.master, int(number))))
        return 0
    for case in arguments.cases or CASES:
        make, whole = CASES[case]
        grown: dict[int, int] = {}
        for number in (int(whole * arguments.scale / part) for part in (3, 2, 1)):
            with tempfile.TemporaryDirectory() as directory:
                make(Path(directory, "logs"), number)
                command = [sys.executable, "-m", "benchmarks.bench_spark_driver", "--master", arguments.master]
                done = subprocess.run(
                    [*command, "--inside", case, str(Path(directory, "logs")), str(number)],
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
        line = statistics.linear_regression(list(grown), list(grown.values()))
        print(f"{case:12} {line.slope:,.0f} bytes each, and {line.intercept / MIB:,.0f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
