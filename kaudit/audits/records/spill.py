"""Rows in files below a temporary directory, numbered, so that one number's fit into memory; every process writes files of its own."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.errors import UsageError
from kaudit.source.uri import Uri

Rows = NDArray[Any]
_READ_BYTES = 8 << 20
_PLACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)


@contextmanager
def spill_directory(place: str | None, inputs: Iterable[str]) -> Iterator[Path]:
    """Make a directory for rows in `place`, by default TMPDIR, and remove it in the end.

    Raises UsageError where it lies in one of the inputs, or cannot be written.
    """
    try:
        place = place or tempfile.gettempdir()
    except FileNotFoundError as error:
        raise UsageError(f"{error.strerror}; --temporary-directory names another place") from error
    _require_outside(place, inputs)
    try:
        held = tempfile.TemporaryDirectory(prefix="kaudit-records-", dir=place)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; --temporary-directory names another place") from error
    with held as directory:
        yield Path(directory)


def _require_outside(place: str, inputs: Iterable[str]) -> None:
    resolved = Path(place).resolve()
    for path in inputs:
        if Uri.parse(path).is_local and Path(path).resolve() in (resolved, *resolved.parents):
            raise UsageError(
                f"{place} lies in {path}, where nothing is written: --temporary-directory names another place"
            )


@contextmanager
def resumed_directory(place: str, inputs: Iterable[str], key: str) -> Iterator[Path]:
    """Make a directory for rows in `place` that one process works in, or take over that of a run of this `key` that was interrupted.

    It stays where the process is killed or interrupted, and is removed in every other end. What a dead run's processes still write goes nowhere: they
    know the directory by another name. Raises UsageError as `spill_directory` does, and where another process works there.
    """
    _require_outside(place, inputs)
    try:
        lock = Path(place, f"kaudit-records-{key}.lock").open("ab")  # noqa: SIM115 - closed below, after what it locks
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; --temporary-directory names another place") from error
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{lock.name}: another process makes the same comparison here") from error
        own = Path(place, f"kaudit-records-{key}.{os.urandom(4).hex()}")
        left = next((path for path in Path(place).glob(f"kaudit-records-{key}.*") if path.is_dir()), None)
        with rows_written(own):
            own.mkdir() if left is None else left.rename(own)
        try:
            yield own
        except Exception:
            _give_up(own, lock.name)
            raise
        _give_up(own, lock.name)


def _give_up(directory: Path, lock: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    Path(lock).unlink(missing_ok=True)


@cache
def _writer(process: int) -> str:
    """Return what files of a process are called by: another one may get its number later."""
    return f"{process}-{os.urandom(4).hex()}"


@contextmanager
def rows_written(directory: Path) -> Iterator[None]:
    """Say of errors of the body, which writes rows there, that they are of the temporary directory: UsageError."""
    try:
        yield
    except OSError as error:
        if error.errno not in _PLACE_ERRORS:
            raise
        place = directory.parent
        raise UsageError(f"{place}: {error.strerror}; --temporary-directory names another place") from error


class Spill(Struct, frozen=True):
    """Rows of one dtype under numbers. Raises OSError where the directory is full."""

    directory: str
    name: str
    dtype: Any

    def append(self, numbers: NDArray[Any], rows: Rows) -> None:
        """Write each row under its number, in their order."""
        if not len(rows):
            return
        # numbers of two bytes are sorted by their digits; `take` copies rows whole, an index copies them field by field
        order = np.argsort(numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers, kind="stable")
        rows, numbers = rows.take(order), numbers[order]
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
            with Path(self.directory, f"{self.name}.{int(numbers[start])}.{_writer(os.getpid())}").open("ab") as file:
                file.write(rows[start:stop].tobytes())

    def numbers(self) -> list[int]:
        """Return the numbers that have rows."""
        return sorted({int(path.name.split(".")[1]) for path in self._files()})

    def size(self, number: int) -> int:
        """Return how many rows a number has."""
        return sum(path.stat().st_size for path in self._files(number)) // int(self.dtype.itemsize)

    def read(self, number: int) -> Rows:
        """Return all rows of a number."""
        return np.concatenate([np.empty(0, self.dtype), *self.parts(number)])

    def parts(self, number: int) -> Iterator[Rows]:
        """Yield the rows of a number a few megabytes at a time, those of one process in the order in which it wrote them."""
        size = int(self.dtype.itemsize)
        for path in self._files(number):
            with path.open("rb") as file:
                while data := file.read(_READ_BYTES // size * size):
                    yield np.frombuffer(data, dtype=self.dtype)

    def remove(self, number: int) -> None:
        """Delete the rows of a number."""
        for path in self._files(number):
            path.unlink()

    def _files(self, number: int | None = None) -> list[Path]:
        begin = f"{self.name}." if number is None else f"{self.name}.{number}."
        names = sorted(os.listdir(self.directory))  # noqa: PTH208 - thousands of names, asked for of each number
        return [Path(self.directory, name) for name in names if name.startswith(begin)]


def sizes_written(directory: Path) -> dict[str, int]:
    """Return the files in a directory that this process has written, of any name, and their bytes."""
    return {path.name: path.stat().st_size for path in directory.glob(f"*.{_writer(os.getpid())}")}
