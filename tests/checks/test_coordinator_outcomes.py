"""KA306, KA307, KA308: __transaction_state, written by hand, against markers."""

import struct

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.engines.local import scan
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, marker, record, sealed_records

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
CODES = ("KA306", "KA307", "KA308")


def state(name, status, partitions=(), *, producer_id=7, epoch=0):
    """A version 0 value as TransactionLog writes it."""
    key = struct.pack(">hh", 0, len(name)) + name.encode()
    value = struct.pack(">hqhib", 0, producer_id, epoch, 60000, status)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    value += struct.pack(">i", len(topics))
    for topic, numbers in topics.items():
        value += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">i", len(numbers))
        value += b"".join(struct.pack(">i", number) for number in numbers)
    return record(0, key, value + struct.pack(">qq", BASE_TIMESTAMP, BASE_TIMESTAMP))


def write_states(root, states, offsets=None):
    raw = b""
    for number, one in enumerate(states):
        raw += sealed_records(Batch(base_offset=number if offsets is None else offsets[number]), [one])
    directory = root / "__transaction_state-0"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(raw)


def cycle(commit, partitions):
    prepare, complete = (PREPARE_COMMIT, COMPLETE_COMMIT) if commit else (PREPARE_ABORT, COMPLETE_ABORT)
    return [state("t", ONGOING, partitions), state("t", prepare, partitions), state("t", complete)]


def write_partition(root, topic, outcomes):
    log = Log()
    for sequence, commit in enumerate(outcomes):
        log.append(data(7, 0, sequence, transactional=True))
        log.append(marker(7, 0, commit=commit))
    log.write(root / f"{topic}-0")


def told(root):
    result = scan(ScanOptions([str(root)]), SilentProgress())
    return [(entry.code, entry.topic, entry.offset) for entry in result.findings if entry.code in CODES]


BOTH = (("a", 0), ("b", 0))


def test_markers_as_decided_are_silent(tmp_path):
    write_states(tmp_path, [state("t", EMPTY), *cycle(True, BOTH), *cycle(False, BOTH), *cycle(True, [("a", 0)])])
    write_partition(tmp_path, "a", (True, False, True))
    write_partition(tmp_path, "b", (True, False))
    assert told(tmp_path) == []


def test_a_partition_that_ended_otherwise_tears_the_transaction(tmp_path):
    write_states(tmp_path, [*cycle(True, BOTH), *cycle(False, BOTH)])
    write_partition(tmp_path, "a", (True, False))
    write_partition(tmp_path, "b", (True, True))
    assert told(tmp_path) == [("KA308", "b", 3)]


def test_with_no_partition_as_decided_the_coordinator_disagrees(tmp_path):
    write_states(tmp_path, cycle(True, [("a", 0)]))
    write_partition(tmp_path, "a", (False,))
    assert told(tmp_path) == [("KA306", "a", 1)]


def test_what_cannot_be_paired_is_not_compared(tmp_path):
    write_states(tmp_path, cycle(True, [("a", 0)]))
    write_partition(tmp_path, "a", (False, False))
    assert told(tmp_path) == []


def test_a_decision_not_carried_out_yet_is_not_compared(tmp_path):
    write_states(tmp_path, [*cycle(True, [("a", 0)]), *cycle(False, [("a", 0)])[:2]])
    write_partition(tmp_path, "a", (True, True))
    assert told(tmp_path) == []


@pytest.mark.parametrize(
    ("states", "offset"),
    [
        ([ONGOING, COMPLETE_COMMIT], 1),
        ([EMPTY, PREPARE_COMMIT], 1),
        ([ONGOING, PREPARE_COMMIT, PREPARE_ABORT], 2),
        ([ONGOING, PREPARE_COMMIT, COMPLETE_ABORT], 2),
        ([ONGOING, EMPTY], 1),
        ([EMPTY, PREPARE_ABORT], 1),
    ],
)
def test_states_that_cannot_follow(tmp_path, states, offset):
    write_states(tmp_path, [state("t", status) for status in states])
    assert told(tmp_path) == [("KA307", "__transaction_state", offset)]


def test_an_epoch_never_falls(tmp_path):
    write_states(tmp_path, [state("t", EMPTY, epoch=4), state("t", EMPTY, epoch=3)])
    assert told(tmp_path) == [("KA307", "__transaction_state", 1)]


def test_states_on_both_sides_of_removed_records_are_no_neighbours(tmp_path):
    write_states(tmp_path, [state("t", ONGOING), state("t", COMPLETE_COMMIT)], offsets=[0, 5])
    assert told(tmp_path) == []


@pytest.mark.parametrize(("version", "level", "at_least"), [("3.9.1", 21, "3.9.0"), ("4.2.0", 29, "4.2.0")])
def test_feature_levels_of_real_clusters_bound_the_version(evidence, version, level, at_least):
    result = scan(ScanOptions([str(evidence.oracle(version, "logdir") / "main")]), SilentProgress())
    assert result.broker_version.at_least == at_least
    assert any(f"metadata.version {level} " in reason for reason in result.broker_version.because)


def test_a_level_of_a_later_release_is_the_newest_known():
    found, _ = infer_range(VersionEvidence(metadata_version=10**4))
    assert found.at_least <= found.at_most


def test_choosing_a_topic_does_not_hide_its_coordinator():
    everything = {
        (entry.topic, entry.offset, entry.fingerprint): entry.confidence
        for entry in scan(ScanOptions(["samples/hanging-transaction"]), SilentProgress()).findings
        if entry.code == "KA301"
    }
    topics = sorted({topic for topic, _, _ in everything if topic is not None})
    assert len(topics) > 1
    for topic in topics:
        result = scan(ScanOptions(["samples/hanging-transaction"], topics=(topic,)), SilentProgress())
        assert {summary.topic for summary in result.partitions} == {topic}
        found = {(e.topic, e.offset, e.fingerprint): e.confidence for e in result.findings if e.code == "KA301"}
        assert found == {key: sure for key, sure in everything.items() if key[0] == topic}
