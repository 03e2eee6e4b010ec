"""Random access to the bytes of one file, wherever it lives."""

import os
from types import TracebackType
from typing import Protocol, Self


class ByteSource(Protocol):
    """A file as bytes. Reads never change it."""

    def size(self) -> int:
        """Return the file's size now, in bytes; a live log grows."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there (fewer only at the end of the file)."""

    def close(self) -> None:
        """Release the file."""


class LocalFile:
    """A local file read with positioned reads.

    Not mapped: a broker that truncates a live segment would turn a page fault into SIGBUS.
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def size(self) -> int:
        """Return the file's size now, in bytes."""
        return os.fstat(self._file).st_size

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        done = 0
        while done < len(buffer):
            count = os.preadv(self._file, [buffer[done:]], position + done)
            if count == 0:
                break
            done += count
        return done

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
