"""hdfs:// through hdfs-native (an extra): it needs neither a JVM nor libhdfs.

Name nodes of an HDFS, by Hadoop's configuration (HADOOP_CONF_DIR, else HADOOP_HOME/etc/hadoop).
"""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree as ET

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
from kaudit.source.uri import Uri


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
            continue  # the client reports it
        for entry in root.iter("property"):
            found[(entry.findtext("name") or "").strip()] = (entry.findtext("value") or "").strip()
    return found


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
