"""Command line of tests.mutation: see the package's docstring."""

import argparse
import json
import os
import random
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from tests.mutation.mutants import ROOT, Mutant, mutants_of, python_files
from tests.mutation.reach import CACHE, Reached, RecordedTest, lines_of_imports, reach
from tests.mutation.trial import KILLED, SURVIVED, UNDECIDED, MutantRunner, Result, Trial, try_functions, try_imports
from tests.mutation.type_check import type_error

ROOMS = {
    "broker rules": ["kaudit/broker"],
    "sequences": ["kaudit/audits/sequences"],
    "transactions": ["kaudit/audits/transactions", "kaudit/audits/coordinator"],
    "checks": ["kaudit/checks"],
    "formats": ["kaudit/formats"],
    "scanning": ["kaudit/reading", "kaudit/partition", "kaudit/scanning"],
    "audits": ["kaudit/audits", "kaudit/listings"],
    "simulate": ["kaudit/simulate"],
    "diff": ["kaudit/diff"],
    "inspect": ["kaudit/inspect"],
    "source": ["kaudit/source", "kaudit/capture", "kaudit/watch"],
    "engines": ["kaudit/engines"],
    "report": ["kaudit/report"],
    "everything else": ["kaudit"],
}
"""What belongs to several rooms belongs to the first of them."""
CORE = ("broker rules", "sequences", "transactions", "checks", "formats")
"""The rooms whose answers a user takes for the brokers' own."""
_FLOOR, _CORE_FLOOR = 0.85, 0.92
_MOST_EQUIVALENT = 0.03
"""Of a room's sample; more of them count as survivors: a long list of excuses is no proof."""
_EQUIVALENT, _NOT_REACHED = "equivalent", "not reached"
_LAST = CACHE / "last.json"
_IMPORT_TEST_FILES = 10


def main() -> int:
    """Run; the exit code is 1 when a room's score is below its floor, or when a mutant of a path survived."""
    options = _options()
    rooms = _chosen_rooms(options.what)
    equivalents = equivalent_mutants()
    sampled: dict[Mutant, str] = {}
    for name, mutants in rooms.items():
        generator = random.Random(f"{options.seed} {name}")
        count = len(mutants) if options.all else min(options.sample, len(mutants))
        sampled |= dict.fromkeys(generator.sample(mutants, count), name)
    last = json.loads(_LAST.read_text()) if _LAST.exists() else []
    before = {tuple(key): Result(*result) for key, result in last}
    results = {mutant: Result(_EQUIVALENT) for mutant in sampled if mutant.key in equivalents}
    if options.again:
        known = {mutant: before[mutant.key] for mutant in sampled if mutant.key in before}
        results |= {mutant: result for mutant, result in known.items() if result.outcome == KILLED}
    try:
        _try(options, [mutant for mutant in sampled if mutant not in results], results)
    finally:
        kept = before | {mutant.key: result for mutant, result in results.items()}
        _LAST.write_text(json.dumps([[key, [result.outcome, result.by]] for key, result in kept.items()]))
    scores = {
        room: Score.of_outcomes(Counter(results[mutant].outcome for mutant, name in sampled.items() if name == room))
        for room in rooms
        if room in sampled.values()
    }
    sys.stdout.write(_table(sampled, results, scores))
    return int(any(score.share < _floor(room) for room, score in scores.items()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Change kaudit and see tests fail.")
    parser.add_argument("what", nargs="*", metavar="ROOM|PATH", help=f"{', '.join(ROOMS)}; or files, or folders")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="mutants of each room or path (40)")
    parser.add_argument("--seed", default="0", help="another text, such as a commit's hash, samples other mutants")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--again", action="store_true", help="only what was not killed before, of these")
    parser.add_argument("--record", action="store_true", help="record anew which test reaches which line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried at a time (all cores)")
    parser.add_argument("--seconds", type=float, default=30, help="CPU time of the tests that one mutant is given (30)")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PATH", help="tests to run (all)")
    return parser.parse_args()


def _chosen_rooms(chosen: list[str]) -> dict[str, list[Mutant]]:
    """The mutants of each room or path, each mutant once."""
    taken: set[str] = set()
    rooms: dict[str, list[Mutant]] = {}
    for name, folders in ROOMS.items():
        files = [file for folder in folders for file in python_files(folder) if file not in taken]
        taken.update(files)
        if not chosen or name in chosen:
            rooms[name] = [mutant for file in files for mutant in mutants_of(file)]
    for path in chosen:
        if path not in ROOMS:
            rooms[path] = [mutant for file in python_files(path) for mutant in mutants_of(file)]
    return rooms


def equivalent_mutants() -> dict[tuple[str, str, str, str], str]:
    """The reason for each mutant of equivalent.toml.

    An entry without `becomes` stands for all mutants of its line, of its `kind` if it has one.

    ValueError: an entry matches no mutant, or gives no reason.
    """
    entries = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text()).get("mutant", [])
    kinds = {
        path: {mutant.key: mutant.kind for mutant in mutants_of(path)} for path in {each["path"] for each in entries}
    }
    found: dict[tuple[str, str, str, str], str] = {}
    for entry in entries:
        line = (entry["path"], entry["function"], entry["was"])
        matching = [
            key
            for key, kind in kinds[entry["path"]].items()
            if key[:3] == line and entry.get("becomes", key[3]) == key[3] and entry.get("kind", kind) == kind
        ]
        if not matching or not entry["reason"]:
            raise ValueError(f"equivalent.toml: no such mutant, or no reason: {line}")
        found |= dict.fromkeys(matching, entry["reason"])
    return found


