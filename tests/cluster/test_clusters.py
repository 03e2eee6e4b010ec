"""Clusters of more than one process: the same result as the local engine's, also when something dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.generate import Shape, generate
from kaudit.spark_submit import __file__ as entry
from tests.cluster.conftest import SPARK_HOME, kaudit, plain_environment
from tests.engines.faulty_logs import FAULTS
from tests.spark.test_executor_tables import rows

pytestmark = pytest.mark.cluster
REPORT = ("--output-format", "json", "--reproducible", "-q")


@pytest.fixture
def logs(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


def expected(*arguments):
    done = kaudit(*arguments, *REPORT)
    assert done.returncode == 1
    return done.stdout


def test_local_cluster(logs):
    done = kaudit("scan", logs, "--engine", "spark", "--master", "local-cluster[2,1,1024]", *REPORT)
    assert done.stdout == expected("scan", logs), done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_spark_submit_with_the_bundle(standalone, bundle, logs, tmp_path, command):
    done = subprocess.run(
        [
            str(SPARK_HOME / "bin" / "spark-submit"), "--master", standalone.url,
            "--archives", f"{bundle}#kaudit-env", "--conf", "spark.pyspark.python=./kaudit-env/bin/python",
            "--conf", f"spark.pyspark.driver.python={sys.executable}", "--conf", "spark.ui.enabled=false", entry, command, str(logs), *REPORT,
        ],
        capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path,
        env=plain_environment(SPARK_HOME=str(SPARK_HOME)),
    )  # fmt: skip
    assert done.stdout == expected(command, logs), done.stderr[-3000:]
    assert done.returncode == 1


def test_without_java_the_extras_own_is_used(logs, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for tool in Path(directory).glob("*") if Path(directory).is_dir() else ():
            link = tools / tool.name
            if not tool.name.startswith("java") and not link.exists():
                link.symlink_to(tool)
    environment = plain_environment(PATH=str(tools))
    environment.pop("JAVA_HOME", None)
    done = subprocess.run(
        [sys.executable, "-m", "kaudit", "scan", str(logs), "--engine", "spark", "--master", "local[2]", *REPORT],
        capture_output=True, text=True, check=False, timeout=900, env=environment,
    )  # fmt: skip
    assert done.stdout == expected("scan", logs), done.stderr


def children(parent):
    """Processes below `parent`: {process id: its command line}."""
    parents, commands = {}, {}
    for entry_ in Path("/proc").iterdir():
        if entry_.name.isdigit():
            try:
                fields = (entry_ / "stat").read_text().rpartition(")")[2].split()
                commands[int(entry_.name)] = (entry_ / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has ended meanwhile
            parents[int(entry_.name)] = int(fields[1])
    below = {parent}
    while True:
        more = {process for process, of in parents.items() if of in below} - below
        if not more:
            return {process: commands[process] for process in below - {parent}}
        below |= more


@pytest.mark.parametrize("victim", ["CoarseGrainedExecutorBackend", "-m kaudit.spark.daemon"])
def test_a_killed_process_changes_nothing(tmp_path, victim):
    from tests.logs import Log, data

    logs = tmp_path / "logs"
    for partition in range(4):
        log = Log()
        for number in range(30_000):
            log.append(data(100 + number % 7, 0, number // 7 + (number > 20_000 + partition)))
        log.write(logs / f"orders-{partition}", segment_starts=tuple(range(0, 30_000, 1000)))
    command = [
        sys.executable, str(Path(__file__).with_name("small_ranges.py")), str(logs), "spark", "local-cluster[2,1,1024]"
    ]  # fmt: skip
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain_environment()
    )
    deadline = time.monotonic() + 120
    killed = None
    while killed is None and time.monotonic() < deadline and running.poll() is None:
        # a daemon with children has workers at work
        below = children(running.pid)
        found = [process for process, line in below.items() if victim in line]
        working = [process for process, line in below.items() if "-m kaudit.spark.daemon" in line]
        if len(working) >= 3 and found:
            killed = max(found)
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.05)
    out, err = running.communicate(timeout=300)
    assert killed is not None, err
    done = subprocess.run([*command[:3], "local", ""], capture_output=True, text=True, check=True)
    assert out == done.stdout, err[-3000:]
    assert '"KA104"' in out


def finished_copies(event_log):
    """Names of the jobs' groups in which a speculative copy of a task finished before the task itself."""
    names: dict[int, str] = {}
    copied = set()
    for line in event_log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            names |= dict.fromkeys(event["Stage IDs"], event["Properties"].get("spark.job.description"))
        elif (
            event["Event"] == "SparkListenerTaskEnd"
            and event["Task Info"]["Speculative"]
            and event["Task End Reason"]["Reason"] == "Success"
        ):
            copied.add(names[event["Stage ID"]])
    return copied


def test_speculative_copies_change_nothing(slow_host, logs, tmp_path):
    # Spark copies a task where others of its stage have ended: a log that is read by several
    big = logs / "payments-0"
    big.mkdir()
    generate(big / f"{0:020d}.log", Shape("large", (16, 16), (1000, 1000), 50), 160 << 20)
    tables = ("--output-format", "parquet", "--reproducible", "-q")
    settings = {
        "spark.speculation": "true", "spark.speculation.quantile": "0.1", "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "100ms", "spark.speculation.interval": "50ms", "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.speculation.task.duration.threshold": "2s",  # of a stage with a single task
        "spark.python.daemon.module": "delayed_daemon", "spark.python.worker.reuse": "false",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent), "spark.executor.memory": "512m",
        "spark.ui.enabled": "false", "spark.eventLog.enabled": "true", "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false",
    }  # fmt: skip
    (tmp_path / "events").mkdir()
    given = [word for key, value in settings.items() for word in ("--spark-conf", f"{key}={value}")]
    on_spark = ("--engine", "spark", "--master", slow_host.url, *given)
    done = kaudit("scan", logs, *tables, *on_spark, "-o", f"{(tmp_path / 'spark').as_uri()}/run_id=one")
    assert done.returncode == 1, done.stderr
    assert kaudit("scan", logs, *tables, "-o", tmp_path / "local").returncode == 1
    (events,) = (tmp_path / "events").iterdir()
    copied = finished_copies(events)
    assert any(name.startswith("kaudit: audit ") for name in copied), copied
    assert any(name.startswith("kaudit: write the table ") for name in copied), copied
    manifests = [
        json.loads((tmp_path / file).read_text()) for file in ("local/manifest.json", "spark/manifests/run_id=one.json")
    ]
    assert manifests[0]["summary"] == manifests[1]["summary"]
    for table in manifests[0]["rows"]:
        names = pq.read_schema(tmp_path / "local" / table / "part-00000.parquet").names
        written = rows(f"{tmp_path}/spark/{table}/run_id=one/topic=*/*.parquet", names)
        assert written == rows(f"{tmp_path}/local/{table}/*.parquet", names) != [], table
