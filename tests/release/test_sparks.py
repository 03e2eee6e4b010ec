"""The Sparks that managed services have: the main job, DataFrames and tables give there what this machine finds by itself.

Their environments are kept in ~/.cache/kaudit-sparks: a release of Spark has 320 to 460 MB. `.ci/full sparks` compares every sample,
and every log directory of the captures and of the oracle, also on the newest Spark.
"""

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
SAMPLES = tuple(ROOT / "samples" / name for name in ("duplicates", "malformed", "zombie"))


def logs(evidence):
    """Return three samples; for EVERY the others too, and the log directories of all captures and of the oracle."""
    if not EVERY:
        return SAMPLES
    archives = [
        *(evidence.capture(path.name.removesuffix(".tar.xz")) for path in (DATA / "captures").glob("*.tar.xz")),
        *(evidence.oracle(path.parts[-2], path.name[:-7]) for path in (DATA / "oracle").glob("*/logdir*.tar.xz")),
    ]
    partitions = {log.parent for root in archives for log in root.rglob("*.log")}
    # a directory with nothing but logs that are deleted or moved has nothing to audit
    within = {path.parent for path in partitions if re.fullmatch(r".+-\d+", path.name)}
    others = {path for path in (ROOT / "samples").iterdir() if path.is_dir()} - set(SAMPLES)
    return (*SAMPLES, *sorted(others), *sorted(within))


@pytest.mark.parametrize("release", RELEASES)
def test_findings_and_tables_are_those_of_this_machine(release, python_with, evidence, tmp_path):
    paths = logs(evidence)
    done = run(python_with(release), ROOT / "tests/release/compare_engines.py", tmp_path, *paths, cwd=tmp_path)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [str(path) for path in paths]
