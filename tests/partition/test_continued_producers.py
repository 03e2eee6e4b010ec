"""A log whose first segments are in remote storage is audited from its first local batch on as the whole log is, by the snapshot there."""

import struct

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.crafted_sample import snapshot
from tests.logs import Log, data, marker

ZOMBIE = (0, 8)
"""Epoch and sequence of the zombie's batch."""
STEPS = ((0, 0), (1, 12), (3, 30))
"""Leader epochs of the log, and where each begins."""


def gaps() -> Log:
    """Producer 101 skips three sequences, and 102 a whole epoch's first two."""
    log = Log()
    for number in range(16):
        log.append(data(100, 0, number))
        log.append(data(101, 0, number if number <= 7 else number + 3))
        if number % 2:
            log.append(data(102, number // 8, number % 8 // 2 * 2 + (2 if number > 8 else 0), 2, payload=b"two"))
    return log


def zombies() -> Log:
    """Epoch 1 takes over, and then epoch 0 writes once more; another producer's epoch rises twice."""
    log = Log()
    for number in range(8):
        log.append(data(100, 0, number))
        log.append(data(103, number // 3, number % 3))
    for number in range(6):
        log.append(data(100, 1, number))
    log.append(data(100, 0, 8))
    for number in range(6, 10):
        log.append(data(100, 1, number))
    return log


def transactions() -> Log:
    """Two producers in transactions that overlap, of both outcomes; a marker of an older epoch, and one of an older coordinator."""
    log = Log()
    for number in range(20):
        log.append(data(500, 0, number, transactional=True))
        log.append(data(501, 0, 2 * number, 2, transactional=True))
        if number % 4 == 3:
            log.append(marker(500, 0, commit=number % 8 == 3, coordinator_epoch=3))
        if number % 6 == 5:
            log.append(marker(501, 0, commit=number % 12 == 5, coordinator_epoch=3 if number < 12 else 2))
    return log


def wrapping() -> Log:
    """Sequences run past 2^31 - 1 within a batch."""
    log = Log()
    for number in range(12):
        log.append(data(100, 0, (2**31 - 17 + 3 * number) % 2**31, 3))
    return log


LOGS = (gaps, zombies, transactions, wrapping)


def in_epochs(log: Log) -> Log:
    """The log with the leader epochs of STEPS."""
    epochs = [max(epoch for epoch, first in STEPS if first <= batch.base_offset) for batch in log.batches]
    log.batches[:] = [
        batch.__class__(**{**batch.__dict__, "leader_epoch": epoch})
        for batch, epoch in zip(log.batches, epochs, strict=True)
    ]
    return log


def entries(batches) -> bytes:
    """The snapshot that a broker writes after these batches (ProducerStateEntry)."""
    states: dict[int, list[int]] = {}
    for batch in batches:
        epoch, last, end, delta, _, coordinator, first = states.get(batch.producer_id, [-1, -1, -1, 0, -1, -1, -1])
        if batch.epoch != epoch:
            last, end, delta = -1, -1, 0
        if batch.control is not None:
            coordinator, first = batch.control[1], -1
        else:
            last, end, delta = (batch.sequence + batch.count - 1) % 2**31, batch.last_offset, batch.count - 1
            first = batch.base_offset if batch.attributes & 0x10 and first < 0 else first
        states[batch.producer_id] = [batch.epoch, last, end, delta, batch.timestamp, coordinator, first]
    return snapshot([(producer, *state) for producer, state in states.items()])


def tiered(log: Log, cut: int, root):
    """The log directory of a broker that keeps the batches from number `cut` on; return the offset of the first."""
    root.mkdir()
    (root / "remote-log-index-cache").mkdir()
    (root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    start = log.batches[cut].base_offset
    local = Log()
    local.batches[:] = log.batches[cut:]
    directory = local.write(root / "orders-0")
    (directory / f"{start:020d}.snapshot").write_bytes(entries(log.batches[:cut]))
    rows = [row for row in STEPS if row[1] < log.batches[-1].last_offset + 1]
    (directory / "leader-epoch-checkpoint").write_text(
        f"0\n{len(rows)}\n" + "".join(f"{epoch} {first}\n" for epoch, first in rows)
    )
    return start


def audited(root):
    return scan(ScanOptions([str(root)], jobs=1), SilentProgress())


def from_offset(result, start):
    """What is found of producers and transactions from an offset on."""
    return [
        (each.code, each.severity, each.offset, each.last_offset, each.producer_id, each.message, each.impact)
        for each in result.findings
        if "KA1" <= each.code < "KA4" and each.offset is not None and each.offset >= start
    ]


@pytest.mark.parametrize("make", LOGS, ids=lambda make: make.__name__)
def test_what_begins_remotely_goes_on_locally(make, tmp_path):
    """Cut before each of its batches."""
    log = in_epochs(make())
    log.write(tmp_path / "whole" / "orders-0")
    whole = audited(tmp_path / "whole")
    assert from_offset(whole, 0) or make is wrapping
    for cut in range(1, len(log.batches)):
        start = tiered(log, cut, tmp_path / str(cut))
        result = audited(tmp_path / str(cut))
        expected = from_offset(whole, start)
        if make is zombies and (log.batches[cut - 1].epoch, log.batches[cut - 1].sequence) == ZOMBIE:
            # a broker's snapshot has the epoch of the newest batch, also where that is a zombie's
            (more,) = [each for each in from_offset(result, start) if each not in expected]
            assert more[:3] == ("KA202", Severity.ERROR, start)
        else:
            assert from_offset(result, start) == expected, cut
        (note,) = [entry.reason for entry in result.not_audited if "are not on this disk" in entry.reason]
        assert f"is known by {start:020d}.snapshot alone" in note


def test_a_batch_that_the_remote_part_has_too_is_a_repeat(tmp_path):
    """Its bytes are not here, so nobody says that they are the same."""
    log = Log()
    for number in range(12):
        log.append(data(100, 0, number, payload=b"%d" % number))
    log.append(log.batches[-1])
    start = tiered(log, 12, tmp_path / "data")
    (found,) = from_offset(audited(tmp_path / "data"), start)
    assert (found[0], found[2:5]) == ("KA103", (12, 12, 100))


def test_an_open_transaction_holds_readers_back_from_where_it_began(tmp_path):
    """In remote storage, not where the log on the disk begins: the last stable offset is there."""
    log = Log()
    for number in range(10):
        log.append(data(100, 0, number))
        if number in {3, 7}:
            log.append(data(500, 0, number // 4, transactional=True))
    for number in range(30):
        log.clock += 600_000
        log.append(data(101, 0, number, transactional=True))
        log.append(marker(101, 0))
    for cut in (6, 10, 20):
        start = tiered(log, cut, tmp_path / str(cut))
        result = audited(tmp_path / str(cut))
        (opened,) = [each for each in result.findings if each.code in {"KA301", "KA302"}]
        assert "starts at offset 4, in remote storage," in opened.message
        assert "deleted" not in opened.message
        assert opened.evidence.to_dict()["offsets_held_back"] == log.batches[-1].last_offset + 1 - 4, cut
        assert opened.impact.last_stable_offset == 4 < start


@pytest.mark.parametrize("harm", ["missing", "corrupt"])
def test_without_a_valid_snapshot_it_is_not_known(harm, tmp_path):
    """Nothing is called lost, and what is not known is said."""
    log = in_epochs(transactions())
    start = tiered(log, 20, tmp_path / "data")
    file = tmp_path / "data" / "orders-0" / f"{start:020d}.snapshot"
    if harm == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    result = audited(tmp_path / "data")
    assert "KA106" not in {each.code for each in result.findings}
    (note,) = [entry.reason for entry in result.not_audited if "are not on this disk" in entry.reason]
    assert f"is not known: there is no valid producer snapshot at {start}" in note
    assert not any(each.impact and each.impact.records_lost_at_most for each in result.findings)


def test_a_leader_epoch_that_goes_back_at_the_local_start_is_found(tmp_path):
    """leader-epoch-checkpoint knows the epochs of what is in remote storage."""
    log = in_epochs(gaps())
    cut = next(number for number, batch in enumerate(log.batches) if batch.base_offset >= 32)
    start = tiered(log, cut, tmp_path / "data")
    segment = tmp_path / "data" / "orders-0" / f"{start:020d}.log"
    content = bytearray(segment.read_bytes())
    struct.pack_into(">i", content, 12, 1)  # not covered by the CRC
    segment.write_bytes(content)
    (found,) = [each for each in audited(tmp_path / "data").findings if each.code == "KA506"]
    assert (found.offset, "epoch 3" in found.message) == (start, True)
