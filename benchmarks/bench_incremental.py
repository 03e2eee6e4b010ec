"""`kaudit scan --state`: what the second audit of a log costs that grew by one percent, beside the first.

    python -m benchmarks.bench_incremental [--mib 1024] [--shape large] [--engine local] [--rounds 3] [--directory DIR]

Each figure is a process of its own, which scans a small log first, so that nothing but the audit's own work is timed: CPU
seconds of one process with the local engine, wall clock with Spark. Printed are medians: without a state, the first audit
with one, the second, and the second as a share of the first; and the bytes of the state. Exit code 1: LIMIT is broken.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.partition_logs import SHAPES, logs

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
    """Audit a small log, then this one; return the seconds of the second."""
    from kaudit.analysis.scan.options import ScanOptions, SilentProgress  # noqa: PLC0415
    from kaudit.engines import local, spark  # noqa: PLC0415 - only in the measured process
    from kaudit.engines.spark_session import SparkOptions, session  # noqa: PLC0415

    asked = ScanOptions([path], jobs=1, state=state or None)
    if engine_name == "local":
        local.scan(ScanOptions([small], jobs=1, state=f"{state}-small" if state else None), SilentProgress())
        started = time.process_time()
        local.scan(asked, SilentProgress())
        return time.process_time() - started
    with session(SparkOptions("local[2]"), None):
        spark.scan(ScanOptions([small], state=f"{state}-small" if state else None), SilentProgress())
        started = time.perf_counter()
        spark.scan(asked, SilentProgress())
        return time.perf_counter() - started


def seconds(engine: str, state: Path | None, small: Path, root: Path) -> float:
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
                without = seconds(options.engine, None, small, root)
                first = seconds(options.engine, state, small, root)
                for segment, content in new.items():
                    with segment.open("ab") as file:
                        file.write(content)
                turns.append((without, first, seconds(options.engine, state, small, root)))
                size = sum(file.stat().st_size for file in state.rglob("*") if file.is_file())
            ratio = statistics.median(second / first for _, first, second in turns)
            kept = kept and ratio < LIMIT
            shown = ", ".join(f"{statistics.median(column):.3f}" for column in zip(*turns, strict=True))
            print(
                f"{name}, {options.mib} MiB, {options.engine}: without, first, second: {shown} s; second/first "
                f"{ratio:.1%}{'' if ratio < LIMIT else '  BROKEN'}; state {size:,} bytes",
                flush=True,
            )
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
