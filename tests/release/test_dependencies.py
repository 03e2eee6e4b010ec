"""The oldest and the newest versions of the dependencies that pyproject.toml allows: tests run on the installed wheel with both."""

import re
import shutil
import tomllib
from importlib.metadata import version

import pytest

from tests.release.conftest import run
from tests.release.interpreters import REQUIRED, ROOT, interpreters

pytestmark = pytest.mark.release
FOUND = interpreters()
TESTS = (
    "tests/audits/sequences", "tests/formats/log", "tests/formats/sidefiles", "tests/policy",
    "tests/report/test_golden.py", "tests/report/html/test_report_page.py", "tests/cli/test_completion.py",
    "tests/cli/test_explain_and_checks.py", "tests/cli/test_scan_command.py",
)  # fmt: skip
TOOLS = (
    "aiokafka",
    "cryptography",
    "hypothesis",
    "kafka-python",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "python-snappy",
    "syrupy",
)
"""What these tests import besides; in the versions of the lock file, so that only kaudit's dependencies differ."""


@pytest.mark.parametrize(
    ("resolution", "python"),
    [("lowest-direct", FOUND.get(REQUIRED)), ("highest", max(FOUND.values()))],
    ids=["lowest", "highest"],
)
def test_kaudit_works_with_dependencies(resolution, python, wheel, environment):
    installed = environment(python.path)
    chosen = installed.outside / "requirements.txt"
    project = ROOT / "pyproject.toml"
    run(
        "uv", "pip", "compile", "-q", "--no-annotate", "--no-header", "--python-version", python.name,
        "--resolution", resolution, "--only-binary", ":all:", project, "-o", chosen, cwd=installed.outside,
    )  # fmt: skip
    if resolution == "lowest-direct":
        assert [line for line in lowest() if not re.search(rf"^{line}\b", chosen.read_text(), re.MULTILINE)] == []
    installed.install("-r", chosen)
    installed.install("--no-deps", wheel)
    installed.install("-c", chosen, *(f"{tool}=={version(tool)}" for tool in TOOLS))
    for tree in ("tests", "samples"):
        shutil.copytree(
            ROOT / tree, installed.outside / tree, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    shutil.copy(project, installed.outside)
    python_there = installed.directory / "bin" / "python"
    # from within, so that `tests` is found: the copy has no folder `kaudit`
    done = run(python_there, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *TESTS, cwd=installed.outside)
    assert "[100%]" in done.stdout


def lowest():
    """The beginning of each pin of the oldest versions: `numpy==1.26`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        requirements = tomllib.load(file)["project"]["dependencies"]
    return [requirement.partition(",")[0].replace(">=", "==") for requirement in requirements]


def test_every_extra_resolves_with_its_oldest_versions(wheel, tmp_path):
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    extras = settings["project"]["optional-dependencies"]
    (index,) = settings["tool"]["uv"]["index"]
    kept = index["cache-control"]["files"]  # of pyspark alone 450 MB are read for its metadata
    (tmp_path / "uv.toml").write_text(
        f'[[index]]\nurl = "{index["url"]}"\ndefault = true\ncache-control = {{ files = "{kept}" }}\n'
    )
    requirement = tmp_path / "requirement.in"
    requirement.write_text(f"kaudit[{','.join(extras)}] @ {wheel.as_uri()}\n")
    arguments = ["-q", "--resolution", "lowest-direct", "--python-version", "3.11", requirement]
    assert "via kaudit" in run("uv", "pip", "compile", *arguments, cwd=tmp_path).stdout
