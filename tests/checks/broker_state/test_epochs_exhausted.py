"""KA819: producer ids whose epochs are used up, by lines of brokers and clients alone."""

from pathlib import Path

import pytest

from kaudit.audits.log_events import application_logs
from kaudit.audits.log_events.application_logs import given_logs, read_application_logs
from kaudit.checks.broker_state.logged_coordinators import epochs_exhausted
from kaudit.model.severity import Severity
from kaudit.source.layout import Layout
from tests.checks.broker_state.lines import all_findings, append_error, initialized, line, reported, sender
from tests.unpacked import extracted

COORDINATOR = "kafka.coordinator.transaction.TransactionMetadata"
REQUEST = (
    "[KafkaApi-1] Unexpected error handling request RequestHeader(apiKey=INIT_PRODUCER_ID, apiVersion=4, clientId=app, correlationId=17, "
    "headerVersion=2) -- InitProducerIdRequestData(transactionalId='payments', transactionTimeoutMs=60000, producerId=-1, producerEpoch=-1) "
    "with context RequestContext(...)"
)
OLD_REQUEST = (
    "[KafkaApi-1] Error when handling request: clientId=app, correlationId=17, api=INIT_PRODUCER_ID, version=1, "
    "body={transactional_id=payments,transaction_timeout_ms=60000}"
)


def thrown(exception: str, request: str = REQUEST) -> str:
    """How a broker logs a request that failed unexpectedly."""
    return f"{line(request, 0, 'ERROR', 'kafka.server.KafkaApis')}\n{exception}\n\tat kafka.coordinator.transaction"


def drained(producer_id: int, epoch: int, second: float) -> str:
    """How librdkafka logs that it raised its epoch."""
    return (
        f"%7|{1787047200 + second:.3f}|DRAIN|orders-app#producer-1| [thrd:127.0.0.1:48605/1]: All partitions drained, bumped epoch to "
        f"PID{{Id:{producer_id},Epoch:{epoch}}}"
    )


def raised(epoch: int, second: float = 0, producer_id: int = 7, client: str = "app") -> str:
    """How a Java producer logs its epoch."""
    return sender(f"ProducerId set to {producer_id} with epoch {epoch}", second, "INFO", client)


def stale(epoch: int, last: int) -> str:
    """How a leader refuses an epoch."""
    return append_error(
        "orders-0",
        f"InvalidProducerEpochException: Epoch of producer 7 at offset 9 in orders-0 is {epoch}, which is smaller than the last seen epoch {last}",
    )


def of(found):
    return [(one.severity.value, one.producer_id, one.evidence.transactional_id) for one in found]


@pytest.mark.parametrize(
    "entry",
    [
        thrown("java.lang.IllegalStateException: Cannot fence producer with epoch equal to Short.MaxValue since this would overflow"),
        thrown("java.lang.IllegalStateException: Cannot fence producer with epoch equal to Short.MaxValue since this would overflow", OLD_REQUEST),
        thrown("java.lang.IllegalStateException: Cannot allocate any more producer epochs for producerId 7"),
        thrown("java.lang.IllegalArgumentException: Illegal new producer epoch -32768"),
        line("Fencing producer payments 7 with epoch equal to Short.MaxValue, this must not happen unless there is a bug", 0, "ERROR", COORDINATOR),
        line("Aborting producer payments 7 with epoch equal to Short.MaxValue, this must not happen unless there is a bug", 0, "ERROR", COORDINATOR),
    ],
    ids=["fence", "fence-2.x", "allocate", "illegal", "fencing-4.3", "aborting-4.3"],
)  # fmt: skip
def test_a_coordinator_that_has_no_epoch_left_is_an_error(tmp_path, entry):
    (found,) = reported(epochs_exhausted, tmp_path, server=[initialized("payments", 7, 32760), entry])
    assert of([found]) == [("error", 7, "payments")]
    assert "used up: it needs another producer id" in found.message


def test_another_producer_id_in_its_place_makes_it_a_note(tmp_path):
    entry = line(
        "Fencing producer payments 7 with epoch equal to Short.MaxValue, this must not happen unless there is a bug",
        0,
        "ERROR",
        COORDINATOR,
    )
    (found,) = reported(epochs_exhausted, tmp_path, server=[entry, initialized("payments", 8, 0, 1)])
    assert of([found]) == [("note", 7, "payments")]
    assert found.message.partition("; 1 line")[0].endswith("it went on under another producer id")


@pytest.mark.parametrize("epoch", [0, -32768], ids=["librdkafka", "sarama"])
def test_epochs_that_began_again_are_refused_for_good(tmp_path, epoch):
    (found,) = reported(epochs_exhausted, tmp_path, server=[stale(epoch, 32767)])
    assert of([found]) == [("error", 7, None)]
    assert "the broker refuses whatever it sends" in found.message
    assert not reported(epochs_exhausted, tmp_path, server=[stale(3, 5)])


@pytest.mark.parametrize(
    ("epoch", "says"),
    [(32000, "is at epoch 32000, 767 below the maximum"), (32767, "is at epoch 32767, the last"), (31999, None)],
)
def test_few_epochs_left_are_a_warning(tmp_path, epoch, says):
    found = reported(epochs_exhausted, tmp_path, client=[raised(epoch)])
    assert of(found) == ([("warning", 7, None)] if says else [])
    assert says is None or says in found[0].message


