""".ci/release.py on a copy of the checkout."""

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IDENTITY = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(place, *arguments):
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=place, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    place = tmp_path / "checkout"
    shutil.copytree(ROOT / "kaudit", place / "kaudit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "share", place / "docs" / "share")
    for name in ("CHANGELOG.md", "docs/reference.md", ".gitignore"):
        shutil.copy(ROOT / name, place / name)
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "before")
    return place


def release(place, version):
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}
    command = [sys.executable, ROOT / ".ci" / "release.py", version]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_a_release_is_one_commit_with_its_version_and_date_and_a_tag(checkout):
    notes = (
        (checkout / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n### ")[2].splitlines()[0]
    )
    done = release(checkout, "77.0.3")
    assert done.returncode == 0, done.stderr
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "describe", "--tags", "HEAD") == "v77.0.3\n"
    assert git(checkout, "log", "--format=%s") == "Release 77.0.3\nbefore\n"
    assert '__version__ = "77.0.3"\n' in (checkout / "kaudit" / "__init__.py").read_text()
    changelog = (checkout / "CHANGELOG.md").read_text()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    assert re.search(rf"^## \[Unreleased\]\n\n## \[77.0.3\] - {today}\n\n### {notes}$", changelog, re.MULTILINE)
    title = (checkout / "docs/share/man/man1/kaudit-scan.1").read_text().splitlines()[0]
    assert title == f'.TH KAUDIT-SCAN 1 {today} "kaudit 77.0.3" "kaudit manual"'
    files = git(checkout, "show", "--name-only", "--format=").split()
    assert {name for name in files if "/man1/" not in name} == {"CHANGELOG.md", "kaudit/__init__.py"}
    again = release(checkout, "77.0.4")
    assert (again.returncode, again.stderr) == (1, "CHANGELOG.md says nothing under Unreleased\n")


REFUSED = {"0.0.9": "older than", "1.0": "not a version", "v1.0.0": "not a version", "1.0.0rc1": "not a version"}


def test_what_is_no_next_version_is_refused_and_so_is_a_dirty_tree(checkout):
    for version, said in REFUSED.items():
        done = release(checkout, version)
        assert (done.returncode, said in done.stderr) == (1, True), version
    (checkout / "new.txt").write_text("")
    done = release(checkout, "77.0.3")
    assert (done.returncode, "the tree is dirty" in done.stderr, "new.txt" in done.stderr) == (1, True, True)
    assert (git(checkout, "tag"), git(checkout, "log", "--format=%s")) == ("", "before\n")
