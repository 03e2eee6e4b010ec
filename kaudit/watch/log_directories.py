"""Log directories on local disks, looked at again and again: which partitions there are, and which of them have changed.

A look costs two `stat` calls a partition. Only where a directory's entries changed - a roll, retention, compaction, a new
partition - the inputs are listed again, and not more often than a tenth of the time allows.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.layout import Layout, PartitionDirectory, Unreadable
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
        if self.layout is None or thoroughly:
            return self._list()
        try:
            return self._list() if due and self._relisting_needed(self.layout) else self._grown(self.layout)
        except OSError:
            return self._list()  # which says what cannot be looked at, and why

    def _list(self) -> list[PartitionDirectory]:
        started = self._clock()
        known = self.layout
        before = {} if known is None else {entry.directory: _own(entry) for entry in known.partitions}
        try:
            self.layout, self.nothing, self._found = _with_unlisted(find_input(self._options), known), None, True
        except NothingToAuditError as error:
            if known is not None and isinstance(error, UnreadableInputError):
                self.layout = replace(known, unreadable=[Unreadable(", ".join(self._options.paths), str(error))])
                return []
            self.layout, self.nothing = None, error
            return []
        except UsageError as error:
            if not self._found:
                raise
            self.layout, self.nothing = None, NothingToAuditError(str(error))  # unmounted, or moved away
            return []
        finally:
            self._next_listing = self._clock() + (self._clock() - started) / LISTING_SHARE
        self._remember(self.layout)
        return [entry for entry in self.layout.partitions if before.get(entry.directory) != _own(entry)]

    def _remember(self, layout: Layout) -> None:
        """Note what the next look compares with; what cannot be looked at is not known, and listed again then."""
        self._directories, self._names, self._tails = {}, {}, {}
        with suppress(OSError):
            self._directories = {path: _stamp(path) for path in self._watched(layout)}
            self._names = {path: _names(path) for path in self._parents(layout)}
            self._tails = {entry.directory: _tail(entry) for entry in layout.partitions}

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


def _with_unlisted(layout: Layout, before: Layout | None) -> Layout:
    """Return a layout that keeps the partitions known before whose directories could not be listed: they are not gone."""
    if before is None or not layout.unreadable:
        return layout
    unlisted = tuple(f"{failed.path}/" for failed in layout.unreadable)
    there = {entry.directory for entry in layout.everything}
    kept = [
        entry
        for entry in before.partitions
        if entry.directory not in there and f"{entry.directory}/".startswith(unlisted)
    ]
    partitions = sorted([*layout.partitions, *kept], key=lambda entry: (entry.topic, entry.partition, entry.directory))
    return replace(layout, partitions=partitions) if kept else layout


def _own(entry: PartitionDirectory) -> tuple[PartitionDirectory, Sequence[str]]:
    """The partition, with the names only of the files it shares with all others of its log directory."""
    return replace(entry, checkpoints=()), [file.path for file in entry.checkpoints]


def _path(text: str) -> str:
    return str(Uri.parse(text).path)


def _tail(entry: PartitionDirectory) -> _Stamp | None:
    return _stamp(_path(entry.segments[-1].path)) if entry.segments else None


def _stamp(path: str) -> _Stamp | None:
    """Size in bytes and time of the last change in ns; None for what is not there. Raises OSError."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a thousand a second
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _names(path: str) -> frozenset[str]:
    """The lasting entries of a directory, none of one that is not there. Raises OSError."""
    try:
        return frozenset(_lasting(os.listdir(path)))  # noqa: PTH208 - a thousand names
    except FileNotFoundError:
        return frozenset()


def _lasting(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.endswith(".tmp"))
