"""The Sparks that managed services have: the main job, DataFrames and tables give there what this machine finds by itself.

Their environments are kept in ~/.cache/kaudit-sparks: a release of Spark has 320 to 460 MB. `.ci/full sparks` compares every sample,
and every log directory of the captures and of the oracle, also on the newest Spark.
"""

import json
import os
import re
from importlib.metadata import version

import pytest

from tests.conftest import DATA
from tests.release.conftest import run
from tests.release.interpreters import ROOT

pytestmark = pytest.mark.release
EVERY = os.environ.get("KAUDIT_TEST_EXAMPLES") == "all"
RELEASES = ("3.5.9", "4.0.5", *([version("pyspark")] if EVERY else []))
"""All other tests of Spark run with the newest."""
SAMPLES = tuple(str(ROOT / "samples" / name) for name in ("duplicates", "malformed", "zombie"))


def inputs(evidence):
    """Return three samples; for EVERY the others too, and the log directories of each capture and of each recording of the oracle."""
    if not EVERY:
        return SAMPLES
    archives = [
        *(evidence.capture(path.name.removesuffix(".tar.xz")) for path in (DATA / "captures").glob("*.tar.xz")),
        *(evidence.oracle(path.parts[-2], path.name[:-7]) for path in (DATA / "oracle").glob("*/logdir*.tar.xz")),
    ]
    others = {str(path) for path in (ROOT / "samples").iterdir() if path.is_dir()} - set(SAMPLES)
    return (*SAMPLES, *sorted(others), *(":".join(log_directories(archive)) for archive in sorted(archives)))


def log_directories(archive):
    partitions = {log.parent for log in archive.rglob("*.log")}
    # a directory with nothing but logs that are deleted or moved has nothing to audit
    return sorted({str(path.parent) for path in partitions if re.fullmatch(r".+-\d+", path.name)})


@pytest.mark.parametrize("release", RELEASES)
def test_findings_and_tables_are_those_of_this_machine(release, python_with, evidence, tmp_path):
    given = inputs(evidence)
    done = run(python_with(release), ROOT / "tests/release/compare_engines.py", tmp_path, *given, cwd=tmp_path)
    assert [line.rpartition(": ")[0] for line in done.stdout.splitlines()] == [*given, "together"]


@pytest.mark.parametrize("release", RELEASES)
def test_the_documented_archive_brings_kaudit_to_executors(release, python_with, tmp_path):
    """Executors start in directories of their own, where the archive is unpacked."""
    ((bundle, options),) = re.findall(
        r"`kaudit (spark-bundle [^`]+)`, then `([^`]+)`", (ROOT / "docs/spark.md").read_text()
    )
    python, script = python_with(release), ROOT / "kaudit/spark_submit.py"
    own = {"PATH": f"{python.parent}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    run("kaudit", *bundle.split(), cwd=tmp_path, **own)
    scan = f"scan {SAMPLES[0]} --output-format json"
    submit = f"spark-submit --master 'local-cluster[2,1,1024]' {options} {script} {scan}"
    by_spark = run("sh", "-c", submit, cwd=tmp_path, code=1, **own)
    local = run("kaudit", *scan.split(), cwd=tmp_path, code=1, **own)
    findings = json.loads(local.stdout)["findings"]
    assert json.loads(by_spark.stdout)["findings"] == findings != []
