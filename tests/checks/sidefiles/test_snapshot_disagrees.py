"""KA502: snapshots against the state of the log before them. Files are encoded here, states written down by hand."""

import os
from pathlib import Path
from typing import Any

import pytest

from kaudit.audits.sidefiles.snapshot_states import read_snapshot
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.crafted_sample import DAY_MS, snapshot
from tests.logs import BASE_TIMESTAMP, Log, data, marker

# id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of its transaction
ONE = (1, 0, 4, 4, 2, BASE_TIMESTAMP + 2, -1, -1)
TWO = (2, 3, 1, 6, 1, BASE_TIMESTAMP + 4, 5, -1)
OPEN = (3, 0, 0, 8, 0, BASE_TIMESTAMP + 5, -1, 8)


def log() -> Log:
    written = Log()
    written.append(data(1, 0, 0, 2))
    written.append(data(1, 0, 2, 3))
    written.append(data(2, 3, 0, 2, transactional=True))
    written.append(marker(2, 3, coordinator_epoch=5))
    written.append(data(3, 0, 0, transactional=True))
    return written


def disagreements(tmp_path: Path, rows, *, offset=9, written=None, starts=(), **options):
    directory = (written or log()).write(tmp_path / "orders-0", segment_starts=starts)
    path = directory / f"{offset:020d}.snapshot"
    path.write_bytes(snapshot(rows))
    modified = options.pop("modified_ms", BASE_TIMESTAMP + 3_600_000) / 1000
    os.utime(path, (modified, modified))
    result = scan(ScanOptions([str(directory)], **options), SilentProgress())
    return [found for found in result.findings if found.code == "KA502"]


def test_the_state_of_the_log_is_no_finding(tmp_path):
    assert disagreements(tmp_path, [ONE, TWO, OPEN]) == []


def changed(row, **fields):
    names = ("producer_id", "epoch", "sequence", "offset", "delta", "timestamp", "coordinator", "txn")
    return tuple(fields.get(name, value) for name, value in zip(names, row, strict=True))


