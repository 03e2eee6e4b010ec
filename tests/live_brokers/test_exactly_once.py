"""What kaudit says of applications that read, process and write, beside what a consumer reads of their outputs."""

import pytest

from tests.live_brokers.exactly_once.judged import wrong
from tests.live_brokers.exactly_once.stage import DATA, truths

TRUTHS = truths()


@pytest.mark.parametrize("name", TRUTHS)
def test_doubled_and_skipped_inputs_are_found_and_healthy_applications_have_no_warning(name):
    assert list(wrong(TRUTHS[name], DATA / f"{name}.tar.xz")) == []


def test_every_kind_of_application_is_there():
    assert any(truth.healthy for truth in TRUTHS.values())
    assert any(truth.doubled for truth in TRUTHS.values())
    assert any(truth.skipped for truth in TRUTHS.values())
