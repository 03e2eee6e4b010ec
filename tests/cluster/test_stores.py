"""A real HDFS and an S3 server: both engines read them as they read a disk."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import kaudit, plain_environment
from tests.cluster.test_capture import produce, scenario
from tests.engines.faulty_logs import FAULTS
from tests.live_brokers.jvm import free_port
from tests.spark import in_process

pytestmark = pytest.mark.cluster
REPORT = ("--output-format", "json", "--reproducible", "-q")
ROWS = ("--output-format", "jsonl")
TABLES = ("--output-format", "parquet", "--reproducible", "-q")
SPARK = ("--engine", "spark", "--master", "local[2]", "--spark-conf", "spark.ui.enabled=false")


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    root = tmp_path_factory.mktemp("store") / "logs"
    for number, make in enumerate(FAULTS):
        make(root / f"orders-{number}")
    (root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    return root


def findings(done):
    """What a scan found, without the places' names; the exit code too."""
    document = json.loads(done.stdout)
    return done.returncode, [
        {key: finding[key] for key in ("code", "fingerprint", "evidence", "file", "position", "message")}
        for finding in document["findings"]
    ], document["summary"], document["partitions"]  # fmt: skip


@pytest.fixture(scope="session")
def on_hdfs(hdfs, logs):
    import hdfs_native

    client = hdfs_native.Client(hdfs.url)
    for file in sorted(logs.rglob("*")):
        if file.is_file():
            target = f"/data/logs/{file.relative_to(logs)}"
            client.mkdirs(str(Path(target).parent), create_parent=True)
            with client.create(target) as out:
                out.write(file.read_bytes())
    return hdfs


@pytest.mark.parametrize("engine", [(), SPARK], ids=["local", "spark"])
@pytest.mark.parametrize("way", ["url", "web"])
def test_hdfs(on_hdfs, logs, engine, way):
    done = kaudit("scan", f"{getattr(on_hdfs, way)}/data/logs", *engine, *REPORT)
    assert findings(done) == findings(kaudit("scan", logs, *REPORT)), done.stderr


@pytest.mark.parametrize("way", ["url", "web"])
def test_inspect_of_hdfs(on_hdfs, logs, way):
    for shown in (ROWS, (*ROWS, "--records")):
        done = kaudit("inspect", f"{getattr(on_hdfs, way)}/data/logs", *shown)
        own = kaudit("inspect", logs, *shown)
        assert own.stdout.count("\n") > 20
        assert (done.returncode, done.stdout) == (own.returncode, own.stdout), done.stderr


def test_hdfs_says_what_is_not_there(on_hdfs):
    done = kaudit("scan", f"{on_hdfs.url}/nothing")
    assert (done.returncode, done.stderr) == (2, f"kaudit: no such file or directory: {on_hdfs.url}/nothing\n")


@pytest.fixture(scope="session")
def in_s3(s3, logs):
    from pyarrow import fs

    client = fs.S3FileSystem(
        endpoint_override=s3["AWS_ENDPOINT_URL"], access_key="test", secret_key="test", allow_bucket_creation=True
    )
    client.create_dir("kafka")
    for file in sorted(logs.rglob("*")):
        if file.is_file():
            with client.open_output_stream(f"kafka/data/logs/{file.relative_to(logs)}") as out:
                out.write(file.read_bytes())
    return s3


@pytest.mark.parametrize("engine", [(), SPARK], ids=["local", "spark"])
def test_s3(in_s3, logs, engine):
    done = kaudit("scan", "s3://kafka/data/logs", *engine, *REPORT, **in_s3)
    assert findings(done) == findings(kaudit("scan", logs, *REPORT)), done.stderr


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_dataframes_of_stores(request, logs, store, monkeypatch):
    if store == "s3":
        for name, value in request.getfixturevalue("in_s3").items():
            monkeypatch.setenv(name, value)
        url = "s3://kafka/data/logs"
    else:
        url = f"{request.getfixturevalue('on_hdfs').url}/data/logs"
    # what Spark's tasks do, in this process: the functions of the tasks are all that reads
    fields = ("code", "fingerprint", "evidence", "file", "position", "message")
    expected = [{name: row[name] for name in fields} for row in in_process.scanned(logs)]
    for runs in (in_process.runs_of(in_process.load("batches", url)), in_process.load("runs", url, cut="true")):
        found = in_process.findings(runs, url)
        assert [{name: row[name] for name in fields} for row in found] == expected != []


