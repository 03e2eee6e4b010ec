"""KA208: instances that cut one another short, sessions that write the same again; what happens now and then is silent."""

import pytest

import kaudit
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.checks.epochs.distress import distress
from tests.distress_sample import deliveries, instances, sessions
from tests.live_brokers.accidents.judged import recorded
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


def version_2(count, gap):
    """Transactions of version 2 (KIP-890): one is committed, then each is aborted; the next epoch is `gap` after the abort's."""
    own, epoch = Log(), 0
    for number in range(count):
        own.append(data(7, epoch, 0, 2, transactional=True))
        own.append(marker(7, epoch + 1, commit=number == 0))
        epoch += 1 + (gap if number else 0)
    return own


def test_with_version_2_an_instance_begins_an_epoch_after_the_one_of_the_abort(tmp_path):
    """As brokers 4.1.1 and their client write it: tests/data/accidents/restart-loop; who aborted goes on with the abort's epoch."""
    (finding,) = distress(tmp_path / "again", "orders", version_2(8, 1))
    assert (finding.code, finding.evidence["rises"]) == ("KA208", 6)
    assert distress(tmp_path / "own", "orders", version_2(20, 0)) == []
    # more transactions in between, in other partitions
    assert distress(tmp_path / "elsewhere", "orders", version_2(20, 2)) == []


@pytest.mark.parametrize("name", ["restart-loop", "two-instances"])
def test_recorded_loops_of_version_2(tmp_path, name):
    (moment,) = recorded(name).iterdir()
    (topic,) = (path.name for path in (moment / "b1").glob("[cs]*-0"))
    for chunk_bytes in (None, 300):
        result = scan(ScanOptions([str(moment / "b1" / topic)], chunk_bytes=chunk_bytes), SilentProgress())
        assert [each.evidence["rises"] for each in result.findings if each.code == "KA208"] == [7]
