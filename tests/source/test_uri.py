"""Places hold paths as texts: whatever pathlib says of a path, they say."""

# ruff: noqa: PTH100, PTH109 - texts against pathlib

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.source.uri import Uri, UrlError

texts = st.lists(st.sampled_from(["/", "a", "b-0", "..", ".", "x.log", "-"]), max_size=8).map("".join)
paths = texts.filter(lambda text: str(PurePosixPath(text)) != "-")  # standard input (tests/cli/test_standard_input.py)
names = st.sampled_from(["a", "b-0", "x.log", "a/b", ".."])


@given(paths, names)
def test_a_local_place_is_what_pathlib_makes_of_it(text, name):
    path, place = PurePosixPath(text), Uri.parse(text)
    assert str(place) == place.path == str(path)
    assert place.last == path.name
    assert place.parent.path == str(path.parent)
    assert (place / name).path == str(path / name)
    assert place.absolute().path == str(path if path.is_absolute() else PurePosixPath(os.getcwd()) / path)
    assert place.parts() == PurePosixPath(os.path.abspath(path)).parts
    assert place.components() == path.parts


@given(paths, paths)
def test_places_come_in_the_order_of_paths_and_lie_below_one_another_as_they_do(one, other):
    paths, places = (PurePosixPath(one), PurePosixPath(other)), (Uri.parse(one), Uri.parse(other))
    assert (places[0].components() < places[1].components()) == (paths[0] < paths[1])
    assert (places[0] == places[1]) == (paths[0] == paths[1])
    try:
        relative = paths[0].relative_to(paths[1]).as_posix()
    except ValueError:
        with pytest.raises(ValueError, match="does not lie below"):
            places[0].relative_to(places[1])
    else:
        assert places[0].relative_to(places[1]) == (places[0].absolute().last if relative == "." else relative)


def test_urls_keep_scheme_and_authority():
    place = Uri.parse("s3://bucket//logs/./orders-3/")
    assert str(place) == "s3://bucket/logs/orders-3"
    assert str(place.parent / "x.log") == "s3://bucket/logs/x.log"
    assert place.parts() == ("s3://bucket", "logs", "orders-3")
    for name in ("a/b", "a//b/.", "./a/b"):
        assert str(place / name) == "s3://bucket/logs/orders-3/a/b"
    assert str(Uri.parse("hdfs://namenode")) == "hdfs://namenode/"
    assert Uri.parse("file:///a%20b/c").path == "/a b/c"
    assert str(Uri.parse("hdfs://namenode/") / "logs") == "hdfs://namenode/logs"
    assert str(Uri("s3", "bucket", "/logs") / "") == str(Uri("s3", "bucket", "/logs") / ".") == "s3://bucket/logs"


@pytest.mark.parametrize("text", ["a//b", "a/", "a/./b", "./a", "/a//b/", "//a", "///a", "", ".", "a/..", ".a", "a/.b"])
def test_paths_in_their_normal_form(text):
    assert Uri.parse(text).path == str(PurePosixPath(text))


@pytest.mark.parametrize("directory", ["/logs", "/logs/"])
def test_a_relative_path_begins_in_the_working_directory_that_is_given(directory):
    assert Uri.parse("a/b").absolute(directory).path == "/logs/a/b"
    assert Uri.parse(".").absolute(directory).path == "/logs"
    for text in ("/a/b", "s3://bucket/a"):
        assert str(Uri.parse(text).absolute(directory)) == text


@pytest.mark.parametrize("name", ["", ".", "x", "a/b"])
def test_names_below_the_working_directory_and_the_root(name):
    assert (Uri.parse(".") / name).path == str(PurePosixPath() / name)
    assert (Uri.parse("/") / name).path == str(PurePosixPath("/") / name)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("file:///a", Uri("", "", "/a")),
        ("file://localhost/a/../b", Uri("", "", "/a/../b")),
        ("file://", Uri("", "", "/")),
        ("s3a://b", Uri("s3a", "b", "/")),
        ("S3://b/c", Uri("", "", "S3:/b/c")),
        ("s3://b/a%20b", Uri("s3", "b", "/a%20b")),
    ],
)
def test_what_a_url_is(text, place):
    assert Uri.parse(text) == place


def test_a_file_url_of_another_host_is_refused():
    with pytest.raises(UrlError, match="a file:// URL has three slashes; host would be another host"):
        Uri.parse("file://host/a")
