"""Have ratios become worse? `uv run python -m benchmarks.guard`; exit code 1 if so.

Ratios to one CRC pass and to another log of small batches are measured in one process, interleaved, on logs made from a
seed; never seconds. Not part of the tests: it takes half a minute, and wants a machine that has a core to spare.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.generate import generate
from benchmarks.processes import Runner
from benchmarks.run import MIB, SHAPES, inside

LIMITS = {
    "no faults": ("CRC passes", 26.0),
    "small": ("times no faults", 1.8),
    "many faults": ("times no faults", 8.2),
    "large": ("CRC passes", 2.6),
    "mixed": ("CRC passes", 16.0),
    "transactional v1": ("times small", 2.0),
    "transactional v2": ("times small", 2.0),
    "50,000 ids": ("times small", 2.4),
    "sparse ids": ("times small", 1.3),
}
"""A third above the values measured when these limits were set (docs/performance.md), to allow for noise."""
MIB_EACH = {"large": 256}


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
        measured = inside(Runner(options.prefix.split(), place), directories, options.rounds)
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
        ratio = seconds / result["crc_pass"] if unit == "CRC passes" else seconds / result["batches"] / each[unit]
        worse += ratio > limit
        print(f"{'WORSE' if ratio > limit else 'ok':5} {shape.name:18} {ratio:6.2f} {unit}, limit {limit}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
