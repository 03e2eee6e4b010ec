"""What happens to a log beside growing: each case as a broker does it, and what a watch makes of it."""

import os
import shutil
import time

import pytest

from kaudit.audits.transactions import transaction_spans
from kaudit.watch import watcher
from kaudit.watch.partition_follower import PartitionFollower
from tests.logs import Log, data, marker
from tests.watch.growing import GrowingLog, Watching

BATCH = len(data(7, 0, 0, payload=b"0").encode())


def batches(count, producer_id=7, *, start=0):
    log = Log()
    log.skip(start)
    return [log.append(data(producer_id, 0, start + number, payload=b"%d" % (number % 10))) for number in range(count)]


def codes(found):
    return sorted(entry["code"] for entry in found.values())


@pytest.fixture
def log(tmp_path):
    log = GrowingLog(tmp_path / "logs" / "orders-0")
    log.roll(0)
    return log


@pytest.fixture
def watching(log):
    return Watching(log.directory.parent)


@pytest.fixture
def readings(monkeypatch):
    """The positions from which each visit reads, by segment."""
    seen = []
    read = PartitionFollower._read_segment

    def note(follower, spec):
        seen.append((spec.file.base_offset, follower.mark.position))
        return read(follower, spec)

    monkeypatch.setattr(PartitionFollower, "_read_segment", note)
    return seen


def duplicate(of, at):
    return of.at(at)


def test_a_duplicate_is_reported_by_the_look_after_it(log, watching):
    written = batches(6)
    for batch in written:
        log.append(batch)
    watching.look()
    assert watching.reported == {}
    log.append(duplicate(written[-1], 6))
    watching.look()
    assert codes(watching.reported) == ["KA101"]
    assert watching.watcher.memory.totals == {"KA101 error": 1}


def test_only_what_was_appended_is_read(log, watching, readings):
    for number, batch in enumerate(batches(5)):
        log.append(batch)
        watching.look()
        assert readings[-1] == (0, number * BATCH)
    log.roll(5)
    for batch in batches(2, start=5):
        log.append(batch)
        watching.look()
    assert readings[-2:] == [(5, 0), (5, BATCH)]
    assert watching.watcher.memory.read_bytes == 7 * BATCH


def test_a_batch_that_is_being_written_is_no_torn_one(log, watching):
    first, second, third = batches(3)
    log.append(first)
    log.append(second, first_bytes=30)
    for _ in range(3):
        watching.look()
    assert watching.reported == {}
    assert codes({"": watching.watcher.waiting.held[0].to_dict()}) == ["KA002"]
    log.append(third)
    watching.look()
    assert not watching.watcher.waiting.held
    assert watching.end() == watching.scanned() == {}


def test_a_torn_batch_that_nobody_goes_on_with_is_reported(log, watching):
    first, second = batches(2)
    log.append(first)
    log.append(second, first_bytes=30)
    watching.look()
    file = log.file(0)
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 11))
    watching.look()
    assert codes(watching.reported) == ["KA002"]


def test_a_torn_batch_in_a_closed_segment_is_reported_with_the_next_one(log, watching):
    first, second = batches(2)
    log.append(first)
    log.append(second, first_bytes=30)
    watching.look()
    log.torn = b""
    log.roll(2)
    log.append(batches(1, start=2)[0])
    watching.look()
    assert "KA002" in codes(watching.reported)
    assert watching.end() == watching.scanned()


def test_a_log_cut_back_and_written_on_between_two_looks_is_read_again(log, watching):
    for batch in batches(6):
        log.append(batch)
    watching.look()
    log.truncate(3)
    for batch in batches(2, start=3):
        log.append(batch)
    log.append(duplicate(batches(5)[-1], 5))
    log.append(batches(1, producer_id=8)[0].at(6))
    watching.look()
    assert codes(watching.reported) == ["KA101"]
    assert watching.end() == watching.scanned()
    assert watching.watcher.memory.repeated_readings == 1


