"""`kaudit scan --state`: the cost of the second audit of a log that grew by one percent, compared with the first.

    python -m benchmarks.bench_incremental [--mib 1024] [--shape large] [--engine local] [--rounds 3] [--directory DIR]

Each round is a process of its own, which audits a small log twice before, so that nothing but the audit's own work counts, not the
start of Spark's session: CPU seconds of all processes, with Spark those of the JVM and its workers, one process with the local engine.
Printed is the least of the rounds, which other work on the machine changes least: without a state, the first audit with one, the
second, and the second as a share of the first; and the bytes of the state. Logs stay in --directory for the next run. Exit code 1:
LIMIT is broken.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.partition_logs import SHAPES, logs
from benchmarks.process_tree import cpu_seconds

LIMIT = 0.05
"""Maximum cost of the second audit, as a share of the first."""
NEW = 0.01
_LENGTH = 8


def boundary(content: memoryview, at: int) -> int:
    """Return where the first batch begins at or after a position; batches follow one another from the first byte."""
    position = 0
    while position < at:
        position += 12 + int.from_bytes(content[position + _LENGTH : position + 12], "big")
    return position


def cut(root: Path) -> dict[Path, bytes]:
    """Take the last percent of each segment away; return it."""
    new = {}
    for segment in sorted(root.rglob("*.log")):
        content = segment.read_bytes()
        at = boundary(memoryview(content), round(len(content) * (1 - NEW)))
        new[segment] = content[at:]
        with segment.open("r+b") as file:
            file.truncate(at)
    return new


def measure(engine_name: str, state: str, small: str, path: str) -> tuple[float, float, float]:
    """Return the CPU seconds, of all processes, of an audit without a state, the first with one, and the second.

    A small log is audited twice before, and the log has its last percent back when this ends.
    """
    from kaudit.engines import local  # noqa: PLC0415 - only in the measured process
    from kaudit.engines.progress import SilentProgress  # noqa: PLC0415
    from kaudit.model.result import ScanResult  # noqa: PLC0415
    from kaudit.scanning.options import ScanOptions  # noqa: PLC0415
    from kaudit.spark import engine as spark  # noqa: PLC0415 - only in the measured process
    from kaudit.spark.session import SparkOptions, session  # noqa: PLC0415

    # without the git that a checkout, unlike an installed kaudit, asks for its commit
    clock = time.process_time if engine_name == "local" else cpu_seconds

    def cost(scan: Callable[[ScanOptions, SilentProgress], ScanResult], log: str, state: str | None) -> float:
        started = clock()
        scan(ScanOptions([log], jobs=1, state=state), SilentProgress())
        return clock() - started

    def costs(scan: Callable[[ScanOptions, SilentProgress], ScanResult]) -> tuple[float, float, float]:
        for _ in range(2):
            cost(scan, small, f"{state}-small")
        new = cut(Path(path))
        try:
            without, first = cost(scan, path, None), cost(scan, path, state)
        finally:
            for segment, content in new.items():
                with segment.open("ab") as file:
                    file.write(content)
        return without, first, cost(scan, path, state)

    if engine_name == "local":
        return costs(local.scan)
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false"]), None):
        return costs(spark.scan)


def in_a_process(engine: str, state: Path, small: Path, root: Path) -> list[float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_incremental", "--one", engine, str(state), str(small), str(root)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: list[float] = json.loads(answer.stdout.splitlines()[-1])
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return 0
    kept = True
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        small = logs(options.directory or Path(temporary), SHAPES["large"], 1)
        for name in options.shape or SHAPES:
            root = logs(options.directory or Path(temporary), SHAPES[name], options.mib)
            turns, size = [], 0
            for number in range(options.rounds):
                state = Path(temporary, f"state-{name}-{number}")
                turns.append(in_a_process(options.engine, state, small, root))
                size = sum(file.stat().st_size for file in state.rglob("*") if file.is_file())
            least = [min(column) for column in zip(*turns, strict=True)]
            ratio = least[2] / least[1]
            kept = kept and ratio < LIMIT
            shown = ", ".join(f"{seconds:.3f}" for seconds in least)
            print(
                f"{name}, {options.mib} MiB, {options.engine}: without, first, second: {shown} CPU s; second/first "
                f"{ratio:.1%}{'' if ratio < LIMIT else '  BROKEN'}; state {size:,} bytes",
                flush=True,
            )
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
