"""Lists directories: those of a store in one request, or many at a time."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from kaudit.deferred import Deferred
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import SegmentFile, Unreadable
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Deferred("concurrent.futures")

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_AT_ONCE = 32
"""Requests under way: a listing is one answer or a few, and most of its time is the way to the store."""
_AHEAD = 1024
"""Directories listed ahead of the one being visited."""
_SIDE_FILE_BYTES = 64 << 20


class Listed(Struct, frozen=True):
    """The entries of a directory, or the error of listing it. `identity` is None where it is unknown.

    `side_file`: the bytes of the one file that was asked for, None where there is none; `unreadable` says why it cannot be read.
    """

    directory: Uri
    identity: Hashable | None = None
    entries: Sequence[FileStatus] = ()
    error: OSError | None = None
    side_file: bytes | None = None
    unreadable: Sequence[Unreadable] = ()


class Listing:
    """The directories under one input, with the small file of one name in each of them."""

    def __init__(self, root: Uri, name: str) -> None:
        self.root: Final = root
        self._name = name
        self._files = filesystem(root)
        self._tree: dict[str, list[FileStatus]] | None = None

    def first(self) -> Listed:
        """List the input itself, and everything below it if its store lists that at once."""
        try:
            self._tree = self._files.tree(self.root)
        except OSError as error:
            return Listed(self.root, error=error)
        return self._list(self.root)

    def below(self, directories: Sequence[Uri]) -> Iterator[Listed]:
        """List directories in their order: one when it is asked for, or, of a store, many at a time."""
        if not self._files.is_remote:
            yield from map(self._list, directories)
            return
        for first in range(0, len(directories), _AHEAD):
            yield from many_at_a_time(self._list, directories[first : first + _AHEAD])

    def _list(self, directory: Uri) -> Listed:
        identity = None
        try:
            identity = self._files.identity(directory)
            entries = self._entries(directory)
        except OSError as error:
            return Listed(directory, identity, error=error)
        unreadable: list[Unreadable] = []
        has_file = any(entry.name == self._name for entry in entries)
        held = side_file(directory / self._name, unreadable) if has_file else None
        return Listed(directory, identity, entries, side_file=held, unreadable=unreadable)

    def _entries(self, directory: Uri) -> Sequence[FileStatus]:
        if self._tree is None:
            return list(self._files.entries(directory))
        return self._tree.pop(directory.path, ())  # each is asked for once


def heads(files: Sequence[Uri], limit: int) -> Iterator[bytes | OSError]:
    """Yield the first `limit` bytes of each file, or why they cannot be read: of a store, many at a time."""

    def head(file: Uri) -> bytes | OSError:
        try:
            return filesystem(file).read_start(file, limit)
        except OSError as error:
            return error

    if not any(filesystem(file).is_remote for file in files):
        yield from map(head, files)
        return
    yield from many_at_a_time(head, files)


def many_at_a_time(ask: Callable[[_Item], _Answer], items: Iterable[_Item]) -> Iterator[_Answer]:
    """Yield what a store answers for each item, in their order."""
    with futures.ThreadPoolExecutor(_AT_ONCE) as threads:
        yield from threads.map(ask, items)


def side_file(path: Uri, unreadable: list[Unreadable]) -> bytes | None:
    """Return the bytes of a small text file, None if it is not there or cannot be read: then it is added to `unreadable`."""
    try:
        return filesystem(path).read_start(path, _SIDE_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        refused = Unreadable(str(path), failure(error))
        if refused not in unreadable:  # meta.properties is read for a directory and for its partitions
            unreadable.append(refused)
        return None


def existing_files(files: Iterable[tuple[Uri, FileStatus]], unreadable: list[Unreadable]) -> Iterator[SegmentFile]:
    """Yield the files that exist, with their sizes; add those whose status cannot be read to `unreadable`."""
    for path, entry in files:
        try:
            yield sized(path, 0, entry)
        except FileNotFoundError:
            continue
        except OSError as error:
            unreadable.append(Unreadable(str(path), failure(error)))


def sized(path: Uri, base_offset: int, entry: FileStatus) -> SegmentFile:
    """Return a file with its size and time, asked for where listing did not give them. Raises OSError."""
    if entry.size is None or entry.modified_ms is None:
        entry = filesystem(path).status(path)
    return SegmentFile(str(path), path.name, base_offset, entry.size or 0, entry.modified_ms or 0)


def failure(error: OSError) -> str:
    """Return the operating system's text for an error, else the name of its class."""
    return error.strerror or type(error).__name__
