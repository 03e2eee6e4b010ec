"""Digests: what `kaudit diff --fingerprint` costs beside `kaudit diff`, `kaudit scan --digests` beside `kaudit scan`, and their documents' sizes.

    uv run python -m benchmarks.bench_fingerprint [--mebibytes 128] [--rounds 5] [--directory DIR]

Prints medians of CPU seconds (one process) and their ratio by turns, for batches of 113 bytes and of 16 KiB, and the bytes of
a fingerprint of one partition and of a thousand, as one JSON object. `diff` reads two replicas, the others one.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import crc32c

HEAD, TAIL = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
SEGMENT_BYTES = 64 << 20


def write_log(partition: Path, size: int, batch_bytes: int) -> None:
    """Write batches of one producer; the CRC does not cover the base offset, so one body serves many."""
    partition.mkdir(parents=True)
    count = max(1, batch_bytes // 200)
    body = TAIL.pack(0, count - 1, 1, 1, -1, -1, -1, count) + b"\0" * (batch_bytes - 61)
    rest = HEAD.pack(0, 9 + len(body), 0, 2, crc32c.crc32c(body))[8:] + body
    offset, written = 0, 0
    while written < size:
        with (partition / f"{offset:020d}.log").open("wb") as segment:
            for _ in range(min(SEGMENT_BYTES, size - written) // batch_bytes + 1):
                written += segment.write(offset.to_bytes(8, "big") + rest)
                offset += count


def cpu_seconds(*arguments: str) -> float:
    process = subprocess.Popen([sys.executable, "-m", "kaudit", *arguments, "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


def document_bytes(directory: Path) -> int:
    command = [sys.executable, "-m", "kaudit", "diff", "--fingerprint", "-q", str(directory)]
    return len(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    result: dict[str, object] = {"mebibytes": options.mebibytes, "rounds": options.rounds}
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        for batch_bytes in (113, 16 << 10):
            log, copy = (Path(place) / f"{batch_bytes}-{name}" for name in ("log", "copy"))
            for directory in (log, copy):
                write_log(directory / "orders-0", options.mebibytes << 20, batch_bytes)
            turns = [
                (
                    cpu_seconds("diff", "--jobs", "1", "--fingerprint", str(log)),
                    cpu_seconds("diff", "--jobs", "1", str(log), str(copy)),
                    cpu_seconds("scan", "--jobs", "1", "--digests", str(log)),
                    cpu_seconds("scan", "--jobs", "1", str(log)),
                )
                for _ in range(options.rounds)
            ]
            ratio = statistics.median(fingerprint / diff for fingerprint, diff, _, _ in turns)
            named = statistics.median(digests / scan for _, _, digests, scan in turns)
            result[f"batches of {batch_bytes} bytes"] = {
                "fingerprint_cpu_s": round(statistics.median(turn[0] for turn in turns), 3),
                "diff_of_two_cpu_s": round(statistics.median(turn[1] for turn in turns), 3),
                "ratio": round(ratio, 3),
                "scan_digests_cpu_s": round(statistics.median(turn[2] for turn in turns), 3),
                "scan_cpu_s": round(statistics.median(turn[3] for turn in turns), 3),
                "scan_ratio": round(named, 3),
                "document_bytes": document_bytes(log),
            }
        site = Path(place) / "site"
        for number in range(1000):
            write_log(site / f"orders-{number}", 100_000, 113)
        result["document_bytes of 1,000 partitions"] = document_bytes(site)
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
