"""Log directories on local disks, looked at again and again: which partitions there are, and which of them have changed.

A look costs two `stat` calls a partition. Only where a directory's entries changed - a roll, retention, compaction, a new
partition - the inputs are listed again, and not more often than a tenth of the time allows.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from kaudit.errors import NothingToAuditError, UsageError
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri

LISTING_SHARE = 0.1
"""Of the time, what listing the inputs may take."""

_Stamp = tuple[int, int]


class LogDirectories:
    """The partitions under the inputs of an audit. `layout` is as of the last look; None as long as there are none."""

    def __init__(self, options: ScanOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Take what to look at; `clock` gives seconds.

        Raises:
            UsageError: an input does not exist, or lies on no local disk.

        """
        for path in options.paths:
            if not Uri.parse(path).is_local:
                raise UsageError(f"{path}: watch follows local directories and kafka://")
        self.layout: Layout | None = None
        self.open_source: OpenSource = open_segment
        self.nothing: NothingToAuditError | None = None
        self._found = False
        self._options = options
        self._clock = clock
        self._directories: dict[str, _Stamp | None] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._tails: dict[str, _Stamp | None] = {}
        self._next_listing = 0.0

    def look(self, *, thoroughly: bool = False) -> list[PartitionDirectory]:
        """Return the partitions that may have changed since the last look, all of them at the first.

        `thoroughly`: list the inputs whether they seem to have changed or not.
        """
        due = self._clock() >= self._next_listing
        if self.layout is None or thoroughly or (due and self._relisting_needed(self.layout)):
            return self._list()
        return [] if self.layout is None else self._grown(self.layout)

    def _list(self) -> list[PartitionDirectory]:
        started = self._clock()
        before = {} if self.layout is None else {entry.directory: _own(entry) for entry in self.layout.partitions}
        try:
            self.layout, self.nothing, self._found = find_input(self._options), None, True
        except NothingToAuditError as error:
            self.layout, self.nothing = None, error
            return []
        except UsageError as error:
            if not self._found:
                raise
            self.layout, self.nothing = None, NothingToAuditError(str(error))  # unmounted, or moved away
            return []
        finally:
            self._next_listing = self._clock() + (self._clock() - started) / LISTING_SHARE
        self._directories = {path: _stamp(path) for path in self._watched(self.layout)}
        self._names = {path: _names(path) for path in self._parents(self.layout)}
        self._tails = {entry.directory: _tail(entry) for entry in self.layout.partitions}
        return [entry for entry in self.layout.partitions if before.get(entry.directory) != _own(entry)]

    def _relisting_needed(self, layout: Layout) -> bool:
        if any(_stamp(path) != self._directories.get(path) for path in self._watched(layout)):
            return True
        # brokers write checkpoints into a log directory all the time: only its other entries matter
        return any(_names(path) != self._names.get(path) for path in self._parents(layout))

    def _watched(self, layout: Layout) -> Iterator[str]:
        return (_path(entry.directory) for entry in layout.everything if entry.whole_directory)

    def _parents(self, layout: Layout) -> set[str]:
        given = {_path(path) for path in self._options.paths}
        return given | {_path(entry.log_dir) for entry in layout.everything if entry.whole_directory}

    def _grown(self, layout: Layout) -> list[PartitionDirectory]:
        """Return the partitions whose last segment was written since, with its new size."""
        grown: dict[str, PartitionDirectory] = {}
        for entry in layout.partitions:
            stamp = _tail(entry)
            if stamp is not None and stamp != self._tails.get(entry.directory):
                self._tails[entry.directory] = stamp
                last = replace(entry.segments[-1], size=stamp[0], modified_ms=stamp[1] // 1_000_000)
                grown[entry.directory] = replace(entry, segments=(*entry.segments[:-1], last))
        if grown:
            self.layout = replace(layout, partitions=[grown.get(entry.directory, entry) for entry in layout.partitions])
        return list(grown.values())


def _own(entry: PartitionDirectory) -> PartitionDirectory:
    """The partition without the files it shares with all others of its log directory."""
    return replace(entry, checkpoints=())


def _path(text: str) -> str:
    return str(Uri.parse(text).path)


def _tail(entry: PartitionDirectory) -> _Stamp | None:
    return _stamp(_path(entry.segments[-1].path)) if entry.segments else None


def _stamp(path: str) -> _Stamp | None:
    """Size in bytes and time of the last change in ns; None for what is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a thousand a second
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _names(path: str) -> frozenset[str]:
    try:
        return frozenset(_lasting(os.listdir(path)))  # noqa: PTH208 - a thousand names
    except OSError:
        return frozenset()


def _lasting(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.endswith(".tmp"))
