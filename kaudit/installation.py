"""How this copy of kaudit came here: the commit it was made from, its address, and the command that adds an extra to it.

The build hook (.ci/build_hook.py) writes what `build_of` finds into wheels and source distributions. Only the standard
library is imported: the hook has nothing else, and `kaudit --version` shall not wait for more.
"""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from kaudit import __version__
from kaudit.deferred import Deferred

if TYPE_CHECKING:
    import json
else:  # few commands need it
    json = Deferred("json")

BUILD_FILE = "build.json"
"""In the package: what a wheel knows of its origin."""
UNKNOWN = "unknown"
_PACKAGE = Path(__file__).resolve().parent


class Build(NamedTuple):
    """What a package was made from: the commit (12 hex digits, with `-dirty` where files differed), and the repository's URL."""

    commit: str = UNKNOWN
    url: str | None = None


def build_of(package: Path = _PACKAGE) -> Build:
    """Return the build of the package in this directory: of its build file, else of the checkout it lies in, else unknown."""
    try:
        return Build(**json.loads((package / BUILD_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        root = package.parent
        if not (root / ".git").exists():  # a file in a work tree
            return Build()
        commit = _git(root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
        return Build(commit or UNKNOWN, _public(_git(root, "remote", "get-url", "origin")))


def version_text() -> str:
    """Return what `kaudit --version` prints."""
    return f"kaudit {__version__} (commit {build_of().commit})"


def information_uri() -> str:
    """Return the address of this package: the repository's where the build knew it, else a package URL (purl)."""
    url = (
        build_of().url if (_PACKAGE / BUILD_FILE).exists() else None
    )  # reports from a checkout shall not depend on its remotes
    return url or f"pkg:generic/kaudit@{__version__}"


def install_command(extra: str) -> str:
    """Return the command that installs an extra into this environment, of the same kaudit from the same place."""
    python = shlex.quote(sys.executable or "python3")
    # environments that uv makes have no pip
    installer = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{installer} {_requirements(extra)}"


def _requirements(extra: str) -> str:
    """Return what to install, quoted for a shell. Recorded origins are those of PEP 610 (direct_url.json)."""
    from importlib import metadata  # noqa: PLC0415 - 10 ms, and only messages about extras need it

    try:
        installed = metadata.distribution("kaudit")
    except metadata.PackageNotFoundError:
        return shlex.quote(f"{_PACKAGE.parent}[{extra}]")  # run from a checkout
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url: str | None = origin.get("url")
    if url is None:
        return shlex.quote(f"kaudit[{extra}]")  # from an index
    if "vcs_info" in origin:
        return shlex.quote(f"kaudit[{extra}] @ {origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}")
    if not url.startswith("file://"):
        return shlex.quote(f"kaudit[{extra}] @ {url}")
    path = unquote(url.removeprefix("file://"))
    if not Path(path).exists():
        return shlex.join(_packages_of(extra, installed.requires or []))
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{editable}{shlex.quote(f'{path}[{extra}]')}"


def _packages_of(extra: str, requirements: list[str]) -> list[str]:
    """Return what an extra consists of, for a kaudit whose own source is gone."""
    split = [requirement.partition(";") for requirement in requirements]
    return [name.strip() for name, _, marker in split if marker.replace('"', "'").strip() == f"extra == '{extra}'"]


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git answers of a checkout; None where it cannot."""
    import subprocess  # noqa: PLC0415 - only in a checkout

    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "--no-optional-locks", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _public(url: str | None) -> str | None:
    """Return an address for browsers without the name and password that a clone may have kept, None where it has none."""
    parts = urlsplit(url or "")
    if parts.scheme not in ("http", "https"):
        return None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.removesuffix(".git"), "", ""))
