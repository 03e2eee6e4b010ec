"""A real HDFS and an S3 server: both engines read them as they read a disk."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri
from tests.cluster.conftest import SPARK_HOME, kaudit, plain_environment
from tests.cluster.test_capture import produce, scenario
from tests.engines.faulty_logs import FAULTS, duplicates, hanging, healthy, zombie
from tests.live_brokers.jvm import free_port
from tests.remote_storage import AivenPlugin, dated, move, split
from tests.source.encrypted_chunks import KEY
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
    for file in root.rglob("*"):
        os.utime(file)  # a store knows only when a file was uploaded, and the audit's clock follows from it
    return root


def findings(done):
    """What a scan found, without the places' names; the exit code too."""
    document = json.loads(done.stdout)
    return done.returncode, [
        {key: finding[key] for key in ("code", "fingerprint", "evidence", "file", "position", "message")}
        for finding in document["findings"]
    ], document["summary"], document["partitions"]  # fmt: skip


def put_on_hdfs(hdfs, root, place):
    import hdfs_native

    client = hdfs_native.Client(hdfs.url)
    for file in sorted(root.rglob("*")):
        if file.is_file():
            target = f"{place}/{file.relative_to(root)}"
            client.mkdirs(str(Path(target).parent), create_parent=True)
            with client.create(target, hdfs_native.WriteOptions(overwrite=True)) as out:
                out.write(file.read_bytes())


@pytest.fixture(scope="session")
def on_hdfs(hdfs, logs):
    put_on_hdfs(hdfs, logs, "/data/logs")
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


def test_hdfs_says_how_large_its_blocks_are(hdfs):
    import hdfs_native

    client = hdfs_native.Client(hdfs.url)
    client.mkdirs("/blocks", create_parent=True)
    with client.create("/blocks/file", hdfs_native.WriteOptions(block_size=2 << 20)) as out:
        out.write(b"x")
    for way in (hdfs.url, hdfs.web):
        place = Uri.parse(f"{way}/blocks/file")
        assert filesystem(place).status(place).block_bytes == 2 << 20


def test_hdfs_says_what_is_not_there(on_hdfs):
    done = kaudit("scan", f"{on_hdfs.url}/nothing")
    assert (done.returncode, done.stderr) == (2, f"kaudit: no such file or directory: {on_hdfs.url}/nothing\n")


def put_in_s3(s3, root, place):
    from pyarrow import fs

    client = fs.S3FileSystem(
        endpoint_override=s3["AWS_ENDPOINT_URL"], access_key="test", secret_key="test", allow_bucket_creation=True
    )
    client.create_dir("kafka")
    for file in sorted(root.rglob("*")):
        if file.is_file():
            with client.open_output_stream(f"{place}/{file.relative_to(root)}") as out:
                out.write(file.read_bytes())


@pytest.fixture(scope="session")
def in_s3(s3, logs):
    put_in_s3(s3, logs, "kafka/data/logs")
    return s3


@pytest.fixture(scope="session")
def tiered(tmp_path_factory):
    """The logs whole, without their first segments, and these as Aiven's plugin writes them, encrypted."""
    root = tmp_path_factory.mktemp("tiered")
    for number, make in enumerate((healthy, duplicates, hanging, zombie)):
        directory = split(make(root / "whole" / f"orders-{number}"))
        shutil.copytree(directory, root / "here" / directory.name)
        move(root / "here" / directory.name, root / "there", AivenPlugin(chunk_size=4096, compression=True, key=KEY))
    dated(root, int(time.time()) + 86400)  # newer than their upload: the audit's clock is the same everywhere
    return root


def found(done):
    """What a scan found, without the names of files."""
    document = json.loads(done.stdout)
    named = ("code", "fingerprint", "offset", "last_offset", "message")
    return done.returncode, [{key: each[key] for key in named} for each in document["findings"]], document["summary"]


