"""Standard input as a file that is read at any position: `-` among the inputs."""

import errno
import os
import stat
import sys
from collections.abc import Sequence
from functools import cache
from multiprocessing import parent_process
from tempfile import TemporaryFile

from kaudit.model.limits import STANDARD_INPUT_BYTES
from kaudit.source.bytes import LocalFile
from kaudit.source.filesystem import COPIED_AT_ONCE, FileStatus, FileSystem
from kaudit.source.uri import Uri


class StandardInput(FileSystem):
    """What comes on standard input, read once: a file is read in place, a pipe is copied to a temporary file without a name.

    Processes that are forked later read the same; others cannot.
    """

    is_remote = False

    def __init__(self) -> None:
        self._held: int | None = None

    def status(self, uri: Uri) -> FileStatus:
        """Return a file of the size and time of what is held; reads a pipe to its end. Raises OSError where it is too long."""
        status = os.fstat(self._descriptor())
        return FileStatus(
            uri.last, is_directory=False, size=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000
        )

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """Raise NotADirectoryError."""
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(uri))

    def open(self, uri: Uri) -> LocalFile:  # noqa: ARG002 - as every file system
        """Open it for ranged reads."""
        return LocalFile(os.dup(self._descriptor()))

    def _descriptor(self) -> int:
        """Return a descriptor of a file, which stays open as long as the process lives."""
        if self._held is None:
            self._held = _held()
        return self._held


@cache
def standard_input() -> StandardInput:
    """Return what comes on this process' standard input."""
    return StandardInput()


def _held() -> int:
    """Return a descriptor of standard input if that is a file, else of a copy of all of it."""
    if parent_process() is not None or sys.stdin is None:
        raise OSError(errno.EBADF, "standard input can be read by the process alone that kaudit was started as")
    source = os.dup(sys.stdin.fileno())
    if stat.S_ISREG(os.fstat(source).st_mode):
        return source
    with os.fdopen(source, "rb", buffering=0) as pipe, TemporaryFile(prefix="kaudit-") as copy:
        copied = 0
        while piece := pipe.read(COPIED_AT_ONCE):
            copied += len(piece)
            if copied > STANDARD_INPUT_BYTES:
                text = f"more than {STANDARD_INPUT_BYTES >> 30} GiB: write it to a file, and give that"
                raise OSError(errno.EFBIG, text)
            copy.write(piece)
        copy.flush()
        return os.dup(copy.fileno())
