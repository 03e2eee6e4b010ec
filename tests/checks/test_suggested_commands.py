"""The commands that findings suggest, for every kind of input: local, remote, lone files, texts, brokers, many inputs."""

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.command_line import CommandLine
from kaudit.checks.context import Context
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.source.layout import FetchedRange

OWN, OTHER = "00000000000000000000.log", "00000000000000000090.log"
AT = 1_700_000_000_123
LOCAL = Context(
    versions=VersionRange(Version.parse("3.0.0"), Version.parse("3.9.0")),
    coordinator=CoordinatorView(),
    clock=given_clock(AT),
    topic="my orders",
    partition=3,
    log_dir="/the logs",
    directory="/the logs/my orders-3",
    relative="the logs/my orders-3",
    segments=(OWN, OTHER),
    paths=(f"/the logs/my orders-3/{OWN}", f"/the logs/my orders-3/{OTHER}"),
    side_files=("leader-epoch-checkpoint",),
    asked=CommandLine(("the logs",), ("/the logs",)),
)
REMOTE = replace(
    LOCAL,
    log_dir="hdfs://n/logs",
    directory="hdfs://n/logs/orders-3",
    paths=tuple(f"hdfs://n/logs/orders-3/{name}" for name in (OWN, OTHER)),
)
LONE = replace(LOCAL, lone_files=("a b.bin", "-c.bin"), relative="", asked=CommandLine(("a b.bin",), ("a b.bin",)))
TEXTS = replace(LOCAL, texts=True, paths=("one.txt", "two.txt"))
RANGE = FetchedRange("h:9092,i:9092", "orders", 3, 100, 100, 200, bytes_per_offset=10)
FETCHED = replace(LOCAL, directory="kafka://h:9092/orders-3", paths=("kafka://h:9092/orders/3",) * 2, fetched=RANGE)
WITH_CONFIG = replace(FETCHED, fetched=replace(RANGE, command_config="my admin.conf"))


@pytest.mark.parametrize(
    ("context", "dump", "header"),
    [
        (
            LOCAL,
            f"kafka-dump-log --files '/the logs/my orders-3/{OTHER}'",
            f"kaudit inspect --at 70 '/the logs/my orders-3/{OTHER}'",
        ),
        (REMOTE, None, f"kaudit inspect --at 70 hdfs://n/logs/orders-3/{OTHER}"),
        (TEXTS, None, "kaudit inspect two.txt"),  # a text has no positions
        (FETCHED, None, "kaudit inspect --around 107 kafka://h:9092/orders-3"),
        (WITH_CONFIG, None, "kaudit inspect --around 107 --command-config 'my admin.conf' kafka://h:9092/orders-3"),
    ],
)
def test_a_batch_is_shown_by_what_can_open_it(context, dump, header):
    assert context.header_command(1, 70) == header
    assert context.dump_command(1, 70) == (dump or header)


@pytest.mark.parametrize(
    ("context", "inspect", "servers"),
    [
        (LOCAL, "kaudit inspect --records '/the logs/my orders-3'", "--bootstrap-server HOST:9092"),
        (LONE, "kaudit inspect --records 'a b.bin' ./-c.bin", "--bootstrap-server HOST:9092"),
        (FETCHED, "kaudit inspect --records kafka://h:9092/orders-3", "--bootstrap-server h:9092,i:9092"),
        (
            WITH_CONFIG,
            "kaudit inspect --records --command-config 'my admin.conf' kafka://h:9092/orders-3",
            "--bootstrap-server h:9092,i:9092 --command-config 'my admin.conf'",
        ),
    ],
)
def test_a_directory_is_shown_as_it_was_given(context, inspect, servers):
    assert context.inspect_command("--records") == inspect
    assert context.bootstrap_arguments == servers


def test_files_beside_the_segments():
    checkpoint = "kaudit inspect '/the logs/my orders-3/leader-epoch-checkpoint'"
    assert LOCAL.inspect_file("leader-epoch-checkpoint") == checkpoint
    assert LOCAL.inspect_file("partition.metadata") == "kaudit inspect '/the logs/my orders-3'"
    assert LOCAL.inspect_log_dir_file("meta.properties") == "kaudit inspect '/the logs/meta.properties'"
    assert (LOCAL.file(1), LOCAL.side_file("x")) == (f"the logs/my orders-3/{OTHER}", "the logs/my orders-3/x")
    assert LOCAL.log_dir_file("x") == "the logs/x"
    below = replace(LOCAL, relative="my orders-3")
    assert (below.side_file("x"), below.log_dir_file("x")) == ("my orders-3/x", "x")
    assert (LONE.file(1), LONE.log_dir_file("x")) == (OTHER, "x")


