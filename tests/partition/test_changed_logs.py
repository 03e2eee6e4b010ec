"""What may happen to a log between two audits that its files hardly show."""

import os
import shutil

import pytest

from kaudit.reading.small_segments import TOGETHER_BYTES
from tests.crafted_sample import snapshot
from tests.logs import BASE_TIMESTAMP, Log, data, marker
from tests.partition.audits import Audited

FUTURE = BASE_TIMESTAMP + 400 * 86_400_000


def write(directory, batches, *, segment_starts=(), payload=b"x" * 400):
    log = Log()
    for number in range(batches):
        log.append(data(7, 0, number, payload=payload))
    return log, log.write(directory, segment_starts=segment_starts)


def segments(partition):
    return sorted(partition.glob("*.log"))


def append(path, *batches):
    with path.open("ab") as file:
        file.write(b"".join(batch.encode() for batch in batches))


def test_only_what_was_appended_is_read(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(20,))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    assert audited.audit().new == 2
    assert audited.read_bytes == sum(path.stat().st_size for path in segments(partition))
    assert audited.audit().unchanged == 2
    assert audited.read_bytes == 0
    new = log.append(data(7, 0, 40))
    append(segments(partition)[-1], new)
    use = audited.audit()
    assert (use.unchanged, use.grown) == (1, 1)
    assert audited.read_bytes == len(new.encode())


def test_a_log_that_is_cut_back_and_goes_on_otherwise(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 30, segment_starts=(20,))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    active = segments(partition)[-1]
    with active.open("r+b") as file:
        file.truncate(active.stat().st_size * 4 // 10)
    others = [data(8, 0, number, payload=b"y" * 400).at(24 + number) for number in range(9)]
    append(active, *others)
    assert active.stat().st_size > sum(len(batch.encode()) for batch in log.batches[20:])
    use = audited.audit()
    assert (use.unchanged, use.read_again) == (1, 1)


def test_a_segment_that_the_cleaner_rewrote_in_the_same_size_and_time(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(20,))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    closed = segments(partition)[0]
    times = closed.stat()
    cleaned = closed.with_suffix(".cleaned")
    batches = [data(9 if batch.base_offset == 5 else 7, 0, batch.sequence, payload=b"x" * 400) for batch in log.batches]
    cleaned.write_bytes(b"".join(batch.at(number).encode() for number, batch in enumerate(batches[:20])))
    os.utime(cleaned, ns=(times.st_atime_ns, times.st_mtime_ns))
    cleaned.rename(closed)
    assert closed.stat().st_size == times.st_size
    assert audited.audit().read_again == 1


def test_the_head_is_deleted_and_indexes_move(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 60, segment_starts=(15, 30, 45))
    append(segments(partition)[-1], marker(7, 0).at(60), log.batches[3].at(61), log.batches[3].at(62))
    audited = Audited(tmp_path / "log", tmp_path / "state", chunk_bytes=2000)
    audited.audit()
    segments(partition)[0].unlink()
    use = audited.audit()
    assert (use.unchanged, use.dropped, audited.read_bytes) == (3, 1, 0)


def test_small_segments_read_together_of_which_the_first_is_deleted(tmp_path):
    _, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(10, 20, 30))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    segments(partition)[0].unlink()
    use = audited.audit()
    assert (use.unchanged, use.read_again, use.dropped) == (1, 2, 1)
    assert audited.read_bytes < TOGETHER_BYTES
    assert audited.audit().unchanged == 3


@pytest.mark.parametrize(("offset", "read_again"), [(10, 0), (15, 3)])
def test_a_snapshot_that_comes_among_segments_read_together(tmp_path, offset, read_again):
    """Where a segment begins the state is known; inside of one it takes the batches."""
    _, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(10, 20, 30))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    stored = snapshot([(7, 0, 3, 3, 0, BASE_TIMESTAMP, -1, -1)])
    (partition / f"{offset:020d}.snapshot").write_bytes(stored)
    assert audited.audit().read_again == read_again
    result = audited.full()
    assert result is not None
    assert [finding.code for finding in result.findings] == ["KA502"]


def test_the_log_start_moves_into_a_segment(tmp_path):
    _, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(20,))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    checkpoint = partition.parent / "log-start-offset-checkpoint"
    for start in (7, 9, 20):
        checkpoint.write_text(f"0\n1\norders 0 {start}\n")
        audited.audit()


def test_timestamps_that_were_beyond_the_clock_of_the_files(tmp_path):
    _, partition = write(tmp_path / "log" / "orders-0", 5)
    active = segments(partition)[-1]
    append(active, data(7, 0, 5, timestamp=FUTURE).at(5), data(7, 0, 6, timestamp=FUTURE * 1000).at(6))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    for seconds in (BASE_TIMESTAMP // 1000, FUTURE // 1000 + 10, BASE_TIMESTAMP // 1000):
        os.utime(active, (seconds, seconds))
        use = audited.audit()
        assert use.unchanged == use.grown == 0
    assert audited.audit().unchanged == 1


def test_a_preallocated_segment_fills_up(tmp_path):
    _, partition = write(tmp_path / "log" / "orders-0", 10)
    active = segments(partition)[-1]
    content, more = active.read_bytes(), data(7, 0, 10).at(10).encode()
    active.write_bytes(content + bytes(50_000))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    active.write_bytes(content + more + bytes(50_000 - len(more)))
    assert audited.audit().grown == 1
    assert audited.read_bytes == 50_000


def test_two_partitions_and_two_log_directories(tmp_path):
    for log_dir in ("disk1", "disk2"):
        for partition in ("orders-0", "orders-1"):
            write(tmp_path / log_dir / partition, 10)
    log, partition = write(tmp_path / "disk1" / "orders-2", 10)
    audited = Audited(tmp_path / "disk1", tmp_path / "state")
    audited.options = type(audited.options)(paths=[str(tmp_path / "disk1"), str(tmp_path / "disk2")])
    assert audited.audit().new == 5
    append(segments(partition)[-1], log.append(data(7, 0, 10)))
    use = audited.audit()
    assert (use.unchanged, use.grown, use.new) == (4, 1, 0)


def test_a_log_whose_offsets_do_not_ascend_is_read_each_time(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 10)
    append(segments(partition)[-1], log.batches[2], log.batches[3])
    audited = Audited(tmp_path / "log", tmp_path / "state")
    for _ in range(2):
        use = audited.audit()
        assert use.new == 1
        assert use.not_saved is not None


def test_what_is_saved_of_a_deleted_topic_is_removed(tmp_path):
    for topic in ("orders-0", "payments-0"):
        write(tmp_path / "log" / topic, 10)
    audited = Audited(tmp_path / "log", tmp_path / "state")
    audited.audit()
    places = tmp_path / "state" / "partitions"
    assert len(list(places.iterdir())) == 2
    shutil.rmtree(tmp_path / "log" / "payments-0")
    audited.audit()
    assert len(list(places.iterdir())) == 1


def test_what_is_saved_of_a_log_directory_that_is_not_mounted_stays(tmp_path):
    for disk in ("disk1", "disk2"):
        write(tmp_path / disk / "orders-0", 10)
    first, second = (Audited(tmp_path / disk, tmp_path / "state") for disk in ("disk1", "disk2"))
    first.audit()
    (tmp_path / "disk1").rename(tmp_path / "elsewhere")
    second.audit()
    (tmp_path / "elsewhere").rename(tmp_path / "disk1")
    assert first.audit().unchanged == 1
