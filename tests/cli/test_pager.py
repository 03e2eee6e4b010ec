import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROWS = 20


def on_a_terminal(arguments: list[str], **environ: str) -> tuple[int, str]:
    """Run kaudit on a terminal of 20 lines; return its exit code and what the terminal showed."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (ROWS, 80))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "PAGER", "LESS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "kaudit", *arguments],
        stdin=child,
        stdout=child,
        stderr=child,
        env=kept | {"TERM": "xterm"} | environ,
    )
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    return process.wait(), shown.decode()


@pytest.fixture
def pager(tmp_path: Path) -> str:
    script = tmp_path / "pager"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint('<paged>' + sys.stdin.read() + '</paged>')\n")
    script.chmod(0o755)
    return str(script)


def test_what_is_longer_than_the_screen_goes_to_the_pager_and_the_closing_line_after_it(pager):
    code, shown = on_a_terminal(["scan", "samples/duplicates", "--isolated"], KAUDIT_PAGER=pager)
    paged, closing = shown.split("</paged>")
    assert "<paged>" in paged
    assert "KA104" in paged
    assert "5 segments" in closing
    assert code == 1


def test_the_pager_sees_the_terminal_width_and_colours(pager):
    _, shown = on_a_terminal(["inspect", "samples/duplicates"], PAGER=pager)
    paged = shown.partition("<paged>")[2]
    assert "\x1b[" in paged
    assert max(len(line) for line in paged.splitlines()) <= 80 + len("\x1b[2m\x1b[0m")


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["scan", "samples/duplicates", "--no-pager"], {}),
        (["scan", "samples/duplicates"], {"KAUDIT_PAGER": ""}),
        (["scan", "samples/duplicates"], {"KAUDIT_PAGER": "cat"}),
        (["scan", "samples/duplicates"], {"TERM": "dumb"}),
        (["scan", "samples/clean", "-q"], {}),  # short enough for the screen
        (["explain", "KA104", "--no-pager"], {}),
    ],
)
def test_no_pager_where_none_is_wanted_or_needed(pager, arguments, environ):
    code, shown = on_a_terminal(arguments, **({"KAUDIT_PAGER": pager} | environ))
    assert "<paged>" not in shown
    assert shown
    assert code == (1 if "samples/duplicates" in arguments else 0)


def test_a_reader_who_leaves_early_is_no_error(tmp_path):
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\nhead -n 1\n")
    script.chmod(0o755)
    code, shown = on_a_terminal(["inspect", "--records", "samples/damaged"], KAUDIT_PAGER=str(script))
    assert code == 0
    assert "Traceback" not in shown
    assert "Broken pipe" not in shown


def test_a_pipe_is_never_paged(pager):
    done = subprocess.run(
        [sys.executable, "-m", "kaudit", "explain", "KA104"],
        env=os.environ | {"KAUDIT_PAGER": pager},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "<paged>" not in done.stdout
