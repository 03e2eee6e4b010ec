"""How long kaudit takes to start, against Python itself.

    uv run python benchmarks/bench_startup.py [--rounds 15]

Prints, for commands that audit nothing and for a scan of a small log, milliseconds of wall time (the least of the rounds, interleaved), the multiple of
`python -c pass` in the same run, and the limit, as a Markdown table. Exit 1 when a limit is not met.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

SMALL_LOG = Path(__file__).parents[1] / "samples" / "duplicates"
COMMANDS: dict[str, tuple[list[str], int | None]] = {
    "python -c pass": (["-c", "pass"], None),
    "kaudit --version": (["-m", "kaudit", "--version"], 50),
    "kaudit --help": (["-m", "kaudit", "--help"], 200),
    "kaudit explain KA101": (["-m", "kaudit", "explain", "KA101"], 200),
    "kaudit checks": (["-m", "kaudit", "checks"], 200),
    "kaudit scan --help": (["-m", "kaudit", "scan", "--help"], None),
    "kaudit scan samples/duplicates": (["-m", "kaudit", "scan", "--quiet", "--exit-zero", str(SMALL_LOG)], 200),
}


def milliseconds(arguments: list[str]) -> float:
    """Wall time of one run."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=dict(os.environ))
    return (time.perf_counter() - began) * 1000


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    least = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(rounds):
        for name, (arguments, _) in COMMANDS.items():
            least[name] = min(least[name], milliseconds(arguments))
    bare = least["python -c pass"]
    print("| command | ms | times `python -c pass` | limit, ms |\n|---|---|---|---|")
    for name, (_, limit) in COMMANDS.items():
        print(f"| `{name}` | {least[name]:.0f} | {least[name] / bare:.1f} | {limit if limit is not None else ''} |")
    return int(any(limit is not None and least[name] > limit for name, (_, limit) in COMMANDS.items()))


if __name__ == "__main__":
    sys.exit(main())