def test_inspect_of_s3(in_s3, logs):
    for shown in (ROWS, (*ROWS, "--records")):
        done = kaudit("inspect", "s3://kafka/data/logs", *shown, **in_s3)
        own = kaudit("inspect", logs, *shown)
        assert own.stdout.count("\n") > 20
        assert (done.returncode, done.stdout) == (own.returncode, own.stdout), done.stderr


def test_s3_says_what_is_not_there(in_s3):
    done = kaudit("scan", "s3://kafka/nothing", **in_s3)
    assert (done.returncode, done.stderr) == (2, "kaudit: no such file or directory: s3://kafka/nothing\n")


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_a_capture_to_a_store_goes_on_there(request, forgetful_broker, store, tmp_path):
    if store == "s3":
        environment, target = request.getfixturevalue("in_s3"), "s3://kafka/captured"
    else:
        environment, target = {}, f"{request.getfixturevalue('hdfs').url}/captured"
    topic, copy = f"to-{store}", tmp_path / "captured"
    batches = [produce(5, value_size=300) for _ in range(15)]
    for steps in (batches, batches[:7]):
        forgetful_broker.play(scenario(topic, *steps, topic_config={"segment.bytes": "10000"}))
        for place in (target, copy):
            done = kaudit("capture", "-q", "-o", place, forgetful_broker.url(topic), **environment)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert findings(kaudit("scan", target, *REPORT, **environment)) == findings(kaudit("scan", copy, *REPORT))
    rows = [kaudit("inspect", f"{place}/{topic}-0", *ROWS, **environment).stdout for place in (target, copy)]
    assert rows[0] == rows[1]
    assert rows[0].count("\n") > 20


def test_executors_write_tables_to_hdfs(on_hdfs, logs, tmp_path):
    import duckdb
    import hdfs_native

    target = f"{on_hdfs.url}/audits"
    on_cluster = ("--engine", "spark", "--master", "local-cluster[2,1,1024]", *SPARK[4:])
    for _ in range(2):  # the second replaces what the first wrote
        done = kaudit("scan", f"{on_hdfs.url}/data/logs", *on_cluster, *TABLES, "-o", f"{target}/run_id=nightly")
        assert done.returncode == 1, done.stderr
    assert kaudit("scan", logs, *TABLES, "-o", tmp_path / "local").returncode == 1
    client = hdfs_native.Client(on_hdfs.url)
    manifest = json.loads(client.read("/audits/manifests/run_id=nightly.json").read())
    own = json.loads((tmp_path / "local" / "manifest.json").read_text())
    assert {name: manifest["rows"][name] for name in own["rows"]} == own["rows"]
    for status in client.list_status("/audits/findings/run_id=nightly", recursive=True):
        if status.path.endswith(".parquet"):
            copy = tmp_path / status.path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(client.read(status.path).read())
    question = "SELECT fingerprint, code, evidence FROM read_parquet('{}') ORDER BY ALL"
    written, expected = (
        duckdb.sql(question.format(tmp_path / files))
        for files in ("audits/findings/run_id=nightly/topic=orders/*.parquet", "local/findings/*.parquet")
    )
    assert written is not None
    assert expected is not None
    assert written.fetchall() == expected.fetchall()
    counting = (
        "import sys; from pyspark.sql import SparkSession; "
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate(); "
        "print(spark.read.parquet(sys.argv[1]).where(\"run_id = 'nightly' and topic = 'orders'\").count())"
    )
    read = subprocess.run(
        [sys.executable, "-c", counting, f"{target}/findings"],
        capture_output=True, text=True, check=True, env=plain_environment(),
    )  # fmt: skip
    assert int(read.stdout) == own["rows"]["findings"]


def test_a_name_node_that_is_down_is_one_line_soon(hdfs):
    started = time.monotonic()
    done = kaudit("scan", f"hdfs://127.0.0.1:{free_port()}/data")
    assert done.returncode == 4
    assert "nobody answers at 127.0.0.1:" in done.stderr
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - started < 30
