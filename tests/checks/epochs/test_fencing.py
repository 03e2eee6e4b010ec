"""KA203: an epoch that a coordinator raised, in a recorded log."""

from kaudit.checks.epochs.epoch_bumps import fencing
from tests.checks.findings import recorded_findings


def test_fencing_is_found_where_it_was_recorded():
    assert recorded_findings(fencing, "samples/zombie") == [("note", "s38-epoch-max", 900001, 1)]


def test_fencing_is_not_found_in_a_healthy_log():
    assert recorded_findings(fencing, "samples/clean") == []
