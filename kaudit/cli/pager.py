"""Shows output that is longer than the screen in a pager, as git and man do."""

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO

_OURS = "less"
_LESS = "RX"
"""Options of less unless $LESS says otherwise: colours as they are, the text stays on the screen afterwards."""


@contextmanager
def paged(environ: Mapping[str, str] = os.environ, *, wanted: bool = True) -> Iterator[None]:
    """Send what the body writes to stdout to the pager once it is longer than the screen.

    Nothing changes where stdout is no terminal, or there is no pager: $KAUDIT_PAGER, $PAGER, or less; an empty one or
    `cat` means none. Text after the reader has left the pager is dropped.
    """
    command = _command(environ) if wanted and sys.stdout.isatty() else []
    if not command:
        yield
        return
    terminal = sys.stdout
    pager = _PagedStdout(terminal, command, environ)
    sys.stdout = pager
    try:
        yield
    finally:
        sys.stdout = terminal
        pager.finish()


def _command(environ: Mapping[str, str]) -> list[str]:
    asked = next((environ[name] for name in ("KAUDIT_PAGER", "PAGER") if name in environ), _OURS)
    try:
        command = shlex.split(asked)
    except ValueError:  # an unbalanced quote
        return []
    usable = bool(command) and command[0] != "cat" and shutil.which(command[0]) is not None
    return command if usable and environ.get("TERM") != "dumb" else []


class _PagedStdout(io.TextIOBase):
    """Holds text back until it fills the screen, then starts the pager."""

    def __init__(self, terminal: TextIO, command: list[str], environ: Mapping[str, str]) -> None:
        self._terminal = terminal
        self._command = command
        self._environ = {"LESS": _LESS, **environ}
        self._held: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None
        self._left = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # no attribute of io's either, but typeshed says so
        """Return the terminal's encoding: the pager shows what the terminal can."""
        return self._terminal.encoding

    def isatty(self) -> bool:
        """Whether people read this: they do, in the pager."""
        return True

    def fileno(self) -> int:
        """Return the terminal's descriptor, for its size."""
        return self._terminal.fileno()

    def write(self, text: str) -> int:
        """Take text."""
        if self._process is None:
            self._held.append(text)
            self._lines += text.count("\n")
            if self._lines >= shutil.get_terminal_size().lines:
                self._start()
        else:
            self._send(text)
        return len(text)

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the user's own pager, without a shell
            self._command, stdin=subprocess.PIPE, env=self._environ, encoding="utf-8", errors="backslashreplace"
        )
        self._send("".join(self._held))
        self._held = []

    def _send(self, text: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        if self._left:
            return
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._left = True

    def finish(self) -> None:
        """Write what fits the screen, or wait until the reader leaves the pager."""
        if self._process is None:
            self._terminal.write("".join(self._held))
            self._terminal.flush()
            return
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:  # Ctrl-C is the pager's
                continue