WRONG = {
    "sequence": ([changed(ONE, sequence=9), TWO, OPEN], 1, "says last sequence 9, the log 4"),
    "epoch": ([changed(ONE, epoch=1), TWO, OPEN], 1, "says epoch 1, the log 0"),
    "length": ([changed(ONE, delta=1), TWO, OPEN], 1, "says offset delta 1, the log 2"),
    "behind": ([changed(ONE, sequence=1, offset=1, delta=1), TWO, OPEN], 1, "ends at offset 1, the producer's last batch at 4"),
    "ahead": ([changed(ONE, sequence=5, offset=5, delta=0), TWO, OPEN], 1, "names a batch that ends at offset 5"),
    "coordinator": ([ONE, changed(TWO, coordinator=6), OPEN], 2, "says coordinator epoch 6, the log 5"),
    "transaction": ([ONE, TWO, changed(OPEN, txn=-1)], 3, "says transaction open since offset -1, the log 8"),
    "never ended": ([ONE, changed(TWO, txn=5), OPEN], 2, "says transaction open since offset 5, the log -1"),
    "time": ([changed(ONE, timestamp=5), TWO, OPEN], 1, "says timestamp 5, the log"),
    "stranger": ([ONE, TWO, OPEN, changed(ONE, producer_id=77)], 77, "names a producer that wrote nothing there"),
    "open one missing": ([ONE, TWO], 3, "lacks a producer whose transaction is open"),
    "younger one missing": ([ONE, OPEN], 2, "lacks a producer while one that was idle for longer is kept"),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "producer_id", "words"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("starts", [(), (5,)], ids=["one segment", "two segments"])
def test_what_the_log_contradicts(tmp_path, rows, producer_id, words, starts):
    (found,) = disagreements(tmp_path, rows, starts=starts)
    assert (found.producer_id, found.offset, found.severity.value) == (producer_id, 9, "error")
    assert words in found.message
    assert found.file == "orders-0/00000000000000000009.snapshot"
    assert found.segment == f"{starts[-1] if starts else 0:020d}.log"


@pytest.mark.parametrize("starts", [(), (5,)], ids=["inside a chunk", "between segments"])
def test_at_an_offset_before_the_end(tmp_path, starts):
    assert disagreements(tmp_path, [ONE], offset=5, starts=starts) == []
    (found,) = disagreements(tmp_path, [changed(ONE, sequence=3)], offset=5, starts=starts)
    assert "says last sequence 3, the log 4" in found.message


def test_whoever_was_idle_for_longest_may_have_expired(tmp_path):
    assert disagreements(tmp_path, [TWO, OPEN]) == []


def test_nobody_expires_within_seconds(tmp_path):
    (found,) = disagreements(tmp_path, [TWO, OPEN], modified_ms=BASE_TIMESTAMP + 1000)
    assert found.producer_id == 1


def test_a_marker_sets_the_timestamp_from_2_4_1_on_only(tmp_path):
    before = [ONE, changed(TWO, timestamp=BASE_TIMESTAMP + 3), OPEN]
    assert disagreements(tmp_path, before, broker_version="2.4.0") == []
    assert disagreements(tmp_path, before) == []


def test_a_snapshot_may_run_ahead_of_its_offset_before_1_0_2(tmp_path):
    ahead = [changed(ONE, sequence=9, offset=9, delta=0), TWO, OPEN]
    for version, severity in (("1.0.1", "note"), ("1.0.2", "error")):
        (found,) = disagreements(tmp_path, ahead, broker_version=version)
        assert "from beyond the snapshot's own offset" in found.message
        assert found.severity.value == severity


def test_what_is_gone_from_the_log_is_not_compared(tmp_path):
    cut = Log(next_offset=100)
    cut.append(data(1, 0, 7))
    cut.append(data(1, 0, 8))
    rows = [
        (1, 0, 8, 101, 0, BASE_TIMESTAMP + 2, 4, 60),  # a marker and a transaction from before the log's start
        (5, 2, 10, 90, 0, BASE_TIMESTAMP - 9, -1, -1),
    ]
    assert disagreements(tmp_path, rows, offset=102, written=cut) == []
    assert [found.producer_id for found in disagreements(tmp_path, [changed(rows[0], sequence=9)], offset=102, written=cut)] == [1]  # fmt: skip


def test_a_forgotten_producer_begins_anew_without_coordinator_epoch(tmp_path):
    assert disagreements(tmp_path, [ONE, changed(TWO, coordinator=-1), OPEN]) == []


def test_a_repeated_batch_is_judged_as_a_replica_adopts_it(tmp_path):
    """The audit's own state does not adopt a duplicate; a broker that reads this log does."""
    written = Log()
    first = written.append(data(1, 0, 0))
    for sequence in range(1, 8):
        written.append(data(1, 0, sequence))
    written.append(first, keep_time=True)
    assert disagreements(tmp_path, [(1, 0, 0, 8, 0, BASE_TIMESTAMP + 1, -1, -1)], written=written) == []
    (found,) = disagreements(tmp_path, [(1, 0, 7, 7, 0, BASE_TIMESTAMP + 8, -1, -1)], written=written)
    assert "ends at offset 7, the producer's last batch at 8" in found.message


def test_a_corrupt_snapshot_is_not_compared(tmp_path):
    directory = log().write(tmp_path / "orders-0")
    (directory / f"{9:020d}.snapshot").write_bytes(b"torn")
    assert scan(ScanOptions([str(directory)]), SilentProgress()).summary.findings["error"] == 0


def test_of_a_producer_of_markers_only_no_batch_is_remembered(tmp_path):
    written = Log()
    written.append(data(1, 0, 0))
    written.append(marker(8, 2, coordinator_epoch=4))
    first = (1, 0, 0, 0, 0, BASE_TIMESTAMP + 1, -1, -1)
    only = (8, 2, -1, -1, 0, BASE_TIMESTAMP + 2, 4, -1)
    assert disagreements(tmp_path, [first, only], offset=2, written=written) == []
    for wrong in ({"sequence": 0}, {"offset": 0}, {"delta": 1}, {"epoch": 1}, {"coordinator": 3}, {"txn": 1}):
        found = disagreements(tmp_path, [first, changed(only, **wrong)], offset=2, written=written)
        assert [each.producer_id for each in found] == [8], wrong


def test_a_snapshot_deleted_while_it_is_compared_lacks_nobody(tmp_path, monkeypatch):
    read: list[str] = []

    def deleted_after_one_reading(file, open_source):
        read.append(file.name)
        if len(read) > 1:
            Path(file.path).unlink()
        return read_snapshot(file, open_source)

    monkeypatch.setattr("kaudit.audits.sidefiles.snapshot_check.read_snapshot", deleted_after_one_reading)
    assert disagreements(tmp_path, [ONE, OPEN]) == []
    assert read == ["00000000000000000009.snapshot"] * 2


def test_many_producers_that_expired_are_not_read_again(tmp_path, monkeypatch):
    written = Log(clock=BASE_TIMESTAMP - 9 * DAY_MS)
    for producer_id in range(2000):
        written.append(data(producer_id, 0, 0))
    written.clock = BASE_TIMESTAMP
    written.append(data(5000, 0, 0))
    monkeypatch.setattr("kaudit.audits.sidefiles.snapshot_check.replica_states", lambda *_: pytest.fail("read again"))
    kept = [(5000, 0, 0, 2000, 0, BASE_TIMESTAMP + 1, -1, -1)]
    assert disagreements(tmp_path, kept, offset=2001, written=written) == []


def large_log() -> tuple[Log, dict[int, list[tuple[int, ...]]]]:
    """18 MiB by 20 producers, one of them transactional, and the rows of snapshots at two offsets in the middle."""
    written, rows = Log(), {}
    newest: dict[int, Any] = {}
    for number in range(18 << 10):
        if number in (9 << 10, 17 << 10):
            rows[number] = [newest[producer_id] for producer_id in sorted(newest)]
        producer_id, sequence = number % 20, number // 20
        batch = written.append(data(producer_id, 0, sequence, transactional=producer_id == 7, payload=b"x" * 1000))
        opened = 7 if producer_id == 7 else -1
        newest[producer_id] = (producer_id, 0, sequence, batch.base_offset, 0, batch.timestamp, -1, opened)
    return written, rows


def scanned(directory, **options):
    result = scan(ScanOptions([str(directory)], **options), SilentProgress())
    assert [note for note in result.not_audited if "KA502" in note.reason] == []
    return [(found.code, found.producer_id, found.offset, found.message) for found in result.findings]


def test_in_the_middle_of_a_large_segment(tmp_path):
    written, rows = large_log()
    directory = written.write(tmp_path / "orders-0")
    undisturbed = scanned(directory)
    for offset, entries in rows.items():
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot(entries))
    assert scanned(directory) == undisturbed
    first, second = rows
    tampered = [changed(row, sequence=4) if row[0] == 3 else row for row in rows[second]]
    (directory / f"{second:020d}.snapshot").write_bytes(snapshot(tampered))
    found = [finding for finding in scanned(directory) if finding not in undisturbed]
    assert [(code, producer_id, offset) for code, producer_id, offset, _ in found] == [("KA502", 3, second)]
    (directory / f"{first:020d}.snapshot").write_bytes(snapshot([changed(row, delta=1) for row in rows[first]]))
    found = [finding for finding in scanned(directory) if finding not in undisturbed]
    assert {offset for _, _, offset, _ in found} == set(rows)


