"""Command line of tests.fuzz: see the package's docstring."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

_SMALLEST_SEED_BYTES = 4


def main() -> int:
    """Run; the exit code is 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the parsers of kaudit.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what to fuzz; everything by default")
    parser.add_argument("--all", action="store_true", help="go on after a finding")
    parser.add_argument("--seconds", type=float, default=10, help="how long each target runs (10)")
    parser.add_argument("--minutes", type=float, help="how long all targets run together")
    parser.add_argument("--seed", type=int, default=0, help="another number tries other inputs")
    parser.add_argument(
        "--corpus", type=Path, help="directory to keep inputs in from run to run, outside of the repository"
    )
    parser.add_argument("--coverage", action="store_true", help="guided by coverage: one target, needs atheris")
    chosen = parser.parse_args()
    if chosen.coverage:
        if len(chosen.targets) != 1:
            parser.error("--coverage takes one target")
        return _guided(chosen.targets[0], int(chosen.seconds), chosen.seed, chosen.corpus)

    from tests.fuzz.corpus import Corpus
    from tests.fuzz.run import Fed, fuzz
    from tests.fuzz.targets import TARGETS

    unknown = set(chosen.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    names = chosen.targets or [*TARGETS]
    seconds = chosen.seconds if chosen.minutes is None else 60 * chosen.minutes / len(names)
    corpus = Corpus(chosen.corpus)
    table: dict[str, Fed] = {}
    _print("target", "inputs", "findings", "slowest, CPU s", "most memory, MiB")
    for name in names:
        fed = table[name] = fuzz(name, seconds, chosen.seed, corpus, go_on=chosen.all)
        _print(name, fed.inputs, len(fed.findings), f"{fed.slowest:.2f}", f"{fed.mebibytes:.0f}")
        corpus.add_totals({name: fed.inputs})
    found = [finding for fed in table.values() for finding in fed.findings]
    slowest, memory = (max(getattr(fed, key) for fed in table.values()) for key in ("slowest", "mebibytes"))
    _print("all", sum(fed.inputs for fed in table.values()), len(found), f"{slowest:.2f}", f"{memory:.0f}")
    for finding in found:
        print(f"found: {finding}")  # noqa: T201
    if chosen.corpus is not None:
        print(f"{corpus.add_totals({})} inputs in all runs with this corpus")  # noqa: T201
    return int(bool(found))


def _print(name: str, *columns: object) -> None:
    print(f"{name:20}" + "".join(f"{column!s:>18}" for column in columns), flush=True)  # noqa: T201


def _guided(name: str, seconds: int, seed: int, kept: Path | None) -> int:
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

    with TemporaryDirectory() as temporary:
        corpus = str(kept / name) if kept is not None else temporary
        Path(corpus).mkdir(parents=True, exist_ok=True)
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
