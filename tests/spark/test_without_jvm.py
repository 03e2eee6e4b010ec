"""The Spark engine's own code, driver's and tasks', with Arrow tables for DataFrames: it finds and writes what the local one does."""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import Struct
from msgspec.structs import replace

from kaudit.cli.app import run
from kaudit.engines import local as local_engine
from kaudit.engines.progress import SilentProgress
from kaudit.engines.rows import NO_ROWS
from kaudit.errors import UnreadableInputError
from kaudit.listings.producer_histories import PartitionHistory
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.shuffle_codec import pack
from kaudit.reading.unread_segments import Failure
from kaudit.scanning import findings
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import SegmentRemovedError, open_segment
from kaudit.spark import bundle as spark_bundle
from kaudit.spark import engine as spark_engine
from kaudit.spark import jobs as spark_jobs
from kaudit.spark import reading_in_tasks as spark_reading
from kaudit.spark import session as spark_session
from kaudit.spark import tables as spark_tables
from kaudit.spark import task_findings as spark_judging
from kaudit.spark import tasks as spark_tasks
from kaudit.spark.jobs import ReadMetrics, SparkFailedError, reading_progress, retries
from kaudit.spark.session import SESSION_SETTINGS
from kaudit.spark.table_target import NAMES, PIECES_SCHEMA, OutputBatches, TableTarget
from kaudit.spark.task_findings import first_timelines
from kaudit.spark.tasks import CHUNK, HEADER, PartitionHeader, replay
from tests.diff.replicas import history
from tests.engines.conftest import Engine, as_reported
from tests.engines.faulty_logs import FAULTS, gap, healthy, zombie
from tests.engines.test_tables import fails
from tests.logs import Log, data
from tests.spark.arrow_session import ArrowSession
from tests.spark.test_spark_judging import gaps

ROOT = Path(__file__).parents[2]
IDS = ROOT / "samples" / "producer-ids"


@pytest.fixture
def session(arrow_session):
    return arrow_session


@pytest.fixture
def spark(session):
    return Engine(spark_engine)


@pytest.fixture
def logs(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


def test_faults_wherever_the_log_is_cut(local, spark, session, logs):
    assert spark.documents(logs, chunk_bytes=700) == local.documents(logs)
    assert session.conf.values == dict(SESSION_SETTINGS)
    # whoever's session it is goes on without our names
    assert set(session.properties.values()) == {None}


@pytest.mark.parametrize("master", ["local[2]", "yarn"])
def test_the_jobs_of_an_audit_are_named(spark, session, master):
    session.master = master
    sample = ROOT / "samples" / "coordinator"
    spark.scan(sample)
    elsewhere = ["kaudit: can the workers read the input?"] if master == "yarn" else []
    assert session.jobs == [
        *elsewhere,
        f"kaudit: audit {sample}",
        "kaudit: read __transaction_state",
        "kaudit: make the findings",
    ]


def test_a_small_audit_is_two_jobs_and_one_more_on_a_cluster(spark, session):
    spark.scan(ROOT / "samples" / "duplicates")
    assert len(session.jobs) == 2
    session.master, session.jobs = "yarn", []
    spark.scan(ROOT / "samples" / "duplicates")
    assert len(session.jobs) == 3


def test_only_partitions_with_findings_that_are_listed_are_judged_again(spark, session, tmp_path, monkeypatch):
    for number in range(3):
        healthy(tmp_path / f"orders-{number}")
    gaps(tmp_path / "orders-3", 2)
    judged = []

    def judge(parts, *rest):
        judged.append(parts[0].directory.partition)
        return findings.partition_findings(parts, *rest)

    monkeypatch.setattr(spark_judging, "partition_findings", judge)
    assert len(spark.scan(tmp_path).findings) == 2
    assert sorted(judged) == [0, 1, 2, 3]  # few findings come with their numbers
    judged.clear()
    monkeypatch.setattr(spark_engine, "_FINDINGS_BROUGHT", 4)
    assert len(spark.scan(tmp_path).findings) == 2
    assert sorted(judged) == [0, 1, 2, 3, 3]


def test_each_job_is_logged_in_a_line_and_what_was_read_counted(local, spark, session, caplog):
    sample = ROOT / "samples" / "coordinator"
    counted = local.scan(sample).summary
    caplog.set_level("INFO", "kaudit")
    spark.scan(sample, chunk_bytes=700)
    lines = [record.getMessage() for record in caplog.records]
    (read,) = [line for line in lines if line.startswith("kaudit: ranges read: ")]
    assert f", bytes {counted.bytes:,}, batches {counted.batches:,}, runs " in read
    jobs = [line.partition(": tasks: ")[0] for line in lines if line != read]
    assert jobs == session.jobs


@pytest.mark.parametrize("name", ["coordinator", "hanging-transaction", "producer-ids", "malformed", "exactly-once"])
def test_samples(local, spark, name):
    options: dict[str, object] = {"depth": Depth.RECORDS, "chunk_bytes": 500}
    if name == "producer-ids":
        options["blocks"] = str(ROOT / "samples/producer-ids/blocks.jsonl")
    ours = local.scan(ROOT / "samples" / name, **options)
    assert ours.findings
    assert as_reported(spark.scan(ROOT / "samples" / name, **options)) == as_reported(ours)


def test_replicas_and_fingerprints_are_compared_as_by_the_local_engine(session, tmp_path, capsys):
    """Partitions of different sizes come back in their order, whichever is dealt out first."""
    for name in ("b1", "b2"):
        for number, batches in enumerate((2, 9, 5)):
            log = history((0, batches))
            if (name, number) == ("b2", 2):
                log.append(2, 1, b"other")
            elif number == 2:
                log.append(2, 0, b"own")
            log.write(tmp_path / "made" / f"{name}-{number}")
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / "made" / f"{name}-{number}" / "orders-0").rename(tmp_path / name / f"orders-{number}")
    replicas = [str(tmp_path / name) for name in ("b1", "b2")]
    for arguments in (replicas, ["--fingerprint", replicas[0]]):
        outputs = {}
        for engine in ("local", "spark"):
            code = run(["diff", "--engine", engine, "--reproducible", "--output-format", "json", *arguments])
            outputs[engine] = code, capsys.readouterr().out
        assert outputs["spark"] == outputs["local"]
        document = json.loads(outputs["spark"][1])
        assert [entry["partition"] for entry in document["partitions"]] == [0, 1, 2]
    assert "kaudit: compare partitions" in session.jobs


