"""Writing a result piece by piece: to stdout, or to a file that appears only when it is whole."""

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from kaudit.analysis.scan.options import UsageError

_PIECES_AT_ONCE = 1000


def write_pieces(file: Path | None, pieces: Iterable[str]) -> None:
    """Write the pieces as they come; `file` None is stdout.

    Raises UsageError when the place cannot be written, BrokenPipeError when nobody reads any more.
    """
    if file is None:
        _to_stdout(pieces)
    else:
        _to_file(file, pieces)


def _to_stdout(pieces: Iterable[str]) -> None:
    for text in _joined(pieces):
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"stdout cannot be written: {error.strerror}") from error


def _to_file(file: Path, pieces: Iterable[str]) -> None:
    regular = not file.exists() or stat.S_ISREG(file.stat().st_mode)
    target = file.with_name(f".kaudit-{os.urandom(4).hex()}.partial") if regular else file
    try:
        try:
            stream = target.open("w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--output {file}: cannot be written: {error.strerror}") from error
        with stream:
            for text in _joined(pieces):
                stream.write(text)
        if regular:
            target.replace(file)
    finally:
        if regular:
            target.unlink(missing_ok=True)


def _joined(pieces: Iterable[str]) -> Iterable[str]:
    held: list[str] = []
    for piece in pieces:
        held.append(piece)
        if len(held) >= _PIECES_AT_ONCE:
            yield "".join(held)
            held = []
    yield "".join(held)
