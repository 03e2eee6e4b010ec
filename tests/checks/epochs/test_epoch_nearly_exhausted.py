"""KA204: an epoch with few left after it, in a recorded log."""

from kaudit.checks.epochs.epoch_bumps import epoch_nearly_exhausted
from tests.checks.findings import recorded_findings


def test_epoch_nearly_exhausted_is_found_where_it_was_recorded():
    assert recorded_findings(epoch_nearly_exhausted, "samples/zombie") == [("warning", "s38-epoch-max", 900001, 0)]


def test_epoch_nearly_exhausted_is_not_found_in_a_healthy_log():
    assert recorded_findings(epoch_nearly_exhausted, "samples/clean") == []
