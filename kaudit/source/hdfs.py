"""hdfs:// through hdfs-native (an extra): it needs neither a JVM nor libhdfs."""

import errno
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, BinaryIO

import hdfs_native

from kaudit.source.bytes import RemoteFile, nothing_held
from kaudit.source.filesystem import (
    COPIED_AT_ONCE,
    FileStatus,
    Store,
    WritableFileSystem,
    as_os_errors,
    require_listener,
)
from kaudit.source.name_nodes import hadoop_settings, name_nodes
from kaudit.source.uri import Uri

_HDFS = Store("HDFS", (RuntimeError, ValueError, TypeError))  # the client's own exceptions have no common base


class HdfsFileSystem(WritableFileSystem):
    """One HDFS, by its name node's authority; an empty one is fs.defaultFS of core-site.xml (HADOOP_CONF_DIR)."""

    is_remote = True

    def __init__(self, authority: str) -> None:
        require_listener(f"hdfs://{authority}", name_nodes(authority))
        with as_os_errors(_HDFS.name, f"hdfs://{authority}", _HDFS.kinds):
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
        return RemoteFile(len(reader), partial(_HDFS.read, str(uri), reader.read_range), nothing_held)

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""
        _asked(str(uri), lambda: self._client.mkdirs(uri.path, create_parent=True))

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Write a file beside its place and rename it."""
        beside = f"{uri.path}.{secrets.token_hex(4)}.tmp"  # unique: another process may write the same file
        with as_os_errors(_HDFS.name, str(uri), _HDFS.kinds):
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
    try:
        return _HDFS.asked(name, ask)
    except OSError as error:
        # a name node that wants Kerberos hangs up on those who do not, and the client calls again and again
        if error.errno != errno.ETIMEDOUT or hadoop_settings().get("hadoop.security.authentication") == "kerberos":
            raise
        unknown = "if it wants Kerberos, HADOOP_CONF_DIR must lead to a core-site.xml that says so"
        raise OSError(error.errno, f"{error.strerror}; {unknown}", name) from error


def _entry(status: Any) -> FileStatus:  # noqa: ANN401 - a class of the extra's extension module
    name = str(status.path).rstrip("/").rpartition("/")[2]
    block = int(status.blocksize or 0)
    return FileStatus(name, bool(status.isdir), int(status.length), int(status.modification_time), block_bytes=block)
