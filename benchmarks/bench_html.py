"""The page of a large log: seconds, memory and size of `kaudit scan --output-format html`, beside the same scan as JSON.

    uv run python -m benchmarks.bench_html [--runs 1000000] [--producers 10000] [--directory DIR]

Every batch is a transaction with its marker, producers in turn by chance: as many runs as batches, nothing to merge.
Prints one JSON object.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import crc32c

from benchmarks.generate import CONTROL, HEAD, TAIL, TRANSACTIONAL, record

SEGMENT_BYTES = 100_000_000
FLUSH = 20_000
BUDGET = 5_000_000


def write_log(directory: Path, producers: int, runs: int) -> int:
    """Write the log; return its bytes."""
    directory.mkdir(parents=True)
    rng = random.Random(7)
    offset = total = 0
    sequences = [0] * producers
    marker = record(0, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 3))
    written = 0
    while written < runs:
        with (directory / f"{offset:020d}.log").open("wb") as segment:
            while written < runs and segment.tell() < SEGMENT_BYTES:
                block = bytearray()
                for _ in range(min(FLUSH, runs - written)):
                    producer, count = rng.randrange(producers), rng.randrange(1, 4)
                    records = b"".join(record(delta, None, b"value") for delta in range(count))
                    at = 1_700_000_000_000 + offset
                    block += batch(offset, at, producer, sequences[producer], count, TRANSACTIONAL, records)
                    block += batch(offset + count, at, producer, -1, 1, TRANSACTIONAL | CONTROL, marker)
                    sequences[producer] += count
                    offset += count + 1
                    written += 1
                segment.write(block)
            total += segment.tell()
    return total


def batch(offset: int, at: int, producer: int, sequence: int, count: int, flags: int, records: bytes) -> bytes:
    tail = TAIL.pack(flags, count - 1, at, at, producer, 0, sequence, count) + records
    return HEAD.pack(offset, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail


def run(directory: Path, form: str) -> dict[str, object]:
    """Scan; return seconds, greatest resident MB and the size of the report."""
    target = directory.parent / f"report.{form}"
    command = [sys.executable, "-m", "kaudit", "scan", "-q", "--reproducible", "--jobs", "1", "--output-format"]
    started = time.monotonic()
    process = subprocess.Popen([*command, f"{form}:{target}", str(directory)])
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    # ru_maxrss counts KiB on Linux, bytes on macOS
    unit = 1024 if sys.platform == "linux" else 1
    seconds = round(time.monotonic() - started, 1)
    return {"seconds": seconds, "MB": round(usage.ru_maxrss * unit / 1e6), "bytes": target.stat().st_size}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--producers", type=int, default=10_000)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        directory = Path(place) / "orders-0"
        size = write_log(directory, options.producers, options.runs)
        result: dict[str, object] = {"runs": options.runs, "producers": options.producers, "log_bytes": size}
        result |= {form: run(directory, form) for form in ("json", "html")}
        page = (directory.parent / "report.html").read_bytes()
    print(json.dumps(result))
    return 0 if len(page) <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