class Work(Struct):
    name: str
    bytes: int
    directories: list[PartitionDirectory]


def work_of(task: Work, /, options: object, open_source: object) -> str:
    return f"did {task.name}"


def test_tasks_of_partitions_come_back_in_their_order_and_one_may_have_nothing_to_read(session, tmp_path):
    """A replica may have the directory of a partition and no segment in it."""
    healthy(tmp_path / "orders-0")
    (directory,) = find_input(ScanOptions([str(tmp_path)])).partitions
    empty = replace(directory, log_dir=str(tmp_path / "empty"), segments=[])
    work: Any = [Work(name, size, [directory, empty]) for name, size in zip("abcd", (5, 9, 0, 7), strict=True)]
    read: list[int] = []
    progress: Any = SimpleNamespace(advance=read.append)
    options = ScanOptions([str(tmp_path)])
    done = spark_engine.SparkEngine().each_partition(work, work_of, options, progress)
    assert done == ["did a", "did b", "did c", "did d"]
    assert read == [21]
    assert session.jobs == ["kaudit: compare partitions"]


def test_a_bundle_has_what_kaudit_needs_and_is_the_same_each_time(tmp_path, monkeypatch):
    needed = {distribution.metadata["Name"].lower() for distribution in spark_bundle._distributions()}
    assert {"msgspec", "numpy", "pyarrow", "crc32c", "typer"} <= needed
    assert needed.isdisjoint({"kaudit", "pytest", "ruff"})
    some = [distribution for distribution in spark_bundle._distributions() if distribution.name in ("crc32c", "rich")]
    monkeypatch.setattr(spark_bundle, "_distributions", lambda: some)
    for name in ("one", "two"):
        held = spark_bundle.write_bundle(tmp_path / name)
        assert held == [f"{distribution.name} {distribution.version}" for distribution in some]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes()[4:8] == bytes(4)  # gzip's time of making: none
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    with tarfile.open(tmp_path / "one") as archive:
        modes = {member.name: member.mode for member in archive.getmembers()}
    assert modes.pop("bin/python") == 0o755
    assert {"lib/kaudit/__init__.py", "lib/kaudit/spark/spark-log4j2.properties", "lib/rich/console.py"} <= set(modes)
    assert not [name for name in modes if "__pycache__" in name or name.endswith(".pyc") or ".." in name]
    assert {mode for name, mode in modes.items() if ".so" not in name} == {0o644}
    assert {mode for name, mode in modes.items() if ".so" in name} == {0o755}


