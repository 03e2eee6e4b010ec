"""`python -m tests.bugs.record ID...`: provoke known bugs again and keep them beside this file; --fixed, --list.

Not a test: it needs Java and Maven, and fetches brokers and clients. README.md has what each recording holds.
"""

import argparse
import io
import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bugs.recipe import Outcome, Recipe
from tests.bugs.recipes import RECIPES

HERE = Path(__file__).parent
ARCHIVE, FIXED_ARCHIVE, EXPECTED = "recording.tar.xz", "fixed.tar.xz", "expected.toml"
ZOOKEEPER = "zookeeper"
_RESERVED = {".index": 8, ".timeindex": 12, "log.1": 64}
"""Files that are allocated in advance, and how large what is in them is: an entry, or what ends a ZooKeeper log."""
_FIXED = "[fixed]"
_BESIDE = ("meta.properties", "*-checkpoint", "bootstrap.checkpoint")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; return 1 if a bug did not happen, or happened in a release that is said to be without it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bugs.record")
    parser.add_argument("bugs", nargs="*", metavar="ID", help="e.g. KAFKA-12671 (all)")
    parser.add_argument(
        "--fixed", action="store_true", help="play the release without the bug instead, and keep what it did"
    )
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--keep", type=Path, help="where to leave the brokers' directories")
    options = parser.parse_args(arguments)
    if options.list:
        for recipe in RECIPES.values():
            _say(f"{recipe.bug:20} {recipe.program:30} {recipe.affected:10} without it: {recipe.fixed or '-'}")
        return 0
    failed = 0
    for bug in options.bugs or RECIPES:
        recipe = RECIPES[bug]
        version = recipe.fixed if options.fixed else recipe.affected
        if version is None:
            continue
        home = Path(tempfile.mkdtemp(prefix=f"{bug}-", dir=options.keep))
        try:
            outcome = recipe.play(version, home)
            _say(f"{bug} {recipe.program} {version}: {outcome.account}")
            if outcome.happened is options.fixed:
                failed = 1
                _say(f"{bug}: it {'happened' if options.fixed else 'did not happen'}")
            elif options.fixed:
                keep_fixed(recipe, version, outcome, HERE / bug)
            else:
                keep(recipe, outcome, HERE / bug)
        finally:
            if options.keep is None:
                shutil.rmtree(home)
    return failed


def keep(recipe: Recipe, outcome: Outcome, directory: Path) -> None:
    """Write a recording: the archive, and what should be found in it."""
    directory.mkdir(exist_ok=True)
    _write(outcome, directory / ARCHIVE)
    expected = directory / EXPECTED
    _, fixed = _parts(expected)
    expected.write_text("\n".join(_manifest(recipe, outcome)) + "\n" + fixed)


def keep_fixed(recipe: Recipe, version: str, outcome: Outcome, directory: Path) -> None:
    """Write what a release without the bug did instead."""
    if recipe.fixed_log_differs:
        _write(outcome, directory / FIXED_ARCHIVE)
    expected = directory / EXPECTED
    recorded, _ = _parts(expected)
    fixed = f"{_FIXED}\nversion = {json.dumps(version)}\nhappened = {json.dumps(outcome.account)}\n"
    expected.write_text(recorded + fixed)


def _write(outcome: Outcome, path: Path) -> None:
    files = dict(_files(outcome))
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, source in sorted(files.items()):
            data = _without_reserve(source)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), int(source.stat().st_mtime)
            archive.addfile(entry, io.BytesIO(data))


def _without_reserve(path: Path) -> bytes:
    """A file without the zeros that were allocated in advance, of which indexes and ZooKeeper's logs have megabytes."""
    data = path.read_bytes()
    multiple = _RESERVED.get(path.suffix, _RESERVED.get(path.name))
    if multiple is None or data[-multiple:].strip(b"\0"):
        return data
    used = data.rstrip(b"\0")
    return used + bytes(-len(used) % multiple)


def _parts(expected: Path) -> tuple[str, str]:
    """What a manifest says of the recording, and what of the release without the bug."""
    text = expected.read_text() if expected.exists() else ""
    recorded, fixed, rest = text.partition(_FIXED)
    return recorded, fixed + rest


def _files(outcome: Outcome) -> Iterator[tuple[str, Path]]:
    """(name in the archive, file)."""
    for name, log_dir in outcome.log_dirs.items():
        beside = {path for pattern in _BESIDE for path in log_dir.glob(pattern)}
        inside = {
            path
            for partition in outcome.partitions
            for path in (log_dir / partition).rglob("*")
            if path.is_file() and path.suffix != ".lock"
        }
        for path in beside | inside:
            yield f"{name}/{path.relative_to(log_dir)}", path
    if outcome.zookeeper is not None:
        for path in outcome.zookeeper.rglob("*.*"):
            yield f"{ZOOKEEPER}/{path.relative_to(outcome.zookeeper)}", path
    yield from outcome.server_logs.items()
    yield from outcome.client_logs.items()


def _manifest(recipe: Recipe, outcome: Outcome) -> Iterator[str]:
    yield f"bug = {json.dumps(recipe.bug)}"
    yield f"program = {json.dumps(recipe.program)}"
    yield f"version = {json.dumps(recipe.affected)}"
    yield f"happened = {json.dumps(outcome.account)}"
    together = outcome.zookeeper is not None
    yield f"log_dirs = {json.dumps(['.'] if together else list(outcome.log_dirs))}"
    yield f"server_logs = {json.dumps(list(outcome.server_logs))}"
    yield f"client_logs = {json.dumps(list(outcome.client_logs))}"
    for finding in outcome.findings:
        yield ""
        yield "[[findings]]"
        for name, value in finding.items():
            yield f"{name} = {json.dumps(value)}"
    yield ""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
