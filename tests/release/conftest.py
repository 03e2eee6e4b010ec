"""The package is built once a session; environments are made where a test asks for one."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.release.interpreters import REQUIRED, ROOT, interpreters, promised


def pytest_report_header() -> str:
    """Say on which Pythons installs are tested."""
    found = interpreters()
    names = [f"{at.full} ({at.path})" for at in found.values()]
    missing = [f"{major}.{minor}" for major, minor in promised() if (major, minor) not in found]
    return f"installs: Python {', '.join(names)}; not found: {', '.join(missing) or 'none'}"


def run(*command, cwd, code=0, **environment):
    """Run a program far from the checkout; return what it printed. Nothing of the test's own environment is inherited."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "UV_INDEX_URL", "PIP_INDEX_URL")
        if name in os.environ
    }
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
    return done


def epoch():
    """The time of the commit, for reproducible archives."""
    return subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The directory with the source distribution, and the wheel made from it."""
    place = tmp_path_factory.mktemp("dist")
    run("uv", "build", "-q", "-o", place, ROOT, cwd=place, SOURCE_DATE_EPOCH=epoch())
    return place


@pytest.fixture(scope="session")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(built):
    (path,) = built.glob("*.tar.gz")
    return path


class Environment:
    """A fresh virtual environment."""

    def __init__(self, directory: Path, python: Path, *options: str) -> None:
        self.directory = directory / "environment"
        self.outside = directory / "outside"
        self.outside.mkdir()
        run("uv", "venv", "-q", *options, "--python", python, self.directory, cwd=self.outside)

    def install(self, *requirements):
        return run("uv", "pip", "install", "-q", "--python", self.directory, *requirements, cwd=self.outside)

    def kaudit(self, *arguments, code=0):
        return run(self.directory / "bin" / "kaudit", *arguments, cwd=self.outside, code=code)


@pytest.fixture
def environment(tmp_path):
    return lambda python, *options: Environment(tmp_path, python, *options)


SPARKS = Path("~/.cache/kaudit-sparks").expanduser()


@pytest.fixture
def python_with(wheel, tmp_path):
    """Return the Python of an environment with a release of Spark and the kaudit of this checkout."""

    def make(release):
        python = SPARKS / release / "bin" / "python"
        if not python.exists():
            run("uv", "venv", "-q", "--python", interpreters()[REQUIRED].path, SPARKS / release, cwd=tmp_path)
        needed = f"{wheel}[spark]", f"pyspark=={release}"
        run("uv", "pip", "install", "-q", "--reinstall-package", "kaudit", "--python", python, *needed, cwd=tmp_path)
        return python

    return make
