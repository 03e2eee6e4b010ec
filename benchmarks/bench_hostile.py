"""How much more processor time commands take for a damaged log than for a healthy one of the same size.

    uv run python -m benchmarks.bench_hostile [--rounds 1] [--kilobytes 1000] [--only WORD]

Logs are of batches of 61 bytes, headers without records, the smallest there are: what a batch, a damage or a finding costs
shows most. Each command is a process of its own that starts and writes JSON, rounds interleaved; exit 1 if a ratio exceeds LIMIT.
A round takes about two minutes.
"""

import argparse
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import crc32c

from benchmarks.processes import Runner

LIMIT = 40.0
"""Times the processor time for the healthy log, of which half is the start of a process."""
COMMANDS = ("scan", "timeline", "producers", "inspect")
OPTIONS = ("--output-format", "json")
FIRST_TIMESTAMP = 1_700_000_000_000
TAIL = struct.Struct(">hiqqqhii")
HEAD = struct.Struct(">qiibI")


def batch(offset: int, sequence: int, producer_id: int = 1000, attributes: int = 0, records: int = 1) -> bytes:
    """A batch whose records compaction has removed."""
    at = FIRST_TIMESTAMP + offset
    tail = TAIL.pack(attributes, records - 1, at, at, producer_id, 0, sequence, 0)
    return HEAD.pack(offset, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail


def corrupt(encoded: bytes) -> bytes:
    return encoded[:-1] + bytes([encoded[-1] ^ 1])


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


SHAPES: tuple[Callable[[random.Random], Iterator[bytes]], ...] = (
    healthy,
    garbage_between,
    zeros_between,
    gap_at_each_batch,
    every_second_corrupt,
    overlong_lengths,
    random_sequences,
    zigzag_offsets,
    random_producers,
)


def write(directory: Path, shape: Callable[[random.Random], Iterator[bytes]], size: int) -> None:
    """Write one segment of at least `size` bytes."""
    directory.mkdir(parents=True)
    content = bytearray()
    for piece in shape(random.Random(7)):
        content += piece
        if len(content) >= size:
            break
    (directory / f"{0:020d}.log").write_bytes(content)


def write_segments(directory: Path, size: int, *, snapshots_behind: int | None = None) -> None:
    """Write a healthy log with a segment for each batch.

    With `snapshots_behind` a snapshot of the producer lies at each, as the broker writes them (0) or older by so many batches.
    """
    directory.mkdir(parents=True)
    for number in range(size // 61):
        (directory / f"{number:020d}.log").write_bytes(batch(number, number))
        if snapshots_behind is not None and number > snapshots_behind:
            last = number - 1 - snapshots_behind
            body = struct.pack(">iqhiqiqiq", 1, 1000, 0, last, last, 0, FIRST_TIMESTAMP + last, -1, -1)
            content = struct.pack(">hI", 1, crc32c.crc32c(body)) + body
            (directory / f"{number:020d}.snapshot").write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kilobytes", type=int, default=1000)
    parser.add_argument("--only", default="", help="shapes and commands whose names hold this")
    options = parser.parse_args()
    size = options.kilobytes * 1000
    with tempfile.TemporaryDirectory(prefix="kaudit-hostile-") as place:
        makers: dict[str, Callable[[Path], None]] = {
            shape.__name__: partial(write, shape=shape, size=size) for shape in SHAPES
        }
        for name, behind in (("segments", None), ("segments_with_snapshots", 0), ("segments_with_old_snapshots", 1)):
            makers[name] = partial(write_segments, size=size, snapshots_behind=behind)
        logs = {
            name: Path(place, name, "orders-0")
            for name in makers
            if name == "healthy" or any(options.only in f"{command} {name}" for command in COMMANDS)
        }
        for name, path in logs.items():
            makers[name](path)
        launched = [sys.executable, "-m", "kaudit"]
        commands = {
            f"{command} {name}": [*launched, command, *_options(command), str(_given(command, path))]
            for command in COMMANDS
            for name, path in logs.items()
            if name == "healthy" or options.only in f"{command} {name}"
        }
        costs = Runner([], Path(place)).interleaved(commands, options.rounds)
    print("| command | log | CPU s | times healthy | MB |\n|---|---|---|---|---|")
    worse = 0
    for name, cost in costs.items():
        command, log = name.split()
        ratio = cost.cpu / costs[f"{command} healthy"].cpu
        worse += ratio > LIMIT
        print(f"| {command} | {log} | {cost.cpu:.2f} | {ratio:.1f} | {cost.memory:.0f} |")
    return int(worse > 0)


def _options(command: str) -> tuple[str, ...]:
    return OPTIONS if command == "inspect" else ("--exit-zero", "-q", *OPTIONS)


def _given(command: str, directory: Path) -> Path:
    """Inspect takes a file where there is one."""
    files = sorted(directory.glob("*.log"))
    return files[0] if command == "inspect" and len(files) == 1 else directory


if __name__ == "__main__":
    sys.exit(main())