_QUIET = f"-Dlog4j2.configurationFile={Path(spark_session.__file__).with_name('spark-log4j2.properties').as_uri()}"
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@pytest.mark.parametrize(
    ("master", "environment", "given", "address", "java"),
    [
        (None, {}, {}, "127.0.0.1", [_QUIET, *_SHORT_LIVED]),
        ("local[4]", {}, {}, "127.0.0.1", [_QUIET, *_SHORT_LIVED]),
        ("local[4]", {"SPARK_LOCAL_IP": "10.0.0.1"}, {}, "10.0.0.1", [_QUIET, *_SHORT_LIVED]),
        ("local[4]", {}, {"spark.driver.extraJavaOptions": "-Dx=y"}, "127.0.0.1", []),
        # two collectors, and the JVM does not start
        ("local[4]", {"JDK_JAVA_OPTIONS": "-XX:+UseG1GC"}, {}, "127.0.0.1", [_QUIET]),
        ("yarn", {}, {}, None, [_QUIET]),
        ("yarn", {"SPARK_CONF_DIR": "/etc/spark"}, {}, None, []),
        ("yarn", {}, {"spark.driver.extraJavaOptions": "-Dx=y"}, None, []),
    ],
)
def test_what_the_jvm_is_started_with(monkeypatch, master, environment, given, address, java):
    monkeypatch.setattr(os, "environ", dict(environment))
    monkeypatch.setattr(spark_session, "java_home", lambda _: None)
    settings = {"spark.executor.memory": "2g", **given}
    spark_session._prepare_launch(master, settings)
    assert "JAVA_HOME" not in os.environ
    assert (os.environ["PYSPARK_PYTHON"], os.environ.get("SPARK_LOCAL_IP")) == (sys.executable, address)
    *words, last = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert last == "pyspark-shell"
    daemon = {"spark.python.daemon.module": "kaudit.spark.daemon"} if address else {}
    expected = {"spark.ui.showConsoleProgress": "false", **daemon, **settings}
    assert words[: 2 * len(expected)] == [
        word for key, value in expected.items() for word in ("--conf", f"{key}={value}")
    ]
    assert words[2 * len(expected) :] == (["--driver-java-options", " ".join(java)] if java else [])
    # what somebody set stays, and a Java of ours is where Spark looks for one
    monkeypatch.setattr(spark_session, "java_home", lambda _: "/ours")
    monkeypatch.setattr(os, "environ", {"PYSPARK_SUBMIT_ARGS": "--verbose pyspark-shell"})
    spark_session._prepare_launch(master, {"spark.pyspark.python": "python9", "spark.ui.showConsoleProgress": "true"})
    assert (os.environ["JAVA_HOME"], os.environ["PYSPARK_PYTHON"]) == ("/ours", "python9")
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert words[-2:] == ["--verbose", "pyspark-shell"]
    assert words[:2] == ["--conf", "spark.ui.showConsoleProgress=true"]


@pytest.mark.parametrize(
    ("java", "text", "line"),
    [
        (None, "\n  it broke\nat a.b.C\n", "it broke"),
        ("java.net.BindException: in use\n\tat a.b.C", "An error occurred", "java.net.BindException: in use"),
        (None, " \n", "OSError"),
    ],
)
def test_why_spark_did_not_start_is_one_line(java, text, line):
    error = OSError(text)
    if java is not None:
        error.java_exception = java  # type: ignore[attr-defined]
    assert spark_session._first_line(error) == line


