"""Standard output: what it can show, and writing to it."""

import os
import sys

from kaudit.analysis.scan.options import UsageError
from kaudit.report.console import ColorChoice, Console, wanted_width, wants_color


def stdout_console(choice: ColorChoice) -> Console:
    """Return what stdout can show."""
    color = wants_color(choice, sys.stdout, os.environ)
    return Console(color=color, width=wanted_width(sys.stdout, os.environ))


def write_stdout(text: str) -> None:
    """Write a finished text and make sure it has left the process."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"stdout cannot be written: {error.strerror}") from error
