"""Opens files for those who go on without one that cannot be read, and notes each that could not: no check is left out silently."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.bytes import ByteSource, announce
from kaudit.source.file_kinds import segment_base_offset
from kaudit.source.kafka.fetched_segment import FetchedSegment, RemovedByRetentionError
from kaudit.source.layout import SegmentFile, Unreadable
from kaudit.source.listing import failure
from kaudit.source.schemes import SegmentRemovedError
from kaudit.source.text import SegmentText


class FailedReads:
    """An OpenSource that notes the files that could not be opened or read, each once, with the first reason."""

    def __init__(self, open_source: OpenSource) -> None:
        self._open = open_source
        self._failed: dict[str, Unreadable] = {}
        self._removed: dict[str, NotAudited] = {}

    def __call__(self, segment: SegmentFile) -> ByteSource:
        """Open a file. Raises what the OpenSource raises."""
        note = partial(self._note, segment)
        return _noting(_tried(note, self._open, segment), note)

    @property
    def unreadable(self) -> Sequence[Unreadable]:
        """The files that could not be read; retention did not remove them."""
        return tuple(self._failed.values())

    @property
    def removed(self) -> Sequence[NotAudited]:
        """The segments that retention removed before they could be read again."""
        return tuple(self._removed.values())

    def _note(self, segment: SegmentFile, error: OSError) -> None:
        path = segment.path
        if isinstance(error, FileNotFoundError) and segment_base_offset(segment.name) is None:
            return  # brokers delete and replace the files beside segments while they are read
        if isinstance(error, SegmentRemovedError | RemovedByRetentionError):
            self._removed.setdefault(path, NotAudited(path, f"not read again: {failure(error)}"))
        else:
            self._failed.setdefault(path, Unreadable(path, failure(error)))


_Note = Callable[[OSError], None]
_Asked = ParamSpec("_Asked")
_Read = TypeVar("_Read")


def _tried(note: _Note, read: Callable[_Asked, _Read], *asked: _Asked.args, **named: _Asked.kwargs) -> _Read:
    try:
        return read(*asked, **named)
    except OSError as error:
        note(error)
        raise


def _noting(source: ByteSource, note: _Note) -> ByteSource:
    """Return the source as one of its own kind, since readers ask which it is, that notes its errors."""
    if isinstance(source, SegmentText):
        return source.over(lambda text: _NotingSource(text, note))
    if isinstance(source, FetchedSegment):
        return source.over(lambda fetch: lambda offset, room: _tried(note, fetch, offset, room))
    return _NotingSource(source, note)


class _NotingSource:
    def __init__(self, source: ByteSource, note: _Note) -> None:
        self._source = source
        self._note = note
        self.close = source.close

    def size(self) -> int:
        return _tried(self._note, self._source.size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        return _tried(self._note, self._source.read_into, position, buffer)

    def announce(self, start: int, stop: int) -> None:
        announce(self._source, start, stop)
