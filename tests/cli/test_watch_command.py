"""`kaudit watch` as a process: findings as they happen, metrics, the state file, signals, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from kaudit.cli.app import run
from kaudit.cli.watch_outputs import Metrics, served
from kaudit.cli.watching import load_state, save_state
from kaudit.errors import UsageError
from kaudit.watch.memory import Memory, Reported
from tests.cli.conftest import Terminal
from tests.logs import Log, data
from tests.watch.growing import GrowingLog

SAMPLES = Path(__file__).parents[2] / "samples"
SAMPLE_LINE = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? -?[0-9.e+]+')
"""A sample in the text format of Prometheus, without a time."""


def batches(count):
    log = Log()
    return [log.append(data(7, 0, number, payload=b"%d" % number)) for number in range(count)]


@pytest.fixture
def log(tmp_path):
    log = GrowingLog(tmp_path / "logs" / "orders-0")
    log.roll(0)
    for batch in batches(5):
        log.append(batch)
    return log


@pytest.fixture
def start(log):
    """Start a watch of the log; it is ended with the test."""
    running = []

    def begin(*arguments):
        command = [sys.executable, "-m", "kaudit", "watch", *map(str, arguments), str(log.directory.parent)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def duplicate(log):
    log.append(batches(5)[-1].at(5))


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


def text_of(file):
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("sample", ["duplicates", "damaged/flip-body", "compacted", "truncated-head"])
def test_what_it_finds_is_what_scan_finds(kaudit, sample):
    watched = kaudit("watch", "--until-idle", "1s", "--output-format", "jsonl", "--reproducible", SAMPLES / sample)
    scanned = kaudit("scan", "--output-format", "jsonl", "--reproducible", SAMPLES / sample)
    *found, summary = map(json.loads, watched.out.splitlines())
    *expected, scan_summary = map(json.loads, scanned.out.splitlines())

    def by_place(findings):
        return sorted(findings, key=lambda finding: (finding["fingerprint"], finding["log_dir"]))

    assert by_place(found) == by_place(expected)
    assert watched.code == scanned.code
    assert summary["schema"] == "kaudit.watch/1"
    assert summary["partitions"] == scan_summary["partitions"]
    assert summary["reported"] == summary["summary"]["findings"] == scan_summary["summary"]["findings"]
    assert summary["waiting"] == 0


def test_a_duplicate_is_seen_once_it_is_written(log, start, tmp_path):
    metrics = tmp_path / "metrics.prom"
    process = start("--output-format", "jsonl", "--metrics-file", metrics)
    wait_for(lambda: "kaudit_partitions 1" in text_of(metrics))
    duplicate(log)
    finding = json.loads(process.stdout.readline())
    assert (finding["code"], finding["offset"]) == ("KA101", 5)
    wait_for(
        lambda: 'kaudit_findings_total{code="KA101",name="duplicate-batch",severity="error"} 1' in text_of(metrics)
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 1
    assert json.loads(process.stdout.read())["type"] == "summary"


def test_metrics_are_served_in_the_format_of_prometheus(log, start):
    process = start("--metrics-port", 0)
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())

    def scrape():
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return answer.read().decode()

    text = wait_for(lambda: (found := scrape()) and "kaudit_partitions 1" in found and found)
    lines = text.splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    assert all(line.startswith("# ") or SAMPLE_LINE.fullmatch(line) for line in lines)
    assert {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")} == names
    assert 'kaudit_log_end_offset{topic="orders",partition="0",replica="logs"} 5' in lines
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address.removesuffix("metrics"), timeout=10)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_what_is_served_is_the_newest_text_and_nothing_else(tmp_path):
    metrics = Metrics(tmp_path / "metrics")
    with served(metrics, "127.0.0.1", 0) as port:
        for text in ("one 1\n", "one 2\n"):
            metrics.publish(text)
            assert (tmp_path / "metrics").read_text() == text
            for place in ("/metrics", "/metrics?name=one"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{place}", timeout=10) as answer:
                    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "6", text.encode())
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        (server,) = (thread for thread in threading.enumerate() if thread.name == "metrics")
        assert server.daemon
        with (
            pytest.raises(UsageError, match=f"--metrics-port {port}: cannot listen"),
            served(metrics, "127.0.0.1", port),
        ):
            pass
    Metrics(None).publish("kept in no file")


def test_a_watch_in_a_terminal_draws_a_table_and_keeps_files(log, tmp_path, monkeypatch, capsys):
    duplicate(log)
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    arguments = ["watch", "--for", "1s", "--interval", "1s", "--output-format", "table", str(log.directory.parent)]
    files = ["--output-format", f"jsonl:{tmp_path}/found", "--metrics-file", str(tmp_path / "metrics")]
    with redirect_stdout(terminal):
        assert run([*arguments, *files]) == 1
    shown = terminal.getvalue()
    assert "\x1b[" in shown
    assert "duplicate-batch" in shown
    assert "orders-0" in shown
    finding, summary = map(json.loads, (tmp_path / "found").read_text().splitlines())
    assert (finding["code"], summary["reported"]["error"]) == ("KA101", 1)
    assert "kaudit_partitions 1\n" in (tmp_path / "metrics").read_text()
    assert capsys.readouterr().err.startswith("1 error reported ")


def test_a_state_file_lets_the_next_watch_go_on(log, kaudit, tmp_path):
    arguments = ("watch", "--state", tmp_path / "state", "--until-idle", "1s", "--output-format", "concise")
    duplicate(log)
    first = kaudit(*arguments, log.directory.parent)
    assert (first.code, first.out.count("KA101")) == (1, 1)
    again = kaudit(*arguments, log.directory.parent)
    assert (again.code, again.out) == (0, "")
    log.append(batches(6)[-1].at(6))
    log.append(batches(6)[-1].at(7))
    third = kaudit(*arguments, log.directory.parent)
    assert (third.code, third.out.count("orders-0@7")) == (1, 1)
    assert third.out.count("\n") == 1


def test_a_fifo_in_place_of_a_state_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "state")
    with pytest.raises(UsageError, match="not a regular file"):
        load_state(tmp_path / "state", [])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-3], "damaged"),
        (lambda content: content.replace(b"KA101", b"KA102"), "damaged"),
        (lambda content: b"", "not a state file"),
        (lambda content: b"\x00\xff" * 100, "not a state file"),
        (lambda content: b'{"schema": 7}\n', "not a state file"),
        (lambda content: b"[" * 100_000, "not a state file"),
        (lambda content: content.replace(b"watch-state/1", b"watch-state/9"), "watch-state/9"),
        (lambda content: content.replace(b'"bytes":', b'"bites":'), "damaged"),
    ],
)
def test_a_state_file_that_cannot_be_used_is_refused_in_a_line(log, kaudit, tmp_path, damage, message):
    state, logs = tmp_path / "state", log.directory.parent
    memory = Memory({"0123456789abcdef /logs": Reported("KA101", "error", str(log.directory), 5)}, {"KA101 error": 1})
    save_state(state, [str(logs)], memory)
    assert load_state(state, [str(logs)]) == memory
    state.write_bytes(damage(state.read_bytes()))
    before = state.read_bytes()
    refused = kaudit("watch", "--state", state, logs)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"kaudit: --state {state}")
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert state.read_bytes() == before


def test_a_state_file_of_another_watch_is_refused(log, kaudit, tmp_path):
    state = tmp_path / "state"
    kaudit("watch", "--state", state, "--until-idle", "1s", log.directory.parent)
    refused = kaudit("watch", "--state", state, "--until-idle", "1s", SAMPLES / "clean")
    assert refused.code == 2
    assert str(log.directory.parent) in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--output-format", "sarif"), 2, "watch writes table, concise, jsonl"),
        (("--interval", "soon"), 2, "--interval soon"),
        (("--interval", "0s"), 2, "--interval 0s"),
        (("--metrics-file", "{logs}/metrics"), 2, "where kaudit never writes"),
        (("--state", "{logs}/state"), 2, "where kaudit never writes"),
        (("--metrics-port", "1", "--metrics-address", "192.0.2.1"), 2, "cannot listen on 192.0.2.1"),
        (("--topic", "elsewhere", "--for", "1s"), 3, "no such topic"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(log, kaudit, arguments, code, message):
    logs = log.directory.parent
    refused = kaudit("watch", *(argument.format(logs=logs) for argument in arguments), logs)
    assert refused.code == code
    assert message in refused.err
    assert refused.err.count("\n") == 1


def test_a_directory_that_does_not_exist_is_a_usage_error(kaudit, tmp_path):
    assert kaudit("watch", tmp_path / "nowhere").code == 2


def test_directories_and_clusters_are_two_watches(kaudit, tmp_path):
    refused = kaudit("watch", "kafka://localhost:1/orders", tmp_path)
    assert refused.code == 2
    assert "not both" in refused.err


def test_a_remote_directory_is_refused(kaudit):
    refused = kaudit("watch", "s3://bucket/logs")
    assert refused.code == 2
    assert "local directories" in refused.err


def test_unreadable_segments_end_with_their_code(log, kaudit):
    log.roll(5)
    file = log.file(0)
    file.unlink()
    file.symlink_to(file.name)  # root, too, cannot read that
    assert kaudit("watch", "--until-idle", "1s", log.directory.parent).code == 4


def test_the_first_interrupt_ends_with_what_was_found(log, start):
    duplicate(log)
    process = start("--output-format", "concise")
    assert "KA101" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 1
    assert "1 error reported" in process.stderr.read()
