"""How a scan reports its progress where stderr is a file."""

import logging

from kaudit.cli.progress import ProgressLines, progress_on_stderr
from kaudit.engines.progress import SilentProgress


def test_a_line_every_half_minute(capsys):
    now = 100.0
    lines = ProgressLines(lambda: now)
    lines.start(4_000_000_000)
    for _ in range(70):
        now += 1
        lines.advance(25_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "kaudit: 750.0 MB of 4.0 GB read (18%), 25.0 MB/s, about 130 s left",
        "kaudit: 1.5 GB of 4.0 GB read (37%), 25.0 MB/s, about 100 s left",
    ]


def test_a_short_scan_and_an_empty_one_say_nothing(capsys):
    now = 0.0
    lines = ProgressLines(lambda: now)
    lines.start(0)
    now = 29.9
    lines.advance(0)
    assert capsys.readouterr().err == ""


def test_only_who_asks_gets_them(capsys):
    with progress_on_stderr(quiet=False, verbose=True) as lines, progress_on_stderr(quiet=False) as silent:
        assert isinstance(lines, ProgressLines)
        assert isinstance(silent, SilentProgress)
    with progress_on_stderr(quiet=True, verbose=True) as quiet:
        assert isinstance(quiet, SilentProgress)


def test_what_engines_log_is_shown_to_who_asks(capsys):
    engine = logging.getLogger("kaudit.engines.some")
    for quiet, verbose in ((False, True), (False, False), (True, True)):
        with progress_on_stderr(quiet=quiet, verbose=verbose):
            engine.info("kaudit: read the log: tasks: %s", f"quiet={quiet}, verbose={verbose}")
    engine.info("afterwards")
    assert capsys.readouterr().err == "kaudit: read the log: tasks: quiet=False, verbose=True\n"
