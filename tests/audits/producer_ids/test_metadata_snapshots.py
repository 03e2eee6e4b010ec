"""Blocks that a metadata log no longer holds, read from the snapshots beside it (KIP-630)."""

import struct

import pytest

from kaudit.audits.producer_ids import block_sources
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, record, sealed_records

PRODUCER_IDS, FEATURE_LEVEL = b"\x01\x0f\x00", b"\x01\x0c\x00"


def granted(offset, broker, following, timestamp=BASE_TIMESTAMP):
    """A batch with one ProducerIdsRecord: frame version 1, api key 15, version 0."""
    value = PRODUCER_IDS + struct.pack(">iqq", broker, 70, following) + b"\x00"
    return sealed_records(Batch(base_offset=offset, timestamp=timestamp), [record(0, None, value)])


def feature(offset, name, level):
    value = FEATURE_LEVEL + bytes([len(name) + 1]) + name.encode() + struct.pack(">h", level) + b"\x00"
    return sealed_records(Batch(base_offset=offset), [record(0, None, value)])


def other(offset):
    """A record of another kind: api key 20, NoOpRecord."""
    return sealed_records(Batch(base_offset=offset), [record(0, None, b"\x01\x14\x00\x00")])


@pytest.fixture
def cluster(tmp_path):
    """A log of ids 2500 and 3500; the metadata log begins at offset 400, behind two snapshots."""
    written = Log()
    for producer_id in (2500, 3500):
        written.append(data(producer_id, 0, 0))
    written.write(tmp_path / "t-0")
    metadata = tmp_path / "__cluster_metadata-0"
    metadata.mkdir()
    (metadata / f"{400:020d}.log").write_bytes(other(400) + granted(401, 3, 4000) + other(402))
    (metadata / f"{200:020d}-{1:010d}.checkpoint").write_bytes(other(0) + granted(1, 1, 2000))
    (metadata / f"{402:020d}-{1:010d}.checkpoint").write_bytes(other(0) + granted(1, 3, 4000))
    (metadata / f"{400:020d}-{1:010d}.checkpoint").write_bytes(
        feature(0, "metadata.version", 25) + other(1) + granted(2, 2, 3000)
    )
    return tmp_path


def blocks(root):
    found = local.producers(ScanOptions([str(root)], jobs=1), SilentProgress(), Query())
    return [(block.start, block.end, block.broker, block.at_ms) for block in found.blocks]


def test_grants_of_snapshots_come_before_those_of_the_log(cluster):
    assert blocks(cluster) == [
        (1000, 1999, 1, None),
        (2000, 2999, 2, None),
        (3000, 3999, 3, BASE_TIMESTAMP),
    ]


def test_ids_that_only_a_snapshot_has_are_granted(cluster):
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    assert [found for found in result.findings if found.severity > Severity.NOTE] == []
    for file in (cluster / "__cluster_metadata-0").glob("*.checkpoint"):
        file.unlink()
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    # the log alone begins with block 3000..3999: nothing can be said of ids before it
    assert [found.code for found in result.findings if found.severity > Severity.NOTE] == []


def test_the_next_block_follows_the_newest_snapshot(cluster):
    for file in (cluster / "__cluster_metadata-0").glob("*.log"):
        file.write_bytes(other(402))
        file.rename(file.with_name(f"{402:020d}.log"))
    log = Log()
    log.clock -= 200_000  # before the history ends: what came later would not be checked
    log.append(data(900_001, 0, 0))
    log.write(cluster / "u-0")
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    (found,) = (found for found in result.findings if found.code == "KA401")
    assert found.evidence["next_block"] == {"start": 4000, "end": 4999}


def test_feature_levels_are_read_from_snapshots_too(cluster):
    version = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress()).broker_version
    assert any("metadata.version" in reason for reason in version.because)


def test_the_newest_grants_are_used_and_the_others_counted(cluster, monkeypatch):
    monkeypatch.setattr(block_sources, "METADATA_GRANTS", 2)
    monkeypatch.setattr(block_sources, "METADATA_GRANTS", 2)
    assert blocks(cluster) == [(2000, 2999, 2, None), (3000, 3999, 3, BASE_TIMESTAMP)]
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    (note,) = (note for note in result.not_audited if note.path.endswith("__cluster_metadata-0"))
    assert note.reason == "producer id blocks: the newest 2 are used, 1 older ones are not"
    # of what was granted before them nothing is known: 2500 and 3500 are in the two that are used
    assert [found.code for found in result.findings if found.severity > Severity.NOTE] == []


def test_damaged_places_of_a_metadata_log_are_reported_up_to_a_number(cluster, monkeypatch):
    monkeypatch.setattr(block_sources, "METADATA_PROBLEMS", 1)
    for name in (f"{200:020d}-{1:010d}.checkpoint", f"{400:020d}-{1:010d}.checkpoint"):
        path = cluster / "__cluster_metadata-0" / name
        path.write_bytes(path.read_bytes()[:-10])
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    notes = [note for note in result.not_audited if note.reason.startswith("producer id blocks: ")]
    assert [note.path.rpartition(".")[2] for note in notes[:1]] == ["checkpoint"]
    assert [note.reason for note in notes[1:]] == ["producer id blocks: 1 more damaged places"]


@pytest.mark.jvm
def test_spark_reads_metadata_logs_in_tasks(spark_session, cluster, monkeypatch):
    from kaudit.spark import engine as spark

    options = ScanOptions([str(cluster)])
    ours = local.producers(options, SilentProgress(), Query())

    def read(*arguments, **more):
        raise AssertionError("read on the driver")

    monkeypatch.setattr(block_sources, "read_metadata_log", read)
    monkeypatch.setattr("kaudit.scanning.audit.feature_levels", read)
    monkeypatch.setattr("kaudit.spark.reading_in_tasks.feature_levels", read)
    theirs = spark.producers(options, SilentProgress(), Query())
    assert theirs.blocks == ours.blocks != []
    assert [each.to_dict() for each in theirs.producers] == [each.to_dict() for each in ours.producers] != []
    assert theirs.summary == ours.summary
    assert theirs.scan == ours.scan
    named = ScanOptions([str(cluster / "t-0")], metadata=str(cluster))
    assert spark.producers(named, SilentProgress(), Query()).blocks == ours.blocks


def test_a_damaged_snapshot_is_reported_and_the_rest_used(cluster):
    path = cluster / "__cluster_metadata-0" / f"{400:020d}-{1:010d}.checkpoint"
    torn = path.read_bytes()
    path.write_bytes(torn[:-10])
    assert blocks(cluster) == [(1000, 1999, 1, None), (3000, 3999, 3, BASE_TIMESTAMP)]
    result = local.scan(ScanOptions([str(cluster)], jobs=1), SilentProgress())
    assert [note.path for note in result.not_audited if note.path.endswith(".checkpoint")] == [str(path)]
