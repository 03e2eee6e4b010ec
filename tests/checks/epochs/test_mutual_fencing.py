"""KA209: instances that fence each other are told from one that is restarted by the logs of those that were fenced."""

import pytest

from tests.checks.epochs.distress import distress
from tests.distress_sample import broker_lines, instances


@pytest.mark.parametrize(("epochs", "code"), [((0, 2, 4), "KA209"), ((2, 2, 2), "KA208"), ((20, 22), "KA208")])
def test_requests_of_several_epochs_that_were_refused_tell_two_instances_from_one(tmp_path, epochs, code):
    (finding,) = distress(tmp_path, "billing", instances(9), broker_lines(epochs))
    assert finding.code == code
