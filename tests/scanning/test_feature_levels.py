"""Feature levels as evidence of the version."""

import struct
from pathlib import Path

import pytest

from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning import versions as module
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.versions import feature_levels
from kaudit.source.layout import PartitionDirectory, SegmentFile
from tests.formats import encoders
from tests.formats.internal_topics.test_metadata_records import frame
from tests.logs import Batch, Log, data, record, sealed_records
from tests.memory import Memory

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


@pytest.mark.parametrize(("version", "level", "at_least"), [("3.9.1", 21, "3.9.0"), ("4.2.0", 29, "4.2.0")])
def test_feature_levels_of_real_clusters_bound_the_version(evidence, version, level, at_least):
    result = scan(ScanOptions([str(evidence.oracle(version, "logdir") / "main")]), SilentProgress())
    assert result.broker_version.at_least == at_least
    assert any(f"metadata.version {level} " in reason for reason in result.broker_version.because)


def test_a_level_of_a_later_release_is_the_newest_known():
    found, _ = infer_range(VersionEvidence(metadata_version=10**4))
    assert found.at_least <= found.at_most


def test_a_client_that_sets_the_delete_horizon_bit_is_no_evidence(tmp_path):
    """The cleaner writes a horizon that lies ahead of the records; a client's batch has its first timestamp there."""
    log = Log()
    log.append(Batch(1, 0, 0, attributes=0x40))
    log.next_offset += 1
    log.append(data(1, 0, 1))
    result = scan(ScanOptions([str(log.write(tmp_path / "orders-0"))]), SilentProgress())
    assert result.broker_version.at_least == "0.11.0.0"
    assert "KA007" in {finding.code for finding in result.findings}  # and so the gap is not taken for the cleaner's


def test_the_cleaners_own_horizons_are_evidence():
    """A segment that a broker of 4.1.0 cleaned (tests/conformance/recorder, scenario s39c)."""
    result = scan(ScanOptions([str(RECORDED / "4.1.0" / "s39c-compacted-txn-0")]), SilentProgress())
    assert result.broker_version.at_least == "3.1.0"
    assert any("a batch with a delete horizon" in reason for reason in result.broker_version.because)


def level_batch(offset, name, level):
    """A batch of __cluster_metadata with one FeatureLevelRecord."""
    body = encoders.compact_string(name) + struct.pack(">h", level) + encoders.tagged({})
    return sealed_records(Batch(base_offset=offset), [record(0, None, frame(12, body))])


class Metadata:
    """Files of a metadata log in memory, by the offset they are named after; of a snapshot it is its end."""

    def __init__(self, segments, snapshots=(), topic="__cluster_metadata"):
        self.contents = {}
        files = [self._file(f"{base:020d}.log", base, content) for base, content in segments.items()]
        beside = [
            self._file(f"{end:020d}-0000000001.checkpoint", 0, content) for end, content in dict(snapshots).items()
        ]
        self.directory = PartitionDirectory(topic, 0, "d", "/d", "/d/m-0", "m-0", files, side_files=beside)
        self.opened = []

    def _file(self, name, base, content):
        self.contents[name] = content
        return SegmentFile(f"/d/m-0/{name}", name, base, len(content), 0)

    def open(self, file):
        self.opened.append(file.name)
        content = self.contents[file.name]
        if content is None:
            raise OSError("gone")
        return Memory(content)

    @property
    def levels(self):
        self.opened.clear()
        return feature_levels([self.directory], self.open)


def test_the_highest_level_that_a_feature_ever_had():
    metadata = Metadata(
        {
            0: level_batch(0, "metadata.version", 8) + level_batch(1, "metadata.version", 21),
            2: level_batch(2, "metadata.version", 19) + level_batch(3, "transaction.version", 2),
        },
        {2: level_batch(0, "group.version", 1)},
    )
    assert metadata.levels == {"metadata.version": 21, "transaction.version": 2, "group.version": 1}
    assert metadata.opened == [f"{2:020d}-0000000001.checkpoint", f"{0:020d}.log", f"{2:020d}.log"]
    assert Metadata({0: level_batch(0, "metadata.version", 21)}, topic="orders").levels == {}


def test_only_so_much_of_a_metadata_log_is_read(monkeypatch):
    """A batch counts if it lies whole in what is read; files behind that are not opened."""
    batches = [level_batch(number, name, number + 1) for number, name in enumerate("abcd")]
    size = len(batches[0])
    assert {len(batch) for batch in batches} == {size}
    metadata = Metadata({0: batches[0] + batches[1], 2: batches[2], 3: batches[3]})
    for limit, names, opened in (
        (4 * size, "abcd", 3),
        (4 * size - 1, "abc", 3),
        (3 * size + 1, "abc", 3),
        (3 * size, "abc", 2),
        (2 * size + 1, "ab", 2),
        (2 * size, "ab", 1),
        (size, "a", 1),
    ):
        monkeypatch.setattr(module, "_MAX_BYTES", limit)
        levels = metadata.levels
        assert "".join(sorted(levels))[: len(names)] == names, limit
        assert len(metadata.opened) == opened, limit
    monkeypatch.setattr(module, "_MAX_BATCH", size - 1)
    assert metadata.levels == {}


def test_what_cannot_be_read_is_passed_over():
    """A file that is gone, records that are not decoded, a batch whose CRC does not hold."""
    metadata = Metadata(
        {
            0: level_batch(0, "a", 1),
            1: sealed_records(Batch(base_offset=1), [record(0, None, b"\x02\x0f\x00")]) + level_batch(2, "b", 2),
            3: level_batch(3, "c", 3)[:-1] + b"\x01",
            4: level_batch(4, "d", 4),
        }
    )
    metadata.contents[f"{0:020d}.log"] = None
    assert metadata.levels == {"b": 2, "d": 4}


@pytest.mark.parametrize("head", [b"\x01\x0c\x00", b"\x00\x0c\x00", b"\x81\x00\x8c\x00\x80\x00", b"\x01\x0c\x80\x00"])
def test_a_level_is_found_among_other_records_however_its_numbers_are_written(head):
    body = encoders.compact_string("metadata.version") + struct.pack(">h", 21) + encoders.tagged({})
    values = [frame(20, b"\x00"), head + body, frame(20, b"\x00")]
    records = [record(number, None, value) for number, value in enumerate(values)]
    batch = sealed_records(Batch(base_offset=0, count=len(records)), records)
    log = Metadata({0: batch})
    assert feature_levels([log.directory], log.open) == {"metadata.version": 21}


def test_batches_without_a_level_are_not_decoded(monkeypatch):
    decoded: list[bytes] = []

    def noting(data):
        decoded.append(bytes(data))
        return []

    monkeypatch.setattr(module, "read_records", noting)
    without = [sealed_records(Batch(base_offset=number), [record(0, None, frame(20, b"\x00"))]) for number in range(3)]
    level = level_batch(3, "metadata.version", 21)
    log = Metadata({0: b"".join([*without, level])})
    assert feature_levels([log.directory], log.open) == {}
    assert decoded == [level]
