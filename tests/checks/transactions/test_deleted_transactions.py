"""Transactions whose first batches are deleted: only a producer snapshot still shows them. Snapshots are encoded here."""

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER
from kaudit.model.impact import Impact
from kaudit.partition import continuity
from kaudit.scanning.options import ScanOptions
from tests.checks.transactions.coordinator_log import COMPLETE_ABORT, ONGOING, state, write_states
from tests.crafted_sample import snapshot
from tests.logs import BASE_TIMESTAMP, Log, data, marker

FIRST = 100
"""Where the log begins: what lay before is deleted."""
# id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of its transaction
OPEN = (7, 3, 5, 60, 1, BASE_TIMESTAMP, 4, 57)
IDLE = (8, 0, 9, 99, 0, BASE_TIMESTAMP, -1, -1)


def kept(*batches, base_offset=FIRST):
    """What is left of a log: ten records of another producer, and these behind them."""
    log = Log(next_offset=base_offset)
    for batch in (data(9, 0, 0, 10), *batches):
        log.append(batch)
    return log


def audited(root, log, *snapshots, states=(), **options):
    """The findings about transactions, and the partition's last stable offset. `snapshots`: offset and entries of each."""
    directory = log.write(root / "a-0") if log.batches else root / "a-0"
    for offset, entries in snapshots:
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot(entries))
    if states:
        write_states(root, states)
    result = scan(ScanOptions([str(root)], **{"broker_version": "3.9", **options}), SilentProgress())
    (part,) = [each for each in result.partitions if each.topic == "a"]
    return [each for each in result.findings if each.code.startswith("KA30")], part.last_stable_offset


def test_one_without_a_batch_in_the_log_keeps_the_last_stable_offset_at_the_log_start(tmp_path):
    states = [state("late", COMPLETE_ABORT, [], producer_id=7, epoch=3)]
    (found,), stable = audited(tmp_path, kept(), (110, [IDLE, OPEN]), states=states)
    assert (found.code, found.severity.value, found.confidence.value) == ("KA301", "error", "certain")
    assert found.message == (
        "the transaction of producer 7 that starts at offset 57, in records that are deleted, will never end: "
        "__transaction_state has 'late' at CompleteAbort, epoch 3"
    )
    assert (found.offset, found.producer_id, found.producer_epoch) == (57, 7, 3)
    assert found.impact == Impact(last_stable_offset=FIRST, offsets_invisible=10)
    assert stable == FIRST
    assert (found.file, found.segment) == ("a-0/00000000000000000110.snapshot", f"{FIRST:020d}.log")
    assert found.position == HEADER.size + ENTRY.size, "the second entry's byte"
    assert "kaudit inspect" in found.next[-1]
    assert found.next[-1].endswith("00000000000000000110.snapshot")
    assert "--start-offset 57" in found.next[1]


def test_one_that_its_coordinator_is_at_is_open(tmp_path):
    states = [state("long", ONGOING, [("a", 0)], producer_id=7, epoch=3, timeout_ms=900_000)]
    (found,), stable = audited(tmp_path, kept(), (110, [OPEN]), states=states)
    assert (found.code, found.severity.value, stable) == ("KA302", "note", FIRST)
    assert "is ongoing within its timeout (transactional id 'long', no record of it is left" in found.message


def test_batches_that_are_left_belong_to_the_transaction_that_began_before_them(tmp_path):
    left = data(7, 3, 6, 2, transactional=True)
    (found,), stable = audited(tmp_path, kept(left), (110, [OPEN]))
    assert (found.offset, found.evidence["records"], found.evidence["first_timestamp"]) == (57, 2, None)
    assert found.file == f"a-0/{FIRST:020d}.log"
    assert (found.impact.last_stable_offset, found.impact.offsets_invisible) == (FIRST, 12)
    assert stable == FIRST


MARKER = marker(7, 3, commit=False, coordinator_epoch=4)


@pytest.mark.parametrize(("log", "snapshots"), [
    (kept(MARKER), [(110, [OPEN])]),
    (kept(data(9, 0, 10), MARKER), [(110, [OPEN])]),
    (kept(), [(110, [IDLE])]),
    (kept(), [(100, [OPEN]), (110, [IDLE])]),
    (kept(), [(111, [OPEN])]),
], ids=["ended behind it", "ended later", "idle", "ended between two snapshots", "snapshot of a longer log"])  # fmt: skip
def test_one_that_has_ended_is_silent(log, snapshots, tmp_path):
    found, stable = audited(tmp_path, log, *snapshots)
    assert (found, stable) == ([], log.next_offset)


