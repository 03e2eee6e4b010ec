"""Writes answers to stdout and files: all of them, or none if a line is bad."""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct

from kaudit.broker.broker import Broker
from kaudit.cli.streams import Output, whole_file, write_pieces
from kaudit.model.limits import ATTEMPT_LINE_BYTES
from kaudit.replay.session import Session
from kaudit.report.replay_formats import FORMATS, formatted
from kaudit.report.text.answers import ROW_INDENT, fold

STDIN = "-"
_IN_MEMORY = 16 << 20
"""Bytes of answers kept in memory before they wait in a temporary file."""
_TEXT_INDENT = 2


class OutputError(ValueError):
    """Output options that contradict each other, or a format that does not exist."""


class Target(Struct, frozen=True):
    """One output: a format and its file, None for stdout."""

    output_format: str
    file: Path | None


class Targets(Struct, frozen=True):
    """All outputs of one run."""

    targets: tuple[Target, ...]

    def write(
        self,
        lines: Iterable[bytes],
        broker: Broker,
        arguments: Sequence[str],
        *,
        with_state: bool,
        width: int | None = None,
    ) -> None:
        """Let `broker` answer `lines` once and write every format; `width` is the terminal's, where stdout is one.

        `arguments` are those that decide the answers, the file first. Answers wait until the last line has been read: raises AttemptError for a bad line with nothing written.
        """
        session = Session(lines, broker)
        with ExitStack() as stack:
            spools = [stack.enter_context(_spool(target.file)) for target in self.targets]
            names = [target.output_format for target in self.targets]
            for pieces in formatted(session, names, arguments, with_state=with_state):
                for spool, piece in zip(spools, pieces, strict=True):
                    spool.write(piece.encode())
            for target, spool in zip(self.targets, spools, strict=True):
                if target.file is None:
                    _show(spool, width if target.output_format == "table" else None, ROW_INDENT)


def parse_outputs(formats: list[str], output: Path | None) -> Targets:
    """Read `FORMAT[:FILE]` options; `output` is the file of the one format without a file. Raises OutputError."""
    targets = []
    for text in formats:
        name, _, file = text.partition(":")
        if name not in FORMATS:
            raise OutputError(f"--output-format {text!r}: expected one of {', '.join(FORMATS)}")
        targets.append(Target(name, Path(file) if file else None))
    open_ended = [target for target in targets if target.file is None]
    if len(open_ended) > 1:
        raise OutputError("more than one --output-format without a file: only one can go to stdout or --output")
    if output is not None and not open_ended:
        raise OutputError("--output needs an --output-format without a file")
    return Targets(tuple(Target(target.output_format, output) if target.file is None else target for target in targets))


def deliver(lines: Iterable[str], output: Path | None, width: int | None = None) -> None:
    """Write lines of text to `output`, None for stdout, when all of them are there; `width` is the terminal's."""
    with _spool(output) as spool:
        for line in lines:
            spool.write(f"{line}\n".encode())
        if output is None:
            _show(spool, width, _TEXT_INDENT)


@contextmanager
def opened(name: str) -> Iterator[Iterator[bytes]]:
    """Open a file of attempts, `-` for stdin. Of a line that is too long so much comes that its reader sees it."""
    if name == STDIN:
        yield _lines(sys.stdin.buffer)
        return
    with Path(name).open("rb") as file:
        yield _lines(file)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(partial(file.readline, ATTEMPT_LINE_BYTES + 1), b"")


def _spool(file: Path | None) -> AbstractContextManager["BinaryIO | Output"]:
    """Open what output waits in until all of it is there; `file`, if given, gets it then."""
    return _memory() if file is None else whole_file(file)


@contextmanager
def _memory() -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        yield cast("BinaryIO", spool)


def _show(spool: "BinaryIO | Output", width: int | None, hanging: int) -> None:
    """Print what waits in `spool`; `width` is the terminal's, None where lines stay as they are."""
    waiting = cast("BinaryIO", spool)
    waiting.seek(0)
    text = TextIOWrapper(waiting, encoding="utf-8", newline="")
    lines = text if width is None else (fold(line.rstrip("\n"), width, hanging) + "\n" for line in text)
    write_pieces(None, lines)
