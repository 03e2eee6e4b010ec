"""Run all benchmarks and print them as Markdown: `uv run python -m benchmarks.run [--output docs/performance-table.md]`.

Every contender is a whole process on the same warm segment; rounds are interleaved, the minimum of each is taken, and
ratios are formed within a shape only. Findings are compared with the truth before anything is measured.
"""

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.dump_log import dump_log_command
from benchmarks.generate import Shape, Truth, generate

SHAPES = (
    Shape("small"),
    Shape("large", records=(16, 16), value_bytes=(1000, 1040), anomalies=1e-4),
    Shape("lz4", records=(16, 16), value_bytes=(1000, 1040), codec="lz4", anomalies=1e-4),
    Shape("zstd", records=(16, 16), value_bytes=(1000, 1040), codec="zstd", anomalies=1e-4),
    Shape("mixed", mixed=0.05),
    Shape("transactional v1", transactions=1),
    Shape("transactional v2", transactions=2),
    Shape("50,000 ids", producers=50_000),
    Shape("sparse ids", stride=10**9 + 7),
)
GROWTH = Shape("growth", value_bytes=(800, 1200), anomalies=0)
GROWTH_GIB = (0.25, 1, 4)
PEERS = Path(__file__).with_name("peers.py")
KAUDIT = [sys.executable, "-m", "kaudit", "scan", "--exit-zero", "-q", "--output-format", "concise"]
MIB = 1 << 20


@dataclass
class Cost:
    """Least wall time, user and system time (s), most memory (MiB) of several runs."""

    wall: float = float("inf")
    cpu: float = float("inf")
    memory: float = 0.0


def run_once(command: list[str], cost: Cost) -> None:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    cost.wall = min(cost.wall, time.perf_counter() - start)
    cost.cpu = min(cost.cpu, usage.ru_utime + usage.ru_stime)
    cost.memory = max(cost.memory, usage.ru_maxrss / 1024)


def contenders(segment: Path, dump_log: list[str] | str) -> dict[str, list[str]]:
    directory = str(segment.parent)
    found = {
        "kaudit": [*KAUDIT, directory],
        "kaudit --jobs 1": [*KAUDIT, "--jobs", "1", directory],
        "--depth headers": [*KAUDIT, "--jobs", "1", "--depth", "headers", directory],
        "CRC pass": [sys.executable, str(PEERS), "crc", str(segment)],
        "cat": ["cat", str(segment)],
        "kafka-python": [sys.executable, str(PEERS), "kafka-python", str(segment)],
        "aiokafka": [sys.executable, str(PEERS), "aiokafka", str(segment)],
    }
    if isinstance(dump_log, list):
        found["kafka-dump-log"] = [*dump_log, str(segment)]
    return found


def check_truth(directory: Path, truth: Truth) -> None:
    command = [sys.executable, "-m", "kaudit", "scan", "--exit-zero", "-q", "--output-format", "json", str(directory)]
    document = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    found = {(entry["code"], entry["offset"]) for entry in document["findings"] if entry["severity"] == "error"}
    if found != truth.findings or document["summary"]["batches"] + _corrupt(truth) != truth.batches:
        raise SystemExit(f"{directory.name}: missed {truth.findings - found}, invented {found - truth.findings}")


def _corrupt(truth: Truth) -> int:
    return sum(code == "KA001" for code, _ in truth.findings)


