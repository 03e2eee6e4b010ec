"""What discovery and reading need of a file system."""

import socket
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from msgspec import Struct

from kaudit.source.bytes import ByteSource
from kaudit.source.uri import Uri

COPIED_AT_ONCE = 4 << 20
"""Bytes held while a file is written."""


CONNECT_SECONDS = 10
"""So long a store has to take a connection: clients of their own would try for minutes."""


@contextmanager
def as_os_errors(store: str, name: str, kinds: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what a store's client raises, `kinds` too, into an OSError with the client's own words; `name` is what it is about."""
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        raise type(error)(error.errno or 5, f"{store}: {error}", name) from error
    except kinds as error:
        raise OSError(5, f"{store}: {error}", name) from error


def require_listener(name: str, authority: str) -> None:
    """Check that somebody takes connections at HOST:PORT.

    Raises:
        OSError: nobody does, or not soon.

    """
    host, _, port = authority.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise OSError(error.errno or 5, f"nobody answers at {authority}: {reason}", name) from error


class FileStatus(Struct, frozen=True):
    """A file or directory by name. `size` in bytes and `modified_ms` are None where listing does not give them.

    `inode` and `changed_ns`, the time of its last change of any kind (st_ctime), are 0 where a file system has none.
    """

    name: str
    is_directory: bool
    size: int | None = None
    modified_ms: int | None = None
    inode: int = 0
    changed_ns: int = 0


class FileSystem(Protocol):
    """Reads directories and files. Every failure is an OSError; what is not there, a FileNotFoundError."""

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name."""

    def identity(self, uri: Uri) -> Hashable:
        """Return what is equal for two names of one directory: links may form rings."""

    def read_start(self, uri: Uri, limit: int) -> bytes:
        """Return the first `limit` bytes of a file, fewer if it has fewer."""

    def open(self, uri: Uri) -> ByteSource:
        """Open a file for ranged reads."""


class WritableFileSystem(FileSystem, Protocol):
    """A file system that copies of logs can be written to."""

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Write a file from here to the end of `content`: others see what was there before, then all of it."""

    def remove(self, uri: Uri) -> None:
        """Remove a file, or a directory with all it holds; what is not there is removed already."""
