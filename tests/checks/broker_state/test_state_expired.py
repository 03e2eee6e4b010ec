"""Producers that a broker forgets for their age."""

from dataclasses import replace

import pytest

from kaudit.checks.broker_state.forgotten_producers import state_expired
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import findings_of
from tests.crafted_sample import DAY_MS, expired
from tests.logs import BASE_TIMESTAMP, Log, data, marker

LOG_APPEND_TIME = 0x8


def test_a_restart_after_a_silence_beyond_the_limit_by_clients_timestamps_is_less_sure(tmp_path):
    assert findings_of(state_expired, tmp_path, expired()) == [("warning", 6, 3)]


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "confidence"),
    [
        (7 * DAY_MS, 8 * DAY_MS, "likely"),
        (7 * DAY_MS - 1, 8 * DAY_MS, "possible"),
        (5, 7 * DAY_MS, "possible"),
        (5, 7 * DAY_MS - 1, None),  # it came before: it is dated ahead
        (8 * DAY_MS, 8 * DAY_MS, "likely"),
        (None, 7 * DAY_MS - 1, None),
        (7 * DAY_MS, None, "likely"),
        (None, None, "possible"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [None, 61])
@pytest.mark.parametrize("dated_ms", [7 * DAY_MS, 30 * DAY_MS])
def test_markers_around_a_batch_show_when_it_came(tmp_path, before_ms, after_ms, confidence, dated_ms, chunk_bytes):
    log = Log()
    last = log.append(data(1, 0, 0))
    log.append(data(1, 0, 1, timestamp=last.timestamp), keep_time=True)
    if before_ms is not None:
        log.append(marker(8, 0, timestamp=last.timestamp + before_ms), keep_time=True)
    anew = log.append(data(1, 0, 0, payload=b"anew", timestamp=last.timestamp + dated_ms), keep_time=True)
    if after_ms is not None:
        log.append(marker(9, 0, timestamp=last.timestamp + after_ms), keep_time=True)
    options = {"broker_version": "3.3.2", "chunk_bytes": chunk_bytes}
    result = scan(ScanOptions([str(log.write(tmp_path / "orders-0"))], **options), SilentProgress())
    found = [each for each in result.findings if (each.code, each.offset) == ("KA801", anew.base_offset)]
    expected = [("warning", confidence)] if confidence else []
    assert [(each.severity.value, each.confidence.value) for each in found] == expected


def test_a_batch_with_an_old_timestamp_comes_no_sooner_than_the_marker_before_it(tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    second = log.append(data(1, 0, 1))
    log.clock += 8 * DAY_MS
    log.append(marker(8, 0))
    again = data(1, 0, 0, payload=b"anew", timestamp=second.timestamp)
    log.append(again, keep_time=True)
    assert findings_of(state_expired, tmp_path, log, broker_version="3.3.2") == [("warning", 1, 3)]


@pytest.mark.parametrize(
    ("days", "version", "forgotten"),
    [(6.9, "3.3.2", False), (7, "3.3.2", True), (0.9, "3.4.0", False), (1, "3.4.0", True), (6, "auto", False), (7, "auto", True)],
)  # fmt: skip
def test_the_limit_is_seven_days_and_one_from_3_4_on(tmp_path, days, version, forgotten):
    log = Log()
    log.append(data(1, 0, 0))
    log.append(data(1, 0, 1))
    log.clock += int(days * DAY_MS)
    log.append(data(1, 0, 0, payload=b"anew"))
    log.batches = [replace(each, attributes=LOG_APPEND_TIME) for each in log.batches]
    assert findings_of(state_expired, tmp_path, log, broker_version=version) == (
        [("warning", 1, 2)] if forgotten else []
    )


@pytest.mark.parametrize(("version", "noted"), [("2.4.1", False), ("2.5.0", True), ("3.9.1", True), ("auto", True)])
def test_a_producer_that_goes_on_after_the_limit_is_a_note_where_brokers_let_it(tmp_path, version, noted):
    """Before 2.5 an unknown producer's next sequence was refused, so that it was written shows it was remembered."""
    log = Log()
    log.append(data(1, 0, 0))
    log.clock += 8 * DAY_MS
    log.append(data(1, 0, 1))
    log.clock += 8 * DAY_MS
    log.append(data(1, 0, 2))
    assert findings_of(state_expired, tmp_path, log, broker_version=version) == ([("note", 1, 1)] if noted else [])


def test_old_record_timestamps_are_silence_too(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    log.append(data(1, 0, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(2, 0, 0, transactional=True))
    log.append(marker(2, 0))
    assert findings_of(state_expired, tmp_path, log) == [("note", 1, 0)]


def test_an_open_transaction_never_expires(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(3, 0, 0, transactional=True))
    log.append(marker(3, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(2, 0, 0, transactional=True))
    log.append(marker(2, 0))
    assert findings_of(state_expired, tmp_path, log) == [("note", 3, 2)]


@pytest.mark.parametrize("client", [2, -1])
def test_a_client_that_dates_records_ahead_makes_nobody_forgotten(tmp_path, client):
    """Brokers measure by their own clock (ProducerStateManager.removeExpiredProducers)."""
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 0))
    log.clock += 30 * DAY_MS
    log.append(data(client, 0, 0) if client >= 0 else data(-1, -1, -1))
    assert findings_of(state_expired, tmp_path, log) == []


def test_at_most_twenty_idle_producers_are_reported_the_longest_idle(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    for producer_id in range(30):
        log.append(data(producer_id, 0, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(99, 0, 0, transactional=True))
    log.append(marker(99, 0))
    assert [producer_id for _, producer_id, _ in findings_of(state_expired, tmp_path, log)] == list(range(20))


def test_what_is_said_of_producers_that_were_forgotten(tmp_path):
    """An idle one is done, one that goes on lost nothing; both are shown by the clock of the log's brokers."""
    log = Log()
    idle = log.append(data(1, 3, 0, 2))
    log.append(data(2, 0, 0))
    log.clock += 8 * DAY_MS
    continued = log.append(data(2, 0, 1))
    log.append(data(3, 0, 0, transactional=True))
    ended = log.append(marker(3, 0))
    found = {
        each.evidence["class"]: each
        for each in scan(ScanOptions([str(log.write(tmp_path / "orders-0"))]), SilentProgress()).findings
        if each.code == "KA801"
    }
    assert set(found) == {"idle", "went-on"}
    for each in found.values():
        assert each.severity is Severity.NOTE
        assert each.explanations[0].innocent
    assert (found["idle"].offset, found["idle"].last_offset, found["idle"].producer_epoch) == (1, 1, 3)
    assert (found["idle"].position, found["idle"].segment) == (0, "00000000000000000000.log")
    assert found["idle"].evidence["last_timestamp"] == idle.timestamp
    assert found["idle"].evidence["now_timestamp"] == ended.timestamp
    assert found["idle"].evidence["limit_ms"] == found["went-on"].evidence["limit_ms"]
    assert any("--now" in command for command in found["idle"].next)
    assert found["went-on"].evidence["silence_ms"] == 8 * DAY_MS + 1
    assert (
        f"{continued.base_offset} after 8.0 days by timestamps of clients alone: brokers may have"
        in found["went-on"].message
    )
