"""Scans inside one process, start-up not counted, beside one CRC pass over the same bytes: CPU time, interleaved.

    uv run python -m benchmarks.inside ROUNDS DIRECTORY... [--depth DEPTH]

prints one JSON object a directory (one partition of one segment each).
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks.peers import crc
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
    passes: dict[Path, float] = {}
    batches: dict[Path, int] = {}
    for _ in range(options.rounds):
        for directory in options.directories:
            for depth in depths:
                asked = ScanOptions([str(directory)], jobs=1, depth=depth)
                seconds = cpu_seconds(lambda asked=asked: local.scan(asked, SilentProgress()))
                scans[directory, depth] = min(seconds, scans.get((directory, depth), seconds))
            (segment,) = directory.glob("*.log")
            seconds = cpu_seconds(lambda segment=segment: crc(segment))
            passes[directory] = min(seconds, passes.get(directory, seconds))
            batches[directory] = batches.get(directory) or _batches(directory)
    for directory in options.directories:
        print(
            json.dumps(
                {
                    "directory": str(directory),
                    "batches": batches[directory],
                    "crc_pass": passes[directory],
                    "scan": {depth.value: scans[directory, depth] for depth in depths},
                }
            )
        )


def _batches(directory: Path) -> int:
    return local.scan(ScanOptions([str(directory)], jobs=1), SilentProgress()).summary.batches


if __name__ == "__main__":
    main()
