import json
import shutil
from pathlib import Path

import pytest

from kaudit.formats.errors import Reason
from kaudit.source.zookeeper import (
    SeveralDataDirectoriesError,
    ZooKeeperFiles,
    find_zookeeper_files,
    read_znode,
)
from tests.formats.zookeeper.zookeeper_bytes import log, set_data, transaction

ZNODE = "/latest_producer_id_block"


@pytest.fixture
def data(evidence, tmp_path: Path) -> Path:
    """A copy of the capture's data directory that a test may break."""
    return Path(shutil.copytree(evidence.capture("zk-pid-blocks") / "zk", tmp_path / "cluster" / "zk"))


def versions(files: ZooKeeperFiles) -> list[int | None]:
    return [sighting.change.version for sighting in read_znode(files, ZNODE).sightings.get(ZNODE, [])]


def test_the_three_ways_to_name_the_directory(data: Path):
    found = [find_zookeeper_files(path) for path in (data, data / "version-2", data.parent)]
    assert found[0] == found[1] == found[2]
    assert [path.name for path in found[0].logs] == [
        "log.1", "log.15", "log.2b", "log.47", "log.65", "log.79", "log.91", "log.ae", "log.ca",
    ]  # fmt: skip
    assert len(found[0].snapshots) == 8


def test_logs_and_snapshots_in_directories_of_their_own(data: Path):
    logs = data.parent / "zklog" / "version-2"
    logs.mkdir(parents=True)
    for path in (data / "version-2").glob("log.*"):
        path.rename(logs / path.name)
    files = find_zookeeper_files(data.parent)
    assert (len(files.logs), len(files.snapshots)) == (9, 8)
    assert versions(files) == list(range(10))


def test_two_ensembles_are_not_mixed(data: Path):
    shutil.copytree(data, data.parent / "other")
    with pytest.raises(SeveralDataDirectoriesError) as caught:
        find_zookeeper_files(data.parent)
    assert [path.parent.name for path in caught.value.candidates] == ["other", "zk"]
    assert "name one" in str(caught.value)


def test_other_files_are_listed_and_left(data: Path):
    for name in ("snapshot.ff.gz", "acceptedEpoch", "log.xyz"):
        (data / "version-2" / name).write_bytes(b"1")
    files = find_zookeeper_files(data)
    assert [path.name for path in files.unknown] == ["acceptedEpoch", "log.xyz", "snapshot.ff.gz"]
    assert versions(files) == list(range(10))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("log.0", "logs"),
        ("log.0123456789abcdef", "logs"),
        ("snapshot.0123456789abcdef", "snapshots"),
        ("log.", "unknown"),
        ("log.10123456789abcdef", "unknown"),
        ("log.1F", "unknown"),
        ("log.g", "unknown"),
        ("log.1g", "unknown"),
        ("snapshot.", "unknown"),
        ("logs.1", "unknown"),
    ],
)
def test_names_of_logs_and_snapshots(tmp_path, name, kind):
    (tmp_path / name).touch()
    files = find_zookeeper_files(tmp_path)
    found = {"logs": files.logs, "snapshots": files.snapshots, "unknown": files.unknown}
    assert {key: [path.name for path in paths] for key, paths in found.items() if paths} == {kind: [name]}


def test_every_value_the_watch_saw_and_the_one_before(evidence):
    root = evidence.capture("zk-pid-blocks")
    watched = json.loads((root / "acks.json").read_text())["timeline"]
    found = read_znode(find_zookeeper_files(root), ZNODE)
    changes = [sighting.change for sighting in found.sightings[ZNODE]]
    seen = [(change.version, change.zxid, change.time_ms, (change.data or b"").decode()) for change in changes]
    assert seen[2:] == [(line["version"], line["mzxid"], line["mtime"], line["data"]) for line in watched]
    # Written before the watch began, and listed in tests/data/captures/zk-pid-blocks.md.
    assert seen[0][0] == 0
    assert seen[0][3] == ""
    assert seen[1][0] == 1
    assert json.loads(seen[1][3]) == {"version": 1, "broker": 0, "block_start": "0", "block_end": "999"}
    assert (found.damages + found.conflicts, found.gaps, found.first_zxid, found.last_zxid) == ([], [], 1, 0xD2)


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2"])
def test_every_value_the_oracle_saw(evidence, version: str):
    timeline = json.loads((Path(__file__).parent.parent / "data/oracle" / version / "pid_blocks.json").read_text())
    watched = {}
    for event in timeline["timeline"]:
        znode = event["znode"]
        if "data" in znode:
            watched[znode["mzxid"]] = (znode["version"], znode["mtime"], znode["data"].encode())
    found = read_znode(find_zookeeper_files(evidence.oracle(version, "zk") / "pid-data"), ZNODE)
    changes = {sighting.change.zxid: sighting.change for sighting in found.sightings[ZNODE]}
    own = {zxid: (change.version, change.time_ms, change.data) for zxid, change in changes.items()}
    assert watched.items() <= own.items()
    # Between two looks brokers took one block more, twice; the rest is creation without a value and deletion.
    assert sorted(str(change[0]) for zxid, change in own.items() if zxid not in watched) == ["0", "16", "20", "None"]
    assert (found.damages, found.conflicts, found.gaps) == ([], [], [])


