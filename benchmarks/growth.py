"""How time and memory of `kaudit scan` grow with bytes, findings, producer ids, segments and partitions.

    uv run python -m benchmarks.growth [--page docs/performance.md] [--axes GiB,findings] [--most NUMBER] [--rounds 2]

Along an axis one number grows and everything else stays as it is. Prints Markdown tables, or writes them into the page. Exit
code 1 if an axis is not linear: a unit of its last step costs more than LIMIT times a unit of the steps before it. By GiB that is
what is beyond the cost of cat, which bends where the page cache is full.
"""

import argparse
import datetime as dt
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import crc32c
import numpy as np

from benchmarks.dump_log import dump_log_command
from benchmarks.generate import FIRST_TIMESTAMP, HEAD, TAIL, record
from benchmarks.processes import KAUDIT, PEERS, Cost, Runner, machine
from kaudit.report.text.generated_pages import write_section

LIMIT = 1.5
MEASURABLE = 0.2, 20.0
"""CPU s and MB that the steps before the last one must cost for the slopes to be compared."""
GIB = 1 << 30
SPARSE_BATCH = 1 << 16
GAPS, CUT, IDS = 1_000_000, 100_000, 2_000_000
"""Batches of the logs with gaps, of those in segments and partitions, and of those with producer ids."""
GAP_PARTITIONS = 10
"""Of each partition 100,000 findings are listed."""
RECORD = record(0, None, b"a value of some bytes")
BATCH = np.dtype(
    [
        *(("offset", ">i8"), ("length", ">i4"), ("leader epoch", ">i4"), ("magic", "i1"), ("crc", ">u4")),
        *(("attributes", ">i2"), ("last offset delta", ">i4"), ("first timestamp", ">i8"), ("max timestamp", ">i8")),
        *(("producer id", ">i8"), ("epoch", ">i2"), ("sequence", ">i4"), ("records", ">i4")),
        ("body", "u1", len(RECORD)),
    ]
)
MARKS = (
    "<!-- growth by {0}: written by python -m benchmarks.growth --page docs/performance.md -->",
    "<!-- end of growth by {0} -->",
)


class Axis(NamedTuple):
    """What grows, by which numbers, and what writes a log of one of them below a directory."""

    name: str
    one: str
    counts: tuple[int, ...]
    write: Callable[[Path, int], None]
    all_else: str
    unit: int = 1


