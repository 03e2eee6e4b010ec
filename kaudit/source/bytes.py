"""Random access to the bytes of one file, wherever it lives."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class ByteSource(Protocol):
    """A file as bytes. Reads never change it."""

    def size(self) -> int:
        """Return the file's size now, in bytes; a live log grows."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there (fewer only at the end of the file)."""

    def close(self) -> None:
        """Release the file."""


def read_bytes(source: ByteSource, position: int, length: int) -> bytes:
    """Return bytes of a source, fewer at its end."""
    buffer = bytearray(length)
    count = source.read_into(position, memoryview(buffer))
    return bytes(memoryview(buffer)[:count])


class CutOffError(OSError):
    """The archive that holds a file ends in the middle of it. `readable`: how many bytes of the file there are."""

    def __init__(self, readable: int, size: int) -> None:
        super().__init__(errno.EIO, f"the archive ends after {readable:,} of its {size:,} bytes")
        self.readable = readable


@contextmanager
def naming_owner(path: "str | os.PathLike[str]") -> Iterator[None]:
    """Let a PermissionError about a local path say whose it is: by whom kaudit must be run to read it."""
    try:
        yield
    except PermissionError as error:
        owner = _owner(os.fspath(path))
        if owner is None:
            raise
        reason = f"{error.strerror}: run kaudit as {owner}, who owns it"
        raise PermissionError(error.errno, reason, os.fspath(path)) from None


def _owner(path: str) -> str | None:
    """Return the name of a path's owner, or of the directory's where its own cannot be asked for; None for this user itself."""
    for place in (path, os.path.dirname(path) or "."):  # noqa: PTH120 - places are texts
        try:
            uid = os.stat(place).st_uid  # noqa: PTH116 - as above
        except OSError:
            continue
        return None if uid == os.geteuid() else _user_name(uid)
    return None


def _user_name(uid: int) -> str:
    import pwd  # noqa: PLC0415 - Unix alone has it, and seldom anybody needs it

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # of a container, or of another machine
        return f"the user with id {uid}"


def open_regular(path: "str | os.PathLike[str]", flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file to read, and never wait for one: a FIFO or a device may stand in place of any audited file.

    `flags`: as `open`'s opener takes them.

    Raises:
        OSError: it cannot be opened, or is not a regular file.

    """
    with naming_owner(path):
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "Is a directory" if stat.S_ISDIR(mode) else "not a regular file", os.fspath(path))
    return descriptor


class LocalFile:
    """A local file read with positioned reads.

    Not mapped: a broker that truncates a live segment would turn a page fault into SIGBUS.
    """

    def __init__(self, path: "str | os.PathLike[str] | int") -> None:
        """Open a file, or take over a descriptor of one. Raises OSError as `open_regular`."""
        self._file = path if isinstance(path, int) else open_regular(path)

    def size(self) -> int:
        """Return the file's size now, in bytes."""
        return os.fstat(self._file).st_size

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        done = 0
        while done < len(buffer):
            count = os.preadv(self._file, [buffer[done:]], position + done)
            if count == 0:
                break
            done += count
        return done

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._file)


READ_AT_ONCE_BYTES = 8 << 20
"""Bytes requested at once when reads follow one another: a request to a store takes about 10 ms."""
_GROWTH = 16
"""Read up to this many times the requested bytes beyond an announced range: finding the next batch start may need it."""


class RemoteFile:
    """A file that a client reads by ranges. Its size, in bytes, is the one at opening; `close` releases it.

    Sequential reads, and reads of announced bytes, are answered from one larger read, which does not go beyond the announced
    bytes. Reads at other places request exactly what is wanted.
    """

    def __init__(self, size: int, read_range: Callable[[int, int], bytes], close: Callable[[], None]) -> None:
        self._size = size
        self._read_range = read_range
        self._start = self._next = 0
        self._held = memoryview(b"")
        self._announced = range(0)
        self.close = close

    def size(self) -> int:
        """Return the file's size at opening, in bytes."""
        return self._size

    def announce(self, start: int, stop: int) -> None:
        """Note that these bytes will be read in order (see the function `announce`)."""
        self._announced = range(start, stop)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        wanted = min(len(buffer), self._size - position)
        if wanted <= 0:
            return 0
        done = self._take_held(position, buffer[:wanted])
        if done < wanted:
            start = position + done
            length = max(wanted - done, self._ahead(position, start, wanted))
            self._held = memoryview(self._read_range(start, length))
            self._start = start
            done += self._take_held(self._start, buffer[done:wanted])
        self._next = position + done
        return done

    def _ahead(self, position: int, start: int, wanted: int) -> int:
        """Return how many bytes to request from `start` on for a read of `wanted` bytes at `position`, the first of which may be held."""
        if position in self._announced:
            return _at_once(self._announced.stop - start, READ_AT_ONCE_BYTES)
        if position == 0 or position != self._next:
            return 0
        return _at_once(
            self._size - start,
            min(READ_AT_ONCE_BYTES, wanted * _GROWTH) if self._announced.stop else READ_AT_ONCE_BYTES,
        )

    def _take_held(self, position: int, buffer: memoryview) -> int:
        at = position - self._start
        if not 0 <= at < len(self._held):
            return 0
        data = self._held[at : at + len(buffer)]
        buffer[: len(data)] = data
        return len(data)


def _at_once(rest: int, most: int) -> int:
    """Return `most`, or all of the rest if it is not twice as much: a small last read takes as long as a large one."""
    return rest if rest < 2 * most else most


def announce(source: ByteSource, start: int, stop: int) -> None:
    """Announce that these bytes will be read in order and few after them, so that a store gets few requests."""
    own = getattr(source, "announce", None)  # asking a protocol costs more than a small read
    if own is not None:
        own(start, stop)


class HeldBytes:
    """Bytes that are in memory already, as a file."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def size(self) -> int:
        """Return how many there are."""
        return len(self._content)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        data = self._content[position : position + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Nothing is held open."""


def nothing_held() -> None:
    """Close a RemoteFile whose client holds nothing open between reads."""
