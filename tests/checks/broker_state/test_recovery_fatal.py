"""Logs that a broker cannot load."""

import pytest

from kaudit.checks.broker_state.recovery_fatal import recovery_fatal
from tests.checks.findings import findings_of
from tests.logs import Log, data, marker


def test_plain_data_in_a_transaction_stops_every_version(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(1, 0, 1))
    for version in ("auto", "2.0.1", "4.3.1"):
        assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == [("error", 1, 1)]


@pytest.mark.parametrize(("version", "severity"), [("2.4.0", "error"), ("2.4.1", None), ("auto", "note")])
@pytest.mark.parametrize("stale", [marker(1, 0, coordinator_epoch=7), marker(1, 1, coordinator_epoch=5)])
def test_stale_markers_stop_brokers_up_to_2_4_0(tmp_path, version, severity, stale):
    log = Log()
    log.append(data(1, 1, 0, transactional=True))
    log.append(marker(1, 1, coordinator_epoch=7))
    log.append(stale)
    expected = [] if severity is None else [(severity, 1, 2)]
    assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == expected


@pytest.mark.parametrize(("version", "severity"), [("2.0.0", "error"), ("2.0.1", None), ("auto", "note")])
def test_emptied_markers_stop_brokers_up_to_2_0_0(tmp_path, version, severity):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 0, kept=0))
    log.append(marker(1, 0, kept=0))
    expected = [] if severity is None else [(severity, 1, 1)]
    assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == expected
