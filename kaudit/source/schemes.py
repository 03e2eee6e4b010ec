"""The file system that serves each URL scheme, and opening files through it."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import cast

from kaudit.source.bytes import ByteSource
from kaudit.source.file_kinds import segment_base_offset
from kaudit.source.filesystem import FileSystem, WritableFileSystem
from kaudit.source.layout import SegmentFile
from kaudit.source.text import SegmentText
from kaudit.source.uri import KAFKA, Uri, UrlError


def _local(_authority: str) -> FileSystem:
    from kaudit.source.local import LocalFileSystem  # noqa: PLC0415 - one file system per scheme in use

    return LocalFileSystem()


def _hdfs(authority: str) -> FileSystem:
    from kaudit.source.hdfs import HdfsFileSystem  # noqa: PLC0415 - an extra

    return HdfsFileSystem(authority)


def _webhdfs(protocol: str, authority: str) -> FileSystem:
    from kaudit.source.webhdfs import WebHdfsFileSystem  # noqa: PLC0415 - http.client is slow to import

    return WebHdfsFileSystem(protocol, authority)


def _s3(authority: str) -> FileSystem:
    from kaudit.source.s3 import S3FileSystem  # noqa: PLC0415 - an extra

    return S3FileSystem(authority)


class SegmentRemovedError(FileNotFoundError):
    """Retention removed a segment from the head of its log. `log_start`: base offset of the oldest segment left."""

    def __init__(self, path: str, log_start: int) -> None:
        super().__init__(2, f"retention removed it: the log begins with segment {log_start:020d}.log now", path)
        self.log_start = log_start


_SCHEMES: Mapping[str, Callable[[str], FileSystem]] = {
    "": _local,
    "hdfs": _hdfs,
    "webhdfs": partial(_webhdfs, "http"),
    "swebhdfs": partial(_webhdfs, "https"),
    "s3": _s3,
    "s3a": _s3,
}
_WRITABLE = ("", "hdfs", "s3", "s3a")


@cache
def _connect(scheme: str, authority: str) -> FileSystem:
    return _SCHEMES[scheme](authority)


def filesystem(uri: Uri) -> FileSystem:
    """Return the file system that holds `uri`, connected once a process.

    Raises:
        UrlError: no file system has this scheme, or the extra it needs is not installed.

    """
    if uri.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in (*_SCHEMES, KAFKA) if scheme)
        raise UrlError(f"{uri}: kaudit reads local paths, file://, {known}")
    return _connect(uri.scheme, uri.authority)


def writable_filesystem(uri: Uri) -> WritableFileSystem:
    """Return the file system that is to hold `uri`.

    Raises:
        UrlError: as `filesystem`, or kaudit cannot write there.

    """
    if uri.scheme not in _WRITABLE:
        known = ", ".join(f"{scheme}://" for scheme in _WRITABLE if scheme)
        raise UrlError(f"{uri}: kaudit writes to local paths, {known}")
    return cast("WritableFileSystem", filesystem(uri))


def open_segment(segment: SegmentFile, working_directory: str | None = None) -> ByteSource:
    """Open a segment for ranged reads, wherever it lies; a relative path begins in `working_directory`.

    Raises:
        SegmentRemovedError: retention removed it.
        OSError: it cannot be opened.

    """
    if segment.fetched is not None:
        from kaudit.source.kafka.readers import open_fetched  # noqa: PLC0415 - an extra

        return open_fetched(segment.fetched)
    uri = Uri.parse(segment.path).absolute(working_directory)
    try:
        source = filesystem(uri).open(uri)
    except FileNotFoundError as error:
        log_start = removed_from_head(uri)
        if log_start is None:
            raise
        raise SegmentRemovedError(segment.path, log_start) from error
    return source if segment.text is None else SegmentText(source, segment.text)


def removed_from_head(segment: Uri) -> int | None:
    """Return where its log begins now if a segment that is gone was removed from the log's head, else None.

    Brokers delete the oldest segments and never the last one (UnifiedLog.deletableSegments): where retention was at
    work, the directory lists later segments and no earlier ones. A directory that was moved, or is not mounted here,
    lists none; the log cleaner keeps the oldest segment's name.
    """
    base_offset = segment_base_offset(segment.last)
    directory = segment.parent
    try:
        names = [entry.name for entry in filesystem(directory).entries(directory)]
    except OSError:
        return None
    oldest = min((offset for name in names if (offset := segment_base_offset(name)) is not None), default=None)
    return oldest if base_offset is not None and oldest is not None and oldest > base_offset else None


def read_side_file(path: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a file by its path or URL.

    Raises:
        OSError: it cannot be read.

    """
    uri = Uri.parse(path)
    return filesystem(uri).read_start(uri, limit)
