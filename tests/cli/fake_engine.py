"""kaudit with an engine that returns prepared results: `python fake_engine.py CASE scan PATH...`."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kaudit.cli.app import run
from kaudit.engines.local import LocalEngine
from tests import scan_results as results


def slow(options, progress):
    progress.start(1_000_000)
    progress.advance(250_000)
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    time.sleep(60)


def moving(options, progress):
    progress.start(4_000_000)
    for _ in range(4):
        progress.advance(1_000_000)
        time.sleep(0.15)
    return results.many()


def broken(options, progress):
    raise ZeroDivisionError("one over none")


CASES = {
    "slow": slow,
    "moving": moving,
    "broken": broken,
    "many": lambda options, progress: results.many(),
    "huge": lambda options, progress: results.scan_result(*[results.old_duplicate(offset=n) for n in range(5000)]),
}

if __name__ == "__main__":
    case = CASES[sys.argv.pop(1)]
    setattr(LocalEngine, "scan", lambda _, options, progress: case(options, progress))  # noqa: B010 - a method of tests
    sys.exit(run())
