"""The causes that findings about epochs name are those their evidence and the possible releases allow."""

import pytest

import kaudit
from tests.logs import Log, data, marker


def causes(directory, log, code, version):
    (found,) = kaudit.scan([log.write(directory / "orders-0")], select=[code], broker_version=version).findings
    return [explanation.cause for explanation in found.explanations]


@pytest.mark.parametrize(("version", "named"), [("2.3.1", True), ("3.9.1", False)])
def test_a_forgotten_marker_is_a_cause_in_releases_that_forget_it(tmp_path, version, named):
    log = Log()
    log.append(data(7, 0, 0, transactional=True))
    log.append(marker(7, 1, commit=False))
    log.append(data(7, 0, 1, transactional=True))
    assert any("KAFKA-9144" in cause for cause in causes(tmp_path, log, "KA201", version)) is named


def test_a_forgotten_marker_is_no_cause_where_data_of_the_newer_epoch_is_known(tmp_path):
    log = Log()
    log.append(data(7, 0, 0))
    log.append(data(7, 1, 0))
    log.append(data(7, 0, 1))
    assert not any("KAFKA-9144" in cause for cause in causes(tmp_path, log, "KA201", "2.3.1"))


@pytest.mark.parametrize("transactional", [True, False])
def test_epochs_of_a_producer_without_transactional_id_are_not_blamed_on_one(tmp_path, transactional):
    log = Log()
    log.append(data(7, 32_100, 0, transactional=transactional))
    assert any("transactional id" in cause for cause in causes(tmp_path, log, "KA204", "3.9.1")) is transactional