def test_a_log_cut_back_to_other_batches_of_the_same_size_is_read_again(log, watching):
    for batch in batches(6):
        log.append(batch)
    watching.look()
    log.truncate(2)
    for batch in batches(2, producer_id=9):
        log.append(batch.at(batch.base_offset + 4))
    log.append(duplicate(batches(6)[4], 6))  # the producer's next batch, as its last two were lost
    watching.look()
    assert watching.end() == watching.scanned() == {}


def test_a_compacted_log_is_read_again(log, watching):
    written = batches(8)
    for batch in written[:6]:
        log.append(batch)
    log.append(duplicate(written[5], 6))
    log.roll(7)
    log.append(written[6].at(7))
    watching.look()
    (before,) = watching.end().values()
    log.compact(keep=4)
    found = watching.end()
    assert found == watching.scanned()
    # a cleaner would have kept no record without a key, and one of each key: what it is said to have removed is missing too
    after, missing = sorted(found.values(), key=lambda finding: finding["code"] == "KA013")
    assert (before["fingerprint"], before["position"]) == (after["fingerprint"], after["position"] + BATCH)
    assert (missing["code"], missing["offset"]) == ("KA013", 3)
    assert watching.repeated == []


def test_what_is_below_the_log_start_is_no_longer_there(log, watching):
    written = batches(8)
    for batch in written[:3]:
        log.append(batch)
    log.append(duplicate(written[2], 3))
    log.roll(4)
    log.append(written[3].at(4))
    watching.look()
    assert codes(watching.reported) == ["KA101"]
    log.roll(5)
    log.append(written[4].at(5))
    watching.look()
    log.delete_head()
    assert watching.end() == watching.scanned() == {}
    assert watching.watcher.memory.findings == {}
    assert watching.watcher.memory.totals == {"KA101 error": 1}  # it was reported all the same
    assert watching.watcher.memory.repeated_readings == 0


def test_what_the_deleted_head_held_is_still_known(log, watching):
    written = batches(12)
    for batch in written[:3]:
        log.append(batch)
    log.roll(3)
    log.append(written[3])
    watching.look()
    log.delete_head()
    log.append(duplicate(written[2], 4))
    watching.look()
    assert codes(watching.reported) == ["KA101"]
    assert "KA101" not in codes(watching.scanned())  # a scan of what is left cannot know


def test_partitions_appear_and_disappear(log, watching):
    for batch in batches(2):
        log.append(batch)
    watching.look()
    other = GrowingLog(log.directory.with_name("payments-3"))
    other.roll(0)
    other.append(batches(1)[0])
    other.append(duplicate(batches(1)[0], 1))
    watching.look()
    assert [entry["topic"] for entry in watching.reported.values()] == ["payments"]
    other.remove()
    assert watching.end() == watching.scanned() == {}
    assert list(watching.watcher.followers) == [str(log.directory)]
    assert watching.watcher.memory.findings == {}


def test_a_topic_made_anew_is_another(log, watching):
    for batch in batches(4):
        log.append(batch)
    watching.look()
    log.remove()
    log.written.clear()
    log.roll(0)
    for batch in batches(6, producer_id=70):
        log.append(batch)
    assert watching.end() == watching.scanned() == {}


def test_a_directory_that_is_still_empty_is_waited_for(tmp_path):
    (tmp_path / "logs").mkdir()
    watching = Watching(tmp_path / "logs")
    watching.look()
    assert watching.watcher.result is None
    log = GrowingLog(tmp_path / "logs" / "orders-0")
    log.roll(0)
    log.append(batches(1)[0])
    log.append(duplicate(batches(1)[0], 1))
    watching.look()
    assert codes(watching.reported) == ["KA101"]
    shutil.rmtree(tmp_path / "logs")
    watching.look()
    assert watching.watcher.result is None


