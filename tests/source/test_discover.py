"""What is found under paths: partitions with all that is known of them, files left behind, inputs that hold nothing."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.model.limits import DIRECTORY_DEPTH
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.file_kinds import (
    PartitionName,
    is_known_file,
    leftover_kind,
    parse_partition_name,
    segment_base_offset,
)
from kaudit.source.layout import (
    EXPECTED,
    Evidence,
    FetchedRange,
    LeftoverFile,
    LogDirectoryIdentity,
    SegmentFile,
    Unreadable,
    count_older_snapshots,
    list_snapshots,
    metadata_snapshots,
)
from kaudit.source.local import LocalFileSystem
from kaudit.source.pattern import LayoutPattern, PatternError
from kaudit.source.schemes import SegmentRemovedError, filesystem, open_segment, writable_filesystem
from kaudit.source.uri import Uri, UrlError
from kaudit.source.zookeeper import zookeeper_nearby
from tests.formats.encoders import message
from tests.logs import Log, data

ZERO, TEN = "00000000000000000000.log", "00000000000000000010.log"
NOTHING = "no segment (a file such as 00000000000000000000.log) was found"
TOPIC_ID = "4kZmd2pkSUmPhQv0bDbWCA"


def partition(directory: Path, *starts: int) -> Path:
    """Two segments: batches at 0 and at 10."""
    log = Log()
    log.append(data(7, 0, 0, 10))
    log.append(data(7, 0, 10))
    return log.write(directory, segment_starts=starts or (10,))


def found(*paths, **options):
    return discover([str(path) for path in paths], **options)


def names(layout):
    return [entry.name for entry in layout.partitions]


@pytest.fixture
def broker(tmp_path):
    """A log directory with two partitions and what a broker keeps beside them."""
    root = tmp_path / "b1"
    first = partition(root / "orders-0")
    partition(root / "pay-ments-12")
    (first / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (first / "leader-epoch-checkpoint").write_text("0\n0\n")
    (first / "00000000000000000010.index").write_bytes(b"")
    (root / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=lu\ndirectory.id=dir\n")
    (root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    (root / "cleaner-offset-checkpoint").write_text("0\n1\npay-ments 12 7\n")
    return root


def test_all_that_is_known_of_a_partition(broker):
    layout = found(broker)
    assert names(layout) == ["orders-0", "pay-ments-12"]
    first, second = layout.partitions
    directory = str(broker / "orders-0")
    assert (first.replica, first.log_dir, first.directory, first.relative) == ("b1", str(broker), directory, "orders-0")
    assert (first.topic_id, first.has_checkpoints, first.whole_directory, first.named) == (TOPIC_ID, True, True, True)
    assert (first.log_start_offset, first.first_dirty_offset) == (4, None)
    assert (second.log_start_offset, second.first_dirty_offset, second.topic_id) == (None, 7, None)
    assert (first.start_offset, second.start_offset) == (4, 0)
    assert replace(first, segments=first.segments[1:]).start_offset == 10
    assert first.identity == second.identity == LogDirectoryIdentity(3, "lu", "dir")
    assert first.checkpoints is second.checkpoints
    assert [file.name for file in first.checkpoints] == ["cleaner-offset-checkpoint", "log-start-offset-checkpoint"]
    for segment, (name, base) in zip(first.segments, ((ZERO, 0), (TEN, 10)), strict=True):
        status = (broker / "orders-0" / name).stat()
        assert (segment.path, segment.name, segment.base_offset) == (f"{directory}/{name}", name, base)
        assert (segment.size, segment.modified_ms) == (status.st_size, status.st_mtime_ns // 1_000_000)
    side_files = ["00000000000000000010.index", "leader-epoch-checkpoint", "partition.metadata"]
    assert [file.name for file in first.side_files] == side_files
    assert [file.size for file in first.side_files] == [
        (broker / "orders-0" / name).stat().st_size for name in side_files
    ]
    assert first.bytes == sum(segment.size for segment in first.segments)
    known = {"version": "1", "path": str(broker), "node.id": "3", "directory.id": "dir", "cluster.id": "lu"}
    assert [dict(entry) for entry in layout.evidence.meta_properties] == [known]
    assert not layout.evidence.has_bootstrap_checkpoint
    assert not [*layout.leftover_files, *layout.unreadable, *layout.skipped, *layout.empty_inputs]


@pytest.mark.parametrize("given", ["", "orders-0", f"orders-0/{ZERO}"])
def test_a_partition_is_the_same_however_it_is_named(broker, given):
    (one,) = (entry for entry in found(broker / given).partitions if entry.topic == "orders")
    assert (one.partition, one.log_start_offset, one.has_checkpoints) == (0, 4, True)
    assert one.identity == LogDirectoryIdentity(3, "lu", "dir")
    assert one.whole_directory is (given != f"orders-0/{ZERO}")
    assert [segment.name for segment in one.segments] == ([ZERO] if given.endswith(ZERO) else [ZERO, TEN])


@pytest.mark.parametrize(
    ("ids", "key"), [((None, None), None), (("lu", None), (3, "lu")), ((None, "dir"), (3, "dir")), (("lu", "dir"), (3, "dir"))]
)  # fmt: skip
def test_copies_of_a_log_directory_have_its_id_in_common_or_else_the_clusters(ids, key):
    assert LogDirectoryIdentity(3, *ids).key == key


def test_without_checkpoints_no_offset_is_known(tmp_path):
    (one,) = found(partition(tmp_path / "b1" / "orders-0").parent).partitions
    assert (one.log_start_offset, one.first_dirty_offset, one.has_checkpoints, one.identity) == (
        None,
        None,
        False,
        None,
    )
    assert not one.checkpoints


def test_replicas_are_named_by_what_distinguishes_their_log_directories(tmp_path):
    for place in ("east/b1/data", "west/b1/data", "west/b2/data"):
        partition(tmp_path / place / "orders-0")
    assert [entry.replica for entry in found(tmp_path).partitions] == ["east/b1/data", "west/b1/data", "west/b2/data"]
    assert [entry.replica for entry in found(tmp_path / "west").partitions] == ["b1/data", "b2/data"]
    assert [entry.replica for entry in found(tmp_path / "east").partitions] == ["data"]


def test_partitions_come_in_order_of_topic_number_and_directory(tmp_path):
    for place in ("b2/x-10", "b2/x-9", "b1/x-10", "b1/a-0"):
        partition(tmp_path / place)
    ordered = [(entry.name, entry.replica) for entry in found(tmp_path).partitions]
    assert ordered == [("a-0", "b1"), ("x-9", "b2"), ("x-10", "b1"), ("x-10", "b2")]


def test_what_brokers_leave_behind(broker):
    uuid = "0" * 31 + "1"
    partition(broker / f"orders-1.{uuid}-delete")
    partition(broker / "odd")
    orders = broker / "orders-0"
    checkpoint = f"{9:020d}-{2:010d}.checkpoint.deleted"  # KafkaRaftClient removes snapshots so
    for name in (
        checkpoint,
        f"{TEN}.deleted",
        "00000000000000000020.log.swap",
        "00000000000000000000.index.cleaned",
        "notes",
    ):
        (orders / name).write_bytes(b"x")
    layout = found(broker)
    assert names(layout) == ["orders-0", "pay-ments-12"]
    log_dir = str(broker)
    log = layout.leftover_files[1].log
    assert [segment.path for segment in log.segments] == [
        str(broker / f"orders-1.{uuid}-delete" / each) for each in (ZERO, TEN)
    ]
    assert list(layout.leftover_files) == [
        LeftoverFile("odd", "odd-name", log_dir=log_dir),
        LeftoverFile(f"orders-1.{uuid}-delete", "delete", "orders", 1, log_dir, log=log),
    ]
    own: dict[str, Any] = {"topic": "orders", "partition": 0, "log_dir": log_dir}
    assert list(layout.partitions[0].leftover_files) == [
        LeftoverFile("orders-0/00000000000000000000.index.cleaned", "cleaned", **own),
        LeftoverFile(f"orders-0/{checkpoint}", "deleted", **own),
        LeftoverFile(f"orders-0/{TEN}.deleted", "deleted", **own, base_offset=10, segment_missing=False),
        LeftoverFile("orders-0/00000000000000000020.log.swap", "swap", **own, base_offset=20, segment_missing=True),
        LeftoverFile("orders-0/notes", "odd-name", **own),
    ]


@pytest.mark.parametrize("name", ["meta.properties", "recovery-point-offset-checkpoint"])
def test_a_log_directory_may_be_named_like_a_partition(tmp_path, name):
    partition(tmp_path / "kafka-1" / "orders-0")
    (tmp_path / "kafka-1" / name).write_text("version=0\nbroker.id=1\n" if name.startswith("meta") else "0\n0\n")
    (tmp_path / "kafka-1" / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert names(found(tmp_path)) == ["orders-0"]


def test_a_partition_may_have_lost_all_its_segments(tmp_path):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    (tmp_path / "pay-1").mkdir()
    (tmp_path / "pay-1" / "notes.txt").write_text("nothing of a broker's")
    layout = found(tmp_path)
    assert names(layout) == ["orders-0"]
    assert list(layout.empty_inputs) == [
        Unreadable(str(tmp_path), f"{NOTHING}; it holds pay-1/notes.txt (text); {EXPECTED}")
    ]


def test_files_given_one_by_one(tmp_path):
    log = Log(next_offset=30)
    log.append(data(7, 0, 0, 3))
    copy, old, empty = tmp_path / "copy.bin", tmp_path / "old.bin", tmp_path / "empty.bin"
    copy.write_bytes(log.encode())
    old.write_bytes(message(5, 1, value=b"v"))
    empty.write_bytes(b"\0" * 100)
    left = tmp_path / f"{TEN}.deleted"
    left.write_bytes(log.encode())
    layout = found(copy, old, empty, left)
    (one,) = layout.partitions
    assert (one.topic, one.partition, one.named, one.whole_directory) == (tmp_path.name, 0, False, False)
    # a wrapper of old formats names its last offset only
    assert [(segment.name, segment.base_offset) for segment in one.segments] == [("old.bin", 0), ("copy.bin", 30)]
    assert [(entry.path, entry.reason) for entry in layout.empty_inputs] == [
        (str(empty), f"no segment file but binary data; {EXPECTED}"),
        (str(left), "left behind by a broker (deleted)"),
    ]


def test_a_file_named_twice_is_read_once(tmp_path):
    path = partition(tmp_path / "orders-0") / ZERO
    (one,) = found(path, path).partitions
    assert [segment.name for segment in one.segments] == [ZERO]


@pytest.mark.parametrize(
    ("pattern", "path", "replica"),
    [
        ("{topic}/{partition}", "a/orders/3", None),
        ("broker={replica}/{topic}/p{partition}", "broker=7/orders/p3", "7"),
        ("{topic}/*/{partition}", "orders/x/3", None),
        ("{topic}/part-{partition}", "orders/part-3", None),
    ],
)
def test_a_pattern_says_where_topic_and_partition_stand(tmp_path, pattern, path, replica):
    directory = partition(tmp_path / path)
    for given in (tmp_path, directory / ZERO):
        (one,) = found(given, pattern=LayoutPattern.parse(pattern)).partitions
        assert (one.topic, one.partition, one.named) == ("orders", 3, True)
        assert one.replica == (directory.parent.name if replica is None else replica)


def test_a_file_that_the_pattern_does_not_place_has_a_name_only_if_its_directory_has_one(tmp_path):
    pattern = LayoutPattern.parse("{topic}/part-{partition}")
    (other,) = found(partition(tmp_path / "copies") / ZERO, pattern=pattern).partitions
    assert (other.topic, other.partition, other.named) == ("copies", 0, False)
    (brokers,) = found(partition(tmp_path / "orders-3") / ZERO, pattern=pattern).partitions
    assert (brokers.topic, brokers.partition, brokers.named) == ("orders", 3, True)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("{topic}/{topic}/{partition}", r"\{topic\} is given twice"),
        ("{topic}/{part}", r"\{part\} is not a field; there are topic, partition and replica"),
        ("{topic}", r"has no \{partition\}"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_said(pattern, said):
    with pytest.raises(PatternError, match=said):
        LayoutPattern.parse(pattern)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(PathNotFoundError, match="none"):
        found(tmp_path / "none")


def test_links_are_followed_each_directory_once(tmp_path):
    partition(tmp_path / "data" / "orders-0")
    (tmp_path / "data" / "again").symlink_to(tmp_path / "data")
    (tmp_path / "other").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "lost-0").symlink_to(tmp_path / "unmounted")
    (tmp_path / "data" / "odd").symlink_to(tmp_path / "unmounted")
    layout = found(tmp_path)
    assert names(layout) == ["orders-0"]
    assert list(layout.unreadable) == [
        Unreadable(str(tmp_path / "data" / "lost-0"), "No such file or directory", False)
    ]
    # an input that was met before is no empty one
    assert not found(tmp_path / "data", tmp_path / "other").empty_inputs


def vanishing(monkeypatch, *names):
    """Remove files of these names when somebody asks for their sizes, as if a broker had deleted them since they were listed."""
    status = LocalFileSystem.status

    def look(self, uri):
        if uri.last in names:
            Path(uri.path).unlink(missing_ok=True)
        return status(self, uri)

    monkeypatch.setattr(LocalFileSystem, "status", look)


def test_a_segment_that_is_gone_was_removed_by_retention_where_only_later_ones_are_left(tmp_path, monkeypatch):
    """Links to themselves stand for a bad disk."""
    directory = partition(tmp_path / "orders-0")
    last, bad = f"{20:020d}.log", f"{30:020d}.log"
    for name in (last, f"{10:020d}.index"):
        (directory / name).touch()
    for name in (bad, "leader-epoch-checkpoint"):
        (directory / name).symlink_to(directory / name)
    vanishing(monkeypatch, ZERO, last, f"{10:020d}.index")
    layout = found(tmp_path)
    assert [segment.name for segment in layout.partitions[0].segments] == [TEN]
    # it is listed: nothing may call it missing
    assert [file.name for file in layout.partitions[0].side_files] == ["leader-epoch-checkpoint"]
    assert [(Path(each.path).name, each.reason) for each in layout.unreadable] == [
        (last, "No such file or directory"),
        (bad, "Too many levels of symbolic links"),
        ("leader-epoch-checkpoint", "Too many levels of symbolic links"),
    ]
    assert [(Path(each.path).name, each.reason) for each in layout.skipped] == [
        (ZERO, f"retention removed it: the log begins with segment {TEN} now")
    ]


def test_opening_a_segment_that_is_gone_says_where_the_log_begins_now(tmp_path):
    directory = partition(tmp_path / "orders-0")
    first, second = found(directory).partitions[0].segments
    Path(first.path).unlink()
    with pytest.raises(SegmentRemovedError) as caught:
        open_segment(first)
    assert (caught.value.log_start, caught.value.filename) == (10, first.path)
    (tmp_path / "emptied").mkdir()
    elsewhere = (directory / "copy.bin", tmp_path / "no" / ZERO, tmp_path / "emptied" / ZERO)
    for gone in (replace(first, path=str(path)) for path in elsewhere):
        with pytest.raises(FileNotFoundError) as other:
            open_segment(gone)
        assert not isinstance(other.value, SegmentRemovedError)
    Path(second.path).unlink()
    Path(second.path).symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="No such file"):
        open_segment(second)


def test_an_input_that_cannot_be_read_is_reported(tmp_path):
    ring, plug = tmp_path / "ring", tmp_path / "plug"
    ring.symlink_to(ring)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(plug))
        layout = found(ring, plug)
    assert [(each.path, each.reason) for each in layout.unreadable] == [
        (str(ring), "Too many levels of symbolic links"), (str(plug), "No such device or address"),
    ]  # fmt: skip
    with pytest.raises(PathNotFoundError):
        found(tmp_path / ("x" * 300))


def test_a_directory_of_more_entries_than_kaudit_holds_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.source.local.DIRECTORY_ENTRIES", 2)
    directory = partition(tmp_path / "orders-0")
    assert names(found(tmp_path)) == ["orders-0"]
    (directory / "notes").touch()
    layout = found(tmp_path)
    assert not layout.partitions
    assert [(each.path, each.reason) for each in layout.unreadable] == [
        (str(directory), "more than 2 files in one directory")
    ]


@pytest.mark.parametrize(
    ("name", "prefix", "kind"),
    [
        ("orders.parquet", b"", "a Parquet file of records"),
        ("Orders.JSON.gz", b"", "a JSON dump of records"),
        ("part-0", b"Obj\x01" + bytes(99), "an Avro file of records"),
        ("part-0", b'[{"id": 1}]' + bytes(99), "a JSON dump of records"),
    ],
)
def test_dumps_of_records_are_reported_unless_they_lie_beside_a_log(tmp_path, name, prefix, kind):
    place = tmp_path / "dumps" / name
    place.parent.mkdir()
    place.write_bytes(prefix)
    (tmp_path / "empty").mkdir()
    layout = found(place, tmp_path / "empty", *([] if prefix else [tmp_path / "dumps"]))
    reasons = [each.reason for each in layout.empty_inputs]
    assert reasons[0] == NOTHING
    assert reasons[-1].startswith(f"{kind}: ")
    assert all(kind in reason for reason in reasons[1:])
    assert {each.path for each in layout.skipped} == {str(place)}
    partition(tmp_path / "dumps" / "orders-0")
    assert not found(tmp_path / "dumps").skipped


def test_what_an_input_holds_is_said_of_that_input(tmp_path):
    partition(tmp_path / "left" / "orders-0-delete")
    (tmp_path / "other").mkdir()
    # a directory is no file, whatever its name
    (tmp_path / "named" / "orders-0" / ZERO).mkdir(parents=True)
    reasons = [each.reason for each in found(tmp_path / "left", tmp_path / "other", tmp_path / "named").empty_inputs]
    assert reasons == ["no segment: only orders-0-delete (delete)", NOTHING, NOTHING]


def test_what_an_empty_log_directory_and_a_capture_say_of_the_cluster_is_evidence(tmp_path):
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=5\n")
    (tmp_path / "capture.json").write_text('{"origin": {"features": {"metadata.version": 25}}}')
    evidence = found(tmp_path).evidence
    assert [entry["node.id"] for entry in evidence.meta_properties] == ["5"]
    assert evidence.features == {"metadata.version": 25}


@pytest.mark.parametrize(("topic", "listed", "older"), [("orders", [8, 9], 2), ("__cluster_metadata", [], 0)])
def test_the_newest_snapshots_are_listed(tmp_path, monkeypatch, topic, listed, older):
    monkeypatch.setattr("kaudit.source.layout.SNAPSHOTS", 2)
    directory = partition(tmp_path / f"{topic}-0")
    for offset in (9, 3, 8, 1):
        (directory / f"{offset:020d}.snapshot").write_bytes(b"x")
    for given, expected in ((directory, (listed, older)), (directory / ZERO, ([], 0))):
        (one,) = found(given).partitions
        assert ([file.base_offset for file in list_snapshots(one)], count_older_snapshots(one)) == expected
        for file in list_snapshots(one):
            path = directory / f"{file.base_offset:020d}.snapshot"
            assert file == SegmentFile(str(path), path.name, file.base_offset, 1, path.stat().st_mtime_ns // 1_000_000)
    monkeypatch.setattr("kaudit.source.layout.SNAPSHOTS", 9)
    assert count_older_snapshots(found(directory).partitions[0]) == 0


def test_snapshots_of_the_metadata_log_come_by_their_end_offsets(tmp_path):
    directory = partition(tmp_path / "__cluster_metadata-0")
    for name in (f"{9:020d}-{2:010d}.checkpoint", f"{4:020d}-{7:010d}.checkpoint", "leader-epoch-checkpoint"):
        (directory / name).touch()
    assert [file.base_offset for file in metadata_snapshots(found(directory).partitions[0])] == [4, 9]


def test_schemes_that_kaudit_does_not_read_or_write_are_reported_with_those_it_does():
    read = "kaudit reads local paths, file://, hdfs://, webhdfs://, swebhdfs://, s3://, s3a://, kafka://"
    with pytest.raises(UrlError, match=f"ftp://host/x: {read}$"):
        filesystem(Uri.parse("ftp://host/x"))
    with pytest.raises(UrlError, match=r"kaudit writes to local paths, hdfs://, s3://, s3a://$"):
        writable_filesystem(Uri.parse("webhdfs://host:9870/x"))


def zookeeper(directory: Path, *files: str) -> str:
    """A data directory of ZooKeeper; its files are not read here."""
    for file in files:
        (directory / "version-2" / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / "version-2" / file).touch()
    return str(directory / "version-2")


def nearby(*paths):
    """The directories that files of each ensemble lie in."""
    return [
        sorted({str(path.parent) for path in (*files.logs, *files.snapshots)})
        for files in zookeeper_nearby([str(path) for path in paths])[0]
    ]


def test_zookeepers_data_lies_inside_the_inputs_or_beside_them(tmp_path):
    logs = tmp_path / "disk" / "logs"
    inside = zookeeper(logs.joinpath(*"abcdef"), "log.1")
    beside = zookeeper(tmp_path / "disk" / "zk", "snapshot.1")
    zookeeper(logs.joinpath(*"abcdefg"), "log.1")  # too deep
    zookeeper(tmp_path / "disk" / "far" / "zk", "log.1")
    zookeeper(logs / "orders-0" / "x", "log.1")  # no broker keeps it there
    zookeeper(logs / "other", "notes")
    assert nearby(logs) == nearby(logs, "s3://bucket/logs") == [[inside], [beside]]
    assert nearby("s3://bucket/logs", tmp_path / "none" / "there") == []
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "zk").symlink_to(tmp_path / "disk" / "zk")
    assert nearby(tmp_path / "linked" / "zk2") == []


def test_directories_of_one_parent_are_one_ensembles_unless_both_have_logs(tmp_path):
    parent = tmp_path / "zk"
    snapshots, logs = zookeeper(parent / "data", "snapshot.1"), zookeeper(parent / "log", "log.1")
    assert nearby(parent) == [[snapshots, logs]]
    zookeeper(parent / "data", "log.5")
    assert nearby(parent) == [[snapshots], [logs]]


def test_directories_that_lie_too_deep_are_reported(tmp_path):
    deep = tmp_path.joinpath(*["d"] * DIRECTORY_DEPTH)
    partition(deep / "orders-0")
    layout = found(tmp_path)
    assert not layout.partitions
    assert [entry.reason for entry in layout.skipped] == [f"deeper than {DIRECTORY_DEPTH} directories"]
    assert names(found(tmp_path / "d")) == ["orders-0"]


def test_an_input_that_holds_leftovers_only_says_so(tmp_path):
    partition(tmp_path / "orders-0-delete")
    reason = "no segment: only orders-0-delete (delete)"
    assert list(found(tmp_path).empty_inputs) == [Unreadable(str(tmp_path), reason)]


COPIES = {
    "odd": ("odd", 0),
    "orders_3": ("orders_3", 0),
    "orders-3.bak": ("orders", 3),
    "pay-ments-12 (copy)": ("pay-ments", 12),
    "orders-3.20240229": ("orders", 3),
    "orders-3~": ("orders", 3),
    "kafka-2.8": ("kafka-2.8", 0),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_partition_under_another_name(tmp_path, name):
    """No name places it, and the files of the log directory that it may lie in say nothing of it."""
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 3 4\n")
    copy = partition(tmp_path / name)
    for given in (copy, copy / ZERO):
        (one,) = found(given).partitions
        assert ((one.topic, one.partition), one.named) == (COPIES[name], False)
        assert not one.has_checkpoints
        assert one.log_start_offset is None
    (one,) = found(tmp_path, copy).partitions
    assert (one.log_dir, one.replica) == (str(copy), name)


def test_copies_beside_partitions_under_a_brokers_names_are_leftovers(broker):
    partition(broker / "orders-0.bak")
    layout = found(broker)
    assert names(layout) == ["orders-0", "pay-ments-12"]
    assert [file.relative for file in layout.leftover_files] == ["orders-0.bak"]
    replicas = {entry.replica for entry in found(broker / "orders-0", broker / "orders-0.bak").partitions}
    assert replicas == {"b1", "orders-0.bak"}


def test_a_bootstrap_checkpoint_is_evidence_wherever_it_lies(tmp_path):
    directory = partition(tmp_path / "b1" / "orders-0")
    (tmp_path / "b1" / "bootstrap.checkpoint").write_bytes(b"")
    for given in (tmp_path, tmp_path / "b1", directory, directory / ZERO):
        assert found(given).evidence.has_bootstrap_checkpoint


@pytest.mark.parametrize("place", ["a", "b"])
def test_a_bootstrap_checkpoint_of_a_log_directory_without_partitions(tmp_path, place):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").touch()
    assert not found(tmp_path).evidence.has_bootstrap_checkpoint
    (tmp_path / place / "bootstrap.checkpoint").touch()
    assert found(tmp_path).evidence.has_bootstrap_checkpoint


def test_a_meta_properties_that_cannot_be_read_is_reported_and_is_nobodys(tmp_path):
    partition(tmp_path / "b1" / "orders-0")
    for content, identity in (("broker.id=1\n", None), ("version=0\n", None), ("version=0\nbroker.id=1\n", 1)):
        (tmp_path / "b1" / "meta.properties").write_text(content)
        layout = found(tmp_path)
        own = layout.partitions[0].identity
        assert (own.broker_id if own else None) == identity
        place = str(tmp_path / "b1" / "meta.properties")
        assert [(each.path, "version" in each.reason) for each in layout.skipped] == [(place, True)] * (
            "version" not in content
        )


def test_a_directory_that_cannot_be_listed_is_reported(tmp_path, monkeypatch):
    partition(tmp_path / "orders-0")
    (tmp_path / "closed").mkdir()
    listed = os.scandir

    def scandir(path):
        if Path(os.fspath(path)).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    layout = found(tmp_path)
    assert names(layout) == ["orders-0"]
    assert list(layout.unreadable) == [Unreadable(str(tmp_path / "closed"), "Permission denied")]


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(5, "Input/output error"), "Input/output error"), (OSError(), "OSError")]
)
def test_what_the_operating_system_says_of_a_directory(tmp_path, monkeypatch, error, reason):
    partition(tmp_path / "orders-0")

    def scandir(_path):
        raise error

    monkeypatch.setattr(os, "scandir", scandir)
    layout = found(tmp_path)
    assert list(layout.unreadable) == [Unreadable(str(tmp_path), reason)]
    assert not layout.empty_inputs


def test_a_capture_account_that_cannot_be_read_says_nothing(tmp_path):
    partition(tmp_path / "orders-0")
    account = tmp_path / "capture.json"
    account.symlink_to(account)
    layout = found(tmp_path)
    assert (names(layout), layout.evidence.features) == (["orders-0"], {})
    account.unlink()
    for text in ('{"origin": 7}', '{"origin": ' + "[" * 100_000):
        account.write_text(text)
        assert found(tmp_path).evidence.features == {}


def test_features_of_several_captures_are_those_of_all(tmp_path):
    for name, level in (("metadata.version", 25), ("transaction.version", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "capture.json").write_text(f'{{"origin": {{"features": {{"{name}": {level}}}}}}}')
    assert found(tmp_path).evidence.features == {"metadata.version": 25, "transaction.version": 2}


@pytest.mark.parametrize("left", [f"{TEN}.deleted", f"{TEN}.swap", "00000000000000000010.index.cleaned"])
def test_a_partition_of_leftover_files_alone_is_a_partition(tmp_path, left):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / left).touch()
    (tmp_path / "orders-0" / "notes").touch()
    (one,) = found(tmp_path).partitions
    assert (one.name, one.segments, one.is_fetched) == ("orders-0", (), False)
    assert [file.name for file in one.leftover_files] == [left, "notes"]


def test_nothing_is_looked_for_inside_a_partition(tmp_path):
    partition(tmp_path / "orders-0")
    partition(tmp_path / "orders-0" / "inner-1")
    partition(tmp_path / "odd" / "inner-2")
    partition(tmp_path / "odd")
    layout = found(tmp_path)
    assert names(layout) == ["orders-0"]
    assert [(file.relative, file.kind) for file in layout.leftover_files] == [("odd", "odd-name")]


def test_an_empty_directory_that_a_broker_renamed_holds_nothing_to_report(tmp_path):
    partition(tmp_path / "orders-0")
    (tmp_path / "orders-1-delete").mkdir()
    layout = found(tmp_path)
    assert not layout.leftover_files
    (tmp_path / "orders-1-delete" / "x").touch()
    (left,) = found(tmp_path).leftover_files
    assert left == LeftoverFile("orders-1-delete", "delete", "orders", 1, str(tmp_path))


def test_without_any_hint_there_is_no_evidence_of_a_release(tmp_path):
    partition(tmp_path / "b1" / "orders-0")
    evidence = found(tmp_path).evidence
    assert evidence == Evidence(meta_properties=[], has_bootstrap_checkpoint=False, broker_versions=[], features={})
    assert Evidence().has_bootstrap_checkpoint is False


def test_a_file_is_read_by_its_path_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    for text, limit, content in ((f"{tmp_path}/file", 4, b"0123"), (f"file://{tmp_path}/file", 99, b"0123456789")):
        uri = Uri.parse(text)
        assert filesystem(uri).read_start(uri, limit) == content


@pytest.mark.parametrize("per_offset", [1, 3])
def test_positions_stand_for_offsets(per_offset):
    fetched = FetchedRange("h:1", "orders", 0, 10, 12, 20, bytes_per_offset=per_offset)
    assert fetched.size == 10 * per_offset
    assert [fetched.position(offset) for offset in (10, 11, 20)] == [0, per_offset, 10 * per_offset]
    assert [fetched.offset(position) for position in (0, per_offset, 10 * per_offset)] == [10, 11, 20]
    # between two offsets it is the later one
    assert [fetched.offset(position) for position in (1, per_offset + 1)] == [11, 12]
    assert FetchedRange("h:1", "orders", 0, 10, 12, 20).size == 10


# -- names

UUID = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("orders-0", PartitionName("orders", 0)),
        ("pay-ments.x_y-12", PartitionName("pay-ments.x_y", 12)),
        (f"orders-3.{UUID}-delete", PartitionName("orders", 3, "delete")),
        (f"orders-3.{UUID}-future", PartitionName("orders", 3, "future")),
        ("orders-3-stray", PartitionName("orders", 3, "stray")),
        ("orders-3-other", None),
        ("orders-03", None),
        ("orders", None),
        ("-3", None),
        (".-3", None),
        ("..-3", None),
        ("...-3", PartitionName("...", 3)),
        ("a" * 249 + "-1", PartitionName("a" * 249, 1)),
        ("a" * 250 + "-1", None),
        ("or ders-1", None),
    ],
)
def test_names_of_partitions(name, read):
    assert parse_partition_name(name) == read


@pytest.mark.parametrize(
    ("name", "base", "leftover", "known"),
    [
        (TEN, 10, None, True),
        ("10.log", None, None, False),
        ("000000000000000000010.log", None, None, False),
        (f"{TEN}.deleted", None, "deleted", False),
        ("00000000000000000010.index.cleaned", None, "cleaned", False),
        ("00000000000000000010.log.swap", None, "swap", False),
        ("00000000000000000010.snapshot", None, None, True),
        ("00000000000000000010.timeindex.tmp", None, None, True),
        ("00000000000000000010-0000000003.checkpoint", None, None, True),
        ("leader-epoch-checkpoint", None, None, True),
        ("partition.metadata.tmp", None, None, True),
        ("notes.txt", None, None, False),
        ("deleted", None, None, False),
    ],
)
def test_names_of_files(name, base, leftover, known):
    assert (segment_base_offset(name), leftover_kind(name), is_known_file(name)) == (base, leftover, known)
