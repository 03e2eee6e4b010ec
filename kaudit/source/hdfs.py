"""hdfs:// through hdfs-native (an extra): it needs neither a JVM nor libhdfs."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, BinaryIO

import hdfs_native

from kaudit.source.bytes import RemoteFile, nothing_held
from kaudit.source.filesystem import (
    COPIED_AT_ONCE,
    FileStatus,
    WritableFileSystem,
    answer_seconds,
    answered,
    as_os_errors,
    require_listener,
)
from kaudit.source.name_nodes import name_nodes
from kaudit.source.uri import Uri


class HdfsFileSystem(WritableFileSystem):
    """One HDFS, by its name node's authority; an empty one is fs.defaultFS of core-site.xml (HADOOP_CONF_DIR)."""

    is_remote = True

    def __init__(self, authority: str) -> None:
        require_listener(f"hdfs://{authority}", name_nodes(authority))
        with _as_os_errors(f"hdfs://{authority}"):
            self._client = hdfs_native.Client(f"hdfs://{authority}" if authority else None)

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        return _entry(_asked(str(uri), lambda: self._client.get_file_info(uri.path)))

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name, with sizes: one question to the name node."""
        listed = _asked(str(uri), lambda: list(self._client.list_status(uri.path)))
        return sorted(map(_entry, listed), key=lambda entry: entry.name)

    def open(self, uri: Uri) -> RemoteFile:
        """Open a file for ranged reads: of the blocks known now."""
        reader = _asked(str(uri), lambda: self._client.read(uri.path))
        return RemoteFile(len(reader), partial(_read, str(uri), reader), nothing_held)

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""
        _asked(str(uri), lambda: self._client.mkdirs(uri.path, create_parent=True))

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Write a file beside its place and rename it."""
        beside = f"{uri.path}.{secrets.token_hex(4)}.tmp"  # unique: another process may write the same file
        with _as_os_errors(str(uri)):
            # not as a context: its end would keep what is there of a file that failed
            out = self._client.create(beside, hdfs_native.WriteOptions(overwrite=True))
            while data := content.read(COPIED_AT_ONCE):
                out.write(data)
            out.close()
            self._client.rename(beside, uri.path, overwrite=True)

    def remove(self, uri: Uri) -> None:
        """Remove a file, or a directory with all it holds."""
        _asked(str(uri), lambda: self._client.delete(uri.path, recursive=True))


def _asked(name: str, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the client returns
    """Return the name node's answer."""
    with _as_os_errors(name):
        return answered(name, ask, answer_seconds())


def _read(name: str, reader: Any, position: int, length: int) -> bytes:  # noqa: ANN401 - the client's reader
    """Read a range: data nodes have time to answer, and to send it at 1 MiB a second."""
    with _as_os_errors(name):
        return answered(name, lambda: bytes(reader.read_range(position, length)), answer_seconds() + length / (1 << 20))


def _as_os_errors(name: str) -> AbstractContextManager[None]:
    # the client's own exceptions have no common base
    return as_os_errors("HDFS", name, (RuntimeError, ValueError, TypeError))


def _entry(status: Any) -> FileStatus:  # noqa: ANN401 - a class of the extra's extension module
    name = str(status.path).rstrip("/").rpartition("/")[2]
    block = int(status.blocksize or 0)
    return FileStatus(name, bool(status.isdir), int(status.length), int(status.modification_time), block_bytes=block)
