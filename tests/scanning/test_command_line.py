"""The options of a suggested command are those that were given."""

import shlex
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.context import Context
from kaudit.cli.app import run
from kaudit.engines import local
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.scanning.findings import asked_for, asked_of, partition_context
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.discover import discover
from tests.scan_results import timeline_result

BOTH = "samples/hanging-transaction", "samples/duplicates"
GIVEN = [
    ScanOptions(BOTH),
    ScanOptions(BOTH, broker_version="2.0.1", depth=Depth.RECORDS, log_start_offset=3, now_ms=1_763_700_000_123),
    ScanOptions(BOTH, depth=Depth.HEADERS, compacted=True, blocks="the blocks.jsonl", zookeeper="/zk's", metadata="m"),
    ScanOptions(BOTH, layout="dc={replica}/{topic}/p{partition}"),
]


@pytest.fixture
def parsed(monkeypatch):
    """What the engine of `kaudit timeline` is asked for by a command."""
    asked = SimpleNamespace(options=None)

    def timeline(_engine, options, _progress):
        asked.options = options
        return timeline_result()

    monkeypatch.setattr(local.LocalEngine, "timeline", timeline)

    def parse(command):
        run(shlex.split(command)[1:])
        return asked.options

    return parse


def context(options, number=0):
    layout = discover(options.paths)
    directory = layout.partitions[number]
    scan_wide = Context(
        versions=VersionRange(Version.parse("2.0.1"), Version.parse("4.0.0")),
        coordinator=CoordinatorView(),
        clock=given_clock(1),
    )
    asked = asked_of(directory, asked_for(options, layout), options)
    return partition_context(scan_wide, directory, log_end_offset=None, asked=asked)


@pytest.mark.parametrize("given", GIVEN, ids=range(len(GIVEN)))
def test_a_timeline_is_asked_for_as_the_scan_was(parsed, given):
    of_one = context(given)
    again = parsed(of_one.timeline_command(7, 8))
    assert (again.topics, again.partitions, again.producer_ids) == ([of_one.topic], [of_one.partition], [7, 8])
    assert replace(again, paths=tuple(again.paths), topics=(), partitions=(), producer_ids=()) == given


def test_a_topic_that_configuration_calls_compacted_is_compacted_in_the_command(parsed):
    given = ScanOptions(BOTH, compacted_topics=["s29*"])
    topics = [entry.topic for entry in discover(BOTH).partitions]
    compacted = {topic: parsed(context(given, n).timeline_command(7)).compacted for n, topic in enumerate(topics)}
    assert compacted == {topic: topic.startswith("s29") for topic in topics}
    assert set(compacted.values()) == {True, False}


def test_the_clock_is_the_audits_where_it_decided(parsed):
    assert parsed(context(GIVEN[0]).timeline_command(7, by_clock=True)).now_ms == 1
    assert parsed(context(GIVEN[1]).timeline_command(7, by_clock=True)).now_ms == GIVEN[1].now_ms
    assert parsed(context(GIVEN[0]).timeline_command(7)).now_ms is None


def test_of_many_inputs_those_that_matter(tmp_path):
    names = [f"orders-{number}" for number in range(8)]
    for name in (*names, "__transaction_state-3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").touch()
    paths = [f"{tmp_path}/{name}/" for name in (*names, "__transaction_state-3")]
    options = ScanOptions(paths)
    layout = discover(paths)
    assert context(options, 3).timeline_command(7) == (
        f"kaudit timeline {tmp_path}/orders-2/ {tmp_path}/__transaction_state-3/ --topic orders --partition 2 --producer-id 7"
    )
    assert layout.partitions[3].partition == 2
