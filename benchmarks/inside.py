"""Scans inside one process, start-up not counted, beside passes over the same bytes: CPU time, interleaved.

    uv run python -m benchmarks.inside ROUNDS DIRECTORY... [--depth DEPTH]

prints one JSON object a directory (one partition of one segment each).
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks.peers import crc, numpy_pass
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import Depth, ScanOptions


def cpu_seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--depth", type=Depth, action="append")
    options = parser.parse_args()
    depths = options.depth or [Depth.CRC]
    scans: dict[tuple[Path, Depth], float] = {}
    passes = {"crc_pass": crc, "numpy_pass": numpy_pass}
    passed: dict[tuple[Path, str], float] = {}
    batches: dict[Path, int] = {}
    for _ in range(options.rounds):
        for directory in options.directories:
            for depth in depths:
                asked = ScanOptions([str(directory)], jobs=1, depth=depth)
                seconds = cpu_seconds(lambda asked=asked: local.scan(asked, SilentProgress()))
                scans[directory, depth] = min(seconds, scans.get((directory, depth), seconds))
            (segment,) = directory.glob("*.log")
            for name, run in passes.items():
                seconds = cpu_seconds(lambda run=run, segment=segment: run(segment))
                passed[directory, name] = min(seconds, passed.get((directory, name), seconds))
            batches[directory] = batches.get(directory) or _batches(directory)
    for directory in options.directories:
        print(
            json.dumps(
                {
                    "directory": str(directory),
                    "batches": batches[directory],
                    **{name: passed[directory, name] for name in passes},
                    "scan": {depth.value: scans[directory, depth] for depth in depths},
                }
            )
        )


def _batches(directory: Path) -> int:
    return local.scan(ScanOptions([str(directory)], jobs=1), SilentProgress()).summary.batches


if __name__ == "__main__":
    main()