def test_what_is_missing_behind_the_snapshot_may_have_been_the_marker(tmp_path):
    log = kept()
    log.skip(1)
    log.append(data(9, 0, 10))
    found, stable = audited(tmp_path, log, (110, [OPEN]))
    assert (found, stable) == ([], 112)


def test_gaps_that_are_only_counted_may_have_been_the_marker(tmp_path, monkeypatch):
    monkeypatch.setattr(continuity, "MAX_LISTED", 1)
    log = Log(next_offset=FIRST)
    for sequence in (0, 1, 2):
        log.append(data(9, 0, sequence))
        log.skip(1)
    log.append(data(9, 0, 3))
    found, stable = audited(tmp_path, log, (103, [OPEN]))
    assert (found, stable) == ([], 107)


def test_what_was_deleted_behind_the_snapshot_may_have_been_the_marker(tmp_path):
    found, stable = audited(tmp_path, kept(), (FIRST - 1, [OPEN]))
    assert (found, stable) == ([], 110)


def test_what_is_missing_before_the_snapshot_says_nothing(tmp_path):
    log = Log(next_offset=FIRST)
    log.append(data(9, 0, 0, 4))
    log.skip(2)
    log.append(data(9, 0, 4, 4))
    found, stable = audited(tmp_path, log, (110, [OPEN]))
    assert ([each.offset for each in found], stable) == ([57], FIRST)


def test_a_log_without_a_batch_has_its_snapshot_all_the_same(tmp_path):
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0" / f"{FIRST:020d}.log").touch()
    found, stable = audited(tmp_path, Log(), (FIRST, [OPEN]))
    assert ([each.offset for each in found], stable) == ([57], FIRST)


def test_all_batches_that_the_segment_holds_may_be_deleted(tmp_path):
    log = kept()
    log.write(tmp_path / "a-0")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 0 110\n")
    found, stable = audited(tmp_path, log, (110, [OPEN]))
    assert ([each.offset for each in found], stable) == ([57], 110)


def test_the_checkpoint_says_where_the_log_starts(tmp_path):
    log = kept()
    log.write(tmp_path / "a-0")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 0 104\n")
    (found,), stable = audited(tmp_path, log, (110, [(*OPEN[:-1], 101)]))
    assert (found.offset, found.impact.offsets_invisible, stable) == (101, 6, 104)


def test_of_a_corrupt_snapshot_the_one_before_it_counts(tmp_path):
    log = kept(data(9, 0, 10))
    log.write(tmp_path / "a-0")
    (tmp_path / "a-0" / "00000000000000000111.snapshot").write_bytes(b"torn")
    found, stable = audited(tmp_path, log, (110, [OPEN]))
    assert ([each.evidence["snapshot"] for each in found], stable) == (["00000000000000000110.snapshot"], FIRST)


@pytest.mark.parametrize(("version", "codes"), [("2.3.1", []), ("2.4.0", ["KA302"])])
def test_brokers_before_2_4_forget_it_with_its_last_batch(version, codes, tmp_path):
    found, stable = audited(tmp_path, kept(), (110, [OPEN]), broker_version=version)
    assert [each.code for each in found] == codes
    assert stable == (FIRST if codes else 110)


def test_where_the_release_is_not_known_its_having_been_forgotten_is_a_possibility(tmp_path):
    (found,), _ = audited(tmp_path, kept(), (110, [OPEN]), broker_version="auto", now_ms=BASE_TIMESTAMP + 86_400_000)
    assert found.code == "KA301"
    assert [each.cause for each in found.explanations if each.innocent] == [
        "brokers before 2.4 forgot the transaction when its last batch was deleted"
    ]


def test_the_oldest_of_two_that_began_before_the_log_is_named(tmp_path):
    later = (6, 0, 0, 80, 0, BASE_TIMESTAMP, -1, 80)
    found, stable = audited(tmp_path, kept(data(5, 0, 0, transactional=True)), (110, [later, OPEN]))
    assert sorted((each.offset, each.impact.last_stable_offset) for each in found) == [
        (57, FIRST),
        (80, None),
        (110, None),
    ]
    assert stable == FIRST