@pytest.mark.parametrize("engine", [(), SPARK], ids=["local", "spark"])
@pytest.mark.parametrize("store", ["hdfs", "webhdfs", "s3"])
def test_remote_storage(request, tiered, store, engine):
    """Of a log on a disk or in the store, with its first segments in the store: findings, a comparison, a plan."""
    environment = {}
    if store == "s3":
        environment = request.getfixturevalue("s3")
        put_in_s3(environment, tiered / "there", "kafka/tier")
        put_in_s3(environment, tiered / "here", "kafka/here")
        url, here = "s3://kafka/tier", "s3://kafka/here"
    else:
        hdfs = request.getfixturevalue("hdfs")
        place = f"/{store}-{len(engine)}"
        put_on_hdfs(hdfs, tiered / "there", f"{place}/tier")
        put_on_hdfs(hdfs, tiered / "here", f"{place}/here")
        root = hdfs.url if store == "hdfs" else hdfs.web
        url, here = f"{root}{place}/tier", f"{root}{place}/here"
    remote = ("--remote", url, "--remote-key", KEY)
    expected = found(kaudit("scan", tiered / "whole", *REPORT))
    assert len(expected[1]) > 3
    done = kaudit("scan", tiered / "here", *remote, *engine, *REPORT, **environment)
    assert found(done) == expected, done.stderr
    done = kaudit("diff", tiered / "whole", here, *remote, *engine, *REPORT, **environment)
    assert json.loads(done.stdout)["findings"] == [], done.stderr
    planned = kaudit("scan", tiered / "here", *remote, "--plan", *ROWS, **environment)
    objects = [file for file in (tiered / "there").rglob("*") if file.is_file()]
    assert {Path(json.loads(row)["path"]).name for row in planned.stdout.splitlines()} == {
        each.name for each in objects
    }


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
    for runs in (in_process.runs_of(in_process.load("batches", url)), in_process.load("runs", url)):
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


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_a_state_in_a_store_is_of_both_engines(request, logs, store, tmp_path):
    if store == "s3":
        environment, state = request.getfixturevalue("in_s3"), "s3://kafka/state"
    else:
        environment, state = {}, f"{request.getfixturevalue('hdfs').url}/state"
    changing = tmp_path / "logs"
    shutil.copytree(logs, changing)
    used = []
    for number, engine in enumerate(((), SPARK, (), SPARK, ())):
        if number == 3:
            healthy(changing / "payments-0")
        done = kaudit("scan", changing, *engine, *REPORT[:-1], "--state", state, **environment)
        assert findings(done) == findings(kaudit("scan", changing, *REPORT)), done.stderr
        used += [line for line in done.stderr.splitlines() if "--state: segments" in line]
    # what is out of order is not saved, and read each time
    segments, added = (
        sum(1 for file in changing.glob(f"{name}/*.log") if file.stat().st_size) for name in ("orders-*", "payments-*")
    )
    again = int(used[1].split()[-2])
    line = "kaudit: --state: segments: "
    assert used == [
        f"{line}{segments} new",
        *[f"{line}{segments - again} unchanged, {again} new"] * 2,
        f"{line}{segments - again} unchanged, {again + added} new",
        f"{line}{segments - again + added} unchanged, {again} new",
    ]
    assert again < segments // 2


FINDINGS = "SELECT fingerprint, code, evidence FROM read_parquet('{}') ORDER BY ALL"
COUNT = (
    "import json, sys; from pyspark.sql import SparkSession; "
    "builder = SparkSession.builder.master('local[1]').config(map=json.loads(sys.argv[2])); "
    "print(builder.getOrCreate().read.parquet(sys.argv[1]).where(\"run_id = 'nightly' and topic = 'orders'\").count())"
)


def require_same_tables(logs, tmp_path, manifest, target, settings, **environment):
    """Compare what executors wrote, its findings copied to `tmp_path`/written, with the local engine's tables."""
    import duckdb

    assert kaudit("scan", logs, *TABLES, "-o", tmp_path / "local").returncode == 1
    own = json.loads((tmp_path / "local" / "manifest.json").read_text())
    assert {name: manifest["rows"][name] for name in own["rows"]} == own["rows"]
    written, expected = (
        duckdb.sql(FINDINGS.format(tmp_path / files)) for files in ("written/*.parquet", "local/findings/*.parquet")
    )
    assert written is not None
    assert expected is not None
    assert written.fetchall() == expected.fetchall() != []
    read = subprocess.run(
        [sys.executable, "-c", COUNT, f"{target}/findings", json.dumps({"spark.ui.enabled": "false", **settings})],
        capture_output=True, text=True, check=True, env=plain_environment(**environment),
    )  # fmt: skip
    assert int(read.stdout) == own["rows"]["findings"]


