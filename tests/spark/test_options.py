"""Options of a data source as Spark passes them on: texts, as people or JSON write them."""

import os
from datetime import datetime, timedelta, timezone

import pytest

from kaudit.errors import UsageError
from kaudit.spark.options import read_options, time_ms


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


@pytest.mark.parametrize(("time", "milliseconds"), [
    (None, None),
    (7, 7),
    ("1970-01-01T00:00:01", 1000),
    ("1970-01-01T01:00:01+01:00", 1000),
    (datetime(1970, 1, 1, 0, 0, 1), 1000),  # noqa: DTZ001 - without a zone it is UTC
    (datetime(1970, 1, 1, 1, 0, 1, 2000, tzinfo=timezone(timedelta(hours=1))), 1002),
])  # fmt: skip
def test_a_time_without_a_zone_is_utc(time, milliseconds):
    assert time_ms(time) == milliseconds


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
