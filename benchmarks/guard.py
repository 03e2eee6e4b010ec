"""Have ratios become worse? `uv run python -m benchmarks.guard`; exit code 1 if so. `.ci/run` asks, too.

Ratios to a pass of numpy over the same bytes and to another log of small batches are measured in one process, interleaved, on
logs made from a seed: CPU time, the least of the rounds; never seconds.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.generate import generate, generate_commits, generate_metadata
from benchmarks.processes import Runner
from benchmarks.run import MIB, SHAPES, inside

LIMITS = {
    "no faults": ("numpy passes", 1.4),
    "small": ("times no faults", 1.65),
    "many faults": ("times no faults", 7.1),
    "large": ("numpy passes", 0.48),
    "mixed": ("numpy passes", 2.25),
    "transactional v1": ("times small", 1.8),
    "transactional v2": ("times small", 1.8),
    "50,000 ids": ("times small", 2.15),
    "sparse ids": ("times small", 1.2),
}
"""A fifth above the most of three runs at load 9; of numpy passes, a machine without AVX-512 needs 8 % more, too."""
MIB_EACH = {"large": 256}
INTERNAL = {"__consumer_offsets": (generate_commits, 3.0), "__cluster_metadata": (generate_metadata, 3.0)}
"""What writes a log of these topics, and how many times as much its scan may cost as that of a plain topic of the same bytes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=96, help="size of each log of small batches")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prefix", default="", help="a command in front of the measured one, such as 'chrt -f 10'")
    options = parser.parse_args()
    shapes = [shape for shape in SHAPES if shape.name in LIMITS]
    place = Path(tempfile.mkdtemp(prefix="kaudit-guard-"))
    try:
        directories = []
        for number, shape in enumerate(shapes):
            directory = place / f"log{number}-0"
            directory.mkdir()
            generate(directory / f"{0:020d}.log", shape, MIB_EACH.get(shape.name, options.mib) * MIB)
            directories.append(directory)
        runner = Runner(options.prefix.split(), place)
        measured = inside(runner, directories, options.rounds)
        internal = [
            inside(runner, write_internal(place, topic, options.mib * MIB // 4), options.rounds) for topic in INTERNAL
        ]
    finally:
        shutil.rmtree(place)
    each = {
        f"times {shape.name}": found["scan"]["crc"] / found["batches"]
        for shape, found in zip(shapes, measured, strict=True)
    }
    worse = 0
    for shape, result in zip(shapes, measured, strict=True):
        unit, limit = LIMITS[shape.name]
        seconds = result["scan"]["crc"]
        ratio = seconds / result["numpy_pass"] if unit == "numpy passes" else seconds / result["batches"] / each[unit]
        worse += ratio > limit
        print(f"{'WORSE' if ratio > limit else 'ok':5} {shape.name:18} {ratio:6.2f} {unit}, limit {limit}")
    for (topic, (_, limit)), (own, plain) in zip(INTERNAL.items(), internal, strict=True):
        ratio = own["scan"]["crc"] / plain["scan"]["crc"]
        worse += ratio > limit
        print(f"{'WORSE' if ratio > limit else 'ok':5} {topic:18} {ratio:6.2f} times plain, limit {limit}")
    return 1 if worse else 0


def write_internal(place: Path, topic: str, size: int) -> list[Path]:
    """Write a log of an internal topic; return its directory, and that of a plain topic of the same bytes."""
    directories = [place / topic / f"{name}-0" for name in (topic, "plain")]
    for directory in directories:
        directory.mkdir(parents=True)
    own, plain = (directory / f"{0:020d}.log" for directory in directories)
    INTERNAL[topic][0](own, size)
    plain.hardlink_to(own)
    return directories


if __name__ == "__main__":
    sys.exit(main())
