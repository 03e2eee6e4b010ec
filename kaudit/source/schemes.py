"""Imports the file system of a URL's scheme when it is first used, and opens files through it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from kaudit.deferred import Deferred
from kaudit.installation import install_command
from kaudit.source.archives.forms import HEAD_BYTES, form_of
from kaudit.source.bytes import ByteSource
from kaudit.source.file_kinds import segment_base_offset
from kaudit.source.filesystem import FileStatus, FileSystem, WritableFileSystem
from kaudit.source.layout import FetchedRange, SegmentFile
from kaudit.source.local import LocalFileSystem
from kaudit.source.segment_object import SegmentObject, object_name
from kaudit.source.text import SegmentText
from kaudit.source.uri import KAFKA, Uri, UrlError

if TYPE_CHECKING:
    from kaudit.source import standard_input
else:
    standard_input = Deferred("kaudit.source.standard_input")

if TYPE_CHECKING:
    from kaudit.source.archives.filesystem import ArchiveFileSystem

_OPEN_ARCHIVES = 64
_STORES: Mapping[str, tuple[str, ...]] = {
    "hdfs": ("hdfs", "HdfsFileSystem"),
    "webhdfs": ("webhdfs", "WebHdfsFileSystem", "http"),
    "swebhdfs": ("webhdfs", "WebHdfsFileSystem", "https"),
    "s3": ("s3", "S3FileSystem"),
    "s3a": ("s3", "S3FileSystem"),
}
"""Module of kaudit.source, class, and the arguments before the URL's authority."""
_WITHOUT_EXTRA = {"hdfs": " (or write webhdfs://NAMENODE:9870/PATH)", "s3": ""}
"""Modules that import a client library, an extra of the same name, and what works without it."""
_WRITABLE = ("hdfs", "s3", "s3a")
_AZURE = "Azure Blob Storage is not read: copy it to a directory, to HDFS or to a store with S3's interface"
_OTHER_STORES: Mapping[str, str] = {
    "gs": "Google Cloud Storage is read by its S3 interface: s3:// with AWS_ENDPOINT_URL_S3=https://storage.googleapis.com and HMAC keys",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), _AZURE),
}
"""What to do with what lies in a store that kaudit does not read."""


class SegmentRemovedError(FileNotFoundError):
    """Retention removed a segment from the head of its log. `log_start`: base offset of the oldest segment left."""

    def __init__(self, path: str, log_start: int) -> None:
        super().__init__(2, f"retention removed it: the log begins with segment {log_start:020d}.log now", path)
        self.log_start = log_start


@cache
def _connect(scheme: str, authority: str) -> FileSystem:
    if not scheme:
        return LocalFileSystem()
    module, name, *protocol = _STORES[scheme]
    try:
        store: Callable[..., FileSystem] = getattr(import_module(f"kaudit.source.{module}"), name)
    except ImportError as error:
        extra = install_command(module)
        raise UrlError(f"{scheme}://{authority} needs an extra: {extra}{_WITHOUT_EXTRA[module]}") from error
    return store(*protocol, authority)


def filesystem(uri: Uri) -> FileSystem:
    """Return the file system that holds `uri`, connected once a process.

    Raises:
        UrlError: no file system has this scheme, or the extra it needs is not installed.

    """
    if uri.is_stdin:
        return standard_input.standard_input()
    if "!" in uri.path and (archive := _archive_of(uri)) is not None:
        return archive
    if uri.scheme in _OTHER_STORES:
        raise UrlError(f"{uri}: {_OTHER_STORES[uri.scheme]}")
    if uri.scheme and uri.scheme not in _STORES:
        raise UrlError(f"{uri}: kaudit reads local paths, file://, {_urls(*_STORES, KAFKA)}")
    return _connect(uri.scheme, uri.authority)


def _archive_of(uri: Uri) -> "ArchiveFileSystem | SegmentObject | None":
    """Return the archive that holds `uri`, None where there is no such file: a directory may be called `logs!`."""
    for archive, _ in uri.archives():
        with suppress(FileNotFoundError, NotADirectoryError):
            status = filesystem(archive).status(archive)
            if not status.is_directory:
                return _opened_archive(archive, status)
    return None


