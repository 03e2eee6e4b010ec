"""Local files, and a store, each question of which may fail: opening, reading, listing, asking for a size."""

import errno
import os
import threading
from pathlib import Path

from kaudit.source import schemes
from kaudit.source.bytes import RemoteFile
from kaudit.source.filesystem import FileStatus
from kaudit.source.local import LocalFileSystem
from kaudit.source.uri import Uri


class Reads:
    """Counts what is asked of a file system, and lets the read of one number fail."""

    def __init__(self) -> None:
        self.count = 0
        self.failing = 0
        self.failed: str | None = None
        self._lock = threading.Lock()

    def __call__(self, path: str) -> None:
        with self._lock:
            self.count += 1
            if self.count == self.failing:
                self.failed = path
                raise OSError(errno.EIO, "Input/output error", path)


class FailingFile:
    def __init__(self, path: str, reads: Reads) -> None:
        self._file = LocalFileSystem().open(Uri.parse(path))
        self._path, self._reads = path, reads
        self.close = self._file.close

    def size(self) -> int:
        self._reads(self._path)
        return self._file.size()

    def read_into(self, position: int, buffer: memoryview) -> int:
        self._reads(self._path)
        return self._file.read_into(position, buffer)


class FailingFiles(LocalFileSystem):
    """The local files, each question of which may fail."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def status(self, uri):
        self._reads(uri.path)
        return super().status(uri)

    def entries(self, uri):
        self._reads(uri.path)
        return super().entries(uri)

    def identity(self, uri):
        self._reads(uri.path)
        return super().identity(uri)

    def read_start(self, uri, limit):
        self._reads(uri.path)
        return super().read_start(uri, limit)

    def open(self, uri):
        self._reads(uri.path)
        return FailingFile(uri.path, self._reads)


class FailingStore(FailingFiles):
    """The same as a store: listed in one request, or many at a time, and read by ranges."""

    is_remote = True

    def tree(self, uri):
        self._reads(uri.path)
        found: dict[str, list[FileStatus]] = {}
        for directory, below, files in os.walk(uri.path):
            found[directory] = [FileStatus(name, is_directory=True) for name in sorted(below)]
            found[directory] += [LocalFileSystem().status(Uri.parse(f"{directory}/{name}")) for name in sorted(files)]
        return found

    def open(self, uri):
        self._reads(uri.path)
        content = Path(uri.path).read_bytes()

        def read_range(start: int, length: int) -> bytes:
            self._reads(uri.path)
            return content[start : start + length]

        return RemoteFile(len(content), read_range, lambda: None)


def counted_reads(monkeypatch) -> Reads:
    """Return a counter of everything that local files and s3:// are asked from now on."""
    counted = Reads()
    systems = {"": FailingFiles(counted), "s3": FailingStore(counted)}
    monkeypatch.setattr(schemes, "_connect", lambda scheme, _: systems[scheme])
    return counted
