"""What may not be read says by whom kaudit must be run: by the owner of the file."""

import os
import pwd
from types import SimpleNamespace

import pytest

from kaudit.source import bytes as source
from kaudit.source.local import LocalFileSystem
from kaudit.source.uri import Uri

PATH = "/data/b1/orders-0"


def denied(*_, **__):
    raise PermissionError(13, "Permission denied", PATH)


def error_of(monkeypatch, act, owner, me=4711, **refused):
    """The error of an act while the system refuses what is named, to user `me`; PATH belongs to `owner`."""
    calls = {"stat": owner, "geteuid": lambda: me, **refused}
    with monkeypatch.context() as patched:
        for name, call in calls.items():
            patched.setattr(os, name, call)
        try:
            act()
        except PermissionError as error:
            return error
    raise AssertionError("nothing was refused")


def root(_):
    return SimpleNamespace(st_uid=0)


ROOT = f"Permission denied: run kaudit as {pwd.getpwuid(0).pw_name}, who owns it"
ACTS = {
    "open": (lambda: LocalFileSystem().open(Uri.parse(PATH)), {"open": denied}),
    "list": (lambda: LocalFileSystem().entries(Uri.parse(PATH)), {"scandir": denied}),
}


@pytest.mark.parametrize(("act", "refused"), ACTS.values(), ids=ACTS)
def test_the_owner_is_named(monkeypatch, act, refused):
    error = error_of(monkeypatch, act, root, **refused)
    assert (error.strerror, error.filename) == (ROOT, PATH)


def test_the_directory_says_it_where_the_file_cannot_be_asked(monkeypatch):
    def stat(path):
        return denied() if path == PATH else root(path)

    assert error_of(monkeypatch, lambda: LocalFileSystem().status(Uri.parse(PATH)), stat).strerror == ROOT


def refuse():
    with source.naming_owner(PATH):
        denied()


def nobody_knows(_):
    raise FileNotFoundError(PATH)


OWNERS = {
    "without-a-name": (
        lambda _: SimpleNamespace(st_uid=999_999_999),
        ": run kaudit as the user with id 999999999, who owns it",
    ),
    "this-user": (lambda _: SimpleNamespace(st_uid=4711), ""),
    "unknown": (nobody_knows, ""),
}


@pytest.mark.parametrize(("owner", "advice"), OWNERS.values(), ids=OWNERS)
def test_other_owners(monkeypatch, owner, advice):
    assert error_of(monkeypatch, refuse, owner).strerror == f"Permission denied{advice}"
