"""What discovery and reading need of a file system."""

from collections.abc import Hashable, Sequence
from typing import Protocol

from msgspec import Struct

from kaudit.source.bytes import ByteSource
from kaudit.source.uri import Uri


class FileStatus(Struct, frozen=True):
    """A file or directory by name. `size` in bytes and `modified_ms` are None where listing does not give them."""

    name: str
    is_directory: bool
    size: int | None = None
    modified_ms: int | None = None


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