def _try(options: argparse.Namespace, mutants: list[Mutant], results: dict[Mutant, Result]) -> None:
    """Try the mutants, and enter their results."""
    files = sorted({file for path in options.tests for file in python_files(path, "test_*.py")})
    reached, imported = Reached(reach(files, anew=options.record, jobs=options.jobs)), lines_of_imports()
    begun = time.monotonic()
    console = os.fdopen(os.dup(2), "w", buffering=1)

    def report(mutant: Mutant, result: Result) -> None:
        results[mutant] = result
        console.write(
            f"{len(results)}/{len(mutants)} {time.monotonic() - begun:.0f} s  {result.outcome:8}  "
            f"{mutant.path}:{mutant.line} {mutant.kind}  {result.by}\n"
        )

    functions, imports = [], []
    for mutant in mutants:
        # what runs at import is noted for whichever test imported the module first
        by_line = [] if mutant.at_import else reached.by_line(mutant.path, mutant.line)
        at_import = mutant.at_import or (not by_line and mutant.line in imported[mutant.path])
        tests = by_line or (reached.by_use(mutant.path, mutant.line) if at_import else [])
        if not tests:
            report(mutant, Result(_NOT_REACHED))
        elif at_import:
            few = list(dict.fromkeys(test.file for test in tests))[:_IMPORT_TEST_FILES]
            imports.append(Trial(mutant, affordable([test for test in tests if test.file in few], options.seconds)))
        else:
            functions.append(Trial(mutant, affordable(tests, options.seconds)))
    runner = MutantRunner(options.jobs, report)
    with console:
        try_imports(runner, imports)
        try_functions(runner, functions, files)
        alive = [mutant for mutant in mutants if results[mutant].outcome in {SURVIVED, _NOT_REACHED}]
        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, refused in zip(alive, pool.map(type_error, alive), strict=True):
                if refused:
                    report(mutant, Result(KILLED, f"mypy: {refused}"))


def affordable(tests: list[RecordedTest], seconds: float) -> list[RecordedTest]:
    """As many tests as take no more CPU time than this together, in their order; at least one.

    Half of the time is for the first of them, which are the nearest or the fastest; what is left for one case of each other.
    """
    cases = {test.id.partition("[")[0]: test for test in reversed(tests)}.values()
    chosen: set[str] = set()
    spent = 0.0
    for some, limit in ((tests, seconds / 2), (reversed(cases), seconds), (tests, seconds)):
        for test in some:
            if test.id not in chosen and (not chosen or spent + test.seconds <= limit):
                chosen.add(test.id)
                spent += test.seconds
    return [test for test in tests if test.id in chosen]


@dataclass(frozen=True)
class Score:
    """The killed mutants of a room's sample, and of how many: those beyond the equivalent ones that it may have."""

    killed: int
    of: int

    @classmethod
    def of_outcomes(cls, counts: Counter[str]) -> "Score":
        """The score of a sample with these outcomes."""
        allowed = min(counts[_EQUIVALENT], int(counts.total() * _MOST_EQUIVALENT))
        return cls(counts[KILLED], counts.total() - allowed)

    @property
    def share(self) -> float:
        """Between 0 and 1; 1 of no mutants."""
        return self.killed / self.of if self.of else 1.0

    def interval(self) -> tuple[float, float]:
        """The share among all mutants of the room lies here with 95 % confidence (Wilson's score interval)."""
        if not self.of:
            return 0.0, 1.0
        z = NormalDist().inv_cdf(0.975)
        spread = z * sqrt(self.share * (1 - self.share) / self.of + z**2 / (4 * self.of**2))
        middle, scale = self.share + z**2 / (2 * self.of), 1 + z**2 / self.of
        return (middle - spread) / scale, (middle + spread) / scale


def _floor(room: str) -> float:
    if room not in ROOMS:
        return 1.0
    return _CORE_FLOOR if room in CORE else _FLOOR


def _table(sampled: dict[Mutant, str], results: dict[Mutant, Result], scores: dict[str, Score]) -> str:
    """What no test killed, and each room's numbers."""
    lines: list[str] = []
    for mutant, room in sampled.items():
        result = results[mutant]
        if result.outcome not in {KILLED, _EQUIVALENT}:
            where = f"{mutant.path}:{mutant.line} {mutant.function}".rstrip()
            lines += ["", f"{where} ({room}: {mutant.kind}) {result.outcome} {result.by}".rstrip()]
            lines += [f"  - {mutant.was}", f"  + {mutant.becomes}"]
    outcomes = (KILLED, SURVIVED, _NOT_REACHED, UNDECIDED, _EQUIVALENT)
    lines += ["", f"{'room':24} mutants  {'  '.join(outcomes)}  score  95 % interval  floor"]
    for room, score in scores.items():
        counts = Counter(results[mutant].outcome for mutant, name in sampled.items() if name == room)
        numbers = "  ".join(f"{counts[outcome]:{len(outcome)}}" for outcome in outcomes)
        low, high = score.interval()
        below = "" if score.share >= _floor(room) else "  below"
        lines.append(
            f"{room:24} {counts.total():7}  {numbers}  {score.share:5.1%}  {low:5.1%}..{high:5.1%}  {_floor(room):4.0%}{below}"
        )
    lines += ["", f"Equivalent mutants beyond {_MOST_EQUIVALENT:.0%} of a room's sample count as survivors."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
