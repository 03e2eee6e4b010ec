"""What is asked for chooses segments before they are read."""

import os
import struct
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringContains,
)
from pyspark.sql.types import StructType

from kaudit.analysis.scan.options import UsageError
from kaudit.spark.options import read_options
from kaudit.spark.planning import Chosen, segment_reads
from kaudit.spark.sources import SOURCES, PushdownReader, chosen_of_filters
from tests.logs import Log, data
from tests.spark.in_process import load

START = 1_700_000_000_000
HOUR = 3_600_000


@pytest.fixture
def logs(tmp_path):
    """Two partitions of three segments, ten offsets and an hour each, with the time indexes that brokers write."""
    for partition in (0, 1):
        directory = tmp_path / f"orders-{partition}"
        for segment in range(3):
            log = Log(next_offset=segment * 10, clock=START + segment * HOUR - 1)
            for number in range(5):
                log.append(data(7, 0, segment * 10 + number * 2, 2))
            log.write(directory)
            name = f"{segment * 10:020d}.timeindex"
            (directory / name).write_bytes(struct.pack(">qi", START + segment * HOUR + 4, 9))
    return tmp_path


def segments(logs, chosen):
    groups = segment_reads(read_options({"path": str(logs)}), chosen)
    return [(read.task.partition, read.task.spec.file.base_offset) for group in groups for read in group]


def test_offsets_choose_segments_by_their_names(logs):
    assert segments(logs, Chosen(first_offset=10, last_offset=19, partitions={1})) == [(1, 10)]
    assert segments(logs, Chosen(first_offset=9, last_offset=10, partitions={0})) == [(0, 0), (0, 10)]
    assert segments(logs, Chosen(first_offset=1000, topics={"orders"}, partitions={0})) == [(0, 20)]
    assert segments(logs, Chosen(topics={"payments"})) == []


def test_filters_choose_what_they_can(logs):
    everything = Chosen()
    equal = chosen_of_filters(
        everything, [EqualTo(("topic",), "orders"), In(("partition",), (0, 1)), EqualTo(("partition",), 1)]
    )
    assert equal == Chosen(topics={"orders"}, partitions={1})
    offsets = chosen_of_filters(everything, [GreaterThan(("last_offset",), 12), LessThan(("base_offset",), 15)])
    assert segments(logs, offsets) == [(0, 10), (1, 10)]
    moment = datetime.fromtimestamp(START / 1000, UTC)
    assert chosen_of_filters(everything, [GreaterThanOrEqual(("max_timestamp",), moment)]).since == START
    assert (
        chosen_of_filters(everything, [StringContains(("topic",), "o"), LessThan(("max_timestamp",), moment)])
        == everything
    )


NOON = datetime(2023, 11, 14, 12, tzinfo=UTC)
NOON_MS = 1_699_963_200_000
LATER = NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("topic",), "a")], Chosen(topics={"a"})),
        ([In(("topic",), ("a", "b")), EqualTo(("topic",), "b")], Chosen(topics={"b"})),
        ([EqualTo(("segment",), "s"), EqualTo(("replica",), "r")], Chosen(segments={"s"}, replicas={"r"})),
        ([GreaterThan(("topic",), "a")], Chosen()),
        ([EqualTo(("topic", "nested"), "a")], Chosen()),
        ([EqualTo(("records",), 7)], Chosen()),
        ([EqualTo(("offset",), 7)], Chosen(first_offset=7, last_offset=7)),
        ([EqualTo(("offset",), "7")], Chosen()),
        ([GreaterThanOrEqual(("first_offset",), 5), GreaterThan(("base_offset",), 3)], Chosen(first_offset=5)),
        ([GreaterThan(("base_offset",), 3), GreaterThan(("base_offset",), 5)], Chosen(first_offset=5)),
        ([LessThanOrEqual(("last_offset",), 5), LessThan(("offset",), 8)], Chosen(last_offset=5)),
        ([LessThan(("offset",), 8), LessThan(("offset",), 0)], Chosen(last_offset=0)),
        ([LessThan(("offset",), 0), LessThan(("offset",), 8)], Chosen(last_offset=0)),
        ([GreaterThan(("timestamp",), NOON), GreaterThan(("timestamp",), LATER)], Chosen(since=NOON_MS + HOUR)),
        ([GreaterThan(("timestamp",), LATER), GreaterThan(("max_timestamp",), NOON)], Chosen(since=NOON_MS + HOUR)),
        ([EqualTo(("timestamp",), NOON)], Chosen(since=NOON_MS)),
        ([LessThan(("timestamp",), NOON), GreaterThan(("timestamp",), "noon")], Chosen()),
    ],
)
def test_filters_narrow_one_another(filters, expected):
    assert chosen_of_filters(Chosen(), filters) == expected


