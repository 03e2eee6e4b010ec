"""Command line of tests.mirrors: see the package's docstring."""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.mirrors.compared import wrong
from tests.mirrors.histories import History


def main() -> int:
    """Compare ledgers of many seeds with the truth; 1 if one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.mirrors", description=sys.modules["tests.mirrors"].__doc__)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many histories; default: 1000")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed; default: 0")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="write the last history that is wrong here")
    chosen = parser.parse_args()
    kinds: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            directory = Path(folder) / str(seed)
            history = History(seed)
            found = wrong(history, *history.write(directory))
            if found:
                bad += 1
                kinds.update(each.partition(":")[0] for each in found)
                if bad <= 10:
                    sys.stdout.write("\n  ".join((f"seed {seed}", *found)) + "\n")
                if chosen.keep:
                    shutil.rmtree(chosen.keep, ignore_errors=True)
                    shutil.copytree(directory, chosen.keep)
            shutil.rmtree(directory)
    sys.stdout.write(
        f"{chosen.seeds} histories, {bad} ledgers are wrong{''.join(f', {kind} {n}' for kind, n in kinds.items())}\n"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
