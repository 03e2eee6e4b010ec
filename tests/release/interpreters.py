"""The Pythons of this machine that kaudit promises to run on."""

import functools
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
REQUIRED = (3, 11)
"""The one that every machine of ours has: nothing was tested where it is missing."""
FETCHED = Path("~/.cache/kaudit-pythons").expanduser()
"""Where tests.release.debian_pythons puts what a machine lacks."""


class Interpreter(NamedTuple):
    """A Python that starts."""

    version: tuple[int, int]
    full: str
    path: Path

    @property
    def name(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))


def promised() -> list[tuple[int, int]]:
    """Return the versions that the package's classifiers name, oldest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        classifiers = tomllib.load(file)["project"]["classifiers"]
    found = (re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", each) for each in classifiers)
    return sorted((3, int(match[1])) for match in found if match)


@functools.cache
def interpreters() -> dict[tuple[int, int], Interpreter]:
    """Return the first that starts of each promised version: on the PATH, of pyenv, fetched."""
    started = {version: [_start(path, version) for path in _candidates(version)] for version in promised()}
    return {version: found for version, those in started.items() if (found := next(filter(None, those), None))}


def _candidates(version: tuple[int, int]) -> list[Path]:
    name = f"python{version[0]}.{version[1]}"
    on_path = shutil.which(name)
    pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"*/bin/{name}"))
    return [*([Path(on_path)] if on_path else []), *pyenv, FETCHED / "usr" / "bin" / name]


def _start(path: Path, version: tuple[int, int]) -> Interpreter | None:
    """Return the interpreter; None where it is not there, or a shim of a version manager that has no such version."""
    code = "import platform, sys; print(platform.python_version(), sys.executable)"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    full, _, executable = done.stdout.strip().partition(" ")
    return Interpreter(version, full, Path(executable))
