"""What brokers leave behind a recording: their log directories and their server logs, as two archives."""

import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.live_brokers.server_logs import FOLDER

DATA = "data"
_LEFT_OUT = (".index", ".timeindex", ".lock")
"""Derived from the segments, and mostly empty space."""
_SERVER_LOGS = ("server.log", "state-change.log", "controller.log")


def write(home: Path, out: Path, name: str) -> None:
    """Write `NAME.logdir.tar.xz` and `NAME.server-logs.tar.xz`; every broker keeps its folder's name below `home`."""
    out.mkdir(parents=True, exist_ok=True)
    brokers = sorted(path.parent for path in home.rglob(FOLDER) if path.is_dir() and (path.parent / DATA).is_dir())
    logs = [path for broker in brokers for path in sorted((broker / FOLDER).iterdir()) if _server_log(path)]
    data = [path for broker in brokers for path in sorted((broker / DATA).rglob("*")) if _kept(path)]
    _archive(out / f"{name}.server-logs.tar.xz", home, logs)
    _archive(out / f"{name}.logdir.tar.xz", home, data)


def _server_log(path: Path) -> bool:
    """The last part of a rolled one is the hour: `server.log.2026-11-22-18`."""
    return path.name.startswith(_SERVER_LOGS) and path.stat().st_size > 0


def _kept(path: Path) -> bool:
    return path.is_file() and path.suffix not in _LEFT_OUT and "__cluster_metadata" not in path.parent.name


def _archive(archive: Path, home: Path, paths: Iterable[Path]) -> None:
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in paths:
            tar.add(path, path.relative_to(home))
