"""Whose the blocks are: the grants of one cluster's metadata log are for its own log directories only."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.audits.producer_ids.block_sources import BlockSource, combined_blocks
from kaudit.broker.producer_ids.block_history import BlockHistory
from kaudit.model.producer_ids import BlockEntry, EntryKind
from kaudit.model.result import NotAudited
from kaudit.scanning.block_histories import BlockHistories, read_blocks
from kaudit.scanning.options import ScanOptions
from kaudit.source import zookeeper
from kaudit.source.layout import Layout
from kaudit.source.schemes import open_segment


def grant(number: int, offset: int | None = None, **more: object) -> BlockEntry:
    """The block of this number: 1000 ids, at an offset of the metadata log ten times that number."""
    stated: dict[str, object] = {"broker": 1, "broker_epoch": 5, "at_ms": 100 + number}
    place = 10 * number if offset is None else offset
    return BlockEntry(EntryKind.GRANTED, "log", number * 1000, number * 1000 + 999, offset=place, **(stated | more))  # type: ignore[arg-type]


def source(name: str, *entries: BlockEntry, extent: tuple[int, int] | None = (0, 100)) -> BlockSource:
    return BlockSource(name, BlockHistory(entries), extent=extent, notes=[NotAudited(name, "a note")])


def histories(tmp_path, clusters: Mapping[str, str], sources: Mapping[str, BlockSource]) -> BlockHistories:
    """Of log directories with the ids of their clusters, and what the metadata log in some of them says."""
    everything = [SimpleNamespace(topic="orders", log_dir=str(tmp_path / name)) for name in clusters]
    everything += [SimpleNamespace(topic="__cluster_metadata", log_dir=str(tmp_path / name)) for name in sources]
    properties = [
        {"path": str(tmp_path / name), "cluster.id": cluster} for name, cluster in clusters.items() if cluster
    ]
    layout: Any = SimpleNamespace(everything=everything, evidence=SimpleNamespace(meta_properties=properties))

    def read(directories: Sequence[Any]) -> list[BlockSource]:
        return [sources[directory.log_dir.rpartition("/")[2]] for directory in directories]

    return read_blocks(ScanOptions([str(tmp_path)]), layout, open_segment, read)


def origins(tmp_path, found: BlockHistories, *names: str) -> list[str | None]:
    blocks = [found.of(str(tmp_path / name)) for name in names]
    return [None if each is None else each.origin for each in blocks]


def test_replicas_of_one_metadata_log_are_one_history_for_all_of_their_cluster(tmp_path):
    sources = {
        "a": source("A", grant(0), grant(1), extent=(0, 15)),
        "b": source("B", grant(1), grant(2), extent=(5, 200)),
    }
    found = histories(tmp_path, {"a": "x", "b": "x", "c": "x", "d": "y"}, sources)
    assert origins(tmp_path, found, "a", "b", "c", "d") == ["A, B", "A, B", "A, B", None]
    assert [found.number_of(str(tmp_path / name)) for name in "abcd"] == [0, 0, 0, None]
    assert [note.path for note in found.notes] == ["A", "B"]


@pytest.mark.parametrize(
    ("other", "extent", "agree"),
    [
        ([grant(1)], (10, 100), True),
        ([grant(1)], (1, 100), True),
        ([], (11, 100), True),  # it begins behind both
        ([], (10, 100), False),
        ([grant(0)], (0, 9), True),  # it ends before the second
        ([grant(0)], (0, 10), False),
        ([grant(0), grant(1), grant(20)], (0, 200), True),  # it goes on
        ([grant(0), grant(1), grant(3)], (0, 200), False),
        ([grant(7)], None, True),  # of an empty log nothing is known
        ([grant(0), grant(1, broker=2)], (0, 100), False),
        ([grant(0), grant(1, broker_epoch=6)], (0, 100), False),
        ([grant(0), grant(1, at_ms=7)], (0, 100), False),
        ([grant(0), grant(2, offset=10)], (0, 100), False),
        ([grant(0), grant(1, offset=11)], (0, 100), False),
    ],
)
def test_where_both_reach_they_must_hold_the_same_grants(tmp_path, other, extent, agree):
    for one, two in (("a", "b"), ("b", "a")):
        sources = {one: source("A", grant(0), grant(1)), two: source("B", *other, extent=extent)}
        found = histories(tmp_path, {"a": "x", "b": "x"}, sources)
        held = "A" if not other else "B"
        if agree:
            assert len(found.clusters) == 1
        else:
            assert origins(tmp_path, found, one, two) == ["A", None if held == "A" else "B"]


def test_grants_without_an_offset_are_of_snapshots_and_not_compared(tmp_path):
    entry = BlockEntry(EntryKind.GRANTED, "log", 0, 999)
    found = histories(tmp_path, {"a": "x", "b": "x"}, {"a": source("A", entry, grant(1)), "b": source("B", grant(1))})
    assert len(found.clusters) == 1


def test_each_cluster_goes_by_its_own(tmp_path):
    sources = {"a": source("A", grant(0)), "b": source("B", grant(0, broker=9))}
    found = histories(tmp_path, {"a": "x", "b": "y", "c": "y", "d": ""}, sources)
    assert origins(tmp_path, found, "a", "b", "c", "d", "elsewhere") == ["A", "B", "B", None, None]
    assert [note.path for note in found.notes] == ["A", "B"]


def test_without_a_history_nothing_is_known(tmp_path):
    found = histories(tmp_path, {"a": "x"}, {})
    assert (found.clusters, found.notes, found.of(str(tmp_path / "a"))) == ([], [], None)
    found = histories(tmp_path, {"a": "x"}, {"a": source("A")})
    assert (found.clusters, found.of(str(tmp_path / "a"))) == ([], None)


def test_what_is_named_goes_with_everything():
    found = BlockHistories()
    empty, full = combined_blocks([source("A")]), combined_blocks([source("A", grant(0))])
    assert (empty, found.number_of("anywhere"), found.of("anywhere")) == (None, None, None)
    assert full is not None
    found.apply(full, None)
    blocks = found.of("anywhere")
    assert blocks is not None
    assert (found.number_of("elsewhere"), blocks.origin) == (0, "A")


@pytest.mark.parametrize(
    ("error", "unreadable"),
    [(PermissionError(13, "Permission denied"), False), (OSError(5, "Input/output error"), True)],
)
def test_a_data_directory_that_cannot_be_listed_is_said(tmp_path, monkeypatch, error, unreadable):
    folder = tmp_path / "logs" / "zk" / "version-2"
    folder.mkdir(parents=True)

    def refuse(directory):
        raise error

    monkeypatch.setattr(zookeeper, "find_zookeeper_files", refuse)
    histories = read_blocks(ScanOptions([str(tmp_path / "logs")]), Layout(()), open_segment)
    (note,) = histories.notes
    assert note.path == str(folder)
    assert "blocks of producer ids are not known" in note.reason
    assert note.unreadable is unreadable  # where others may not look is no failure
