"""A saved state in a store, and writers of a state that are killed or run beside one another."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kaudit.report.json_documents import scan_document
from kaudit.report.render_options import RenderOptions
from tests.engines.faulty_logs import corrupt, duplicates, hanging, healthy, missing_segment
from tests.engines.test_saved_state import ACTIONS, changes
from tests.properties.histories import build
from tests.watch.growing import GrowingLog

STATE = "s3://kafka/state"
FAULTS = (healthy, duplicates, hanging, corrupt, missing_segment)


@pytest.fixture
def logs(tmp_path):
    """Partitions with faults."""
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


def document(result):
    return scan_document(result, RenderOptions(show_notes=True))


def test_a_state_in_s3_is_of_use_as_one_on_disk_is(local, s3_server, logs, tmp_path):
    log = GrowingLog(logs / "payments-0")
    for _ in changes(log, build(ACTIONS, [0, 5, 0]).batches):
        in_s3, on_disk = (local.scan(logs, state=state) for state in (STATE, str(tmp_path / "state")))
        assert in_s3.state == on_disk.state
        again = local.scan(logs, state=STATE)
        assert again.state.unchanged > len(FAULTS) // 2
        assert document(in_s3) == document(again) == document(local.scan(logs))


@pytest.mark.jvm
def test_engines_go_on_from_one_another_in_s3(local, spark, spark_session, s3_server, logs, monkeypatch):
    for name, value in s3_server.variables.items():  # of tasks
        monkeypatch.setitem(spark_session.sparkContext.environment, name, value)
    log = GrowingLog(logs / "payments-0")
    for _, (one, other) in zip(
        changes(log, build(ACTIONS, [0, 5, 0]).batches), ((spark, local), (local, spark)), strict=False
    ):
        one.scan(logs, state=STATE)
        used = other.scan(logs, state=STATE).state
        assert used.unchanged > len(FAULTS) // 2
        assert (used.damaged, used.grown) == (0, 0)
        assert document(other.scan(logs, state=STATE)) == document(local.scan(logs))


def saved(request):
    """Whether this is the end of an upload of an index."""
    return request.kind == "POST" and request.is_end and request.key.endswith("/index")


DYING = """
import os, signal, sys
from kaudit import __main__
from kaudit.source.local import LocalFileSystem

fatal = int(sys.argv.pop(1))

class Content:
    def __init__(self, content):
        self.content = content
    def read(self, size):
        data = self.content.read(9)  # a part of it
        if not data or self.content.tell() > 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return data

def dying(self, uri, content, put=LocalFileSystem.put):
    global fatal
    fatal -= 1
    put(self, uri, content if fatal else Content(content))

LocalFileSystem.put = dying
sys.exit(__main__.main())
"""
"""Kaudit, killed when it has written 9 bytes of the file of this number."""


def require_of_use(local, logs, state, indexes):
    """Audit twice with what a killed run left, so many indexes of partitions."""
    expected = document(local.scan(logs))
    first, second = (local.scan(logs, state=state) for _ in range(2))
    assert document(first) == document(second) == expected
    assert first.state.damaged == second.state.damaged == 0
    assert first.state.unchanged >= indexes
    assert (first.state.unchanged > 0) == (indexes > 0)
    assert second.state.unchanged > len(FAULTS) // 2


@pytest.mark.parametrize("fatal", [1, 2, 3, 8, 9])
def test_a_run_killed_while_it_saves_leaves_what_is_of_use(local, logs, tmp_path, fatal):
    state = tmp_path / "state"
    killed = subprocess.run(
        [sys.executable, "-c", DYING, str(fatal), "scan", "-q", "--jobs", "1", "--state", str(state), str(logs)],
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(state.rglob("*.tmp"))) == 1
    indexes = len(list(state.glob("partitions/*/index")))
    assert indexes == max(fatal - 2, 0) // 2  # the manifest, then rows and index by turns
    require_of_use(local, logs, str(state), indexes)


def test_a_run_killed_while_it_saves_in_s3_leaves_what_is_of_use(local, s3_server, logs):
    s3_server.fatal = lambda request: saved(request) and sum(map(saved, s3_server.requests)) == 4
    killed = subprocess.Popen(
        [sys.executable, "-m", "kaudit", "scan", "-q", "--jobs", "1", "--state", STATE, str(logs)]
    )
    assert s3_server.reached.wait(60)
    killed.kill()
    assert killed.wait(60) == -signal.SIGKILL
    s3_server.killed.set()
    assert sum(key.endswith("/index") for key in s3_server.stored()) == 3
    assert sum("/rows-" in key for key in s3_server.stored()) == 4
    require_of_use(local, logs, STATE, 3)


@pytest.mark.parametrize("store", ["s3", "disk"])
def test_runs_beside_one_another_do_not_mix(local, s3_server, logs, tmp_path, store):
    state = STATE if store == "s3" else str(tmp_path / "state")
    log = GrowingLog(logs / "payments-0")
    for _ in changes(log, build(ACTIONS, [0, 5, 0]).batches):
        with ThreadPoolExecutor(3) as threads:
            found = list(threads.map(lambda _: local.scan(logs, state=state), range(3)))
        last = local.scan(logs, state=state)
        assert [document(result) for result in (*found, last)] == [document(local.scan(logs))] * 4
        assert last.state.unchanged > len(FAULTS) // 2
        assert last.state.damaged == 0