@pytest.mark.parametrize("sample", [None, "coordinator"])
@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_tables_are_the_same_files(session, logs, tmp_path, command, sample):
    """The sample has a __transaction_state, which names producer ids."""
    codes = []
    for engine in ("local", "spark"):
        more = ["--batches"] if command == "scan" else []
        target = str(tmp_path / engine)
        path = str(logs if sample is None else ROOT / "samples" / sample)
        arguments = [command, path, "--engine", engine, "--output-format", "parquet", "-o", target]
        codes.append(run([*arguments, "--reproducible", "-q", *more]))
    assert codes[0] == codes[1] <= 1
    ours, theirs = (
        {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
        for directory in (tmp_path / "local", tmp_path / "spark")
    )
    assert len(ours) >= 6
    assert theirs == ours
    assert not set(session.properties.values()) - {None}


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        (["scan", "logs"], {"findings", "partitions", "segments", "timelines", "producers"}),
        (["scan", "logs", "--batches", "--digests"], {"batches", "digests"}),
        (["scan", str(ROOT / "samples" / "coordinator"), "--batches"], {"batches", "producers", "timelines"}),
        (["producers", str(IDS), "--blocks", str(IDS / "blocks.jsonl")], {"blocks", "producers"}),
    ],
)
def test_executors_get_every_row_of_the_local_tables(session, logs, tmp_path, monkeypatch, capsys, arguments, tables):
    """Where executors write them themselves: pieces of tables, and the rows of a list of producer ids."""
    command, path, *more = arguments
    path = str(logs) if path == "logs" else path
    options = ["--output-format", "parquet", "--reproducible", "-q", *more]
    written: dict[str, list[str]] = {}
    asked: list[object] = []
    kept: list[bool] = []

    def write(spark, pieces, schemas, rows):
        kept.extend(hasattr(frame, "unpersist") for frame in (pieces, *rows.values()))
        for row in pieces.toArrow().to_pylist():
            found = pa.ipc.open_stream(row["data"]).read_all()
            assert (found.num_rows, row["topic"] in {None, *found.to_pydict().get("topic", [row["topic"]])}) == (
                row["rows"],
                True,
            )
            written.setdefault(row["table"], []).extend(map(str, found.to_pylist()))
        for name, frame in rows.items():
            written[name] = [str(row) for row in frame.select(*schemas[name].names).toArrow().to_pylist()]
        asked.append(list(schemas))

    def target(spark, url, manifest):
        asked.append((url, manifest["exit_code"]))
        return SimpleNamespace(run_id="nightly", write=write)

    monkeypatch.setattr(TableTarget, "of", target)
    codes = [
        run([command, path, "-o", str(tmp_path / "local"), *options]),
        run([command, path, "-o", "hdfs://nn/audits/run_id=nightly", "--engine", "spark", *options]),
    ]
    assert codes[0] == codes[1] <= 1
    files = {path.parent.name: pq.read_table(path) for path in (tmp_path / "local").glob("*/*.parquet")}
    assert {name for name, rows in written.items() if rows} >= tables
    assert {name: sorted(rows) for name, rows in written.items() if rows} == {
        name: sorted(map(str, rows.to_pylist())) for name, rows in files.items() if rows.num_rows
    }
    assert asked == [("hdfs://nn/audits/run_id=nightly", codes[0]), asked[1]]
    assert set(asked[1]) == {*files}  # type: ignore[call-overload]


