"""Processor time and memory of commands on logs that are made to be slow.

    uv run python -m benchmarks.bench_hostile [--only WORD] [--growth] [--rounds 1] [--kilobytes 1000]

The logs have batches of 61 bytes, headers without records, which are the smallest possible: so the cost per batch, damage or finding
is most visible. Each command is a separate process that starts and writes its format; its row is printed when it ends. All cases take
some minutes, with `--growth` three times as long. Exit code 1 if a limit is exceeded:

- 2 s of processor time for 1 MB. Seconds depend on the machine and its load, so the limit is a multiple of the time of scanning the
  healthy log, measured next to each case (TIMES_HEALTHY); a case that exceeds it is measured twice more.
- 100 MB at the peak, more than a process that has imported only numpy.
- with `--growth`, a log four times as long takes at most GROWTH times as long, without the start of the process.
"""

import argparse
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import crc32c

from benchmarks.generate import record
from benchmarks.processes import Cost, Runner

TIMES_HEALTHY = 6.0
"""2 s if the healthy log takes 0.34 s; four fifths of that are the start of a process."""
MEMORY = 100.0
"""MB."""
GROWTH = 4.4
LONGER = 4
MEASURABLE = 0.3
"""CPU s beyond the start: growth of less is noise."""
NUMPY = [sys.executable, "-c", "import numpy"]
FORMATS = {
    "scan": ("json", "html", "sarif"),
    "timeline": ("json", "html"),
    "producers": ("json",),
    "inspect": ("json",),
    "diff": ("json", "html"),
}
HEALTHY = "healthy"
START = "one_batch"
"""A log of one batch, to measure the start of a command."""
FIRST_TIMESTAMP = 1_700_000_000_000
TAIL = struct.Struct(">hiqqqhii")
HEAD = struct.Struct(">qiibI")
LEGACY_HEAD = struct.Struct(">qiIbb")
MIN_LENGTH = 61
TRANSACTIONAL, CONTROL = 0x10, 0x20
COMMIT = record(0, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0))

Shape = Callable[[random.Random], Iterator[bytes]]


