"""--engine spark, --master, spark-submit's file, the bundle, Java: what can be checked without a cluster."""

import gc
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
from contextlib import redirect_stderr, redirect_stdout

import pytest

from kaudit import spark_submit
from kaudit.cli.app import run
from kaudit.errors import UsageError
from kaudit.installation import install_command
from kaudit.spark import java
from kaudit.spark.jobs import SparkFailedError, ask_tasks, errors_in_one_line
from kaudit.spark.session import SparkOptions, session
from kaudit.spark_submit import on_spark
from tests.engines.faulty_logs import gap
from tests.unpacked import extracted


@pytest.mark.jvm
@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_the_command_prints_the_same(spark_session, tmp_path, capsys, command):
    gap(tmp_path / "orders-0")
    outputs = []
    for engine in ("local", "spark"):
        code = run([command, str(tmp_path), "--engine", engine, "--output-format", "json", "--reproducible", "-q"])
        captured = capsys.readouterr()
        outputs.append((code, captured.out, captured.err))
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 1
    assert '"KA104"' in outputs[0][1]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("kaudit.spark.find_spec", lambda name: None)
    assert run(["scan", str(gap(tmp_path / "orders-0")), "--engine", "spark"]) == 2
    assert capsys.readouterr().err == f"kaudit: --engine spark needs an extra: {install_command('spark')}\n"


@pytest.mark.parametrize("options", [["--master", "local[1]"], ["--spark-conf", "spark.ui.port=1"]])
def test_options_of_spark_need_spark(capsys, options):
    assert run(["scan", "/data", *options]) == 2
    assert "need --engine spark" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_tables_for_an_hdfs_that_nobody_serves_are_refused_before_the_audit(monkeypatch, capsys, tmp_path, command):
    def audit(*arguments, **more):
        raise AssertionError("audited")

    monkeypatch.setattr("kaudit.spark.engine._started", audit)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        authority = f"127.0.0.1:{held.getsockname()[1]}"
        url = f"hdfs://{authority}/audits"
        gap(tmp_path / "orders-0")
        assert run([command, str(tmp_path), "--engine", "spark", "--output-format", "parquet", "-o", url]) == 2
    assert capsys.readouterr().err == f"kaudit: --output {url}: nobody answers at {authority}: Connection refused\n"


def test_a_setting_is_refused_before_java_starts():
    with pytest.raises(UsageError, match=r"spark\.some\.setting=VALUE"), session(SparkOptions(None, ["ui=1"]), None):
        pass


@pytest.mark.jvm
def test_workers_leave_what_they_imported_out_of_garbage_collections(spark_session):
    (frozen,) = ask_tasks(spark_session, "count what is not collected", [()], _frozen)
    assert frozen > 10_000


def _frozen(_):
    return gc.get_freeze_count()


@pytest.mark.parametrize("module", ["kaudit", "kaudit.engines.local", "kaudit.cli.app", "kaudit.cli.engine"])
def test_nothing_but_the_spark_engine_imports_pyspark(module):
    code = f"import sys, {module}; sys.exit('pyspark' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["scan", "/a"], ["scan", "--engine", "spark", "/a"]),
        (["diff", "/a", "/b"], ["diff", "--engine", "spark", "/a", "/b"]),
        (["timeline", "/a", "-q"], ["timeline", "--engine", "spark", "/a", "-q"]),
        (["scan", "--engine", "local", "/a"], ["scan", "--engine", "local", "/a"]),
        (["scan", "--engine=local", "/a"], ["scan", "--engine=local", "/a"]),
        (["explain", "KA101"], ["explain", "KA101"]),
        ([], []),
    ],
)
def test_spark_submit_means_spark(given, made):
    assert on_spark(given) == made


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """A bundle, and what the command that made it printed on stdout and stderr."""
    archive = tmp_path_factory.mktemp("bundle") / "kaudit-env.tar.gz"
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert run(["spark-bundle", "-o", str(archive)]) == 0
    return archive, out.getvalue(), err.getvalue()


