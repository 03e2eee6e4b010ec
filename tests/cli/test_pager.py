import os
import pty
import subprocess
import sys
import termios
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import pytest

from kaudit.cli import request
from kaudit.cli.app import run
from kaudit.cli.pager import paged
from tests.cli.conftest import Terminal

ROWS = 20
LONG = "1\n2\n3\n4\n"


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
    "arguments",
    [
        ["scan", "samples/duplicates", "--no-pager"],
        ["scan", "samples/clean", "-q"],  # short enough for the screen
    ],
)
def test_no_pager_where_none_is_wanted_or_needed(pager, arguments):
    code, shown = on_a_terminal(arguments, KAUDIT_PAGER=pager)
    assert "<paged>" not in shown
    assert shown
    assert code == (1 if "samples/duplicates" in arguments else 0)


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """A screen of four lines."""
    monkeypatch.setenv("LINES", "4")
    return Terminal()


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """The file that our pager writes what it reads to, behind its argument and $LESS."""
    script = tmp_path / "our pager"
    script.write_text(f'#!/bin/sh\nprintf "%s %s " "$1" "$LESS" > {tmp_path}/seen\ncat >> {tmp_path}/seen\n')
    script.chmod(0o755)
    return tmp_path / "seen"


@pytest.mark.parametrize(
    ("environ", "before"),
    [
        ({"KAUDIT_PAGER": "PAGER one"}, "one RX "),
        ({"KAUDIT_PAGER": "PAGER one", "PAGER": "cat"}, "one RX "),
        ({"PAGER": "PAGER two", "LESS": "S"}, "two S "),
        ({}, " RX "),  # less, of which there is one in $PATH
        ({"KAUDIT_PAGER": "cat", "PAGER": "PAGER"}, None),
        ({"KAUDIT_PAGER": "", "PAGER": "PAGER"}, None),
        ({"KAUDIT_PAGER": "PAGER", "TERM": "dumb"}, None),
        ({"PAGER": "no-such-program"}, None),
        ({"PAGER": "PAGER 'one"}, None),
    ],
)
def test_which_pager_shows_a_text_as_long_as_the_screen(terminal, seen, monkeypatch, environ, before):
    ours = seen.with_name("our pager")
    ours.with_name("less").symlink_to(ours)
    monkeypatch.setenv("PATH", f"{seen.parent}:{os.environ['PATH']}")
    environ = {name: text.replace("PAGER", f"'{ours}'") for name, text in environ.items()}
    with redirect_stdout(terminal), paged(environ | {"PATH": os.environ["PATH"]}):
        for line in ("1\n", "2\n", "3\n", "4\n", "5 \ud800\n"):
            assert sys.stdout.write(line) == len(line)
        assert sys.stdout.isatty()
        assert (sys.stdout.encoding, sys.stdout.fileno()) == ("latin-1", 77)
    assert seen.exists() is (before is not None)
    if before is None:
        assert terminal.getvalue() == "1\n2\n3\n4\n5 \ud800\n"
    else:
        assert (terminal.getvalue(), seen.read_text()) == ("", f"{before}1\n2\n3\n4\n5 \\ud800\n")


@pytest.mark.parametrize(
    ("written", "wanted", "tty"), [("1\n2\n3\n", True, True), (LONG, False, True), (LONG, True, False)]
)
def test_what_fits_the_screen_or_is_for_no_reader_stays_on_it(terminal, seen, monkeypatch, written, wanted, tty):
    monkeypatch.setattr(terminal, "isatty", lambda: tty)
    with redirect_stdout(terminal), paged({"PAGER": f"'{seen.with_name('our pager')}'"}, wanted=wanted):
        sys.stdout.write(written)
    assert (terminal.getvalue(), seen.exists()) == (written, False)


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> dict[str, Path]:
    """A fingerprint of a sample, and a report that names what it judged."""
    folder = tmp_path_factory.mktemp("documents")
    made = {"FINGERPRINT": folder / "fingerprint.json", "REPORT": folder / "report.json"}
    run(["diff", "--fingerprint", "samples/retries", "-q", "-o", str(made["FINGERPRINT"])])
    run(["scan", "samples/retries", "--digests", "-q", "--output-format", "json", "-o", str(made["REPORT"])])
    return made


@pytest.mark.parametrize(
    "command",
    [
        "scan samples/retries",
        "timeline samples/retries",
        "producers samples/retries",
        "diff samples/replicas/b1 samples/replicas/b2",
        "diff FINGERPRINT samples/retries",
        "diff REPORT samples/retries",
        "inspect samples/retries",
        "dedup samples/retries",
        "explain KA104",
    ],
)
def test_what_a_command_shows_on_a_terminal_is_paged_and_nothing_else(
    command, documents, terminal, seen, tmp_path, monkeypatch
):
    monkeypatch.setenv("KAUDIT_PAGER", f"'{seen.with_name('our pager')}'")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "1")  # some outputs are short
    arguments = [str(documents.get(word, word)) for word in command.split()]
    outputs = [[], ["--no-pager"]]
    if "explain" not in command:
        outputs.append(["-o", str(tmp_path / "report.txt")])
    shown = []
    for output in outputs:
        terminal.truncate(0)
        seen.unlink(missing_ok=True)
        with redirect_stdout(terminal):
            run([*arguments, *output])
        shown.append((bool(terminal.getvalue()), seen.exists()))
    assert shown == [(False, True), (True, False), (False, False)][: len(outputs)]


def test_a_text_of_which_the_reader_has_seen_enough_is_dropped(terminal, tmp_path, monkeypatch):
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\nexec 0<&-\n")
    script.chmod(0o755)
    begun = []

    class Waited(subprocess.Popen[str]):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            begun.append(self)
            self.wait()

    monkeypatch.setattr(subprocess, "Popen", Waited)
    with redirect_stdout(terminal), paged({"PAGER": str(script)}):
        sys.stdout.write(LONG)
        (process,) = begun
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()  # a further write would be an error
        sys.stdout.write("more\n")
    assert sys.stdout is not terminal
    assert terminal.getvalue() == ""


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


@pytest.mark.parametrize(("options", "wanted"), [
    ([], [True]),
    (["--no-pager"], [False]),
    (["-o", "{}/report.txt"], [False]),
    (["--output-format", "table", "--output-format", "json:{}/scan.json"], [True, False]),
])  # fmt: skip
def test_only_what_goes_to_stdout_is_paged(monkeypatch, tmp_path, capsys, options, wanted):
    asked: list[bool] = []

    @contextmanager
    def paged(*, wanted):
        asked.append(wanted)
        yield

    monkeypatch.setattr(request, "paged", paged)
    assert run(["scan", "samples/duplicates", "--isolated", *(option.format(tmp_path) for option in options)]) == 1
    assert asked == wanted
