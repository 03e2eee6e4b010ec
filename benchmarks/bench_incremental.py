"""`kaudit scan --state`: what the second audit of a log costs that grew by one percent, beside the first.

    python -m benchmarks.bench_incremental [--mib 1024] [--shape large] [--engine local] [--rounds 3] [--directory DIR]

Each figure is of a process of its own, which audits a small log twice before, so that nothing but the audit's own work counts:
CPU seconds of all processes, with Spark those of the JVM and its workers, one process with the local engine. Printed is the least
of the rounds, which other work on the machine changes least: without a state, the first audit with one, the second, and the second
as a share of the first; and the bytes of the state. Exit code 1: LIMIT is broken.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.partition_logs import SHAPES, logs
from benchmarks.process_tree import cpu_seconds

LIMIT = 0.05
"""Of the second audit, as a share of the first."""
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


def measure(engine_name: str, state: str, small: str, path: str) -> float:
    """Audit a small log twice, then this one; return the CPU seconds of the last audit, of all processes."""
    from kaudit.analysis.scan.options import ScanOptions, SilentProgress  # noqa: PLC0415
    from kaudit.engines import local, spark  # noqa: PLC0415 - only in the measured process
    from kaudit.engines.spark_session import SparkOptions, session  # noqa: PLC0415
    from kaudit.model.result import ScanResult  # noqa: PLC0415

    small_options = ScanOptions([small], jobs=1, state=f"{state}-small" if state else None)
    options = ScanOptions([path], jobs=1, state=state or None)

    def audited(scan: Callable[[ScanOptions, SilentProgress], ScanResult]) -> float:
        for _ in range(2):
            scan(small_options, SilentProgress())
        started = cpu_seconds()
        scan(options, SilentProgress())
        return cpu_seconds() - started

    if engine_name == "local":
        return audited(local.scan)
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false"]), None):
        return audited(spark.scan)


def in_a_process(engine: str, state: Path | None, small: Path, root: Path) -> float:
    """Measure in a process of its own."""
    own = ["--one", engine, "" if state is None else str(state), str(small), str(root)]
    command = [sys.executable, "-m", "benchmarks.bench_incremental", *own]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(answer.stdout))


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
        small = logs(Path(temporary, "warm"), SHAPES["large"], 1)
        for name in options.shape or SHAPES:
            root = logs(Path(temporary), SHAPES[name], options.mib)
            turns, size = [], 0
            for number in range(options.rounds):
                state = Path(temporary, f"state-{name}-{number}")
                new = cut(root)
                without = in_a_process(options.engine, None, small, root)
                first = in_a_process(options.engine, state, small, root)
                for segment, content in new.items():
                    with segment.open("ab") as file:
                        file.write(content)
                turns.append((without, first, in_a_process(options.engine, state, small, root)))
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
