"""Command line of tests.fuzz: see the package's docstring."""

import argparse
import sys
from tempfile import TemporaryDirectory

_SMALLEST_SEED_BYTES = 4


def main() -> int:
    """Run; the exit code is 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the parsers of kaudit.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what to fuzz; everything by default")
    parser.add_argument("--seconds", type=float, default=10, help="how long each target runs (10)")
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
    found = False
    for name in chosen.targets or TARGETS:
        count, finding = fuzz(name, chosen.seconds, chosen.seed)
        print(f"{name}: {count} inputs" + (f", FOUND: {finding}" if finding else ""), flush=True)  # noqa: T201
        found = found or finding is not None
    return int(found)


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