@lru_cache(maxsize=_OPEN_ARCHIVES)
def _opened_archive(archive: Uri, status: FileStatus) -> "ArchiveFileSystem | SegmentObject":
    """Open an archive as it is now: one that was replaced has another status."""
    if object_name(archive.last) is not None:
        return SegmentObject(filesystem(archive), archive, status)
    from kaudit.source.archives.filesystem import ArchiveFileSystem  # noqa: PLC0415 - few inputs are archives

    return ArchiveFileSystem(filesystem(archive).open(archive), archive, status)


def segment_object(place: Uri) -> SegmentObject | None:
    """Return the object of Aiven's plugin whose content lies at `place`, None for any other place. Raises OSError as SegmentObject."""
    found = _archive_of(place) if "!" in place.path else None
    return found if isinstance(found, SegmentObject) else None


def close_archives() -> None:
    """Forget the archives that earlier audits of this process have opened: what they hold in memory is limited together."""
    _opened_archive.cache_clear()


def archive_at(file: Uri) -> "ArchiveFileSystem | SegmentObject | None":
    """Return what opens a file that is an archive or compressed, by its content; None for any other file.

    Raises:
        OSError: it is an archive that kaudit does not read, or is damaged.

    """
    try:
        head = filesystem(file).read_start(file, HEAD_BYTES)
    except OSError:
        return None  # whoever reads it reports that
    return None if form_of(head) is None else _archive_of(file.content)


def is_decoded_whole(place: Uri) -> bool:
    """Return whether a file lies in one that is compressed from its first byte to its last: each process decodes that by itself."""
    archive = _archive_of(place)
    return archive is not None and archive.is_compressed


def content_of(place: Uri) -> Uri:
    """Return where the content of an archive or a compressed file lies, and any other place as it is. Raises as `archive_at`."""
    return place if archive_at(place) is None else place.content


def writable_filesystem(uri: Uri) -> WritableFileSystem:
    """Return the file system that is to hold `uri`.

    Raises:
        UrlError: as `filesystem`, or kaudit cannot write there.

    """
    if uri.scheme and uri.scheme not in _WRITABLE:
        raise UrlError(f"{uri}: kaudit writes to local paths, {_urls(*_WRITABLE)}")
    return cast("WritableFileSystem", filesystem(uri))


def _urls(*schemes: str) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)


def of_brokers(function: str) -> Callable[..., Any]:
    """Return a function of kaudit.source.kafka.partitions, which imports the client library, an extra."""
    found: Callable[..., Any] = getattr(import_module("kaudit.source.kafka.partitions"), function)
    return found


def open_fetched(place: FetchedRange) -> ByteSource:
    """Return the batches that brokers send for a range of offsets as a source of bytes; nothing is sent yet."""
    source: ByteSource = of_brokers("open_fetched")(place)
    return source


def open_segment(segment: SegmentFile, working_directory: str | None = None) -> ByteSource:
    """Open a segment for ranged reads, wherever it lies; a relative path begins in `working_directory`.

    Raises:
        SegmentRemovedError: retention removed it.
        OSError: it cannot be opened.

    """
    if segment.fetched is not None:
        return open_fetched(segment.fetched)
    uri = Uri.parse(segment.path).absolute(working_directory)
    try:
        source = _opened(uri, [str(Uri.parse(file).absolute(working_directory)) for file in segment.key_files])
    except FileNotFoundError as error:
        log_start = removed_from_head(uri)
        if log_start is None:
            raise
        raise SegmentRemovedError(segment.path, log_start) from error
    return source if segment.text is None else SegmentText(source, segment.text)


def _opened(uri: Uri, key_files: Sequence[str]) -> ByteSource:
    encrypted = segment_object(uri) if key_files else None
    return filesystem(uri).open(uri) if encrypted is None else encrypted.open(uri, key_files)


def removed_from_head(segment: Uri) -> int | None:
    """Return the log's new first segment's offset if a missing segment was removed from the log's head, else None.

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