def test_the_workers_daemon_has_imported_what_tasks_use_but_not_pandas():
    """Which pyarrow imports when it makes an array of a list, and which takes longer than a small audit."""
    script = (
        "import sys; from kaudit.spark import daemon, tasks; tasks.row(tasks.STEPS, 1, 2, tasks.AUDIT, b'x')\n"
        "print(*(name in sys.modules for name in ('kaudit.spark.task_findings', 'kaudit.partition.assembler', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True True False\n"


@pytest.mark.parametrize("values", [(), (-5, 1 << 40, "Zürich", b"\0\xff"), (5,), (0, -(1 << 63), "", b"")])
def test_a_row_is_what_pyarrow_makes_of_its_values(values):
    schema = pa.schema([("a", pa.int32()), ("b", pa.int64()), ("c", pa.string()), ("d", pa.binary())])
    made = spark_tasks.row("a int, b long, c string, d binary", *values)
    made.validate(full=True)
    assert made.equals(pa.RecordBatch.from_pylist([dict(zip("abcd", values, strict=False))], schema))


def test_a_disk_that_fails_is_tried_again_before_it_counts(tmp_path, monkeypatch):
    """Elsewhere, perhaps: what is gone for everybody is not."""
    log = Log()
    log.append(data(7, 0, 0))
    log.write(tmp_path / "orders-0")
    options = ScanOptions([str(tmp_path)])
    (job,) = plan_jobs(options, find_input(options), all_needs)
    (spec,) = job.ranges()
    counted: list[object] = []

    def failing(error: OSError) -> Any:
        def open_source(_: object) -> Any:
            raise error

        return open_source

    def outcomes(error: OSError, attempt: int, retries: int) -> Any:
        monkeypatch.setattr(spark_tasks, "_attempt", lambda: attempt)
        task = spark_tasks.ByteRangeTask(0, 0, 0, spec, job.chunk_bytes)
        work = pa.array([pack(spark_tasks.ReadTask([task], []))], pa.binary())
        plan = iter([pa.RecordBatch.from_arrays([work], ["work"])])
        (row,) = spark_tasks.reading(plan, failing(error), retries, counted.append)
        (found,) = unpack_chunk(row.column("data")[0].as_py())
        assert isinstance(found, Failure)
        return found.path, found.reason, found.vanished

    broken = OSError(5, "Input/output error")
    path = spec.file.path
    for attempt, retried in ((0, 1), (2, 3)):
        with pytest.raises(spark_tasks.TransientReadError) as raised:
            outcomes(broken, attempt, retried)
        assert (raised.value.errno, raised.value.strerror, raised.value.filename) == (5, "Input/output error", path)
    assert counted == []
    for attempt, retried in ((0, 0), (1, 1), (3, 3)):
        assert outcomes(broken, attempt, retried) == (path, "Input/output error", False)
    assert len(counted) == 3
    gone = FileNotFoundError(2, "No such file or directory")
    assert outcomes(gone, 0, 3) == (path, "No such file or directory", True)
    removed = f"retention removed it: the log begins with segment {7:020d}.log now"
    assert outcomes(SegmentRemovedError(path, 7), 0, 3)[:2] == (path, removed)
    assert len(counted) == 5


def test_of_the_feature_levels_a_task_gives_back_those_that_decide(monkeypatch):
    levels = {"metadata.version": 25, "kraft.version": 1, "transaction.version": 2}
    asked: list[object] = []

    def feature_levels(*given):
        asked.append(given)
        return levels

    monkeypatch.setattr(spark_reading, "feature_levels", feature_levels)
    directories: Any = ["directory"]
    opened: Any = "opened"
    assert spark_reading._read_levels(directories, opened) == {"metadata.version": 25, "transaction.version": 2}
    assert asked == [(directories, opened)]
    del levels["transaction.version"]
    assert spark_reading._read_levels(directories, opened) == {"metadata.version": 25}


def test_the_lanes_of_a_report_are_the_same(session, logs):
    options = ScanOptions([str(logs)], chunk_bytes=700)
    tables = []
    for engine in (local_engine, spark_engine):
        with engine.record(options, SilentProgress()) as recording:
            tables.append(
                (as_reported(recording.result), list(recording.write_histories(lanes, recording.result.findings)))
            )
    assert tables[0] == tables[1]
    assert {name for name, _ in tables[0][1]} == {"lanes"}


def lanes(history, findings, newest):
    """What is known of a history, as a piece of a table."""
    found = sorted(finding.fingerprint for finding in findings)
    yield "lanes", repr((history.key, history.producer_ids.tolist(), found, newest)).encode()


def test_findings_beyond_the_limit_are_counted(local, spark, tmp_path, monkeypatch):
    for partition in range(2):
        gaps(tmp_path / f"orders-{partition}", 8)
    zombie(tmp_path / "payments-0")
    whole = local.scan(tmp_path)
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", 10)
    part = spark.scan(tmp_path)
    listed = [finding for finding in whole.findings if finding.code == "KA104"][10:]
    kept = [finding for finding in whole.findings if finding not in listed]
    assert as_reported(part.findings) == as_reported(kept)
    assert part.summary == replace(whole.summary, omitted=6)
    assert [(more.code, more.topic, more.count) for more in part.unlisted] == [("KA104", "orders", 6)]


@pytest.mark.parametrize(("master", "settings", "retried"), [
    ("local", {}, 0), ("local[4]", {}, 0), ("local-cluster[2,1,1024]", {}, 3), ("yarn", {}, 3),
    ("yarn", {"spark.task.maxFailures": "8"}, 7), ("spark://driver:7077", {"spark.task.maxFailures": "1"}, 0),
])  # fmt: skip
def test_how_often_spark_starts_a_task_again(master, settings, retried):
    """Spark's own defaults: a task may fail four times, on `local[N]` once."""
    running = ArrowSession(master)
    running.conf.values.update(settings)
    assert retries(cast("Any", running)) == retried


def test_what_fails_in_a_task_is_one_line(session, logs):
    with (
        spark_engine.record(ScanOptions([str(logs)]), SilentProgress()) as recording,
        pytest.raises(SparkFailedError, match=r"^Spark gave up: ValueError: a task's own trouble$"),
    ):
        list(recording.write_histories(fails, recording.result.findings))


def test_a_worker_of_another_release_is_refused(spark, tmp_path, monkeypatch):
    gap(tmp_path / "orders-0")
    monkeypatch.setattr(spark_tasks, "__version__", "0.0.9")
    with pytest.raises(SparkFailedError, match=r"the driver runs kaudit \S+, this worker 0\.0\.9$"):
        spark.scan(tmp_path)


@pytest.mark.parametrize("gone", [False, True])
def test_what_the_workers_cannot_read(spark, session, tmp_path, monkeypatch, gone):
    """What nobody can read any more is the audit's business."""
    session.master = "yarn"
    segment = next(gap(tmp_path / "orders-0").glob("*.log"))
    opens = vars(spark_jobs)["open_segment"]

    def on_a_worker(file, working_directory=None):
        if working_directory is None:  # the driver's own try
            return opens(file)
        raise PermissionError(13, "Permission denied", file.path)

    def first_then_gone(file, working_directory=None):
        segment.unlink(missing_ok=True)
        raise FileNotFoundError(2, "No such file or directory", file.path)

    monkeypatch.setattr(spark_jobs, "open_segment", first_then_gone if gone else on_a_worker)
    if gone:
        assert spark.scan(tmp_path).incomplete
    else:
        with pytest.raises(UnreadableInputError, match=r"Permission denied on a Spark worker.*--engine local"):
            spark.scan(tmp_path)


@pytest.mark.parametrize(("rows", "error"), [
    ([(0, CHUNK, b"range")], "ranges came before their partition was opened"),
    ([(0, HEADER, None)], "job 0: 1 ranges did not arrive"),
])  # fmt: skip
def test_rows_that_the_shuffle_lost_are_no_clean_log(tmp_path, rows, error):
    options = ScanOptions([str(gap(tmp_path / "orders-0"))])
    (job,) = plan_jobs(options, find_input(options), all_needs)
    header = pack(PartitionHeader(0, job, len(job.ranges())))
    batch = pa.RecordBatch.from_pylist(
        [
            {"job_index": index, "kind": kind, "segment_number": 0, "ranges": 1, "data": data or header}
            for index, kind, data in rows
        ]
    )
    with pytest.raises(AssertionError, match=re.escape(error)):
        list(replay(iter([batch]), NO_ROWS, open_segment))


def test_what_is_kept_of_a_large_partition_comes_in_slices(local, spark, logs, monkeypatch):
    monkeypatch.setattr(spark_tasks, "_SLICE_BYTES", 100)
    assert spark.documents(logs)[1:] == local.documents(logs)[1:]


class SeenProgress(SilentProgress):
    def __init__(self):
        self.total, self.steps, self.come = 0, [], threading.Event()

    def start(self, total_bytes):
        self.total = total_bytes

    def advance(self, bytes_read):
        self.steps.append(bytes_read)
        self.come.set()


@pytest.mark.parametrize(("during", "after", "steps"), [
    (3, 4, [750, 250]),  # of four ranges
    (4, 4, [750, 250]),  # a task that ran twice counted twice: only the end of the job is the end
    (9, 9, [750, 250]),
    (1, 3, [250, 500]),  # one could not be read
])  # fmt: skip
def test_progress_is_whole_once_every_range_was_read(during, after, steps):
    metrics = ReadMetrics.of(cast("Any", ArrowSession()))
    seen = SeenProgress()
    metrics.ranges.add(during)
    with reading_progress(metrics, 4, 1000, seen):
        assert seen.come.wait(60)
        metrics.ranges.add(after - during)
    assert (seen.total, seen.steps) == (1000, steps)


def test_a_job_that_failed_does_not_end_its_progress():
    metrics = ReadMetrics.of(cast("Any", ArrowSession()))
    seen = SeenProgress()
    metrics.ranges.add(4)
    with pytest.raises(ValueError, match="body"), reading_progress(metrics, 4, 1000, seen):
        raise ValueError("body")
    assert seen.steps == [750]


def test_what_could_not_be_read_counts_as_nothing():
    metrics = ReadMetrics.of(cast("Any", ArrowSession()))
    metrics.add([ChunkRows(0, 0, 0, 0)])
    metrics.add([Failure("/a", "Input/output error")])
    assert metrics.ranges.value == 1


@pytest.mark.parametrize(("counts", "most", "listed"), [
    ([2, 0, 3], None, {0: 2, 2: 3}),
    ([2, 0, 3], 0, {}),
    ([2, 0, 3], 1, {0: 1}),
    ([2, 0, 3], 2, {0: 2}),
    ([2, 0, 3], 3, {0: 2, 2: 1}),
    ([2, 0, 3], 5, {0: 2, 2: 3}),
    ([2, 0, 3], 9, {0: 2, 2: 3}),
    ([], None, {}),
])  # fmt: skip
def test_the_first_timelines_of_all_partitions_are_listed(counts, most, listed):
    assert first_timelines(counts, most) == listed


def named_rows(*rows: tuple[int, str, object]) -> list[tuple[int, str, object]]:
    """What naming() makes of rows (job, table, what they hold): names, or transactional ids of producer ids 1 and 2."""
    batches = []
    for number, (job, table, held) in enumerate(rows):
        data_ = pack(held) if table == NAMES else ids_piece(held)
        row = {
            "output_batch": 0,
            "job_index": job,
            "number": number,
            "table": table,
            "topic": "t",
            "rows": 2,
            "data": data_,
        }
        batches.append(pa.RecordBatch.from_pylist([row], spark_tasks.arrow_schema(PIECES_SCHEMA)))
    found = []
    for batch in spark_tables.put_names(iter(batches)):
        (row,) = batch.to_pylist()
        held = pa.ipc.open_stream(row["data"]).read_all()
        assert held.schema == NAMELESS.schema
        assert held["producer_id"].to_pylist() == [1, 2]
        found.append((row["job_index"], row["table"], held["transactional_id"].to_pylist()))
    return found


NAMELESS = pa.table({"producer_id": pa.array([1, 2]), "transactional_id": pa.array([None, None], pa.string())})


def ids_piece(names: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, NAMELESS.schema) as out:
        out.write_table(NAMELESS.set_column(1, "transactional_id", pa.array(names, pa.string())))
    piece: bytes = sink.getvalue().to_pybytes()
    return piece


def test_names_go_into_the_rows_of_their_own_job_alone():
    assert named_rows(
        (0, "names", {1: "a"}),
        (0, "timelines", [None, None]),
        (0, "findings", [None, None]),
        (1, "producers", [None, "own"]),
        (2, "names", {1: "b"}),
        (2, "names", {2: "c"}),
        (2, "producers", [None, "own"]),
        (2, "timelines", ["x", None]),
    ) == [
        (0, "timelines", ["a", None]),
        (0, "findings", [None, None]),
        (1, "producers", [None, "own"]),
        (2, "producers", ["b", "c"]),
        (2, "timelines", ["b", "c"]),
    ]


class SavedState:
    """A state that has something saved of each partition with an even number."""

    def matched(self, job: Any, open_source: object, *, resumes: bool) -> Any:
        number = job.directory.partition
        return SimpleNamespace(saved=None if number % 2 else (number, resumes))

    def planned(self, job: Any) -> Any:
        return job


@pytest.mark.parametrize("at_once", [1, 2, 5, 7])
@pytest.mark.parametrize("resumes", [True, False])
def test_what_is_saved_is_looked_for_in_tasks_a_few_partitions_each(session, tmp_path, monkeypatch, at_once, resumes):
    for number in range(5):
        log = Log()
        log.append(data(7, 0, 0))
        log.write(tmp_path / f"orders-{number}")
    options = ScanOptions([str(tmp_path)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    monkeypatch.setattr(spark_engine, "_MATCHED_AT_ONCE", at_once)
    asked: list[int] = []

    def ask_tasks(spark, what, questions, answer):
        asked.extend(len(question) for question in questions)
        return [answer(question) for question in questions]

    monkeypatch.setattr(spark_engine, "ask_tasks", ask_tasks)
    state: Any = SavedState()
    found = spark_engine._matched(cast("Any", session), state, jobs, resumes=resumes)
    assert [(job.directory.partition, job.saved) for job in found] == [
        (number, None if number % 2 else (number, resumes)) for number in range(5)
    ]
    assert asked == {1: [1] * 5, 2: [2, 2, 1], 5: [5], 7: [5]}[at_once]


def test_only_a_scan_goes_on_from_what_partitions_came_to(spark, session, logs, tmp_path, monkeypatch):
    """A timeline needs the rows themselves."""
    asked: list[bool] = []

    def matched(started, state, jobs, *, resumes):
        asked.append(resumes)
        return [*jobs]

    monkeypatch.setattr(spark_engine, "_matched", matched)
    spark.scan(logs, state=str(tmp_path / "state"))
    spark.timeline(logs, state=str(tmp_path / "state"))
    assert asked == [True, False]


def test_each_replica_of_the_metadata_topic_is_read_in_a_task(session, monkeypatch):
    asked: list[object] = []

    def read_metadata(directory, open_source):
        asked.append((directory, open_source))
        return f"blocks of {directory}"

    def ask_tasks(spark, what, questions, answer):
        assert (spark, what) == (session, "kaudit: read __cluster_metadata")
        return [answer(question) for question in questions]

    monkeypatch.setattr(spark_reading, "read_metadata", read_metadata)
    monkeypatch.setattr(spark_reading, "ask_tasks", ask_tasks)
    monkeypatch.setattr(spark_reading, "from_here", lambda: "opened")
    directories: Any = ["b1", "b2"]
    found: Any = spark_reading.read_metadata_logs(cast("Any", session), directories)
    assert found == ["blocks of b1", "blocks of b2"]
    assert asked == [("b1", "opened"), ("b2", "opened")]


class History(NamedTuple):
    """A partition's history, as far as pieces need it."""

    key: tuple[str, int, str]


def test_pieces_of_histories_say_whose_they_are_and_with_which_the_driver_takes_them(monkeypatch):
    """Of four partitions two at a time; findings go to the writer of their own."""
    kept = [(number, None, History((topic, 0, "b1"))) for number, topic in enumerate("abcd")]
    monkeypatch.setattr(spark_tables, "replicas", lambda rows, kind: kept if kind is PartitionHistory else [])

    def writer(history, own, newest):
        yield "lanes", repr((history.key, [found.code for found in own], newest)).encode()
        yield "more", b""

    newest: Any = "newest"
    finding = Finding("KA101", "", Severity.ERROR, Confidence.CERTAIN, "")
    packed = {2: spark_tasks.packed([finding])}
    output = OutputBatches(4, 2)
    written = spark_tables.write_histories(iter(()), cast("Any", writer), packed, output, newest=newest)
    rows = [row for batch in written for row in batch.to_pylist()]
    expected = []
    for job, (topic, own) in enumerate([("a", []), ("b", []), ("c", ["KA101"]), ("d", [])]):
        shared = {"output_batch": job // 2, "job_index": job, "topic": topic, "rows": None}
        lanes_ = repr(((topic, 0, "b1"), own, "newest")).encode()
        expected += [
            {**shared, "number": 0, "table": "lanes", "data": lanes_},
            {**shared, "number": 1, "table": "more", "data": b""},
        ]
    assert rows == expected


@pytest.mark.parametrize(("items", "most", "batches"), [
    (0, 5, [0]), (1, 5, [0]), (3, 5, [0, 1, 2]), (5, 5, [0, 1, 2, 3, 4]), (6, 3, [0, 0, 1, 1, 2, 2]), (5, 2, [0, 0, 0, 1, 1]),
])  # fmt: skip
def test_neighbours_share_a_batch_where_there_are_more_than_may_be(items, most, batches):
    made = OutputBatches(items, most)
    assert made.count == len(set(batches))
    assert [made.of(job) for job in range(max(items, 1))] == batches
    assert (OutputBatches(500).count, OutputBatches(150).count) == (200, 150)


def test_pieces_of_a_topic_partition_are_its_findings_and_each_replicas_own():
    """The findings go with the first replica; of six jobs three at a time."""
    asked: list[object] = []

    def found(replica: str | None) -> Finding:
        place = {"topic": "t", "partition": 0, "replica": replica}
        return Finding("KA104", "", Severity.ERROR, Confidence.CERTAIN, "", **place)  # type: ignore[arg-type]

    findings = [found("b1"), found("b2"), found("b2")]
    judged = SimpleNamespace(
        job_index=2,
        topic="t",
        kept=[History(("t", 0, "b1")), History(("t", 0, "b2")), History(("t", 0, "b3"))],
        findings=lambda across: [*findings, across],
    )

    def of_replica(history, own, newest):
        asked.append((history.key, list(own), newest))
        yield "timelines", ids_piece([history.key[2], None])

    def of_findings(findings):
        asked.append(findings)
        return iter([("findings", ids_piece([None, None])), ("findings", ids_piece(["x", None]))])

    writer: Any = SimpleNamespace(decide=lambda found: found[:-1], of_findings=of_findings, of_replica=of_replica)
    across, newest = "across", "newest"
    judging_: Any = SimpleNamespace(topic_partitions=lambda rows: iter([judged]), across=across, newest=newest)
    output = OutputBatches(6, 2)
    written = spark_tables.write_tables(iter([]), judging_, writer, output)
    rows = [row for batch in written for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in rows] == [
        (0, 2, -1_000_000, "findings", "t", 2, ids_piece([None, None])),
        (0, 2, -999_999, "findings", "t", 2, ids_piece(["x", None])),
        (0, 2, 0, "timelines", "t", 2, ids_piece(["b1", None])),
        (1, 3, 0, "timelines", "t", 2, ids_piece(["b2", None])),
        (1, 4, 0, "timelines", "t", 2, ids_piece(["b3", None])),
    ]
    assert list(rows[0]) == ["output_batch", "job_index", "number", "table", "topic", "rows", "data"]
    assert asked == [
        findings,
        (("t", 0, "b1"), findings[:1], newest),
        (("t", 0, "b2"), findings[1:], newest),
        (("t", 0, "b3"), [], newest),
    ]
