"""KA016: groups that committed more of a log than it holds (KIP-101: a leader begins with all below the high watermark)."""

import base64
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.coverage import OffsetClass
from kaudit.scanning.options import ScanOptions
from tests.commits import commit_batch, commit_log
from tests.logs import TRANSACTIONAL, Batch, data, marker

END = 10
TOPIC_ID = bytes(range(16))


def log_of(directory: Path, *, epochs=(0, 0), end=END, name="orders-0", topic_id=None) -> None:
    """Two batches, with a leader epoch each, up to `end`."""
    partition = directory / name
    partition.mkdir(parents=True)
    batches = [data(1, 0, 0, 5, leader_epoch=epochs[0]), data(1, 0, 5, end - 5, leader_epoch=epochs[1]).at(5)]
    (partition / f"{0:020d}.log").write_bytes(b"".join(batch.encode() for batch in batches))
    if topic_id is not None:
        text = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}")


def offsets_of(directory: Path, content: bytes, number=0) -> None:
    partition = directory / f"__consumer_offsets-{number}"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(content)


def commit(offset, epoch=0, group="g", topic="orders"):
    return (group, topic, 0, offset, epoch)


def scanned(*directories):
    return scan(ScanOptions([str(each) for each in directories], jobs=1), SilentProgress())


def found(result):
    return [(each.severity.value, each.offset, each.last_offset) for each in result.findings if each.code == "KA016"]


def kinds(result, topic="orders"):
    (account,) = [each for each in result.coverage if each.topic == topic]
    return {each.kind: each.offsets for each in account.ranges}


@pytest.mark.parametrize(
    ("epochs", "commits", "expected"),
    [
        ((0, 0), [[commit(10)]], []),
        ((0, 0), [[commit(12)]], [("note", 10, 11)]),
        # a later leader goes on without what was consumed
        ((0, 3), [[commit(12)]], [("error", 10, 11)]),
        ((0, 3), [[commit(12, 2)]], [("error", 10, 11)]),
        # records of the leader that this copy follows, or of one after it: it may lag
        ((0, 3), [[commit(12, 3)]], [("note", 10, 11)]),
        ((0, 3), [[commit(12, 4)]], [("note", 10, 11)]),
        # set by a program: nobody says of which leader epoch
        ((0, 3), [[commit(12, -1)]], [("note", 10, 11)]),
        # only the newest of a group counts, a tombstone removes it, and groups are apart
        ((0, 3), [[commit(12)], [commit(9)]], []),
        ((0, 3), [[commit(12)], [commit(None)]], []),
        ((0, 3), [[commit(12)], [commit(None, group="other")]], [("error", 10, 11)]),
        ((0, 3), [[commit(12), commit(14, 3, "other")]], [("error", 10, 11), ("note", 10, 13)]),
        ((0, 3), [[commit(12, topic="payments")]], []),
    ],
)
def test_what_commits_prove(tmp_path, epochs, commits, expected):
    log_of(tmp_path, epochs=epochs)
    offsets_of(tmp_path, commit_log(*commits))
    result = scanned(tmp_path)
    assert found(result) == expected
    severities = {severity for severity, *_ in expected}
    assert kinds(result) == {
        **({OffsetClass.MISSING: 2} if "error" in severities else {}),
        **({OffsetClass.UNKNOWN: 2} if "note" in severities else {}),
    }
    assert result.incomplete is ("note" in severities)


def test_a_copy_that_has_the_records_shows_that_the_other_one_lags(tmp_path):
    log_of(tmp_path / "b1", epochs=(0, 3))
    log_of(tmp_path / "b2", end=12)
    offsets_of(tmp_path / "b1", commit_log([commit(12)]))
    result = scanned(tmp_path / "b1", tmp_path / "b2")
    assert found(result) == []
    assert not result.incomplete


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (None, []),
        (marker(7, 0), [("error", 10, 11)]),
        (marker(7, 0, commit=False), []),
        (marker(8, 0), []),
    ],
)
def test_offsets_of_a_transaction_count_when_it_is_committed(tmp_path, end, expected):
    log_of(tmp_path, epochs=(0, 3))
    content = commit_batch(Batch(7, 0, 0, attributes=TRANSACTIONAL), [commit(12)])
    offsets_of(tmp_path, content + (b"" if end is None else end.at(1).encode()))
    assert found(scanned(tmp_path)) == expected


@pytest.mark.parametrize(
    ("topic_id", "own", "expected"),
    [
        (TOPIC_ID, TOPIC_ID, [("error", 10, 11)]),
        (TOPIC_ID, TOPIC_ID[::-1], []),  # the topic was deleted and created again
        (bytes(16), TOPIC_ID, [("error", 10, 11)]),
        (TOPIC_ID, None, [("error", 10, 11)]),
    ],
)
def test_commits_of_another_topic_of_the_same_name(tmp_path, topic_id, own, expected):
    log_of(tmp_path, epochs=(0, 3), topic_id=own)
    offsets_of(tmp_path, commit_batch(Batch(), [commit(12)], topic_id))
    assert found(scanned(tmp_path)) == expected


def test_the_replica_that_goes_furthest_is_read(tmp_path):
    log_of(tmp_path / "b1", epochs=(0, 3))
    often = [[commit(10, 0, f"group-{number}") for number in range(200)]] * 2
    old, new = [[commit(12)], *often, [commit(11, 0, "late")]], [[commit(12)], *often, [commit(9, 0, "late")]]
    offsets_of(tmp_path / "b1", commit_log(*old))
    offsets_of(tmp_path / "b2", commit_log(*new, [commit(10)]))
    assert found(scanned(tmp_path)) == []


def test_what_damage_or_another_witness_accounts_for_is_not_counted_again(tmp_path):
    log_of(tmp_path, epochs=(0, 3))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 15\n")
    offsets_of(tmp_path, commit_log([commit(12)]))
    result = scanned(tmp_path)
    assert found(result) == []
    assert kinds(result) == {OffsetClass.MISSING: 5}


def test_bytes_that_are_no_commits_are_passed_over(tmp_path):
    log_of(tmp_path, epochs=(0, 3))
    broken = commit_batch(Batch(), [commit(12)])
    other = data(-1, -1, -1, 3, payload=b"no commit").at(1).encode()
    offsets_of(tmp_path, broken + other)
    assert found(scanned(tmp_path)) == [("error", 10, 11)]
