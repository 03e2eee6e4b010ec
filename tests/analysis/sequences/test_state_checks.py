"""KA801 to KA803: what brokers forget and cannot load."""

from pathlib import Path

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.engines.local import scan
from tests.crafted_sample import DAY_MS, evicted, expired
from tests.logs import BASE_TIMESTAMP, Log, data, marker


def findings(tmp_path: Path, log: Log, code: str, **options):
    directory = log.write(tmp_path / "orders-0")
    result = scan(ScanOptions([str(directory)], **options), SilentProgress())
    return [(found.severity.value, found.producer_id, found.offset) for found in result.findings if found.code == code]


def test_a_restart_after_a_silence_beyond_the_limit_is_a_warning(tmp_path):
    assert findings(tmp_path, expired(), "KA801") == [("warning", 6, 3)]


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
    assert findings(tmp_path, log, "KA801", broker_version=version) == ([("warning", 1, 2)] if forgotten else [])


@pytest.mark.parametrize(("version", "noted"), [("2.4.1", False), ("2.5.0", True), ("3.9.1", True), ("auto", True)])
def test_a_producer_that_goes_on_after_the_limit_is_a_note_where_brokers_let_it(tmp_path, version, noted):
    """Before 2.5 an unknown producer's next sequence was refused, so that it was written shows it was remembered."""
    log = Log()
    log.append(data(1, 0, 0))
    log.clock += 8 * DAY_MS
    log.append(data(1, 0, 1))
    log.clock += 8 * DAY_MS
    log.append(data(1, 0, 2))
    assert findings(tmp_path, log, "KA801", broker_version=version) == ([("note", 1, 1)] if noted else [])


def test_old_record_timestamps_are_silence_too(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    log.append(data(1, 0, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(2, 0, 0))
    assert findings(tmp_path, log, "KA801") == [("note", 1, 0)]


def test_an_open_transaction_never_expires(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(3, 0, 0, transactional=True))
    log.append(marker(3, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(2, 0, 0))
    assert findings(tmp_path, log, "KA801") == [("note", 3, 2)]


def test_at_most_twenty_idle_producers_are_told_of_the_longest_idle(tmp_path):
    log = Log(clock=BASE_TIMESTAMP - 30 * DAY_MS)
    for producer_id in range(30):
        log.append(data(producer_id, 0, 0))
    log.clock = BASE_TIMESTAMP
    log.append(data(99, 0, 0))
    assert [producer_id for _, producer_id, _ in findings(tmp_path, log, "KA801")] == list(range(20))


@pytest.mark.parametrize(("version", "expected"), [("2.3.1", [("warning", 7, 0)]), ("2.4.0", []), ("auto", [])])
def test_a_retry_of_what_was_deleted_shows_that_the_producer_was_evicted(tmp_path, version, expected):
    assert findings(tmp_path, evicted(), "KA802", broker_version=version, log_start_offset=3) == expected


def test_evicted_producers_without_effect_are_notes(tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    log.append(data(2, 0, 0))
    log.append(data(3, 0, 0))
    log.append(data(2, 0, 0, payload=b"anew"))
    log.append(data(3, 0, 1))
    found = findings(tmp_path, log, "KA802", broker_version="2.0.1", log_start_offset=3)
    assert found == [("note", 1, 0), ("note", 2, 1)]


def test_plain_data_in_a_transaction_stops_every_version(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(1, 0, 1))
    for version in ("auto", "2.0.1", "4.3.1"):
        assert findings(tmp_path, log, "KA803", broker_version=version) == [("error", 1, 1)]


@pytest.mark.parametrize(("version", "severity"), [("2.4.0", "error"), ("2.4.1", None), ("auto", "note")])
@pytest.mark.parametrize("stale", [marker(1, 0, coordinator_epoch=7), marker(1, 1, coordinator_epoch=5)])
def test_stale_markers_stop_brokers_up_to_2_4_0(tmp_path, version, severity, stale):
    log = Log()
    log.append(data(1, 1, 0, transactional=True))
    log.append(marker(1, 1, coordinator_epoch=7))
    log.append(stale)
    expected = [] if severity is None else [(severity, 1, 2)]
    assert findings(tmp_path, log, "KA803", broker_version=version) == expected


@pytest.mark.parametrize(("version", "severity"), [("2.0.0", "error"), ("2.0.1", None), ("auto", "note")])
def test_emptied_markers_stop_brokers_up_to_2_0_0(tmp_path, version, severity):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 0, kept=0))
    log.append(marker(1, 0, kept=0))
    expected = [] if severity is None else [(severity, 1, 1)]
    assert findings(tmp_path, log, "KA803", broker_version=version) == expected