def test_executors_write_tables_to_hdfs(on_hdfs, logs, tmp_path):
    import hdfs_native

    target = f"{on_hdfs.url}/audits"
    on_cluster = ("--engine", "spark", "--master", "local-cluster[2,1,1024]", *SPARK[4:])
    done = kaudit("scan", f"{on_hdfs.url}/data/logs", *on_cluster, *TABLES, "-o", f"{target}/run_id=nightly")
    assert done.returncode == 1, done.stderr
    client = hdfs_native.Client(on_hdfs.url)
    (tmp_path / "written").mkdir()
    for status in client.list_status("/audits/findings/run_id=nightly", recursive=True):
        if status.path.endswith(".parquet"):
            (tmp_path / "written" / Path(status.path).name).write_bytes(client.read(status.path).read())
    manifest = json.loads(client.read("/audits/manifests/run_id=nightly.json").read())
    require_same_tables(logs, tmp_path, manifest, target, {})


@pytest.fixture(scope="session")
def s3a(tmp_path_factory):
    """Settings by which Spark finds Hadoop's S3 client, of the release its own Hadoop has, from Maven."""
    work = tmp_path_factory.mktemp("s3a")
    shutil.copy(Path(__file__).with_name("s3a-pom.xml"), work / "pom.xml")
    (hadoop,) = (SPARK_HOME / "jars").glob("hadoop-client-api-*.jar")
    version, jars = hadoop.stem.rpartition("-")[2], work / "jars"
    command = ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dhadoop={version}", f"-Dmdep.outputFile={jars}"]
    subprocess.run(command, cwd=work, check=True, timeout=900, stdout=subprocess.DEVNULL)
    return {"spark.jars": jars.read_text().strip().replace(":", ","), "spark.hadoop.fs.s3a.path.style.access": "true"}


def test_executors_write_tables_to_s3(in_s3, s3a, logs, tmp_path):
    from pyarrow import fs

    settings = {**s3a, "spark.hadoop.fs.s3a.endpoint": in_s3["AWS_ENDPOINT_URL"]}
    given = [word for key, value in settings.items() for word in ("--spark-conf", f"{key}={value}")]
    target = "s3a://kafka/audits"
    scan = ("scan", "s3://kafka/data/logs", *SPARK, *given, *TABLES, "-o", f"{target}/run_id=nightly")
    done = kaudit(*scan, **in_s3)
    assert done.returncode == 1, done.stderr
    client = fs.S3FileSystem(endpoint_override=in_s3["AWS_ENDPOINT_URL"], access_key="test", secret_key="test")
    (tmp_path / "written").mkdir()
    for entry in client.get_file_info(fs.FileSelector("kafka/audits/findings/run_id=nightly", recursive=True)):
        if entry.path.endswith(".parquet"):
            (tmp_path / "written" / entry.base_name).write_bytes(client.open_input_file(entry.path).read())
    manifest = json.loads(client.open_input_file("kafka/audits/manifests/run_id=nightly.json").read())
    require_same_tables(logs, tmp_path, manifest, target, settings, **in_s3)


def test_executors_list_producer_ids_in_s3(in_s3, s3a, logs):
    from pyarrow import fs, parquet

    settings = {**s3a, "spark.hadoop.fs.s3a.endpoint": in_s3["AWS_ENDPOINT_URL"]}
    given = [word for key, value in settings.items() for word in ("--spark-conf", f"{key}={value}")]
    target = ("--output-format", "parquet", "-o", "s3a://kafka/listed/run_id=nightly")
    done = kaudit("producers", "s3://kafka/data/logs", *SPARK, *given, *target, "--exit-zero", **in_s3)
    assert done.returncode == 0, done.stderr
    client = fs.S3FileSystem(endpoint_override=in_s3["AWS_ENDPOINT_URL"], access_key="test", secret_key="test")
    written = parquet.ParquetDataset("kafka/listed/producers/run_id=nightly", filesystem=client).read()
    local = json.loads(kaudit("producers", logs, "--output-format", "json").stdout)
    expected = {
        (part["topic"], part["partition"], producer["producer_id"], part["last_offset"])
        for producer in local["producers"]
        for part in producer["partitions"]
    }
    rows = {
        tuple(row.values()) for row in written.select(["topic", "partition", "producer_id", "last_offset"]).to_pylist()
    }
    assert rows == expected != set()
    manifest = json.loads(client.open_input_file("kafka/listed/manifests/run_id=nightly.json").read())
    assert manifest["rows"]["producers"] == written.num_rows


def test_a_name_node_that_is_down_is_one_line_soon(hdfs):
    started = time.monotonic()
    done = kaudit("scan", f"hdfs://127.0.0.1:{free_port()}/data")
    assert done.returncode == 4
    assert "nobody answers at 127.0.0.1:" in done.stderr
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - started < 30
