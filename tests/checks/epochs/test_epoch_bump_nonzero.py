"""KA202: an epoch that begins with another sequence than 0, in a recorded log."""

from kaudit.checks.epochs.epoch_bumps import epoch_bump_nonzero
from tests.checks.findings import recorded_findings


def test_epoch_bump_nonzero_is_found_where_it_was_recorded():
    assert recorded_findings(epoch_bump_nonzero, "samples/duplicates/s49-inject-epoch-gap-0") == [
        ("error", "s49-inject-epoch-gap", 900001, 1)
    ]


def test_epoch_bump_nonzero_is_not_found_in_a_healthy_log():
    assert recorded_findings(epoch_bump_nonzero, "samples/clean") == []
