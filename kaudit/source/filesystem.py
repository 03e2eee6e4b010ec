"""What discovery and reading need of a file system, and what stores over a network have in common."""

import errno
import os
import re
import socket
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from kaudit.source.bytes import ByteSource, read_bytes
from kaudit.source.uri import Uri, UrlError

COPIED_AT_ONCE = 4 << 20
"""Bytes held while a file is written."""


CONNECT_VARIABLE, ANSWER_VARIABLE = "KAUDIT_CONNECT_SECONDS", "KAUDIT_ANSWER_SECONDS"
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 20.0
_Answer = TypeVar("_Answer")


def connect_seconds() -> float:
    """Return how many seconds a store has to accept a connection; client libraries alone would try for minutes.

    Raises:
        UrlError: KAUDIT_CONNECT_SECONDS is not a number of seconds above 0.

    """
    return _seconds(CONNECT_VARIABLE, _CONNECT_SECONDS)


def answer_seconds() -> float:
    """Return how many seconds a name node has to answer once it is connected to. Raises as `connect_seconds` does."""
    return _seconds(ANSWER_VARIABLE, _ANSWER_SECONDS)


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise UrlError(f"{variable}={text}: write a number of seconds above 0")
    return seconds


def answered(name: str, ask: Callable[[], _Answer], seconds: float) -> _Answer:
    """Return what `ask` returns, or raise what it raises; its client would wait for ever for a store that stopped.

    Raises:
        OSError: there was no answer in so many seconds.

    """
    answers: list[tuple[_Answer | None, Exception | None]] = []

    def wait() -> None:
        try:
            answers.append((ask(), None))
        except Exception as error:  # noqa: BLE001 - raised again where it was asked for
            answers.append((None, error))

    asking = threading.Thread(target=wait, daemon=True)
    asking.start()
    asking.join(seconds)
    if not answers:
        raise OSError(errno.ETIMEDOUT, f"no answer within {round(seconds, 1):g} s", name)
    answer, error = answers[0]
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]  # None only where that is the answer


@contextmanager
def as_os_errors(store: str, name: str, kinds: Sequence[type[Exception]] = ()) -> Iterator[None]:
    """Turn errors of a store's client (OSError and `kinds`) into an OSError with the client's text; `name` is the file or store."""
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise
        raise type(error)(error.errno or 5, f"{store}: {error}", name) from error
    except tuple(kinds) as error:
        raise OSError(5, f"{store}: {_words(error)}", name) from error


def _words(error: Exception) -> str:
    # a client in Rust writes what a server in Java says: RPCError("CLASS", "TEXT\\n\\tat ...")
    text = re.fullmatch(r'\w+\((?:.*?, )?"((?:[^"\\]|\\.)*)"\)', str(error))
    return text[1].partition(r"\n")[0].replace(r"\"", '"') if text else str(error)


class Store(NamedTuple):
    """A store by the name that messages have; its client raises OSError and exceptions of these kinds."""

    name: str
    kinds: Sequence[type[Exception]] = ()

    def asked(self, file: str, ask: Callable[[], _Answer]) -> _Answer:
        """Return what it answers within `answer_seconds`, a second where it left the last request unanswered. Raises as `answered` and `as_os_errors`."""
        with as_os_errors(self.name, file, self.kinds):
            return _in_time(file, ask, 0)

    def read(self, file: str, read_range: Callable[[int, int], bytes], position: int, length: int) -> bytes:
        """Return so many bytes of a file, all of which are there, in the time of `asked` and a second more for each MiB.

        Raises:
            OSError: fewer arrived in that time; it says from which byte on they were asked for.

        """
        try:
            with as_os_errors(self.name, file, self.kinds):
                return _in_time(file, lambda: _whole(bytes(read_range(position, length)), length), length / (1 << 20))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise type(error)(error.errno, f"{error.strerror} (read from byte {position:,} on)", file) from error


_SILENT: set[str] = set()
"""The stores that left this process's last request unanswered: every file would wait as long again."""
_SILENT_SECONDS = 1.0


def _in_time(file: str, ask: Callable[[], _Answer], more: float) -> _Answer:
    store = "/".join(file.split("/", 3)[:3])
    seconds = min(answer_seconds(), _SILENT_SECONDS) if store in _SILENT else answer_seconds()
    try:
        found = answered(file, ask, seconds + more)
    except OSError as error:
        if error.errno == errno.ETIMEDOUT:
            _SILENT.add(store)
        raise
    _SILENT.discard(store)
    return found


def _whole(data: bytes, length: int) -> bytes:
    if len(data) < length:
        raise OSError(errno.EIO, f"only {len(data):,} of {length:,} bytes arrived")
    return data


def require_listener(name: str, authorities: Sequence[str]) -> None:
    """Check that one of these HOST:PORT accepts connections; an empty list is not checked.

    Raises:
        OSError: none does within `connect_seconds`.

    """
    refused: list[str] = []
    for authority in authorities:
        host, _, port = authority.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), connect_seconds()).close()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            refused.append(f"nobody answers at {authority}: {reason}")
        else:
            return
    if refused:
        raise OSError(errno.EHOSTUNREACH, "; ".join(refused), name)


class FileStatus(Struct, frozen=True):
    """A file or directory by name. `size` in bytes and `modified_ms` are None where listing does not give them.

    `inode`, `changed_ns`, the time of its last change of any kind (st_ctime), and `block_bytes`, the size of the blocks that it
    is stored in, are 0 where a file system has none.
    """

    name: str
    is_directory: bool
    size: int | None = None
    modified_ms: int | None = None
    inode: int = 0
    changed_ns: int = 0
    block_bytes: int = 0


class FileSystem(Protocol):
    """Reads directories and files. Every failure is an OSError; what is not there, a FileNotFoundError."""

    is_remote: bool
    """Whether it answers over a network, where many requests at a time take as long as one."""

    def status(self, uri: Uri) -> FileStatus:
        """Return what is at `uri`, with size and time."""

    def entries(self, uri: Uri) -> Sequence[FileStatus]:
        """List a directory, sorted by name."""

    def tree(self, uri: Uri) -> "dict[str, list[FileStatus]] | None":  # noqa: ARG002 - stores that list all at once use it
        """List everything below a directory at once: entries sorted by name, by the path of their directory.

        None where the store lists one directory at a time, as most do.
        """
        return None

    def identity(self, uri: Uri) -> Hashable:
        """Return a key that is equal for two names of one directory (links may form cycles): the path where there are no links."""
        return str(uri)

    def read_start(self, uri: Uri, limit: int) -> bytes:
        """Return the first `limit` bytes of a file, fewer if it has fewer."""
        with closing(self.open(uri)) as source:
            return read_bytes(source, 0, min(limit, source.size()))

    def open(self, uri: Uri) -> ByteSource:
        """Open a file for ranged reads."""


class WritableFileSystem(FileSystem, Protocol):
    """A file system that copies of logs can be written to."""

    def make_directory(self, uri: Uri) -> None:
        """Make a directory and those above it, unless they are there."""

    def put(self, uri: Uri, content: BinaryIO) -> None:
        """Replace a file by the rest of `content`; readers see the old content or all of the new one."""

    def remove(self, uri: Uri) -> None:
        """Remove a file, or a directory with all it holds; do nothing where there is none."""
