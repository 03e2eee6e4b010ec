"""`scan`, `producers`, `replay` and `diff` on trial over as many random schedules as you like.

Run `python -m tests.simulate.trial --seeds 5000`: each seed is a schedule with all faults, played, audited and compared with
what the model knows. Prints every seed that fails with where it does, and exits with 1 if any did.
"""

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.simulate.test_auditor_on_trial import tried
from tests.simulate.test_diff_on_trial import caught

HERE = str(Path(__file__).parent)


def failures(seed: int) -> list[str]:
    """Return where the trial of a seed fails, nothing where it does not."""
    with tempfile.TemporaryDirectory(prefix="kaudit-trial-") as directory:
        trials: list[Callable[[], object]] = [
            partial(tried, seed, Path(directory), forgetful=seed % 3 == 0),
            partial(caught, seed, Path(directory)),
        ]
        return [failed for trial in trials if (failed := _failure(trial)) is not None]


def _failure(trial: Callable[[], object]) -> str | None:
    try:
        trial()
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is a failure of the trial
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(HERE)]
        return f"{type(error).__name__} in {frames[-1].name}: {frames[-1].line}"
    return None


def report(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Try the seeds of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for failed in failures(seed):
            counts[failed] += 1
            report(f"seed {seed}: {failed}")
    report(f"{chosen.seeds} seeds from {chosen.first}, {counts.total()} failures")
    for failed, times in counts.most_common():
        report(f"{times:6} {failed}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
