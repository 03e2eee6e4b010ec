"""Play applications that read, process and write on a real broker: python -m tests.live_brokers.exactly_once [NAME ...].

tests/data/exactly-once/NAME.tar.xz has the broker's directories, truth.json what a consumer reads of the outputs. It needs Java 17 and
Maven, and up to a minute for each; `--clients DIRECTORY` keeps the logs of the clients.
"""

import argparse
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.live_brokers.exactly_once import plays
from tests.live_brokers.exactly_once.stage import DATA, TRUTH, Stage, Truth, truths

SAMPLE = Path(__file__).parents[3] / "samples" / "exactly-once"
OLD, NEW = "3.9.1", "4.1.1"


class Play(NamedTuple):
    """What is played, on which release, with how many partitions of each topic; whether nothing is wrong that the logs can show."""

    act: Callable[[Stage], None]
    version: str
    partitions: int = 1
    healthy: bool = False
    config: Mapping[str, object] = {}


PLAYS = {
    "abort-without-going-back": Play(plays.abort_without_going_back, NEW),
    "healthy-loop-3.9": Play(plays.healthy_loop, OLD, 2, healthy=True),
    "healthy-loop-4.1": Play(plays.healthy_loop, NEW, 2, healthy=True),
    "jump-outside": Play(plays.jump_outside, NEW),
    "offsets-after": Play(plays.offsets_after_the_transaction, NEW),
    "offsets-automatic": Play(plays.offsets_automatic, NEW),
    "offsets-before": Play(plays.offsets_before_the_transaction, OLD),
    "outputs-alone-3.9": Play(plays.outputs_without_inputs, OLD),
    "outputs-alone-4.1": Play(plays.outputs_without_inputs, NEW),
    "processed-again": Play(plays.processed_again, NEW),
    "streams-alos-3.9": Play(plays.streams_at_least_once, OLD, 2, healthy=True),
    "streams-alos-4.1": Play(plays.streams_at_least_once, NEW, 2, healthy=True),
    "streams-eos-3.9": Play(plays.streams_exactly_once, OLD, 2, healthy=True),
    "streams-eos-4.1": Play(plays.streams_exactly_once, NEW, 2, healthy=True),
    "zombie-goes-back-3.9": Play(plays.zombie_goes_back, OLD),
    "zombie-goes-back-4.1": Play(plays.zombie_goes_back, NEW),
    "zombie-level": Play(plays.zombie_at_the_same_offset, OLD),
}


def play(chosen: Play, target: Path, clients: Path | None = None) -> Truth:
    """Play one, write its broker's directories to `target`, a tar file or a directory, and return what is true of it."""
    with tempfile.TemporaryDirectory(prefix="kaudit-exactly-once-") as folder:
        stage = Stage(chosen.version, Path(folder) / "home", chosen.config)
        try:
            stage.start(chosen.partitions)
            chosen.act(stage)
            truth = stage.truth(chosen.act.__doc__ or "", chosen.version, healthy=chosen.healthy)
        finally:
            stage.end()
            if clients is not None:
                for home in stage.home.glob("client-*"):
                    clients.mkdir(parents=True, exist_ok=True)
                    for name in ("client.log", "stdout"):
                        if (home / name).exists():
                            shutil.copy(home / name, clients / f"{home.name}-{name}")
        if target == SAMPLE:
            shutil.rmtree(target, ignore_errors=True)
            stage.kept(
                target, "*index", "*.snapshot", "leader-epoch-checkpoint", "meta.properties", "*-offset-checkpoint"
            )
            return truth
        kept = Path(folder) / "kept"
        stage.kept(kept)
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for path in sorted(kept.rglob("*")):
                archive.add(path, path.relative_to(kept), recursive=False, filter=_nobodys)
    return truth


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry


def _check(names: Sequence[str]) -> int:
    """Play, and print what kaudit says wrongly; return how many of them it says something wrong of."""
    from tests.live_brokers.exactly_once.judged import wrong

    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix="kaudit-exactly-once-") as folder:
            target = Path(folder) / f"{name}.tar.xz"
            found = list(wrong(play(PLAYS[name], target), target))
        sys.stdout.write("".join(f"{name}: {line}\n" for line in found or ["as it is"]))
        failed += bool(found)
    return failed


def main() -> None:
    """Play those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--clients", type=Path, metavar="DIRECTORY", help="keep the logs of the clients there")
    parser.add_argument("--check", action="store_true", help="keep nothing, and compare what kaudit says")
    parser.add_argument("--sample", action="store_true", help="play the sample anew instead")
    asked = parser.parse_args()
    if asked.sample:
        play(Play(plays.together, NEW), SAMPLE)
        return
    if asked.check:
        sys.exit(_check(asked.names or list(PLAYS)))
    DATA.mkdir(parents=True, exist_ok=True)
    for name in asked.names or PLAYS:
        clients = None if asked.clients is None else asked.clients / name
        known = {**truths(), name: play(PLAYS[name], DATA / f"{name}.tar.xz", clients)}
        TRUTH.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1) + b"\n")
        sys.stderr.write(f"{name}\n")


if __name__ == "__main__":
    main()
