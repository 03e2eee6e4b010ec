"""kaudit as a process: what it imports, closed pipes, Ctrl-C, terminals."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = [sys.executable, str(Path(__file__).with_name("fake_engine.py"))]
KAUDIT = [sys.executable, "-m", "kaudit"]
SAMPLES = Path(__file__).parents[2] / "samples"
HEAVY = ("numpy", "pyarrow", "pyspark", "jinja2", "pandas")
MODULES = """
import sys
sys.argv = ["kaudit", *sys.argv[1:]]
from kaudit.__main__ import main
try:
    main()
finally:
    loaded = sorted(sys.modules)
    import json
    json.dump(loaded, sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "also"),
    [
        (["--version"], ("typer", "rich")),
        (["--help"], ("rich", "pydantic")),
        (["explain", "KA101"], ("rich", "pydantic")),
        (["checks"], ("rich", "pydantic")),
        (["explain", "KA101", "--output-format", "json"], ("rich",)),
        (["scan", "--help"], ("rich",)),
        (["baseline", "create", "--help"], ("rich",)),
        (["config", "show", "--isolated"], ("rich", "tomllib")),
        (["report", "--help"], ("rich", "xml.etree.ElementTree", "kaudit.report.machine.sarif", "tomllib")),
    ],
)
def test_light_commands_import_nothing_heavy(arguments, also):
    done = subprocess.run([sys.executable, "-c", MODULES, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout
    assert not {*HEAVY, *also} & set(json.loads(done.stderr))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["scan", "--help"], ["config", "show", "--isolated"]])
def test_help_and_settings_need_neither_checks_nor_file_formats(arguments):
    done = subprocess.run([sys.executable, "-c", MODULES, *arguments], capture_output=True, text=True, check=True)
    unneeded = ("kaudit.checks.", "kaudit.formats.", "kaudit.bugs.registry", "kaudit.broker.", "kaudit.reading.")
    assert [name for name in json.loads(done.stderr) if name.startswith(unneeded)] == []


def test_a_scan_imports_neither_what_converts_options_nor_what_decompresses():
    arguments = ["scan", "--select", "KA1", "--topic", "orders", "--fail-on", "warning", str(SAMPLES / "duplicates")]
    done = subprocess.run([sys.executable, "-c", MODULES, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3)
    loaded = set(json.loads(done.stderr[done.stderr.index('["') :]))
    assert not {"pydantic", "zstandard", "lz4", "cramjam", "xxhash", "rich", "pyarrow", "pyspark", "jinja2"} & loaded


def test_a_scan_of_a_log_imports_only_what_it_needs():
    """Each of these takes a millisecond or more of every start; where it is needed it is imported."""
    partitions = [str(entry) for entry in sorted((SAMPLES / "duplicates").iterdir()) if entry.is_dir()]  # no README.md
    arguments = ["scan", "--exit-zero", "-q", "--output-format", "concise", *partitions]
    unconfigured = {name: value for name, value in os.environ.items() if not name.startswith("KAUDIT_")}
    command = [sys.executable, "-c", MODULES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=unconfigured)
    loaded = set(json.loads(done.stderr[done.stderr.index('["') :]))
    assert "kaudit.report.text.concise" in loaded
    standard = {"tomllib", "pydantic", "rich"}
    other_commands = {"kaudit.cli.commands.timeline", "kaudit.cli.commands.simulate", "kaudit.cli.commands.producers"}
    texts = {
        "kaudit.reading.dump_text",
        "kaudit.source.text_partitions",
        "kaudit.formats.dump_text.rows",
        "kaudit.formats.dump_text.record_content",
    }
    formats = {"kaudit.report.machine.tables", "kaudit.report.machine.parquet", "kaudit.report.text.table"}
    blocks = {
        "kaudit.audits.producer_ids.block_sources",
        "kaudit.scanning.block_audit",
        "kaudit.broker.producer_ids.allocation_rules",
    }
    assert not {*standard, *other_commands, *texts, *formats, *blocks} & loaded


PROGRAM = "import sys; sys.argv = ['kaudit', 'checks']; from kaudit.__main__ import main; main()"


@pytest.mark.parametrize(
    ("before", "last"),
    [
        ("import atexit; atexit.register(print, 'at exit')", "at exit"),
        (
            "import threading, time; threading.Thread(target=lambda: (time.sleep(3), print('thread'))).start()",
            "thread",
        ),
        ("import weakref; held = weakref.ref; weakref.finalize(held, print, 'finalized')", "finalized"),
    ],
)
def test_what_waits_for_the_end_of_the_process_has_its_turn(before, last):
    done = subprocess.run([sys.executable, "-c", f"{before}\n{PROGRAM}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    *listed, final = done.stdout.splitlines()
    assert listed[0].startswith("KA001")
    assert final == last


def test_a_profiler_of_the_process_reports_what_it_saw():
    command = [sys.executable, "-m", "cProfile", "-m", "kaudit", "checks"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "function calls" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["checks"], 0), (["scan", "-q", str(SAMPLES / "duplicates")], 1), (["scan"], 2)],
)
def test_a_process_writes_all_and_ends_with_the_code_of_its_command(arguments, code):
    done = [
        subprocess.run([sys.executable, *how, *arguments], capture_output=True, text=True, check=False)
        for how in (["-m", "kaudit"], ["-c", "from kaudit.__main__ import main; main()"])
    ]
    assert done[0].returncode == done[1].returncode == code
    assert (done[0].stdout, done[0].stderr) == (done[1].stdout, done[1].stderr)


@pytest.mark.parametrize(
    "command",
    [
        [*KAUDIT, "checks"],
        [*KAUDIT, "explain", "KA101"],
        [*KAUDIT, "--help"],
        [*FAKE, "many", "scan", "/data"],
        [*FAKE, "huge", "scan", "/data", "-q"],
        [*FAKE, "huge", "scan", "/data", "-q", "--output-format", "json"],
    ],
    ids=lambda command: " ".join(command[2:]),
)
def test_a_closed_pipe_ends_silently(command):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_head_0_is_a_closed_pipe():
    command = " ".join([*FAKE, "huge", "scan", "/data", "-q"])
    script = f"{command} | head -0; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


def test_a_full_disk_is_reported():
    command = [*FAKE, "many", "scan", "/data", "-q"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"kaudit: stdout cannot be written: No space left on device\n"


def test_ctrl_c_leaves_no_traceback():
    process = subprocess.Popen(
        [*FAKE, "slow", "scan", "/data"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell starts what it runs in the background with Ctrl-C ignored, the tests perhaps, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_an_internal_error_in_a_process():
    done = subprocess.run([*FAKE, "broken", "scan", "/data"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (70, "")
    assert "Traceback" not in done.stderr


def test_progress_is_shown_on_a_terminal_and_only_there():
    shown = _on_terminal([*FAKE, "moving", "scan", "/data"])
    assert "reading" in shown
    assert "/4.0 MB" in shown
    assert "MB/s" in shown
    assert "reading" not in _on_terminal([*FAKE, "moving", "scan", "/data", "-q"])
    piped = subprocess.run([*FAKE, "moving", "scan", "/data"], capture_output=True, text=True, check=False)
    assert len(piped.stderr.splitlines()) == 1


def _on_terminal(command):
    """What the command writes to stderr when that is a terminal."""
    master, slave = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=environ)
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    process.wait(timeout=20)
    os.close(master)
    return b"".join(chunks).decode()
