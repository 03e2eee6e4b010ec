"""Archives of recordings, each unpacked once per test run into a directory that all its processes share, and never written to."""

import fcntl
import os
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

DIRECTORY = "EVIDENCE_OF_KAUDIT_TESTS"
"""The variable that names the run's directory; without it, each process has one of its own until it ends."""


def unpacked(*archives: Path) -> Path:
    """Return the directory with what these archives hold, unpacked one over the other. Tests that edit it copy it first."""
    target = _root() / "/".join([*archives[0].parent.parts[-3:], "+".join(path.name for path in archives)])
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = target.with_name(f"{target.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            for path in archives:
                extracted(path, partial)
            partial.rename(target)
    return target


def extracted(archive: Path, directory: Path) -> None:
    """Unpack one of our archives into a directory, also with Debian 12's Python 3.11.2, which knows no filters yet."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(directory)


def _root() -> Path:
    return Path(os.environ[DIRECTORY] if DIRECTORY in os.environ else _own().name)


@cache
def _own() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kaudit-unpacked-")
