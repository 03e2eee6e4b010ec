"""KA201: a batch of an epoch that was fenced, in a recorded log."""

from kaudit.checks.epochs.stale_epochs import stale_epoch
from tests.checks.findings import recorded_findings


def test_stale_epoch_is_found_where_it_was_recorded():
    assert recorded_findings(stale_epoch, "samples/zombie") == [("error", "x07-old-epoch-after-expiry", 900001, 1)]


def test_stale_epoch_is_not_found_in_a_healthy_log():
    assert recorded_findings(stale_epoch, "samples/clean") == []