def odd_log() -> Log:
    """Gaps, repeats, a restart, an epoch, batches without a producer, transactions, a hole."""
    written = Log()
    first = written.append(data(1, 0, 0, 2))
    for sequence in (2, 3, 5, 6):
        written.append(data(1, 0, sequence))
    written.append(first, keep_time=True)
    for _ in range(2):
        written.append(data(-1, -1, -1, 3))
    written.append(data(2, 3, 0, 2, transactional=True))
    written.append(data(2, 3, 2))
    written.append(marker(2, 3, coordinator_epoch=5))
    written.skip(4)
    written.append(data(1, 1, 3))
    written.append(data(3, 0, 0, 4, transactional=True))
    written.append(data(1, 0, 7))
    return written


@pytest.mark.parametrize("flipped", [None, 300], ids=["sound", "damaged"])
@pytest.mark.parametrize("chunk_bytes", [None, 100, 400])
def test_snapshots_inside_a_chunk_change_no_other_finding(tmp_path, chunk_bytes, flipped):
    written = odd_log()
    directory = written.write(tmp_path / "orders-0")
    if flipped is not None:
        segment = directory / f"{0:020d}.log"
        damaged = bytearray(segment.read_bytes())
        damaged[flipped] ^= 1
        segment.write_bytes(damaged)
    before = scanned(directory, chunk_bytes=chunk_bytes)
    for offset in range(1, written.next_offset + 1):  # also inside of batches
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot([]))
    found = [found for found in scanned(directory, chunk_bytes=chunk_bytes) if found[0] != "KA502"]
    fatal = "no broker can load this log"  # which is true without the newest of these snapshots only
    without = f"{fatal} without {written.next_offset:020d}.snapshot"
    assert {code for code, *_, message in found if message.startswith(without)} == {"KA803"}
    assert [(*rest, message.replace(without, fatal)) for *rest, message in found] == before


def test_where_a_chunk_is_cut_does_not_matter_to_snapshots(tmp_path):
    written = odd_log()
    directory = written.write(tmp_path / "orders-0")
    for offset in range(1, written.next_offset + 1):
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot([ONE]))
    whole = scanned(directory)
    assert {code for code, *_ in whole} >= {"KA502", "KA104"}
    assert [scanned(directory, chunk_bytes=size) for size in (80, 150, 300)] == [whole] * 3