def measure(segment: Path, dump_log: list[str] | str, rounds: int) -> dict[str, Cost]:
    commands = contenders(segment, dump_log)
    costs = {name: Cost() for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            run_once(command, costs[name])
    return costs


def table(results: list[tuple[Shape, Truth, dict[str, Cost]]]) -> list[str]:
    names = list(results[0][2])
    lines = ["| log | batches | MiB | " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) + 2)]
    for shape, truth, costs in results:
        cells = [shape.name, f"{truth.batches:,}", f"{truth.bytes / MIB:.0f}"]
        cells += [f"{costs[name].wall:.2f}" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def ratios(results: list[tuple[Shape, Truth, dict[str, Cost]]]) -> list[str]:
    """CPU ratios hold on a busy machine too; wall ratios only on a quiet one."""
    lines = [
        "| log | dump-log / kaudit | dump-log / --jobs 1 | CPU: dump-log / --jobs 1 | --jobs 1 / all cores | us a batch, CPU | CPU / CRC pass | MiB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    start, python = start_up()
    for shape, truth, costs in results:
        every, one, crc = costs["kaudit"], costs["kaudit --jobs 1"], costs["CRC pass"]
        java = costs.get("kafka-dump-log")
        times = ["-", "-", "-"]
        if java is not None:
            times = [f"{java.wall / every.wall:.1f}", f"{java.wall / one.wall:.1f}", f"{java.cpu / one.cpu:.1f}"]
        own = one.cpu - start.cpu
        cells = [shape.name, *times, f"{one.wall / every.wall:.2f}", f"{own / truth.batches * 1e6:.2f}"]
        cells += [f"{own / max(crc.cpu - python.cpu, 1e-3):.1f}", f"{one.memory:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Start-up is not in the last CPU columns: kaudit {start.cpu:.2f} s, the CRC pass {python.cpu:.2f} s.",
    ]
    return lines


def start_up() -> tuple[Cost, Cost]:
    """Cost of a scan and of a CRC pass of next to nothing."""
    scan, crc = Cost(), Cost()
    with tempfile.TemporaryDirectory() as name:
        partition = Path(name) / "log-0"
        partition.mkdir()
        segment = partition / f"{0:020d}.log"
        generate(segment, Shape("tiny", anomalies=0), 1000)
        for _ in range(5):
            run_once([*KAUDIT, "--jobs", "1", str(partition)], scan)
            run_once([sys.executable, str(PEERS), "crc", str(segment)], crc)
    return scan, crc


def growth(directory: Path) -> list[str]:
    lines = ["| GiB | s, --jobs 1 | s a GiB | MiB |", "|---:|---:|---:|---:|"]
    for size in GROWTH_GIB:
        partition = directory / "growth-0"
        partition.mkdir()
        segment = partition / f"{0:020d}.log"
        generate(segment, GROWTH, int(size * 1024 * MIB))
        cost = Cost()
        for _ in range(3):
            run_once([*KAUDIT, "--jobs", "1", str(partition)], cost)
        lines.append(f"| {size} | {cost.wall:.2f} | {cost.wall / size:.2f} | {cost.memory:.0f} |")
        segment.unlink()
        partition.rmdir()
    return lines


def machine() -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of each log")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--growth", action="store_true", help="also scan 0.25, 1 and 4 GiB")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kaudit-benchmarks", help="Kafka's jars")
    parser.add_argument("--output", type=Path, help="write the Markdown here too")
    options = parser.parse_args()
    dump_log = dump_log_command(options.cache)
    chosen = [shape for shape in SHAPES if not options.shapes or shape.name in options.shapes.split(",")]
    results = []
    with tempfile.TemporaryDirectory(prefix="kaudit-benchmarks-") as name:
        for number, shape in enumerate(chosen):
            partition = Path(name) / f"log{number}-0"
            partition.mkdir()
            segment = partition / f"{0:020d}.log"
            truth = generate(segment, shape, options.mib * MIB)
            check_truth(partition, truth)
            results.append((shape, truth, measure(segment, dump_log, options.rounds)))
            print(f"{shape.name}: done", file=sys.stderr)
            segment.unlink()
        grown = growth(Path(name)) if options.growth else []
    lines = [
        f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, {machine()}; `{' '.join([Path(sys.argv[0]).name, *sys.argv[1:]])}`",
        "",
    ]
    lines += ["Seconds, whole process, least of the rounds:", "", *table(results), "", *ratios(results)]
    if isinstance(dump_log, str):
        lines += ["", f"kafka-dump-log was not measured: {dump_log}."]
    if grown:
        lines += ["", *grown]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
