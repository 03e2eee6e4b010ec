"""Producers that brokers before 2.4 forget with their data."""

import pytest

from kaudit.checks.broker_state.forgotten_producers import state_evicted
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import shipped
from kaudit.simulate.simulation import Simulation
from tests.checks.findings import findings_of
from tests.crafted_sample import evicted
from tests.logs import Log, data


@pytest.mark.parametrize(("version", "expected"), [("2.3.1", [("warning", 7, 0)]), ("2.4.0", []), ("auto", [])])
def test_a_retry_of_what_was_deleted_shows_that_the_producer_was_evicted(tmp_path, version, expected):
    assert findings_of(state_evicted, tmp_path, evicted(), broker_version=version, log_start_offset=3) == expected


def test_evicted_producers_without_effect_are_notes(tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    log.append(data(2, 0, 0))
    log.append(data(3, 0, 0))
    log.append(data(2, 0, 0, payload=b"anew"))
    log.append(data(3, 0, 1))
    found = findings_of(state_evicted, tmp_path, log, broker_version="2.0.1", log_start_offset=3)
    assert found == [("note", 1, 0), ("note", 2, 1)]


def test_a_shipped_schedule_leaves_it_where_the_release_is_given(tmp_path):
    simulation = Simulation(shipped("unknown-producer-id"), 1).run()
    write_run(tmp_path / "run", simulation, Truth(simulation))
    options = ScanOptions(paths=[str(tmp_path / "run" / "broker-1")], broker_version="2.0.1", jobs=1)
    assert "KA802" in {found.code for found in local.scan(options, SilentProgress()).findings}
