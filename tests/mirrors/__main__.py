"""Command line of tests.mirrors: see the package's docstring."""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kaudit.engines.record_ledger import RecordEngine
from tests.mirrors.compared import PLAIN, Way, wrong
from tests.mirrors.histories import History

WINDOWS_MS = (1, 20, 300)
"""Widths of windows: records of a history are some milliseconds apart."""


def ways(seed: int, history: History) -> Iterator[Way]:
    """How the ledger of a history is made: always in one way, of a part of the seeds in others too."""
    yield PLAIN
    if seed % 4 == 0 and history.settings.with_timestamp:
        yield Way("windows", window_ms=WINDOWS_MS[seed // 4 % len(WINDOWS_MS)])
    if seed % 20 == 0 and find_spec("pyspark") is not None:
        yield Way("spark", _on_spark(), WINDOWS_MS[1] if history.settings.with_timestamp else None)


def _on_spark() -> RecordEngine:
    from kaudit.spark.record_ledger import SparkRecords
    from tests.spark.arrow_session import ArrowSession

    session: Any = ArrowSession()
    return SparkRecords(lambda _: nullcontext(session))


def main() -> int:
    """Compare ledgers of many seeds with the truth; 1 if one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.mirrors", description=sys.modules["tests.mirrors"].__doc__)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many histories; default: 1000")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed; default: 0")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="write the last history that is wrong here")
    chosen = parser.parse_args()
    kinds: Counter[str] = Counter()
    made: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            directory = Path(folder) / str(seed)
            history = History(seed)
            sides = history.write(directory)
            found = []
            for way in ways(seed, history):
                made[way.name] += 1
                found += [f"{way.name}: {each}" for each in wrong(history, *sides, way)]
            if found:
                bad += 1
                kinds.update(" ".join(each.split(":")[:2]) for each in found)
                if bad <= 10:
                    sys.stdout.write("\n  ".join((f"seed {seed}", *found)) + "\n")
                if chosen.keep:
                    shutil.rmtree(chosen.keep, ignore_errors=True)
                    shutil.copytree(directory, chosen.keep)
            shutil.rmtree(directory)
    sys.stdout.write(
        f"{chosen.seeds} histories ({', '.join(f'{name} {n}' for name, n in made.items())}), {bad} have a ledger that is wrong{''.join(f', {kind} {n}' for kind, n in kinds.items())}\n"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