def test_the_bundle_runs_alone(bundled, tmp_path):
    archive, out, err = bundled
    assert "spark-submit" in out
    assert "kaudit/spark_submit.py" in out
    assert "MiB" in err
    assert [path.name for path in archive.parent.iterdir()] == ["kaudit-env.tar.gz"]
    extracted(archive, tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    # -S: nothing of this environment's site-packages
    code = "import kaudit.scanning.plan, pyarrow, pandas, hdfs_native; print(kaudit.__file__)"
    done = subprocess.run(
        [python, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "KAUDIT_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "env" / "lib" / "kaudit" / "__init__.py")


def test_the_bundle_names_the_python_it_needs(bundled, tmp_path):
    launcher = tmp_path / "bin" / "python"
    launcher.parent.mkdir()
    with tarfile.open(bundled[0]) as tar:
        content = tar.extractfile("bin/python")
        assert content is not None
        launcher.write_bytes(content.read())
        launcher.chmod(tar.getmember("bin/python").mode)
    done = subprocess.run([launcher, "-V"], capture_output=True, text=True, check=False, env={"PATH": "/nowhere"})
    assert done.returncode == 127
    assert f"made with Python {sys.version_info[0]}.{sys.version_info[1]}" in done.stderr


def fake_java(directory, version):
    (directory / "bin").mkdir(parents=True)
    file = directory / "bin" / "java"
    file.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024' >&2\n")
    file.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    ("version", "enough"), [("17.0.15", True), ("21", True), ("1.8.0_402", False), ("11.0.2", False)]
)
def test_a_machines_java_is_taken_if_it_is_new_enough(tmp_path, version, enough):
    home = fake_java(tmp_path, version)
    assert (java.java_home({"JAVA_HOME": home}) is None) is enough
    assert (java.java_home({"PATH": f"{home}/bin"}) is None) is enough


def test_the_extra_brings_a_java_that_ignores_the_missing_module():
    home = java.java_home({"PATH": "/nowhere"})
    done = subprocess.run(
        [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-Dname=two words", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "version" in done.stderr


@pytest.mark.parametrize(
    ("mode", "verdict", "code"),
    [("client", 1, 1), ("cluster", 1, 0), ("cluster", 0, 0), ("cluster", 4, 4), ("cluster", 70, 70)],
)
def test_findings_do_not_fail_an_application_whose_driver_the_cluster_runs(monkeypatch, mode, verdict, code):
    class Conf:
        def get(self, name):
            assert name == "spark.submit.deployMode"
            return mode

    monkeypatch.setattr("pyspark.SparkConf", Conf)
    monkeypatch.setattr("kaudit.cli.app.run", lambda arguments: verdict)
    with pytest.raises(SystemExit) as ended:
        spark_submit.main()
    assert ended.value.code == code


def test_under_spark_submit_messages_do_not_go_where_the_result_goes(tmp_path):
    """As spark-submit does: a process that gives its child one pipe for both outputs, and copies that to its own stdout."""
    submit = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)\n"
        "sys.stdout.buffer.write(child.communicate()[0]); sys.exit(child.returncode)"
    )
    entry = [sys.executable, spark_submit.__file__, "scan", "--engine", "local", "--output-format", "json"]
    command = [sys.executable, "-c", submit, *entry]
    done = subprocess.run(
        [*command, "samples/duplicates"], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109
    )  # fmt: skip
    assert json.loads(done.stdout)["findings"]
    assert "findings" in done.stderr or "errors" in done.stderr
    missing = subprocess.run(
        [*command, "/no/such/place"], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109
    )  # fmt: skip
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "kaudit: no such file or directory: /no/such/place\n"


def test_a_driver_without_kaudit_does_not_end_as_if_there_were_findings(tmp_path):
    done = subprocess.run(
        [sys.executable, "-S", spark_submit.__file__, "scan", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 70
    assert "cannot import kaudit" in done.stderr


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ("Total size of serialized results of 3 tasks (11.5 MiB) is bigger than spark.driver.maxResultSize (8.0 MiB)",
         "spark.driver.maxResultSize=4g"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "the same with PYSPARK_PYTHON"),
        ("ModuleNotFoundError: No module named 'kaudit'", "kaudit spark-bundle makes an archive"),
        ("Failed to create Python data source instance\nModuleNotFoundError: No module named 'pyarrow'", "PYSPARK_PYTHON names it"),
        ('java.io.IOException: Cannot run program "./kaudit-env/bin/python"', "no Python at the given place"),
        ("x\nValueError: a task's own trouble\n at org.apache", "ValueError: a task's own trouble"),
    ],
)  # fmt: skip
def test_common_faults_of_clusters_are_one_sentence(report, sentence):
    from pyspark.errors import PySparkException

    with pytest.raises(SparkFailedError) as failed, errors_in_one_line():
        raise PySparkException(report)
    assert sentence in str(failed.value)
    assert "\n" not in str(failed.value)