def batch(offset: int, sequence: int, producer_id: int = 1000, attributes: int = 0, record: bytes = b"") -> bytes:
    """A batch whose record compaction has removed, unless there is one."""
    at = FIRST_TIMESTAMP + offset
    tail = TAIL.pack(attributes, 0, at, at, producer_id, 0, sequence, len(record) > 0) + record
    return HEAD.pack(offset, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail


def corrupt(encoded: bytes) -> bytes:
    return encoded[:-1] + bytes([encoded[-1] ^ 1])


def one_batch(_: random.Random) -> Iterator[bytes]:
    yield batch(0, 0)


def healthy(_: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number, number)


def garbage_between(rng: random.Random) -> Iterator[bytes]:
    for encoded in healthy(rng):
        yield encoded
        yield rng.randbytes(rng.randint(1, 40))


def zeros_between(rng: random.Random) -> Iterator[bytes]:
    for encoded in healthy(rng):
        yield encoded
        yield bytes(rng.randint(12, 40))


def gap_at_each_batch(_: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number * 3, number * 2)


def every_second_corrupt(rng: random.Random) -> Iterator[bytes]:
    for number, encoded in enumerate(healthy(rng)):
        yield corrupt(encoded) if number % 2 else encoded


def random_sequences(rng: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number, rng.randrange(1 << 31))


def zigzag_offsets(_: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number ^ 1, number)


def random_producers(rng: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number, rng.randrange(1, 1 << 31), rng.randrange(1 << 40))


def overlong_lengths(_: random.Random) -> Iterator[bytes]:
    """Every second batch's length leads to the end of the next one."""
    for number in range(1 << 30):
        encoded = batch(number, number)
        yield encoded if number % 2 else encoded[:8] + struct.pack(">i", 110) + encoded[12:]


def markers_only(_: random.Random) -> Iterator[bytes]:
    """Each ends a transaction that never began, of a producer of its own."""
    for number in range(1 << 30):
        yield batch(number, -1, number, TRANSACTIONAL | CONTROL, COMMIT)


def open_transactions(_: random.Random) -> Iterator[bytes]:
    for number in range(1 << 30):
        yield batch(number, 0, number, TRANSACTIONAL)


def claims(size: int, claim: Callable[[int], bytes]) -> bytes:
    """Headers that each claim half of the remaining file, between valid batches: none of them is read to its end."""
    content = bytearray(batch(0, 0))
    while len(content) < size:
        content += claim(max((size - len(content)) // 2, MIN_LENGTH))
    return bytes(content + batch(1, 1))


def legacy_claim(length: int) -> bytes:
    return LEGACY_HEAD.pack(0, length, 0, 1, 0)


def claim(length: int) -> bytes:
    return HEAD.pack(0, length, 0, 2, 0) + TAIL.pack(0, 0, FIRST_TIMESTAMP, FIRST_TIMESTAMP, 1, 0, 0, 1)


SHAPES: tuple[Shape, ...] = (
    one_batch,
    healthy,
    garbage_between,
    zeros_between,
    gap_at_each_batch,
    every_second_corrupt,
    overlong_lengths,
    random_sequences,
    zigzag_offsets,
    random_producers,
    markers_only,
    open_transactions,
)


def write(directory: Path, size: int, shape: Shape) -> None:
    """Write one segment of at least `size` bytes, if the shape has no end."""
    directory.mkdir(parents=True)
    content = bytearray()
    for piece in shape(random.Random(7)):
        content += piece
        if len(content) >= size:
            break
    (directory / f"{0:020d}.log").write_bytes(content)


def write_claims(directory: Path, size: int, claim: Callable[[int], bytes]) -> None:
    """Write one segment of `claims`."""
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").write_bytes(claims(size, claim))


def write_segments(directory: Path, size: int, *, snapshots_behind: int | None = None) -> None:
    """Write a healthy log with a segment for each batch.

    With `snapshots_behind` a snapshot of the producer lies at each segment, as the broker writes them (0) or older by this many batches.
    """
    directory.mkdir(parents=True)
    for number in range(size // 61):
        (directory / f"{number:020d}.log").write_bytes(batch(number, number))
        if snapshots_behind is not None and number > snapshots_behind:
            last = number - 1 - snapshots_behind
            body = struct.pack(">iqhiqiqiq", 1, 1000, 0, last, last, 0, FIRST_TIMESTAMP + last, -1, -1)
            content = struct.pack(">hI", 1, crc32c.crc32c(body)) + body
            (directory / f"{number:020d}.snapshot").write_bytes(content)


MAKERS: dict[str, Callable[[Path, int], None]] = {
    **{shape.__name__: partial(write, shape=shape) for shape in SHAPES},
    "legacy_claims": partial(write_claims, claim=legacy_claim),
    "claims": partial(write_claims, claim=claim),
    "segments": write_segments,
    "segments_with_snapshots": partial(write_segments, snapshots_behind=0),
    "segments_with_old_snapshots": partial(write_segments, snapshots_behind=1),
}


class Case(NamedTuple):
    """One command, format and log."""

    command: str
    format: str
    log: str

    def __str__(self) -> str:
        return " ".join(self)

    def line(self, logs: Path) -> list[str]:
        """Return the command line; `logs` holds the log directories, each in a directory of its name."""
        given = [logs / self.log / "orders-0"]
        if self.command == "inspect" and not self.log.startswith("segments"):
            given = [given[0] / f"{0:020d}.log"]
        if self.command == "diff":
            given.append(logs / HEALTHY / "orders-0")
        quiet = [] if self.command == "inspect" else ["--exit-zero", "-q"]
        return [
            *(sys.executable, "-m", "kaudit", self.command, *quiet, "--output-format", self.format),
            *map(str, given),
        ]


UNIT = Case("scan", "json", HEALTHY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kilobytes", type=int, default=1000)
    parser.add_argument(
        "--only", default="", metavar="WORD", help="of the cases, such as 'scan json zeros_between', those with this"
    )
    parser.add_argument("--growth", action="store_true", help="logs four times as long, too")
    options = parser.parse_args()
    cases = [
        case
        for command, formats in FORMATS.items()
        for case in (Case(command, format_, log) for format_ in formats for log in MAKERS)
        if options.only in str(case)
    ]
    with tempfile.TemporaryDirectory(prefix="kaudit-hostile-") as place:
        measuring = _Measuring(Path(place), options.kilobytes, options.rounds)
        print(f"numpy alone: {measuring.numpy:.0f} MB\n")
        print("| command | format | log | CPU s | times healthy | MB beyond numpy |" + " growth |" * options.growth)
        print("|---|---|---|---:|---:|---:|" + "---:|" * options.growth)
        worse = [broken for case in cases for broken in measuring.limits_broken(case, growth=options.growth)]
    print("\n" + ("\n".join(worse) or "every limit is kept"))
    return int(bool(worse))


class _Measuring:
    """Runs cases, each next to the healthy scan that it is compared with, because the speed of a shared machine varies."""

    def __init__(self, place: Path, kilobytes: int, rounds: int) -> None:
        self._place, self._kilobytes, self._rounds = place, kilobytes, rounds
        self._runner = Runner([], place)
        self._starts: dict[Case, float] = {}
        numpy = Cost()
        self._runner.run(NUMPY, numpy)
        self.numpy = numpy.memory
        self._start(UNIT)

    def limits_broken(self, case: Case, *, growth: bool) -> list[str]:
        """Measure a case, print its row, and return what it exceeds."""
        start = self._start(case)
        unit, cost = Cost(), Cost()
        for attempt in range(self._rounds + 2):
            self._runner.run(self._line(UNIT), unit)
            self._runner.run(self._line(case), cost)
            if attempt + 1 >= self._rounds and cost.cpu <= TIMES_HEALTHY * unit.cpu:
                break  # otherwise measure again: the machine may just have been slow
        ratio, memory = cost.cpu / unit.cpu, cost.memory - self.numpy
        row = f"| {case.command} | {case.format} | {case.log} | {cost.cpu:.2f} | {ratio:.1f} | {memory:.0f} |"
        broken = []
        if ratio > TIMES_HEALTHY:
            broken.append(f"{case}: {ratio:.1f} times the healthy log's processor time")
        if memory > MEMORY:
            broken.append(f"{case}: {memory:.0f} MB")
        if growth and cost.cpu - start > MEASURABLE:
            longer = Cost()
            self._runner.run(self._line(case, LONGER), longer)
            times = (longer.cpu - start) / (cost.cpu - start)
            row += f" {times:.1f} |"
            if times > GROWTH:
                broken.append(f"{case}: {times:.1f} times the time for {LONGER} times the bytes")
        print(row, flush=True)
        return broken

    def _start(self, case: Case) -> float:
        """Processor time of the same command and format on a log of one batch."""
        starting = case._replace(log=START)
        if starting not in self._starts:
            self._runner.run(self._line(starting), Cost())  # modules are compiled
            cost = Cost()
            self._runner.run(self._line(starting), cost)
            self._starts[starting] = cost.cpu
        return self._starts[starting]

    def _line(self, case: Case, times: int = 1) -> list[str]:
        logs = self._place / str(times)
        for log in {case.log, HEALTHY}:
            if not (logs / log).exists():
                MAKERS[log](logs / log / "orders-0", times * self._kilobytes * 1000)
        return case.line(logs)


if __name__ == "__main__":
    sys.exit(main())
