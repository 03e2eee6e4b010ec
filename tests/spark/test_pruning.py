"""What is asked for chooses segments before they are read."""

import os
import struct
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

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

from kaudit.errors import UsageError
from kaudit.spark.options import read_options
from kaudit.spark.plan import Chosen, segment_reads
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
    groups = segment_reads(read_options({"path": str(logs)}), chosen)[1]
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
    segments = reader.wrapped
    before = segments.options
    assert list(reader.pushFilters(filters)) == filters
    assert (segments.chosen, segments.options) == (chosen_of_filters(Chosen(), filters), before)
    later: list[Filter] = [GreaterThanOrEqual(("max_timestamp",), NOON)]
    assert list(reader.pushFilters(later)) == later
    assert segments.chosen == chosen_of_filters(Chosen(), [*filters, *later])
    assert segments.options == replace(before, since=NOON_MS)


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
    ((first, *_),) = segment_reads(read_options({"path": str(logs)}), Chosen(since=START + HOUR + 5))[1]
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
    groups = segment_reads(read_options({"path": str(logs), "partition_bytes": str(2 * size)}), Chosen())[1]
    assert [len(group) for group in groups] == [2, 2, 2]
    assert len(segment_reads(read_options({"path": str(logs)}), Chosen())[1]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to read"),
        ({"path": "x", "topcs": "a"}, "did you mean topics"),
        ({"path": "x", "since": "yesterday"}, "not a time"),
        ({"path": "x", "partitions": "one"}, "not a valid value"),
        ({"path": "x", "state": "s"}, "option state: only findings, timelines and producers have it"),
        ({"path": "x", "depth": "deep"}, "headers, crc or records"),
        ({"path": "hdfs:///x:y:z", "pushdown": "maybe"}, "not a valid value"),
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
    assert (options.paths, options.audit) == (("/logs",), {"topics": ("orders", "payments"), "partitions": (3,)})
    assert options.since == round(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
    assert read_options(options.to_text()) == options


@pytest.mark.parametrize(("chosen", "kept"), [
    ({}, [0, 10, 20]),
    ({"segments": {f"{10:020d}.log"}}, [10]),
    ({"segments": set()}, []),
    ({"last_offset": 9}, [0]),
    ({"last_offset": 10}, [0, 10]),
    ({"last_offset": 20}, [0, 10, 20]),
    ({"first_offset": 9}, [0, 10, 20]),
    ({"first_offset": 10}, [10, 20]),
    ({"first_offset": 19}, [10, 20]),
    ({"first_offset": 20}, [20]),
    ({"first_offset": 99}, [20]),  # nobody knows where the newest ends
    ({"first_offset": 10, "last_offset": 19}, [10]),
    ({"first_offset": 10, "segments": {f"{0:020d}.log"}}, []),
])  # fmt: skip
def test_segments_are_kept_where_their_offsets_may_be_wanted(logs, chosen, kept):
    assert [base for partition, base in segments(logs, Chosen(**chosen)) if partition == 0] == kept


@pytest.mark.parametrize("kind", ["fetched", "text"])
def test_of_what_brokers_send_and_of_texts_names_state_no_offsets(kind):
    spec: Any = SimpleNamespace(
        file=SimpleNamespace(**{"name": "a", "fetched": None, "text": None, "base_offset": 50, kind: "x"})
    )
    following: Any = SimpleNamespace(base_offset=60)
    assert Chosen(first_offset=70, last_offset=10).has_segment(spec, following)
    assert not Chosen(segments={"b"}).has_segment(spec, following)


@pytest.mark.parametrize(("entries", "since", "before"), [
    ([], 9, False),
    ([(5, 0)], 6, True),
    ([(5, 0)], 5, False),
    ([(9, 0), (5, 1)], 6, True),  # the last one has the highest
    ([(5, 0), (9, 1)], 6, False),
    ([(0, 0)], 6, False),  # a part that was not written to
    ([(-1, 0)], 6, False),
])  # fmt: skip
@pytest.mark.parametrize("cut", [b"", b"rest"])
def test_a_segment_ends_before_a_time_by_the_last_entry_of_its_time_index(logs, entries, since, before, cut):
    index = logs / "orders-0" / f"{0:020d}.timeindex"
    index.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries) + cut)
    ((first, *_),) = segment_reads(read_options({"path": str(logs)}), Chosen(since=since))[1]
    assert first.time_index is not None
    assert first.time_index.path == str(index)
    assert first.ends_before(since) is before
    index.unlink()
    assert first.ends_before(since) is False


def test_only_segments_that_are_full_have_a_time_index_to_ask_and_only_where_a_time_is(logs):
    def indexes(chosen):
        (group,) = segment_reads(read_options({"path": str(logs)}), chosen)[1]
        return [read.time_index is not None for read in group]

    assert indexes(Chosen(since=0)) == [True, True, False] * 2
    assert indexes(Chosen()) == [False] * 6
    ((first, *_),) = segment_reads(read_options({"path": str(logs)}), Chosen())[1]
    assert not first.ends_before(2**62)