def test_a_restart_repeats_nothing_and_misses_nothing(log, watching):
    written = batches(8)
    for batch in written[:3]:
        log.append(batch)
    log.append(duplicate(written[2], 3))
    watching.look()
    watching.restart()
    watching.look()
    log.append(written[3].at(4))
    log.append(duplicate(written[3], 5))
    watching.restart()
    watching.look()
    assert watching.repeated == []
    assert [entry["offset"] for entry in watching.reported.values()] == [3, 5]
    assert watching.watcher.memory.totals == {"KA101 error": 2}


@pytest.mark.parametrize("ended", [False, True])
def test_an_open_transaction_waits_for_its_timeout(log, watching, ended):
    """Which markers of others show, and no timestamp of a client."""
    begun, minute = 1_700_000_000_000, 60_000
    log.append(data(7, 0, 0, transactional=True, timestamp=begun).at(0))
    watching.look()
    assert codes({"": watching.watcher.waiting.held[0].to_dict()}) == ["KA302"]
    log.append(data(9, 0, 0, timestamp=begun + 16 * minute).at(1))
    times = [begun + minute, begun + 16 * minute - 1, begun + 16 * minute]
    for number, time_ms in enumerate(times):
        watching.look()
        assert watching.reported == {}
        log.append(data(8, 0, number, transactional=True, timestamp=begun).at(2 * number + 2))
        log.append(marker(8, 0, timestamp=time_ms).at(2 * number + 3))
    watching.look()
    assert codes(watching.reported) == ["KA302"]
    if ended:
        log.append(marker(7, 0).at(8))
    watching.look()
    assert watching.end() == watching.scanned()
    assert codes(watching.scanned()) == ([] if ended else ["KA302"])


def test_a_transaction_hangs_in_a_log_that_stands_still(log, watching, monkeypatch):
    log.append(data(7, 0, 0, transactional=True, timestamp=1_700_000_000_000))
    watching.look()
    assert codes({"": watching.watcher.waiting.held[0].to_dict()}) == ["KA302"]
    later = time.time_ns() + 21 * 60 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    watching.restart()  # which reads the log again, and knows for how long it has stood still
    for _ in range(2):
        watching.look()
        assert watching.reported == {}
    assert watching.watcher.clock_ms - 1_700_000_000_000 >= 21 * 60_000
    monkeypatch.setattr(watcher, "SETTLE_SECONDS", 0)
    time.sleep(0.5)
    watching.look()
    assert codes(watching.reported) == ["KA301"]


def test_markers_are_kept_in_few_parts(log, watching, monkeypatch):
    monkeypatch.setattr(transaction_spans, "_MOST_PARTS", 3)
    for number in range(10):
        log.append(data(7, 0, number, transactional=True).at(2 * number))
        log.append(marker(7, 0, commit=bool(number % 2)).at(2 * number + 1))
        watching.look()
    (follower,) = watching.watcher.followers.values()
    assert len(follower.replay.spans._ended) <= 3
    assert follower.replay.spans.ended()["marker_offset"].tolist() == list(range(1, 20, 2))


def test_batches_out_of_order_are_read_in_order(log, watching):
    written = batches(6)
    for number in (0, 1, 3, 2, 4, 5):
        log.append(written[number])
        watching.look()
    assert watching.end() == watching.scanned()
    log.roll(6)
    for batch in batches(2, start=6):
        log.append(batch)
        watching.look()
    assert watching.end() == watching.scanned()


def test_zeros_behind_the_last_batch_are_written_over(log, watching):
    """As with preallocate=true."""
    written = batches(4)
    file = log.file(0)
    file.write_bytes(bytes(100 * BATCH))
    for number, batch in enumerate(written):
        with file.open("r+b") as stream:
            stream.seek(number * BATCH)
            stream.write(batch.encode())
        watching.look()
    assert watching.end() == watching.scanned()
    assert codes(watching.scanned()) == ["KA004"]
    (summary,) = watching.watcher.result.partitions
    assert summary.log_end_offset == 4