def write_gib(root: Path, gib: int) -> None:
    """One partition of sparse segments of a GiB: batches of 64 KiB whose record is zeros, which take a block of the disk each."""
    body = record(0, None, bytes(SPARSE_BATCH))
    body = record(0, None, bytes(2 * SPARSE_BATCH - len(body) - HEAD.size - TAIL.size))
    beginning = body.rstrip(b"\0")
    number = 0
    for _ in range(gib):
        with segment_of(root / "log-0", number).open("wb") as file:
            for at in range(0, GIB, SPARSE_BATCH):
                when = FIRST_TIMESTAMP + number
                tail = TAIL.pack(0, 0, when, when, 1000 + number % 50, 0, number // 50, 1)
                head = HEAD.pack(number, SPARSE_BATCH - 12, 0, 2, crc32c.crc32c(body, crc32c.crc32c(tail)))
                os.pwrite(file.fileno(), head + tail + beginning, at)
                number += 1
            file.truncate(GIB)


def write_gaps(root: Path, gaps: int) -> None:
    """One producer in each partition; sequences are missing before that many of its batches, as many as nowhere near."""
    steps = np.ones((GAP_PARTITIONS, GAPS // GAP_PARTITIONS + 1), np.int64)
    index = np.arange(gaps)
    # partition by partition in turn, and within each as far apart as there is room
    where = 1 + index // GAP_PARTITIONS * (GAPS // max(gaps, GAP_PARTITIONS))
    steps[index % GAP_PARTITIONS, where] += 1 + index**2 % 97 + index % 11
    for partition, own in enumerate(steps):
        write_batches(root / f"log-{partition}", np.full(len(own), 1000 + partition), np.cumsum(own) - 1)


def write_ids(root: Path, ids: int) -> None:
    """Producers write in turn."""
    number = np.arange(IDS)
    write_batches(root / "log-0", 1000 + number % ids, number // ids)


def write_segments(root: Path, segments: int) -> None:
    """One producer in one partition."""
    number = np.arange(CUT)
    for part in np.array_split(number, segments):
        write_batches(root / "log-0", np.full(len(part), 1000), part, int(part[0]))


def write_partitions(root: Path, partitions: int) -> None:
    """One producer, and one segment in each partition."""
    for index, part in enumerate(np.array_split(np.arange(CUT), partitions)):
        write_batches(root / f"log-{index}", np.full(len(part), 1000), part - part[0])


def write_batches(partition: Path, producer_ids: np.ndarray, sequences: np.ndarray, base_offset: int = 0) -> None:
    """Write a segment of a batch of one record for each producer id and sequence."""
    made = np.zeros(len(producer_ids), BATCH)
    made["offset"] = np.arange(base_offset, base_offset + len(made))
    made["length"], made["magic"], made["records"] = BATCH.itemsize - 12, 2, 1
    made["first timestamp"] = made["max timestamp"] = FIRST_TIMESTAMP + made["offset"]
    made["producer id"], made["sequence"] = producer_ids, sequences
    made["body"] = np.frombuffer(RECORD, np.uint8)
    content, step = memoryview(made.tobytes()), BATCH.itemsize
    made["crc"] = [crc32c.crc32c(content[at + HEAD.size : at + step]) for at in range(0, len(content), step)]
    made.tofile(segment_of(partition, base_offset))


def segment_of(partition: Path, base_offset: int) -> Path:
    partition.mkdir(parents=True, exist_ok=True)
    return partition / f"{base_offset:020d}.log"


AXES = (
    Axis("GiB", "byte", (1, 4, 16), write_gib, "one partition, batches of 64 KiB, segments of a GiB", GIB),
    Axis(
        "findings",
        "finding",
        (1, 1000, 100_000, GAPS),
        write_gaps,
        f"{GAPS + GAP_PARTITIONS:,} batches, a producer in each of {GAP_PARTITIONS} partitions",
    ),
    Axis("producer ids", "id", (1, 1000, 100_000, 1_000_000, IDS), write_ids, f"{IDS:,} batches"),
    Axis("segments", "segment", (1, 1000, 10_000, CUT), write_segments, f"{CUT:,} batches of one partition"),
    Axis("partitions", "partition", (1, 1000, 10_000, CUT), write_partitions, f"{CUT:,} batches"),
)


def table(
    runner: Runner, place: Path, axis: Axis, rounds: int, dump_log: list[str] | str
) -> tuple[list[str], list[str]]:
    """Measure an axis; return its table, and a line for each of time and memory that does not grow linearly."""
    lines: list[str] = []
    points: list[Cost] = []
    beyond_cat: list[Cost] = []
    for count in axis.counts:
        root = place / axis.one
        axis.write(root, count)
        commands = {"kaudit": [*KAUDIT, "--jobs", "1", str(root)]}
        if axis.one == "byte":
            commands |= peers(sorted(map(str, root.rglob("*.log"))), dump_log)
        costs = runner.interleaved(commands, rounds)
        shutil.rmtree(root)
        points.append(costs["kaudit"])
        beyond_cat.append(replace(points[-1], cpu=points[-1].cpu - (costs["cat"].cpu if "cat" in costs else 0)))
        lines = lines or [
            f"| {axis.name} | CPU s | MB | ns a {axis.one} | bytes a {axis.one} |"
            + "".join(f" {name}, CPU s |" for name in costs if name != "kaudit"),
            "|" + "---:|" * (4 + len(costs)),
        ]
        seconds, megabytes = slope(axis, points, 0) if len(points) > 1 else (0.0, 0.0)
        beyond = [f"{seconds * 1e9:.3g}", f"{megabytes * 1e6:.2g}"] if len(points) > 1 else ["", ""]
        cells = [f"{count:,}", f"{points[-1].cpu:.2f}", f"{points[-1].memory:.0f}", *beyond]
        cells += [f"{cost.cpu:.2f}" for name, cost in costs.items() if name != "kaudit"]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return [f"By {axis.name}; {axis.all_else}:", "", *lines], bent(axis, beyond_cat)


def slope(axis: Axis, points: list[Cost], first: int) -> tuple[float, float]:
    """CPU s and MB a unit, from one point to the last."""
    units = (axis.counts[len(points) - 1] - axis.counts[first]) * axis.unit
    return (points[-1].cpu - points[first].cpu) / units, (points[-1].memory - points[first].memory) / units


def bent(axis: Axis, points: list[Cost]) -> list[str]:
    """Return what a unit of the last step costs more than LIMIT times as much of as a unit of the steps before it."""
    if len(points) < 3:
        return []
    cost = points[-2].cpu - points[0].cpu, points[-2].memory - points[0].memory
    before, last = slope(axis, points[:-1], 0), slope(axis, points, len(points) - 2)
    return [
        f"{axis.name}: {name} of the last step is {last[at] / before[at]:.1f} times that of the steps before"
        for at, name in enumerate(("CPU time", "memory"))
        if cost[at] > MEASURABLE[at] and last[at] > LIMIT * before[at]
    ]


def peers(segments: list[str], dump_log: list[str] | str) -> dict[str, list[str]]:
    """The other programs on the same segments."""
    found = {"cat": ["cat", *segments]}
    programs = {"CRC pass": "crc", **{name: name for name in ("naive", "kafka-python", "aiokafka")}}
    found |= {name: [sys.executable, str(PEERS), program, *segments] for name, program in programs.items()}
    return found | ({"kafka-dump-log": [*dump_log, ",".join(segments)]} if isinstance(dump_log, list) else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--axes", default="", help=f"of {', '.join(axis.name for axis in AXES)}, those named (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most", type=int, default=IDS, help="leave out larger numbers: a million findings take 3 GB")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kaudit-benchmarks", help="Kafka's jars")
    parser.add_argument("--directory", type=Path, help="where the logs are made (default: the temporary directory)")
    parser.add_argument("--page", type=Path, help="put the tables into this page")
    options = parser.parse_args()
    runner, worse = Runner([], options.cache), []
    for axis in AXES:
        if options.axes and axis.name not in options.axes.split(","):
            continue
        chosen = axis._replace(counts=tuple(count for count in axis.counts if count <= options.most))
        with tempfile.TemporaryDirectory(prefix="kaudit-growth-", dir=options.directory) as place:
            lines, broken = table(runner, Path(place), chosen, options.rounds, dump_log_command(options.cache))
        how = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, {machine()}; CPU time of whole processes, least of {options.rounds}."
        text = "\n".join([lines[0], how, *lines[1:], "", *broken]).rstrip()
        print(text, end="\n\n", flush=True)
        if options.page is not None:
            begin, end = (mark.format(axis.name) for mark in MARKS)
            write_section(options.page, begin, end, f"\n{text}\n")
        worse += broken
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
