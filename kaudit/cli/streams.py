"""Writing a result: to stdout, or to a file that appears only when it is whole."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console, draws_lines, visible, wanted_width, wants_color

if TYPE_CHECKING:
    from kaudit.model.result import NotAudited

_BLOCK = 1 << 16


def stdout_console(choice: ColorChoice) -> Console:
    """Return what stdout can show."""
    color = wants_color(choice, sys.stdout, os.environ)
    return Console(color=color, width=wanted_width(sys.stdout, os.environ), draws=draws_lines(sys.stdout))


def write_stdout(text: str) -> None:
    """Write a finished text and make sure it has left the process."""
    with refused("stdout"):
        sys.stdout.write(text)
        sys.stdout.flush()


def write_notes(notes: "Iterable[NotAudited]") -> None:
    """Say on stderr what could not be read, and why."""
    sys.stderr.writelines(f"kaudit: {visible(note.path)}: {visible(note.reason)}\n" for note in notes)


@contextmanager
def refused(place: str) -> Iterator[None]:
    """Turn an OSError into a UsageError that names the place; a BrokenPipeError passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror or error}") from error


def write_pieces(file: Path | None, pieces: Iterable[str], option: str = "--output") -> None:
    """Write the pieces as they come, an empty text too; `file` None is stdout, else the value of this option.

    Raises UsageError when the place cannot be written, BrokenPipeError when nobody reads any more.
    """
    if file is None:
        for text in _blocks(pieces):
            write_stdout(text)
        return
    with whole_file(file, option) as out:
        for text in _blocks(pieces):
            out.write(text.encode(errors="backslashreplace"))  # a file name need not be text


class Output:
    """A file being written."""

    def __init__(self, name: str, out: BinaryIO) -> None:
        self._name = name
        self._out = out

    def write(self, data: bytes) -> int:
        """Write the bytes. Raises UsageError where that cannot be."""
        with refused(self._name):
            return self._out.write(data)


@contextmanager
def whole_file(file: Path, option: str = "--output") -> Iterator[Output]:
    """Open a file beside `file` that takes its place at the end: it is there whole or not at all. A device is written to.

    `option` is where the file was named.

    Raises UsageError when it cannot be written.
    """
    name = f"{option} {file}"
    with refused(name):
        mode = file.stat().st_mode if file.exists() else None
    device = mode is not None and not stat.S_ISREG(mode)  # nothing to rename onto
    partial = file if device else file.with_name(f".kaudit-{os.urandom(4).hex()}.partial")
    try:
        with refused(name):
            stream = partial.open("wb" if device else "xb")
        try:
            yield Output(name, stream)
            with refused(name):
                stream.flush()
        finally:
            _close(stream)
        if not device:
            with refused(name):
                if mode is not None:
                    partial.chmod(stat.S_IMODE(mode))
                partial.replace(file)
    finally:
        if not device:
            partial.unlink(missing_ok=True)


def _close(stream: BinaryIO) -> None:
    """Close a stream whose last bytes may have been refused already, which has been reported."""
    with suppress(OSError):
        stream.close()


def _blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Join pieces into blocks worth a system call; an empty text is one block too."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)
