"""KA209: instances that fence each other are told from one that is restarted by the logs of those that were fenced."""

import pytest

import kaudit
from kaudit.checks.log_evidence import fenced_instances
from kaudit.model.application_logs import LogEvent, LogEventKind
from tests.checks.epochs.distress import CODES, distress
from tests.distress_sample import broker_lines, instances
from tests.live_brokers.accidents.judged import copied


@pytest.mark.parametrize(("epochs", "code"), [((0, 2, 4), "KA209"), ((2, 2, 2), "KA208"), ((20, 22), "KA208")])
def test_requests_of_several_epochs_that_were_refused_tell_two_instances_from_one(tmp_path, epochs, code):
    (finding,) = distress(tmp_path, "billing", instances(9), broker_lines(epochs))
    assert finding.code == code


def clients(tmp_path, name, keep=lambda path: True):
    (moment,) = copied(name, tmp_path).iterdir()
    for path in [*moment.glob("client-*.log")]:
        if not keep(path):
            path.unlink()
    found = [finding for finding in kaudit.scan(moment).findings if finding.code in CODES]
    return [(finding.code, finding.evidence["fenced_epochs"]) for finding in found]


def test_instances_that_were_at_work_when_another_took_over_are_two(tmp_path):
    """As brokers and clients of 4.1.1 wrote it (transaction version 2): clients say that they were fenced, and not with which epoch."""
    assert clients(tmp_path / "two", "two-instances") == [("KA209", 6)]
    # of one of them nothing shows that it had another's successor beside it
    assert clients(tmp_path / "one", "two-instances", lambda path: path.name == "client-shifts-2.log") == [("KA208", 0)]
    assert clients(tmp_path / "loop", "restart-loop") == [("KA208", 0)]


def test_an_instance_that_fails_before_there_is_another_is_alone():
    def event(kind, second, client, **facts):
        return LogEvent(
            event=kind, origin="client", path=f"{client}.log", line=second, pattern="", text="", client_id=client,
            timestamp_ms=second * 1000, **facts,
        )  # fmt: skip

    def lines(fenced_at):
        return [
            event(LogEventKind.PRODUCER_ID_ASSIGNED, 1, "a", producer_id=9, producer_epoch=4),
            event(LogEventKind.PRODUCER_STATE_CHANGE, fenced_at, "a", error="INVALID_PRODUCER_EPOCH"),
            event(LogEventKind.PRODUCER_ID_ASSIGNED, 3, "b", producer_id=9, producer_epoch=6),
            event(LogEventKind.PRODUCER_STATE_CHANGE, 5, "c", error="INVALID_PRODUCER_EPOCH"),
        ]

    assert [(each.producer_id, each.producer_epoch) for each in fenced_instances(lines(4))] == [(9, 4)]
    assert [*fenced_instances(lines(2))] == []  # its transaction had timed out, and it was started again
