"""Standard output: what it can show, and writing to it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice, Console, draws_lines, wanted_width, wants_color


def stdout_console(choice: ColorChoice) -> Console:
    """Return what stdout can show."""
    color = wants_color(choice, sys.stdout, os.environ)
    return Console(color=color, width=wanted_width(sys.stdout, os.environ), draws=draws_lines(sys.stdout))


def write_stdout(text: str) -> None:
    """Write a finished text and make sure it has left the process."""
    with refused("stdout"):
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def refused(place: str) -> Iterator[None]:
    """Turn what the operating system refuses into a sentence about the place; a broken pipe is no refusal."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror or error}") from error