def test_a_segment_whose_records_hold_batches(tmp_path):
    """Cuts may be guessed wrong there; then it is read from front to back, and snapshots are compared all the same."""
    written = Log()
    within = data(9, 0, 7, 1).encode()
    for sequence in range(40):
        written.append(data(1, 0, sequence, payload=within * 9))
    directory = written.write(tmp_path / "orders-0")
    row = (1, 0, 19, 19, 0, written.batches[19].timestamp, -1, -1)
    for entry, expected in ((row, []), (changed(row, sequence=18), ["KA502"])):
        (directory / f"{20:020d}.snapshot").write_bytes(snapshot([entry]))
        for chunk_bytes in (None, 500, 2000):
            assert [code for code, *_ in scanned(directory, chunk_bytes=chunk_bytes)] == expected


FENCED = (2, 4, -1, -1, 0, -1, 5, -1)
"""What brokers 1.0.0 to 2.4.0 write of a producer that a marker with a new epoch fenced: no batch, so no timestamp."""


@pytest.mark.parametrize(
    ("version", "found"), [("1.0.0", []), ("1.1.0", []), ("2.4.0", []), ("auto", []), ("2.4.1", [2]), ("3.9.1", [2])]
)
def test_until_2_4_0_a_marker_of_a_new_epoch_leaves_no_timestamp(tmp_path, version, found):
    """Recorded on 1.1.0 to 2.4.0; KAFKA-9144."""
    written = Log()
    written.append(data(1, 0, 0, 2))
    written.append(data(1, 0, 2, 3))
    written.append(data(2, 3, 0, 2, transactional=True))
    written.append(marker(2, 4, commit=False, coordinator_epoch=5))
    written.append(data(3, 0, 0, transactional=True))
    options = {} if version == "auto" else {"broker_version": version}
    findings = disagreements(tmp_path, [ONE, FENCED, OPEN], written=written, **options)
    assert [finding.producer_id for finding in findings] == found


@pytest.mark.parametrize(("idle_ms", "found"), [(2 * DAY_MS, []), (4000, [2])])
def test_a_producer_that_expired_is_known_again_by_a_marker_alone(tmp_path, idle_ms, found):
    """An empty transaction, aborted after the producer was idle: ProducerStateManager.update makes a new entry for its marker."""
    written = log()
    written.clock += idle_ms
    written.append(marker(2, 3, commit=False, coordinator_epoch=6))
    again = (2, 3, -1, -1, 0, written.clock, 6, -1)
    findings = disagreements(
        tmp_path, [again, OPEN], offset=10, written=written, broker_version="3.9.1", modified_ms=written.clock + 1
    )
    assert [finding.producer_id for finding in findings if finding.producer_id == 2] == found
    other_coordinator = (2, 3, -1, -1, 0, written.clock, 5, -1)
    findings = disagreements(
        tmp_path,
        [other_coordinator, OPEN],
        offset=10,
        written=written,
        broker_version="3.9.1",
        modified_ms=written.clock + 1,
    )
    assert [finding.producer_id for finding in findings if finding.producer_id == 2] == [2]


def test_a_broker_that_restarts_knows_nothing_below_the_log_start(tmp_path):
    written = log()
    written.append(marker(2, 3, commit=False, coordinator_epoch=6))
    again = (2, 3, -1, -1, 0, written.clock, 6, -1)
    assert disagreements(tmp_path, [again, OPEN], offset=10, written=written, log_start_offset=8) == []
    (found,) = disagreements(tmp_path, [ONE, again, OPEN], offset=10, written=written, log_start_offset=5)
    assert found.producer_id == 2


def test_such_a_producer_may_be_missing_too(tmp_path):
    """It was forgotten at the restart or expiry check that came before the snapshot."""
    written = Log()
    written.append(data(1, 0, 0, 5))
    written.append(data(2, 3, 0, 2, transactional=True))
    written.append(marker(2, 4, commit=False, coordinator_epoch=5))
    one = (1, 0, 4, 4, 4, BASE_TIMESTAMP + 1, -1, -1)
    assert disagreements(tmp_path, [one], offset=8, written=written, broker_version="2.4.0") == []


@pytest.mark.parametrize(("version", "found"), [("0.11.0.3", []), ("auto", []), ("2.8.2", [1])])
def test_0_11_cleans_a_producers_last_batch_away_and_keeps_its_sequence(tmp_path, version, found):
    """As recorded on 0.11.0.3 (s39c): its snapshots name the marker's offset, and the sequence of a batch that is gone."""
    written = Log()
    written.append(data(1, 0, 8, 2, transactional=True))
    written.append(marker(1, 0))
    written.next_offset += 2  # sequences 10 and 11, cleaned
    written.append(marker(1, 0, commit=False))
    written.append(data(1, 0, 12, transactional=True))
    row = (1, 0, 11, 5, 0, BASE_TIMESTAMP + 2, 0, -1)
    options = {} if version == "auto" else {"broker_version": version}
    assert [
        finding.producer_id
        for finding in disagreements(tmp_path, [row], offset=6, written=written, compacted=True, **options)
    ] == found
