"""Files of the operating system (local disks and NFS), and JSON documents that people hand over whole: saved reports, baselines."""

# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH123 - places are texts

import errno
import os
import shutil
import stat
import sys
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import IO, BinaryIO

from kaudit.errors import UsageError
from kaudit.model.limits import DIRECTORY_ENTRIES, DOCUMENT_BYTES
from kaudit.source.bytes import LocalFile, naming_owner, open_regular
from kaudit.source.filesystem import COPIED_AT_ONCE, FileStatus, WritableFileSystem
from kaudit.source.uri import STDIN, Uri


class LocalFileSystem(WritableFileSystem):
    """Directories and files the operating system opens. Symbolic links are followed."""

    is_remote = False

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        try:
            with naming_owner(uri.path):
                status = os.stat(uri.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # there can be no such file
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri.path) from None
            raise
        return FileStatus(
            uri.last,
            stat.S_ISDIR(status.st_mode),
            status.st_size,
            status.st_mtime_ns // 1_000_000,
            status.st_ino,
            status.st_ctime_ns,
        )

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name; sizes are asked for where they matter, each is a system call."""
        with naming_owner(uri.path), os.scandir(uri.path) as found:
            entries = [FileStatus(entry.name, _is_directory(entry)) for entry in islice(found, DIRECTORY_ENTRIES)]
            is_longer = next(found, None) is not None
        if is_longer:
            raise OSError(errno.EFBIG, f"more than {DIRECTORY_ENTRIES} files in one directory", uri.path)
        return sorted(entries, key=lambda entry: entry.name)

    def identity(self, uri: Uri) -> Hashable:
        """Return device and inode."""
        status = os.stat(uri.path)
        return status.st_dev, status.st_ino

    def read_start(self, uri: Uri, limit: int) -> bytes:
        """Return the first `limit` bytes of a file."""
        with open(uri.path, "rb", opener=open_regular) as file:
            # read allocates the whole limit, which may be a GiB
            return file.read(min(limit, os.fstat(file.fileno()).st_size))

    def open(self, uri: Uri) -> LocalFile:
        """Open a file for ranged reads."""
        return LocalFile(uri.path)

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""
        os.makedirs(uri.path, exist_ok=True)

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Write a file beside its place and rename it."""
        partial = f"{uri.path}.{os.urandom(4).hex()}.tmp"  # unique: another process may write the same file
        try:
            with open(partial, "wb") as out:
                shutil.copyfileobj(content, out, COPIED_AT_ONCE)
                out.flush()
                os.fsync(out.fileno())
            os.replace(partial, uri.path)
        except BaseException:
            if os.path.exists(partial):  # noqa: PTH110 - as above
                os.unlink(partial)
            raise

    def remove(self, uri: Uri) -> None:
        """Remove a file, or a directory with all it holds."""
        try:
            if os.path.isdir(uri.path):  # noqa: PTH112 - as above
                shutil.rmtree(uri.path)
            else:
                os.unlink(uri.path)
        except FileNotFoundError:
            return


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a broken link: opening it reports the error


def read_document(file: str) -> str:
    """Return a document's text; `-` is stdin.

    Raises:
        OSError: it cannot be read, or is longer than DOCUMENT_BYTES.
        UnicodeDecodeError: it is not UTF-8.

    """
    if file == STDIN:
        return _whole(sys.stdin, file)
    with open(file, encoding="utf-8") as document:
        return _whole(document, file)


def read_text(file: str) -> str:
    """Return the text of a file, `-` for stdin. Raises UsageError where it cannot be read."""
    try:
        return read_document(file)
    except FileNotFoundError:
        raise UsageError(f"no such file: {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{file}: cannot be read: {reason}") from error


def _whole(document: IO[str], file: str) -> str:
    text = document.read(DOCUMENT_BYTES + 1)
    if len(text) > DOCUMENT_BYTES:
        raise OSError(errno.EFBIG, f"more than {DOCUMENT_BYTES >> 20} MiB", file)
    return text
