"""The clock of an audit: idleness follows from times that brokers wrote, and from nothing else."""

import os
from dataclasses import replace

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Confidence
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Log, data, marker

MINUTE = 60_000
LATE = 20 * MINUTE
"""transaction.max.timeout.ms (15 minutes) and what brokers add before they call a transaction late (KAFKA-13221)."""
LOG_APPEND_TIME = 0x8
WHO = 7


def begun(log=None, timestamp=None):
    """A log with an open transaction of WHO at its end."""
    log = Log() if log is None else log
    at = log.append(data(WHO, 0, 0, transactional=True))
    if timestamp is not None:
        log.batches[-1] = replace(at, timestamp=timestamp)
    return log


def other_transaction(log, after_ms=0):
    log.clock = max(log.clock, BASE_TIMESTAMP + after_ms - 2)
    log.append(data(8, 0, sum(each.producer_id == 8 and not each.control for each in log.batches), transactional=True))
    return log.append(marker(8, 0))


def written(root, log, name="orders-0", modified_ms=None):
    for path in log.write(root / name).iterdir():
        if modified_ms is not None:
            os.utime(path, (modified_ms / 1000, modified_ms / 1000))


def audited(root, **options):
    """The finding about WHO's transaction, whether the result says that only clients show its age, and the result."""
    result = scan(ScanOptions([str(root)], **options), SilentProgress())
    assert result.clock is not None
    (found,) = [each for each in result.findings if each.code in {"KA301", "KA302"} and each.producer_id == WHO]
    doubtful = any("by timestamps of clients alone" in note.reason for note in result.not_audited)
    assert doubtful == ("by timestamps of clients alone" in found.message)
    return found, doubtful, result


@pytest.mark.parametrize("chunk_bytes", [None, 61])
@pytest.mark.parametrize(("after_ms", "code"), [(LATE, "KA301"), (LATE - 1, "KA302")])
def test_markers_show_when_it_was_there_and_what_time_it_is(tmp_path, after_ms, code, chunk_bytes):
    log = begun()
    first = other_transaction(log)
    last = other_transaction(log, first.timestamp - BASE_TIMESTAMP + after_ms)
    written(tmp_path, log)
    found, _, result = audited(tmp_path, chunk_bytes=chunk_bytes)
    assert (found.code, found.evidence["clock"]) == (code, "brokers")
    assert (found.evidence["appended_by_timestamp"], found.evidence["now_timestamp"]) == (
        first.timestamp,
        last.timestamp,
    )
    assert result.clock.to_dict() == {
        "now_timestamp": last.timestamp,
        "source": "brokers",
        "newest_timestamp": last.timestamp,
        "quiet_ms": 0,
        "is_proof": True,
    }
    if code == "KA301":
        assert found.confidence is Confidence.LIKELY
        assert "idle for 20 min by times that brokers wrote" in found.message
        assert "--now" in found.next[-1]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("clients", [(8,), (-1,), (8, 9, -1)])
@pytest.mark.parametrize("with_marker", [False, True])
def test_records_that_clients_date_ahead_show_nothing(tmp_path, clients, apart, with_marker):
    """However many they are: one host with a wrong clock may run many clients."""
    log = begun()
    if with_marker:
        log.append(data(9, 0, 0, transactional=True))
        log.append(marker(9, 0))
    ahead = Log() if apart else log
    ahead.clock = BASE_TIMESTAMP + 6 * LATE
    for client in clients:
        ahead.append(data(client, 1, 0) if client >= 0 else data(-1, -1, -1))
    written(tmp_path, log)
    if apart:
        written(tmp_path, ahead, "payments-0")
    found, doubtful, result = audited(tmp_path)
    assert (found.code, found.severity.value, doubtful) == ("KA302", "warning", True)
    assert found.evidence["clock"] == ("brokers" if with_marker else "clients")
    assert not any("abort" in command or "--now" in command for command in found.next)
    assert result.clock.newest_timestamp == ahead.batches[-1].timestamp


@pytest.mark.parametrize("old_ms", [LATE, 30 * 86_400_000])
def test_a_transaction_whose_records_have_old_timestamps_is_not_old(tmp_path, old_ms):
    """Flink and Kafka Streams write the time of the event (KIP-32: CreateTime is set by the producer)."""
    log = Log()
    other_transaction(log)
    begun(log, timestamp=BASE_TIMESTAMP - old_ms)
    other_transaction(log)
    written(tmp_path, log)
    found, doubtful, _ = audited(tmp_path)
    assert (found.code, doubtful) == ("KA302", True)


def test_a_marker_from_before_its_newest_batch_does_not_show_that_it_was_there(tmp_path):
    log = begun()
    other_transaction(log)
    log.clock += LATE
    log.append(data(WHO, 0, 1, transactional=True))
    last = other_transaction(log)
    written(tmp_path, log)
    found, doubtful, _ = audited(tmp_path)
    assert (found.code, doubtful) == ("KA302", False)
    assert found.evidence["appended_by_timestamp"] == last.timestamp