def test_where_in_a_segment():
    assert (LOCAL.at_byte(70), FETCHED.at_byte(70)) == (", at byte 70,", "")


OF_THIS = "--topic 'my orders' --partition 3"


@pytest.mark.parametrize(
    ("context", "by_clock", "expected"),
    [
        (LOCAL, False, f"kaudit timeline 'the logs' {OF_THIS} --producer-id 7 --producer-id 8"),
        (
            LOCAL,
            True,
            f"kaudit timeline 'the logs' {OF_THIS} --producer-id 7 --producer-id 8 --now 2023-11-14T22:13:20.123Z",
        ),
        (
            replace(LOCAL, asked=replace(LOCAL.asked, options=("--now", "2024-01-01"))),
            True,
            f"kaudit timeline 'the logs' {OF_THIS} --producer-id 7 --producer-id 8 --now 2024-01-01",
        ),
        # a clock that no calendar reaches
        (
            replace(LOCAL, clock=given_clock(10**17)),
            True,
            f"kaudit timeline 'the logs' {OF_THIS} --producer-id 7 --producer-id 8",
        ),
        (LONE, False, f"kaudit timeline 'a b.bin' {OF_THIS} --producer-id 7 --producer-id 8"),
    ],
)
def test_a_timeline_of_producers(context, by_clock, expected):
    assert context.timeline_command(7, 8, by_clock=by_clock) == expected


def test_commands_over_the_inputs():
    assert LOCAL.timeline_command(7) == f"kaudit timeline 'the logs' {OF_THIS} --producer-id 7"
    assert LOCAL.timeline_everywhere(7) == "kaudit timeline 'the logs' --producer-id 7"
    assert LOCAL.producers_command("--summary") == f"kaudit producers 'the logs' {OF_THIS} --summary"
    assert list(LOCAL.compare_records_command()) == [f"kaudit scan 'the logs' {OF_THIS} --depth records"]
    deep = replace(LOCAL, asked=replace(LOCAL.asked, options=("--depth", "headers")))
    assert list(deep.compare_records_command()) == []


MANY = tuple(f"/d/b{number}" for number in range(6))


@pytest.mark.parametrize(
    ("inputs", "paths", "evidence", "expected"),
    [
        # up to five are named as they were typed
        (MANY[:5], MANY[:5], (), "/d/b0 /d/b1 /d/b2 /d/b3 /d/b4"),
        # of more those that lead to the partition, or to what coordinators decided
        (("x", *MANY[1:]), MANY, (), "x"),
        (("x", *MANY[1:]), ("/d/b0/my orders-3", *MANY[1:]), (), "x"),
        (("x", *MANY[1:]), ("/", *MANY[1:]), (), "x"),
        (MANY, MANY, ("/d/b2/__transaction_state-1",), "/d/b0 /d/b2"),
        # /d/b is no directory above /d/b0
        (("x", *MANY[1:]), ("/d/b", *MANY[1:]), (), "/d/b0"),
        # none does: the log directory is
        (MANY[1:] * 2, MANY[1:] * 2, (), "/d/b0"),
        # too many still
        (("x",) * 6, ("/d/b0",) * 6, (), "/d/b0"),
        (("x",) * 5 + ("y",), ("/d/b0",) * 5 + ("/e",), (), "x x x x x"),
    ],
)
def test_of_many_inputs_those_that_lead_there(inputs, paths, evidence, expected):
    asked = CommandLine(inputs, paths, ("--now", "it's"), evidence)
    context = replace(LOCAL, log_dir="/d/b0", directory="/d/b0/my orders-3", asked=asked)
    assert context.timeline_everywhere(7) == f"kaudit timeline {expected} --producer-id 7 --now 'it'\"'\"'s'"


def test_of_many_files_those_of_the_partition():
    files = tuple(f"/f/{number}.bin" for number in range(6))
    context = replace(LOCAL, lone_files=files[1:3], asked=CommandLine(files, files))
    assert context.timeline_everywhere(7) == "kaudit timeline /f/1.bin /f/2.bin --producer-id 7"


def test_without_inputs_the_places_are_named():
    context = replace(LOCAL, asked=CommandLine(("x",) * 6, ("/e",) * 6))
    assert context.timeline_everywhere(7) == "kaudit timeline '/the logs' --producer-id 7"
    assert replace(context, log_dir=None).timeline_everywhere(7) == (
        "kaudit timeline '/the logs/my orders-3' --producer-id 7"
    )
    assert replace(context, lone_files=("a b.bin", "-c.bin")).timeline_everywhere(7) == (
        "kaudit timeline 'a b.bin' ./-c.bin --producer-id 7"
    )
    of_no_topic = replace(context, topic=None)
    assert of_no_topic.producers_command() == "kaudit producers '/the logs' --topic '' --partition 3"
