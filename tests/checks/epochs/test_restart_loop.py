"""KA208: instances that cut one another short, sessions that write the same again; what happens now and then is silent."""

import pytest

import kaudit
from kaudit.model.finding import Severity
from tests.checks.epochs.distress import distress
from tests.distress_sample import deliveries, instances, sessions
from tests.logs import Log, data, marker


def test_instances_that_cut_one_another_short(tmp_path):
    (finding,) = distress(tmp_path, "payments", instances(8))
    assert (finding.code, finding.severity, finding.evidence["rises"]) == ("KA208", Severity.WARNING, 6)
    assert [each.cause[:13] for each in finding.explanations] == ["the applicati", "two instances"]


def test_sessions_that_write_the_same_again(tmp_path):
    (finding,) = distress(tmp_path, "events", sessions(), depth="records")
    assert (finding.code, finding.evidence["records"], finding.evidence["producer_ids"]) == (
        "KA208",
        18,
        list(range(4000, 4007)),
    )
    assert finding.impact.to_dict() == {}  # KA701 has it
    assert distress(tmp_path / "four", "events", sessions(4), depth="records") == []
    assert distress(tmp_path / "far", "events", sessions(20, 301_000), depth="records") == []


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(deliveries(2), id="two"),
        pytest.param(deliveries(4, 100_000), id="four, slowly"),
        pytest.param(deliveries(20, 301_000), id="far apart"),
        pytest.param(instances(8, 4), id="four instances"),
        pytest.param(instances(8, 20, 301_000), id="instances far apart"),
        pytest.param(instances(8, 20, commit=True), id="an instance for each transaction"),
    ],
)
def test_what_happens_now_and_then_is_no_distress(tmp_path, log):
    assert distress(tmp_path, "orders", log) == []


def test_an_epoch_for_each_transaction_is_healthy(tmp_path):
    log = Log()
    for epoch in range(20):
        log.append(data(8, epoch, 0, 2, transactional=True))
        log.append(marker(8, epoch + 1, commit=epoch % 2 == 0))
    assert distress(tmp_path, "orders", log) == []


@pytest.mark.parametrize(
    ("log", "topic"), [(deliveries(), "orders"), (instances(8), "payments"), (sessions(), "events")]
)
def test_what_else_was_found_of_the_producer_is_the_same_incident(tmp_path, log, topic):
    log.write(tmp_path / f"{topic}-0")
    findings = kaudit.scan([tmp_path], depth="records").findings
    assert len(findings) > 1
    assert len({finding.incident for finding in findings}) == 1
    assert findings[0].incident is not None