@pytest.mark.parametrize("pushdown", [False, True])
def test_filters_go_to_the_reader_where_they_are_asked_for(logs, pushdown):
    (source,) = (source for source in SOURCES if source.name() == "kaudit.batches")
    reader = source({"path": str(logs), "pushdown": str(pushdown)}).reader(StructType())
    assert isinstance(reader, PushdownReader) is pushdown


def test_a_reader_takes_what_filters_say_of_segments_and_gives_all_of_them_back(logs):
    (source,) = (source for source in SOURCES if source.name() == "kaudit.batches")
    reader = source({"path": str(logs), "pushdown": "true"}).reader(StructType())
    assert isinstance(reader, PushdownReader)
    filters: list[Filter] = [
        EqualTo(("topic",), "orders"),
        GreaterThanOrEqual(("base_offset",), 12),
        EqualTo(("crc",), 7),
    ]
    before = reader.options
    assert list(reader.pushFilters(filters)) == filters
    assert (reader.chosen, reader.options) == (chosen_of_filters(Chosen(), filters), before)
    later: list[Filter] = [GreaterThanOrEqual(("max_timestamp",), NOON)]
    assert list(reader.pushFilters(later)) == later
    assert reader.chosen == chosen_of_filters(Chosen(), [*filters, *later])
    assert reader.options == replace(before, since=NOON_MS)


def test_times_choose_segments_by_their_time_indexes(logs):
    # the newest is read: an index of a segment that is written has no last entry yet
    for name in ("00000000000000000000.log", "00000000000000000010.log"):
        segment = logs / "orders-0" / name
        size = segment.stat().st_size
        segment.unlink()
        os.truncate(os.open(segment, os.O_CREAT | os.O_WRONLY), size)  # zeros: they would have no rows in any case
    rows = [row for batch in load("batches", logs, since=START + HOUR + 5) for row in batch.to_pylist()]
    assert [(row["partition"], row["base_offset"]) for row in rows] == [(0, offset) for offset in range(20, 30, 2)] + [
        (1, offset) for offset in range(20, 30, 2)
    ]
    ((first, *_),) = segment_reads(read_options({"path": str(logs)}), Chosen(since=START + HOUR + 5))
    assert first.ends_before(START + 5)
    assert not first.ends_before(START + 4)


def test_offsets_and_times_choose_rows(logs):
    rows = [row for batch in load("batches", logs, first_offset=3, last_offset=12) for row in batch.to_pylist()]
    assert [row["base_offset"] for row in rows if row["partition"] == 0] == [2, 4, 6, 8, 10, 12]
    records = [row for batch in load("records", logs, first_offset=3, last_offset=12) for row in batch.to_pylist()]
    assert [row["offset"] for row in records if row["partition"] == 1] == list(range(3, 13))
    assert {row["sequence"] - row["offset"] for row in records} == {0}
    until = [row for batch in load("records", logs, until=START + 1) for row in batch.to_pylist()]
    assert [row["offset"] for row in until if row["partition"] == 0] == [0, 1, 2, 3]


def test_tasks_share_segments_by_their_bytes(logs):
    size = (logs / "orders-0" / f"{0:020d}.log").stat().st_size
    groups = segment_reads(read_options({"path": str(logs), "partition_bytes": str(2 * size)}), Chosen())
    assert [len(group) for group in groups] == [2, 2, 2]
    assert len(segment_reads(read_options({"path": str(logs)}), Chosen())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to read"),
        ({"path": "x", "topcs": "a"}, "did you mean topics"),
        ({"path": "x", "since": "yesterday"}, "not a time"),
        ({"path": "x", "partitions": "one"}, "not a valid value"),
        ({"path": "x", "depth": "deep"}, "headers, crc or records"),
        ({"path": "hdfs:///x:y:z", "cut": "maybe"}, "not a valid value"),
    ],
)
def test_a_wrong_option_is_said_in_one_line(options, message):
    with pytest.raises(UsageError, match=message) as error:
        read_options(options)
    assert "\n" not in str(error.value)


def test_options_as_people_write_them():
    options = read_options(
        {"path": "/logs", "topics": "orders,payments", "partitions": "3", "since": "2026-11-22T00:00:00Z"}
    )
    assert (options.paths, options.topics, options.partitions) == (("/logs",), ("orders", "payments"), (3,))
    assert options.since == round(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
    assert read_options(options.to_text()) == options
