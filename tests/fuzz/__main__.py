"""Command line of tests.fuzz: see the package's docstring."""

import argparse
import resource
import sys
import time
from itertools import count
from tempfile import TemporaryDirectory

_SMALLEST_SEED_BYTES = 4


def main() -> int:
    """Run; the exit code is 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the parsers of kaudit.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what to fuzz; everything by default")
    parser.add_argument("--all", action="store_true", help="every target, and go on after a finding")
    parser.add_argument("--seconds", type=float, default=10, help="how long each target runs (10)")
    parser.add_argument("--minutes", type=float, help="how long all targets run together")
    parser.add_argument("--seed", type=int, default=0, help="another number tries other inputs")
    parser.add_argument("--coverage", action="store_true", help="guided by coverage: one target, needs atheris")
    chosen = parser.parse_args()
    if chosen.coverage:
        if len(chosen.targets) != 1:
            parser.error("--coverage takes one target")
        return _guided(chosen.targets[0], int(chosen.seconds), chosen.seed)

    from tests.fuzz.run import fuzz
    from tests.fuzz.targets import TARGETS

    unknown = set(chosen.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    names = [*TARGETS] if chosen.all or not chosen.targets else chosen.targets
    seconds = chosen.seconds if chosen.minutes is None else 60 * chosen.minutes / len(names)
    total, findings = 0, []
    for name in names:
        stop = time.monotonic() + seconds
        for seed in count(chosen.seed):
            fed, finding = fuzz(name, max(stop - time.monotonic(), 0), seed)
            total += fed
            if finding is not None:
                findings.append(finding)
            print(f"{name}: {fed} inputs" + (f", FOUND: {finding}" if finding else ""), flush=True)  # noqa: T201
            if finding is None or not chosen.all or time.monotonic() > stop:
                break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{total} inputs, {len(findings)} findings, at most {peak} MiB of memory")  # noqa: T201
    return int(bool(findings))


def _guided(name: str, seconds: int, seed: int) -> int:
    """Let libFuzzer look for new paths through the parser; it ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["kaudit"]):
        from tests.fuzz import run, targets

    def test_one_input(data: bytes) -> None:
        try:
            run.feed(name, data)
        except Exception:
            print(f"found: {run.keep(name, data)}", flush=True)  # noqa: T201
            raise

    with TemporaryDirectory() as corpus:
        for number, content in enumerate(targets.seeds_of(name)):
            with open(f"{corpus}/{number:04}", "wb") as file:  # noqa: PTH123
                file.write(content or bytes(_SMALLEST_SEED_BYTES))
        arguments = [
            f"-max_total_time={seconds}",
            f"-seed={seed + 1}",
            "-rss_limit_mb=2048",
            "-artifact_prefix=/dev/null",
            corpus,
        ]
        atheris.Setup([sys.argv[0], *arguments], test_one_input)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
