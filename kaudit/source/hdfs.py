"""hdfs:// through hdfs-native, a client in Rust that needs neither a JVM nor libhdfs.

Hadoop's configuration (HADOOP_CONF_DIR, HADOOP_HOME) names the name nodes of a URL.
"""

import os
import secrets
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree as ET

from kaudit.installation import install_command
from kaudit.source.bytes import RemoteFile, nothing_held
from kaudit.source.filesystem import COPIED_AT_ONCE, FileStatus, as_os_errors, require_listener
from kaudit.source.uri import Uri, UrlError


def name_nodes(authority: str) -> list[str]:
    """Return HOST:PORT of each name node that may answer for `authority`; none where only the client can know.

    A name service (dfs.ha.namenodes.SERVICE of hdfs-site.xml) has several; an empty authority is that of fs.defaultFS.
    """
    settings = _settings()
    service = authority or settings.get("fs.defaultFS", "").removeprefix("hdfs://").partition("/")[0]
    if ":" in service:
        return [service]
    nodes = settings.get(f"dfs.ha.namenodes.{service}", "").split(",")
    found = (settings.get(f"dfs.namenode.rpc-address.{service}.{node.strip()}", "") for node in nodes)
    return [address for address in found if ":" in address]


def _settings() -> Mapping[str, str]:
    home = os.environ.get("HADOOP_HOME")
    directory = os.environ.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else None)
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml") if directory else ():
        try:
            root = ET.parse(Path(str(directory), name)).getroot()  # noqa: S314 - the user's own configuration
        except (OSError, ET.ParseError):
            continue  # the client says what it makes of it
        for entry in root.iter("property"):
            found[(entry.findtext("name") or "").strip()] = (entry.findtext("value") or "").strip()
    return found


class HdfsFileSystem:
    """One HDFS, by its name node's authority; an empty one is fs.defaultFS of core-site.xml (HADOOP_CONF_DIR)."""

    is_remote = True

    def __init__(self, authority: str) -> None:
        try:
            import hdfs_native  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise UrlError(
                f"hdfs://{authority} needs an extra: {install_command('hdfs')} (or write webhdfs://NAMENODE:9870/PATH)"
            ) from error
        require_listener(f"hdfs://{authority}", name_nodes(authority))
        with _as_os_errors(f"hdfs://{authority}"):
            self._client = hdfs_native.Client(f"hdfs://{authority}" if authority else None)

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        with _as_os_errors(str(uri)):
            return _entry(self._client.get_file_info(uri.path))

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name, with sizes: one question to the name node."""
        with _as_os_errors(str(uri)):
            return sorted(map(_entry, self._client.list_status(uri.path)), key=lambda entry: entry.name)

    def tree(self, uri: Uri) -> None:
        """Return None: the name node lists one directory at a time."""

    def identity(self, uri: Uri) -> Hashable:
        """Return the path: HDFS has no links between directories."""
        return str(uri)

    def read_start(self, uri: Uri, limit: int) -> bytes:
        """Return the first `limit` bytes of a file."""
        with _as_os_errors(str(uri)):
            reader = self._client.read(uri.path)
            return bytes(reader.read_range(0, min(limit, len(reader))))

    def open(self, uri: Uri) -> RemoteFile:
        """Open a file for ranged reads: of the blocks known now."""
        with _as_os_errors(str(uri)):
            reader = self._client.read(uri.path)

        def read_range(position: int, length: int) -> bytes:
            with _as_os_errors(str(uri)):
                return bytes(reader.read_range(position, length))

        return RemoteFile(len(reader), read_range, nothing_held)

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""
        with _as_os_errors(str(uri)):
            self._client.mkdirs(uri.path, create_parent=True)

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Write a file beside its place and rename it."""
        from hdfs_native import WriteOptions  # noqa: PLC0415 - as above

        partial = f"{uri.path}.{secrets.token_hex(4)}.tmp"  # who else writes the same file has one of their own
        with _as_os_errors(str(uri)):
            # not as a context: its end would keep what is there of a file that failed
            out = self._client.create(partial, WriteOptions(overwrite=True))
            while data := content.read(COPIED_AT_ONCE):
                out.write(data)
            out.close()
            self._client.rename(partial, uri.path, overwrite=True)

    def remove(self, uri: Uri) -> None:
        """Remove a file, or a directory with all it holds."""
        with _as_os_errors(str(uri)):
            self._client.delete(uri.path, recursive=True)


def _as_os_errors(name: str) -> AbstractContextManager[None]:
    # the client's own exceptions have no common base
    return as_os_errors("HDFS", name, (RuntimeError, ValueError, TypeError))


def _entry(status: Any) -> FileStatus:  # noqa: ANN401 - a class of the extra's extension module
    name = str(status.path).rstrip("/").rpartition("/")[2]
    block = int(status.blocksize or 0)
    return FileStatus(name, bool(status.isdir), int(status.length), int(status.modification_time), block_bytes=block)