@pytest.mark.parametrize(("all_of_it", "code"), [(True, "KA301"), (False, "KA302")])
def test_with_log_append_time_every_batch_has_a_time_of_the_broker(tmp_path, all_of_it, code):
    """A topic that was given LogAppendTime later has batches with the clients' times too."""
    log = begun()
    log.clock += LATE
    log.append(data(-1, -1, -1))
    stamped = log.batches if all_of_it else log.batches[1:]
    log.batches = [
        replace(each, attributes=each.attributes | (LOG_APPEND_TIME if each in stamped else 0)) for each in log.batches
    ]
    written(tmp_path, log)
    found, doubtful, _ = audited(tmp_path)
    assert (found.code, found.evidence["clock"], doubtful) == (code, "brokers", not all_of_it)


@pytest.mark.parametrize(
    ("modified_ms", "code", "doubtful"),
    [
        (BASE_TIMESTAMP + MINUTE, "KA301", False),
        (BASE_TIMESTAMP + 100 * LATE, "KA302", True),  # a copy without the files' times
        (BASE_TIMESTAMP - 10 * LATE, "KA301", False),  # before its own records: these count
    ],
)
def test_a_file_has_its_batches_before_it_is_modified_last(tmp_path, modified_ms, code, doubtful):
    """Offsets that groups commit show what time it is (GroupMetadataManager.storeOffsets)."""
    log, commits = begun(), Log(clock=BASE_TIMESTAMP + MINUTE + LATE)
    commits.append(data(-1, -1, -1))
    written(tmp_path, log, modified_ms=modified_ms)
    written(tmp_path, commits, "__consumer_offsets-0")
    found, seems, result = audited(tmp_path)
    assert (found.code, found.evidence["clock"], seems) == (code, "brokers", doubtful)
    assert result.clock.now_timestamp == commits.batches[0].timestamp


def test_a_segment_that_was_closed_has_its_batches_before_the_next_one(tmp_path):
    log = begun()
    log.clock += 2 * LATE
    log.append(data(-1, -1, -1))
    log.write(tmp_path / "orders-0", segment_starts=(1,))
    for name, modified_ms in (("0" * 20, BASE_TIMESTAMP), (f"{1:020d}", BASE_TIMESTAMP + 2 * LATE)):
        os.utime(tmp_path / "orders-0" / f"{name}.log", (modified_ms / 1000, modified_ms / 1000))
    commits = Log(clock=BASE_TIMESTAMP + LATE)
    commits.append(data(-1, -1, -1))
    written(tmp_path, commits, "__consumer_offsets-0")
    found, doubtful, _ = audited(tmp_path)
    assert (found.code, doubtful) == ("KA301", False)
    assert found.evidence["appended_by_timestamp"] == BASE_TIMESTAMP + 1


def test_offsets_that_a_transaction_commits_have_times_of_the_coordinator(tmp_path):
    """A transaction may hang in __consumer_offsets too (KAFKA-13288)."""
    log = begun()
    log.clock += LATE
    log.append(data(-1, -1, -1))
    written(tmp_path, log, "__consumer_offsets-0")
    found, doubtful, _ = audited(tmp_path)
    assert (found.code, doubtful, found.evidence["idle_ms"]) == ("KA301", False, LATE + 1)


def test_the_time_that_is_given_counts_with_the_records_own(tmp_path):
    written(tmp_path, begun())
    found, doubtful, result = audited(tmp_path, now_ms=BASE_TIMESTAMP + 1 + LATE)
    assert (found.code, found.evidence["clock"], doubtful) == ("KA301", "given", False)
    assert result.clock.source.value == "given"


def test_a_log_without_timestamps_has_the_time_of_its_files(tmp_path):
    log = Log()
    log.append(data(-1, -1, -1))
    log.batches = [replace(log.batches[0], timestamp=-1)]
    written(tmp_path, log, modified_ms=BASE_TIMESTAMP)
    result = scan(ScanOptions([str(tmp_path)]), SilentProgress())
    assert result.clock is not None
    assert (result.clock.now_ms, result.clock.source.value) == (BASE_TIMESTAMP, "files")
    assert not result.clock.source.is_proof


def test_a_saved_state_has_the_time_of_the_first_marker(tmp_path):
    """The transaction, and the marker after it, lie in what an audit before had read."""
    log = begun()
    first = other_transaction(log)
    written(tmp_path / "logs", log)
    for _ in range(2):
        found, _, _ = audited(tmp_path / "logs", state=str(tmp_path / "state"))
        assert (found.code, found.evidence["appended_by_timestamp"]) == ("KA302", first.timestamp)
    other_transaction(log, 2 * LATE)
    written(tmp_path / "logs", log)
    found, _, _ = audited(tmp_path / "logs", state=str(tmp_path / "state"))
    assert (found.code, found.evidence["appended_by_timestamp"]) == ("KA301", first.timestamp)


def test_a_time_that_is_later_than_the_files_is_no_time(tmp_path):
    """Lists measure against the newest batch, up to the modification of the newest file."""
    log = Log()
    log.append(data(1, 0, 0))
    log.clock += 6 * LATE
    log.append(data(2, 0, 0))
    written(tmp_path, log, modified_ms=BASE_TIMESTAMP + MINUTE)
    result = scan(ScanOptions([str(tmp_path)]), SilentProgress())
    assert result.clock is not None
    assert result.clock.newest_timestamp == BASE_TIMESTAMP + MINUTE + 1000
