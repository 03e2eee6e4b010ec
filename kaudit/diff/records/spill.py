"""Rows in files below a temporary directory, numbered, so that one number's fit into memory; every process writes files of its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Rows = NDArray[Any]
_READ_BYTES = 8 << 20


class Spill(Struct, frozen=True):
    """Rows of one dtype under numbers. Raises OSError where the directory is full."""

    directory: str
    name: str
    dtype: Any

    def append(self, numbers: NDArray[Any], rows: Rows) -> None:
        """Write each row under its number, in their order."""
        if not len(rows):
            return
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows[order], numbers[order]
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
            with Path(self.directory, f"{self.name}.{int(numbers[start])}.{os.getpid()}").open("ab") as file:
                file.write(rows[start:stop].tobytes())

    def numbers(self) -> list[int]:
        """Return the numbers that have rows."""
        return sorted({int(path.name.split(".")[1]) for path in self._files("*")})

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

    def _files(self, number: int | str) -> list[Path]:
        return sorted(Path(self.directory).glob(f"{self.name}.{number}.*"))
