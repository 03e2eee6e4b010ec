"""A million producer ids in one log: time and memory of `kaudit producers --summary`, and CPU time of it and of `timeline`.

    uv run python benchmarks/bench_producers.py [--ids 1000000] [--directory DIR] [--jobs N] [--rounds N]

Prints seconds, the greatest resident memory of the process that joins them (limit: 500 MB), and the CPU time of `producers` and
`timeline` as multiples of that of `scan` (limit: 1.5; the least of --rounds by turns), as one JSON object. Every
id writes one batch, every second one another: the shape of an application that opens producers in a loop.
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import crc32c

LIMIT_MB = 500
LIMIT_RATIO = 1.5
SEGMENT_BYTES = 100_000_000
BATCHES_AT_ONCE = 20_000
RECORD = bytes([0x12, 0, 0, 0, 1, 6]) + b"abc" + b"\0"
HEAD = struct.Struct(">qiibI")
TAIL = struct.Struct(">hiqqqhii")


def write_log(directory: Path, ids: int) -> tuple[int, int]:
    """Write the log; return (batches, bytes)."""
    directory.mkdir(parents=True, exist_ok=True)
    offset, total = 0, 0
    while offset < ids + ids // 2:
        path = directory / f"{offset:020d}.log"
        with path.open("wb") as segment:
            written = 0
            while written < SEGMENT_BYTES and offset < ids + ids // 2:
                block = bytearray()
                for _ in range(min(BATCHES_AT_ONCE, ids + ids // 2 - offset)):
                    # the second batch of an id comes a million ids later
                    producer_id, sequence = (offset, 0) if offset < ids else ((offset - ids) * 2, 1)
                    at = 1_700_000_000_000 + offset
                    tail = TAIL.pack(0, 0, at, at, producer_id, 0, sequence, 1) + RECORD
                    block += HEAD.pack(offset, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail
                    offset += 1
                segment.write(block)
                written += len(block)
            total += written
    return offset, total


def run(directory: Path, jobs: int) -> tuple[float, float, dict[str, object]]:
    """Return (seconds, greatest resident MB, the figures of the ids)."""
    command = [sys.executable, "-m", "kaudit", "producers", "--summary", "--output-format", "json", "-q"]
    started = time.monotonic()
    process = subprocess.Popen([*command, "--jobs", str(jobs), str(directory)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    document = json.load(process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    # ru_maxrss counts KiB on Linux, bytes on macOS
    unit = 1024 if sys.platform == "linux" else 1
    return time.monotonic() - started, usage.ru_maxrss * unit / 1e6, document["summary"]["ids"]


def ratios(directory: Path, jobs: int, rounds: int) -> dict[str, float]:
    """Return the CPU time of each command, the text of a timeline included, as a multiple of that of `scan`."""
    least = dict.fromkeys(("scan", "producers", "timeline"), math.inf)
    for _ in range(rounds):
        for command in least:
            arguments = [sys.executable, "-m", "kaudit", command, "-q", "--jobs", str(jobs), str(directory)]
            process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
            usage = os.wait4(process.pid, 0)[2]
            least[command] = min(least[command], usage.ru_utime + usage.ru_stime)
    return {command: round(seconds / least["scan"], 2) for command, seconds in least.items() if command != "scan"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        directory = Path(place) / "flood-0"
        batches, size = write_log(directory, options.ids)
        seconds, megabytes, figures = run(directory, options.jobs)
        times_scan = ratios(directory, options.jobs, options.rounds)
    assert figures["found"] == options.ids
    assert figures["batches"] == batches
    result = {
        "ids": options.ids,
        "batches": batches,
        "bytes": size,
        "jobs": options.jobs,
        "seconds": round(seconds, 1),
        "resident_mb": round(megabytes, 1),
        "limit_mb": LIMIT_MB,
        "cpu_times_scan": times_scan,
        "limit_times_scan": LIMIT_RATIO,
    }
    print(json.dumps(result))
    return 0 if megabytes < LIMIT_MB and max(times_scan.values()) <= LIMIT_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
