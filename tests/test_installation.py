"""kaudit knows what it was made from, and names only installs that work."""

import json
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kaudit import __version__, installation
from kaudit.installation import Build, build_of, information_uri, install_command

ROOT = Path(__file__).parents[1]


class Installed:
    """A distribution whose direct_url.json (PEP 610) is given."""

    requires = ("rich>=13", "pyarrow>=18; extra == 's3'", 'kafka-python<4,>=3; extra == "live"')

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.fixture
def installed(monkeypatch):
    def pretend(origin, *, pip=True):
        monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
        monkeypatch.setattr("kaudit.installation.find_spec", lambda name: name if pip else None)

    return pretend


def git(directory, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", directory, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    package = tmp_path / "kaudit"
    package.mkdir()
    (package / "a.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def test_the_commit_of_a_checkout_is_gits(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    assert build_of(checkout / "kaudit") == Build(head[:12])
    (checkout / "kaudit" / "a.py").write_text("changed")
    assert build_of(checkout / "kaudit").commit == f"{head[:12]}-dirty"


def test_a_tag_does_not_stand_for_the_commit(checkout):
    git(checkout, "tag", "-a", "v1", "-m", "one")
    assert build_of(checkout / "kaudit").commit == git(checkout, "rev-parse", "HEAD")[:12]


def test_what_was_built_in_wins_over_the_checkout(checkout):
    (checkout / "kaudit" / "build.json").write_text('{"commit": "0123456789ab", "url": "https://example.org/kaudit"}')
    assert build_of(checkout / "kaudit") == Build("0123456789ab", "https://example.org/kaudit")


@pytest.mark.parametrize("path", [None, "/nowhere"])
def test_without_a_build_file_and_git_the_commit_is_unknown(tmp_path, checkout, monkeypatch, path):
    if path is None:
        assert build_of(tmp_path / "elsewhere" / "kaudit") == Build("unknown")
    monkeypatch.setenv("PATH", "/nowhere")
    assert build_of(checkout / "kaudit") == Build("unknown")


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://example.org/team/kaudit.git", "https://example.org/team/kaudit"),
        ("https://name:secret@example.org:8443/kaudit?token=secret", "https://example.org:8443/kaudit"),
        ("git@example.org:team/kaudit.git", None),
        ("/srv/kaudit.git", None),
    ],
)
def test_the_address_is_the_remotes_without_its_secrets(checkout, remote, address):
    git(checkout, "remote", "add", "origin", remote)
    assert build_of(checkout / "kaudit").url == address


def test_the_information_uri_is_the_repositorys_or_names_the_package(monkeypatch, checkout):
    git(checkout, "remote", "add", "origin", "https://example.org/kaudit")
    monkeypatch.setattr(installation, "_PACKAGE", checkout / "kaudit")
    assert information_uri() == f"pkg:generic/kaudit@{__version__}"
    (checkout / "kaudit" / "build.json").write_text('{"commit": "0123456789ab", "url": "https://example.org/kaudit"}')
    monkeypatch.setattr(installation, "build_of", lambda: build_of(checkout / "kaudit"))
    assert information_uri() == "https://example.org/kaudit"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "kaudit[live]"),
        (
            {"url": "https://example.org/kaudit", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "kaudit[live] @ git+https://example.org/kaudit@abc",
        ),
        (
            {"url": "https://example.org/kaudit.whl", "archive_info": {}},
            "kaudit[live] @ https://example.org/kaudit.whl",
        ),
        ({"url": "file:///no/such/kaudit.whl", "archive_info": {}}, "kafka-python<4,>=3"),
        ({"url": "file:///no/such/checkout", "dir_info": {}}, "kafka-python<4,>=3"),
    ],
)
def test_an_extra_comes_from_where_kaudit_came(installed, origin, requirement):
    installed(origin)
    assert shlex.split(install_command("live")) == [sys.executable, "-m", "pip", "install", requirement]


@pytest.mark.parametrize(("editable", "options"), [(True, ["-e"]), (False, [])])
def test_an_extra_of_a_local_directory_names_it(installed, tmp_path, editable, options):
    place = tmp_path / "a b"
    place.mkdir()
    installed({"url": place.as_uri(), "dir_info": {"editable": editable}})
    assert shlex.split(install_command("s3"))[4:] == [*options, f"{place}[s3]"]


def test_an_environment_without_pip_is_uvs(installed):
    installed(None, pip=False)
    assert shlex.split(install_command("s3"))[:5] == ["uv", "pip", "install", "--python", sys.executable]


def test_kaudit_that_is_not_installed_is_a_checkout(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert shlex.split(install_command("s3"))[-1] == f"{ROOT}[s3]"