def test_a_broken_and_an_empty_file_do_not_stop_the_others(data: Path):
    folder = data / "version-2"
    (folder / "log.65").write_bytes(b"nonsense" * 10)
    (folder / "log.ff").write_bytes(b"")
    found = read_znode(find_zookeeper_files(data), ZNODE)
    assert [(damage.file.name, damage.damage.reason) for damage in found.damages] == [
        ("log.65", Reason.VERSION),
        ("log.ff", Reason.TRUNCATED),
    ]
    # The snapshot taken after the lost log has the value that was written there.
    assert [sighting.change.version for sighting in found.sightings[ZNODE]] == list(range(10))
    assert [sighting.file.name for sighting in found.sightings[ZNODE] if sighting.change.version == 4] == [
        "snapshot.77"
    ]
    assert found.gaps == [(0x64, 0x79)]


def test_a_broken_and_a_vanished_snapshot_do_not_stop_the_others(data: Path):
    (data / "version-2" / "snapshot.77").write_bytes(b"nonsense" * 10)
    files = find_zookeeper_files(data)
    gone = files.snapshots[-1]
    gone.unlink()
    found = read_znode(files, ZNODE)
    ((name, damage),) = [(each.file.name, each.damage) for each in found.damages]
    assert (name, damage.position, damage.reason) == ("snapshot.77", 0, Reason.VERSION)
    assert found.unreadable == [(gone, "No such file or directory")]
    assert [sighting.change.version for sighting in found.sightings[ZNODE]] == list(range(10))


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(5, "Input/output error"), "Input/output error"), (OSError("odd"), "odd")]
)
def test_what_the_operating_system_says_of_a_file(data: Path, monkeypatch, error, reason):
    def refuse(_path, _mode):
        raise error

    files = find_zookeeper_files(data)
    monkeypatch.setattr("kaudit.source.zookeeper.open_regular", refuse)
    found = read_znode(files, ZNODE)
    assert found.unreadable == [(path, reason) for path in (*files.logs, *files.snapshots)]
    assert not found.sightings


FIRST, SECOND, THIRD = ((epoch << 32) for epoch in (1, 2, 3))


@pytest.mark.parametrize(
    ("last", "following", "is_gap"),
    [
        (FIRST + 9, FIRST + 10, False),
        (FIRST + 9, FIRST + 11, True),
        (FIRST + 9, FIRST + 9, False),
        (FIRST + 9, FIRST + 5, False),
        (FIRST + 9, SECOND, False),
        (FIRST + 9, SECOND + 1, False),
        (FIRST + 9, SECOND + 2, True),
        (SECOND + 9, THIRD + 1, False),
        (FIRST + 9, THIRD + 1, False),
        (FIRST, FIRST + 2, True),
    ],
)
def test_zxids_count_up_and_from_1_under_each_leader(tmp_path, last, following, is_gap):
    (tmp_path / "version-2").mkdir()
    for name, zxid in (("log.1", last), ("log.2", following)):
        body = transaction(zxid, 5, set_data("/x", b"", 1), time=zxid)
        (tmp_path / "version-2" / name).write_bytes(log(body))
    found = read_znode(find_zookeeper_files(tmp_path), ZNODE)
    assert found.gaps == ([(last, following)] if is_gap else [])
    assert (found.first_zxid, found.last_zxid, found.observed_until_ms) == (last, following, following)


def test_a_damaged_transaction_is_reported_with_file_and_position(data: Path):
    path = data / "version-2" / "log.79"
    content = bytearray(path.read_bytes())
    # The write of block 4000-4999 starts at byte 1216 of this log.
    content[1300] ^= 0xFF
    path.write_bytes(content)
    found = read_znode(find_zookeeper_files(data), ZNODE)
    (damage,) = found.damages
    assert (damage.file, damage.damage.reason, damage.damage.position) == (path, Reason.CRC, 1216)
    # The snapshot taken later has it.
    assert [sighting.file.name for sighting in found.sightings[ZNODE] if sighting.change.version == 5] == [
        "snapshot.90"
    ]


def test_a_log_without_transactions_covers_nothing(data: Path):
    (data / "version-2" / "log.ff").write_bytes((data / "version-2" / "log.1").read_bytes()[:16] + bytes(64))
    found = read_znode(find_zookeeper_files(data), ZNODE)
    assert (found.damages, found.gaps, found.last_zxid) == ([], [], 0xD2)


def test_snapshots_without_logs(data: Path):
    for path in (data / "version-2").glob("log.*"):
        path.unlink()
    found = read_znode(find_zookeeper_files(data), ZNODE)
    assert [sighting.change.version for sighting in found.sightings[ZNODE]] == [0, 1, 2, 3, 4, 5, 8, 9]
    assert found.observed_until_ms is None


def test_two_files_that_disagree_are_named(data: Path):
    path = data / "version-2" / "snapshot.77"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"block_start":"3000"', b'"block_start":"3001"'))
    found = read_znode(find_zookeeper_files(data), ZNODE)
    assert [(damage.file.name, damage.damage.reason) for damage in found.damages] == [("snapshot.77", Reason.CRC)]
    ((used, other),) = found.conflicts
    assert (used.file.name, other.file.name, used.change.zxid) == ("log.65", "snapshot.77", 108)
    assert used in found.sightings[ZNODE]


def test_a_file_that_vanished_is_named(data: Path):
    files = find_zookeeper_files(data)
    (data / "version-2" / "log.65").unlink()
    found = read_znode(files, ZNODE)
    assert [(path.name, words) for path, words in found.unreadable] == [("log.65", "No such file or directory")]
    # The snapshots taken before and after it fill in.
    assert [sighting.change.version for sighting in found.sightings[ZNODE]] == list(range(10))