def test_a_java_client_that_got_another_id_goes_on(tmp_path):
    lines = [raised(32767), raised(-1, 1, producer_id=-1), raised(0, 2, producer_id=8)]
    assert of(reported(epochs_exhausted, tmp_path, client=lines)) == [("note", 7, None)]


def test_clients_that_have_no_id_yet_are_not_one_producer(tmp_path):
    lines = [raised(32767), raised(-1, 1, producer_id=-1), raised(-1, 2, producer_id=-1, client="b")]
    lines.append(raised(0, 3, producer_id=9, client="b"))
    assert of(reported(epochs_exhausted, tmp_path, client=lines)) == [("warning", 7, None)]


def test_the_rate_says_when_none_will_be_left(tmp_path):
    """150 epochs in 5 minutes are one in 2 s: 32767 - 20150 = 12617 take 25234 s, 7 hours."""
    lines = [drained(7, 20_000 + number, 2 * number) for number in range(151)]
    (found,) = reported(epochs_exhausted, tmp_path, client=lines)
    assert of([found]) == [("warning", 7, None)]
    assert found.message.startswith(
        "producer 7 is at epoch 20150, 12617 below the maximum; it rose by 150 in 5 min: at that rate none is left 7 h later"
    )
    # one in 20 s takes three days, and 99 are too few
    assert not reported(
        epochs_exhausted, tmp_path, client=[drained(7, 20_000 + number, 20 * number) for number in range(151)]
    )
    assert not reported(epochs_exhausted, tmp_path, client=lines[:100])


def test_transactions_of_version_2_use_an_epoch_each(tmp_path):
    lines = [initialized("payments", 7, epoch, epoch / 10) for epoch in range(0, 1000, 10)]
    assert not reported(epochs_exhausted, tmp_path, server=lines)
    (found,) = reported(epochs_exhausted, tmp_path, server=[*lines, initialized("payments", 7, 32001, 3000)])
    assert of([found]) == [("note", 7, "payments")]


def test_sarama_asks_for_another_id(tmp_path):
    exhausted = "[sarama] 2026/11/22 10:15:30 producer/txnmanager epoch exhausted, requesting new producer ID"
    obtained = "[sarama] 2026/11/22 10:15:31 txnmgr/init-producer-id [] obtained a ProducerId: 9 and ProducerEpoch: 0"
    assert [one.severity.value for one in reported(epochs_exhausted, tmp_path, client=[exhausted])] == ["warning"]
    assert [one.severity.value for one in reported(epochs_exhausted, tmp_path, client=[exhausted, obtained])] == [
        "note"
    ]


RECORDED = Path(__file__).parents[2] / "data" / "server-logs"


@pytest.mark.parametrize("release", ["4.1.1", "4.4.0"])
def test_brokers_whose_producers_ran_out_of_epochs(tmp_path, release):
    """Three transactional ids got new producer ids at 32766; a client without one went on below 32767 (tests/live_brokers/coordinator_logs.py)."""
    extracted(RECORDED / f"epochs-{release}.tar.xz", tmp_path)
    found = all_findings(tmp_path, server=(tmp_path / "server.log").read_text().splitlines())
    errors = [one for one in found if one.severity is Severity.ERROR]
    (wrapped,) = [one for one in errors if one.code == "KA819"]
    assert wrapped.message.startswith(
        f"the epochs of producer {wrapped.producer_id} began again below epoch 32767, the last, which had written: the broker refuses"
    )
    assert {one.producer_id for one in errors} == {wrapped.producer_id}
    replaced = [one for one in found if one.code == "KA819" and one is not wrapped]
    assert [one.evidence.to_dict()["transactional_id"] for one in replaced] == ["payments", "refunds", "reports"]
    assert {one.severity for one in replaced} == {Severity.NOTE}
    assert all("is at epoch 32766, 1 below the maximum" in one.message for one in replaced)
    assert all("it went on under another producer id" in one.message for one in replaced)


def test_what_is_routine_does_not_crowd_out_what_was_refused(tmp_path, monkeypatch):
    """A coordinator that hands out 100,000 epochs writes as many lines."""
    monkeypatch.setattr(application_logs, "MAX_EVENTS", 400)
    monkeypatch.setattr(application_logs, "_MANY_ALIKE", 100)
    lines = [initialized("payments", 7, epoch, epoch / 100) for epoch in range(1000)]
    refused = append_error(
        "orders-0",
        "InvalidProducerEpochException: Epoch of producer 8 at offset 11 in orders-0 is 0, which is "
        "smaller than the last seen epoch 32767",
        20,
    )
    found = all_findings(tmp_path, server=[*lines, refused])
    assert [(one.code, one.producer_id) for one in found if one.severity is Severity.ERROR] == [
        ("KA819", 8),
        ("KA812", 8),
    ]
    events = read_application_logs(given_logs(Layout([]), [str(tmp_path / "server.log")])).kept
    assert [event.producer_epoch for event in events][-2:] == [999, 0]
    assert [event.line for event in events] == sorted(event.line for event in events)
