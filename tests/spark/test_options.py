"""Options of a data source as Spark passes them on: texts, as people or JSON write them."""

import os

import pytest

from kaudit.analysis.scan.options import UsageError
from kaudit.spark.options import read_options


@pytest.mark.parametrize(("name", "text", "value"), [
    ("topics", "orders", ("orders",)),
    ("topics", "orders,payments", ("orders", "payments")),
    ("topics", '["orders", "a,b"]', ("orders", "a,b")),
    ("Topics", "7", ("7",)),
    ("partitions", "3", (3,)),
    ("partitions", "3,4", (3, 4)),
    ("partitions", "[3, 4]", (3, 4)),
    ("since", "2026-11-21T06:00:00Z", 1_795_240_800_000),
    ("until", "1795240800000", 1_795_240_800_000),
    ("cut", "false", False),
    ("cut", "True", True),
    ("depth", "records", "records"),
])  # fmt: skip
def test_values(name, text, value):
    assert getattr(read_options({"path": "/logs", name: text}), name.lower()) == value


@pytest.mark.parametrize(("name", "text", "why"), [
    ("partitions", "a", "not a valid value"),
    ("partitions", "1,b", "not a valid value"),
    ("cut", "maybe", "not a valid value"),
    ("since", "noon", "not a time"),
    ("since", "[1]", "not a time"),
    ("depth", "deep", "headers, crc or records"),
    ("topic", "orders", r"there is none.*topics"),
])  # fmt: skip
def test_values_that_are_none(name, text, why):
    with pytest.raises(UsageError, match=rf"^option {name}.*{why}"):
        read_options({"path": "/logs", name: text})


@pytest.mark.parametrize(("options", "paths"), [
    ({"path": "/a"}, ["/a"]),
    ({"paths": "/b,/c"}, ["/b", "/c"]),
    ({"PATHS": "/b", "path": "/a"}, ["/a", "/b"]),
    ({"path": "hdfs://nn/a"}, ["hdfs://nn/a"]),
    ({"path": "a"}, [os.path.abspath("a")]),  # noqa: PTH100 - as the driver makes it
])  # fmt: skip
def test_paths_are_those_of_load_and_more(options, paths):
    assert list(read_options(options).paths) == paths


def test_without_a_path_there_is_nothing_to_read():
    with pytest.raises(UsageError, match="nothing to read"):
        read_options({"topics": "orders"})
