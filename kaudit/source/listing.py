"""Directories listed, those of a store that answers over a network many at a time."""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from kaudit.source.filesystem import FileStatus
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

AT_ONCE = 32
"""Requests under way: a listing is one answer or a few, and most of its time is the way to the store."""
_AHEAD = 1024
"""Directories listed before the first of them is looked at."""
_SIDE_FILE_BYTES = 64 << 20


class Listed(Struct, frozen=True):
    """What a directory holds, or why it cannot be listed. `identity` is None where that is unknown.

    `side_file`: the bytes of the one file that was asked for, None where there is none.
    """

    directory: Uri
    identity: Hashable | None = None
    entries: Sequence[FileStatus] = ()
    error: OSError | None = None
    side_file: bytes | None = None


def list_directory(directory: Uri, name: str) -> Listed:
    """List a directory, and read the small file of this name in it."""
    files = filesystem(directory)
    identity = None
    try:
        identity = files.identity(directory)
        entries = list(files.entries(directory))
    except OSError as error:
        return Listed(directory, identity, error=error)
    has_file = any(entry.name == name and not entry.is_directory for entry in entries)
    return Listed(directory, identity, entries, side_file=side_file(directory / name) if has_file else None)


def list_all(directories: Sequence[Uri], name: str) -> Iterator[Listed]:
    """List directories in their order, each as `list_directory` does: one when it is asked for, or many at a time."""
    list_one = partial(list_directory, name=name)
    if len(directories) < 2 or not filesystem(directories[0]).is_remote:
        yield from map(list_one, directories)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - local paths need not wait for it

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for first in range(0, len(directories), _AHEAD):
            yield from threads.map(list_one, directories[first : first + _AHEAD])


def side_file(path: Uri) -> bytes | None:
    """Return the bytes of a small text file, None if it is not there or cannot be read: checkpoints are hints here."""
    try:
        return filesystem(path).read_start(path, _SIDE_FILE_BYTES)
    except OSError:
        return None
