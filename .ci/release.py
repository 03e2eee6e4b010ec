"""Makes a release of what is checked out: `python .ci/release.py 0.2.0`.

Writes the version where it stands (kaudit/__init__.py), turns the changelog's "Unreleased" into it, renews the generated
pages, and commits and tags. Pushing the tag starts .github/workflows/release.yml.
"""

import argparse
import datetime as dt
import os
import re
import subprocess
import sys
from pathlib import Path

VERSION = re.compile(r'(?m)^__version__ = "(?P<version>[^"]+)"$')
UNRELEASED = re.compile(r"(?m)^## \[Unreleased\](?: - \S+)?\n+(?P<body>.*?)(?=^## |\Z)", re.DOTALL)
_FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def main() -> None:
    """Release the checkout in the working directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="the new version, X.Y.Z")
    version = parser.parse_args().version
    package, changelog = Path("kaudit/__init__.py"), Path("CHANGELOG.md")
    source, notes = package.read_text(encoding="utf-8"), changelog.read_text(encoding="utf-8")
    now, unreleased = VERSION.search(source), UNRELEASED.search(notes)
    if now is None or unreleased is None:
        sys.exit("kaudit/__init__.py has no __version__, or CHANGELOG.md no section Unreleased")
    if _FORM.fullmatch(version) is None:
        sys.exit(f"{version} is not a version of the form X.Y.Z")
    if f"## [{version}]" in notes or _parts(version) < _parts(now["version"]):
        sys.exit(f"{version} is released already, or older than {now['version']}")
    if not unreleased["body"].strip():
        sys.exit("CHANGELOG.md says nothing under Unreleased")
    if changed := _git("status", "--porcelain"):
        sys.exit(f"the tree is dirty; commit or stash first:\n{changed}")

    today = dt.datetime.now(dt.UTC).date().isoformat()
    released = f"## [Unreleased]\n\n## [{version}] - {today}\n\n{unreleased['body']}"
    package.write_text(VERSION.sub(f'__version__ = "{version}"', source), encoding="utf-8")
    changelog.write_text(UNRELEASED.sub(lambda _: released, notes, count=1), encoding="utf-8")
    command = [sys.executable, "-m", "kaudit.cli.reference", "docs/reference.md"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})  # noqa: PTH109
    _git("commit", "--quiet", "--all", "--message", f"Release {version}")
    _git("tag", "--annotate", "--message", f"kaudit {version}", f"v{version}")
    print(f"committed and tagged v{version}; now: git push --follow-tags")


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
