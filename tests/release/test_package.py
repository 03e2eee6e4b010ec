"""What is in the wheel and the source distribution, and that they come out the same every time."""

import email
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from kaudit import __version__
from kaudit.installation import build_of
from tests.release.conftest import epoch, run
from tests.release.interpreters import ROOT
from tests.unpacked import extracted

pytestmark = pytest.mark.release


def tracked(*paths):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *paths], check=True, capture_output=True, text=True)
    return set(listed.stdout.split("\n")) - {""}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        commit = json.loads(archive.read("kaudit/build.json"))["commit"]
        metadata = email.message_from_bytes(archive.read(f"kaudit-{__version__}.dist-info/METADATA"))
    shared = {name.replace("docs/share", f"kaudit-{__version__}.data/data/share", 1) for name in tracked("docs/share")}
    about = {name for name in names if name.startswith(f"kaudit-{__version__}.dist-info/")}
    assert names - about == tracked("kaudit") | {"kaudit/build.json"} | shared
    assert "kaudit/py.typed" in names
    assert {Path(name).name for name in about} >= {"LICENSE", "NOTICE", "METADATA", "RECORD"}
    assert commit == build_of().commit
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "spark",
        "hdfs",
        "s3",
        "live",
        "msk",
        "parquet",
        "decryption",
    }


def test_one_command_makes_a_release_and_the_same_bytes_every_time(tmp_path):
    run("git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), "checkout", cwd=tmp_path)
    made = []
    for _ in range(2):
        run(sys.executable, ".ci/package.py", cwd=tmp_path / "checkout", PYTHONPATH=".")
        made.append((tmp_path / "checkout/dist/SHA256SUMS").read_text())
    assert made[0] == made[1]
    place = tmp_path / "checkout" / "dist"
    names = {f"kaudit-{__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".cdx.json")}
    assert dict(line.split("  ")[::-1] for line in made[0].splitlines()) == {
        name: digest(place / name) for name in {*names, "requirements.txt"}
    }
    bill = json.loads((place / f"kaudit-{__version__}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", __version__)
    listed = {component["name"] for component in bill["components"]}
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert {re.split("[<>=]", requirement)[0] for requirement in needed} <= listed
    assert "pytest" not in listed
    assert all(component["externalReferences"][0]["hashes"] for component in bill["components"])
    requirements = (place / "requirements.txt").read_text()
    assert len(re.findall(r"^[\w-]+==", requirements, re.MULTILINE)) <= requirements.count("--hash=sha256:")
    assert "pyspark" not in requirements


def test_the_source_distribution_builds_the_same_wheel(wheel, sdist, tmp_path):
    extracted(sdist, tmp_path)
    (tree,) = tmp_path.iterdir()
    assert not {*tree.rglob("__pycache__"), tree / "tests"} & {*tree.rglob("*")}
    shutil.move(tree, tmp_path / "elsewhere")
    run("uv", "build", "-q", "--wheel", "-o", tmp_path, tmp_path / "elsewhere", cwd=tmp_path, SOURCE_DATE_EPOCH=epoch())
    assert digest(tmp_path / wheel.name) == digest(wheel)
