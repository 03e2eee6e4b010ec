"""s3:// through pyarrow.fs: ranged reads of objects, "directories" being common prefixes."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from pyarrow import fs

from kaudit.source.bytes import RemoteFile
from kaudit.source.filesystem import (
    COPIED_AT_ONCE,
    FileStatus,
    Store,
    WritableFileSystem,
    as_os_errors,
    connect_seconds,
)
from kaudit.source.uri import Uri, UrlError

_S3 = Store("S3")
_ATTEMPTS = 3
_DENIED = "ACCESS_DENIED"
_MAY_BE_MISSING = "S3 answers this of objects that do not exist too, to whom may not list the bucket (s3:ListBucket)"
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


class S3FileSystem(WritableFileSystem):
    """Reads and writes one bucket. Credentials come from the environment, a profile, or the machine's role, as AWS' own tools do.

    AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL name another store than Amazon's.
    """

    is_remote = True

    def __init__(self, bucket: str) -> None:
        if not bucket:
            raise UrlError("s3:// needs a bucket: s3://BUCKET/PATH")
        self._bucket = bucket
        # path-style addresses: what stores other than Amazon's understand without DNS for every bucket
        self._s3 = fs.S3FileSystem(
            endpoint_override=_first(ENDPOINT_VARIABLES),
            region=_first(REGION_VARIABLES) or "us-east-1",
            connect_timeout=connect_seconds() / _ATTEMPTS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""
        with _as_os_errors(uri):
            info = _S3.asked(str(uri), lambda: self._s3.get_file_info(self._key(uri)))
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(2, "no such object or prefix", str(uri))
        return self._entry(info)

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List what lies directly under a prefix, sorted by name, with sizes."""
        with _as_os_errors(uri):
            infos = self._s3.get_file_info(fs.FileSelector(self._key(uri), recursive=False))
        return sorted(map(self._entry, infos), key=lambda entry: entry.name)

    def tree(self, uri: Uri) -> dict[str, list[FileStatus]]:
        """List all keys below a prefix, 1,000 a request, by the paths of what would be directories."""
        with _as_os_errors(uri):
            infos = self._s3.get_file_info(fs.FileSelector(self._key(uri), recursive=True))
        found: dict[str, list[FileStatus]] = {}
        while infos:  # there may be millions: entries taken are freed
            info = infos.pop()
            parent, _, name = info.path.removeprefix(self._bucket).rpartition("/")
            if name:
                found.setdefault(parent or "/", []).append(self._entry(info))
        for entries in found.values():
            entries.sort(key=lambda entry: entry.name)
        return found

    def open(self, uri: Uri) -> RemoteFile:
        """Open an object for ranged reads; objects never change in place."""
        with _as_os_errors(uri):
            file = _S3.asked(str(uri), lambda: self._s3.open_input_file(self._key(uri)))
            size = int(file.size())

        def read(position: int, length: int) -> bytes:
            with _as_os_errors(uri):
                return bytes(file.read_at(length, position))

        return RemoteFile(size, partial(_S3.read, str(uri), read), file.close)

    def make_directory(self, uri: Uri) -> None:
        """Do nothing: prefixes need not be made."""

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Upload an object, which is there when the upload is complete."""
        # not as a context: its end would complete the upload of a part
        out = self._s3.open_output_stream(self._key(uri))
        while data := content.read(COPIED_AT_ONCE):
            out.write(data)
        out.close()

    def remove(self, uri: Uri) -> None:
        """Remove an object, or all of a prefix."""
        with _as_os_errors(uri):
            found = self._s3.get_file_info(self._key(uri)).type
            if found == fs.FileType.Directory:
                self._s3.delete_dir(self._key(uri))
            elif found != fs.FileType.NotFound:
                self._s3.delete_file(self._key(uri))

    def _key(self, uri: Uri) -> str:
        return f"{self._bucket}{uri.path}".rstrip("/")

    def _entry(self, info: Any) -> FileStatus:  # noqa: ANN401 - pyarrow has no types
        is_directory = info.type == fs.FileType.Directory
        modified = info.mtime_ns
        return FileStatus(
            info.base_name, is_directory, 0 if is_directory else int(info.size), (modified or 0) // 1_000_000
        )


@contextmanager
def _as_os_errors(uri: Uri) -> Iterator[None]:
    """Turn errors of the client into an OSError of one line; a refusal is a PermissionError, and never "not there"."""
    try:
        with as_os_errors(_S3.name, str(uri)):
            yield
    except OSError as error:
        if _DENIED not in str(error.strerror):
            raise
        raise PermissionError(errno.EACCES, f"{error.strerror}; {_MAY_BE_MISSING}", str(uri)) from error


def _first(names: Sequence[str]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
