"""Fenced producers by lines of logs: rightly where the log shows who took over."""

import pytest

from kaudit.checks.broker_state.logged_refusals import producer_fenced
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import append_error, initialized, line, reported
from tests.logs import Log, data

STALE = "InvalidProducerEpochException: Epoch of producer 77 at offset 12 in orders-0 is 3, which is smaller than the last seen epoch 4"
TIMED_OUT = line(
    "[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId app due to timeout",
    logger="kafka.coordinator.transaction.TransactionCoordinator",
)
FENCED = line(
    "[Producer clientId=app-1, transactionalId=app] Transiting to fatal error state due to "
    "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer with the same transactionalId which fences "
    "the current one.",
    5,
    "ERROR",
    "org.apache.kafka.clients.producer.internals.TransactionManager",
)


@pytest.fixture
def other(tmp_path):
    """A log of another partition."""
    log = Log()
    log.append(data(1, 0, 0))
    log.write(tmp_path / "others-0")
    return log


@pytest.mark.parametrize(
    ("around", "severity"),
    [
        ([], Severity.ERROR),
        ([initialized("app", 77, 4)], Severity.NOTE),  # the instance that took over
        ([initialized("app", 77, 3)], Severity.ERROR),  # the fenced one itself
        ([initialized("app", 78, 4)], Severity.ERROR),
        # the coordinator raised the epoch: nobody took over
        ([initialized("app", 77, 3), TIMED_OUT, initialized("app", 77, 5)], Severity.ERROR),
    ],
)
def test_it_is_right_where_the_newer_instance_is_shown(tmp_path, around, severity):
    lines = [*around, append_error("pay-0", STALE.replace("orders", "pay"), 5)]
    (found,) = reported(producer_fenced, tmp_path, server=lines)
    assert found.severity is severity
    assert "the producer is fenced; it has epoch 3, where epoch 4 had written" in found.message


def test_a_timeout_before_is_the_first_cause(tmp_path):
    lines = [initialized("app", 77, 3), TIMED_OUT, append_error("pay-0", STALE.replace("orders", "pay"), 5)]
    (found,) = reported(producer_fenced, tmp_path, server=lines)
    assert found.explanations[0].cause == "the coordinator aborted the transaction: it had timed out"
    assert found.explanations[0].speaks_for == ("server.log:2",)


def test_a_client_tells_only_that_it_was_fenced(tmp_path):
    (found,) = reported(producer_fenced, tmp_path, client=[FENCED])
    assert found.severity is Severity.ERROR
    assert found.message.startswith(
        "the broker refused requests of the producer of transactional id app: the producer is fenced"
    )
    (right,) = reported(
        producer_fenced, tmp_path, server=[initialized("app", 77, 3), initialized("app", 77, 4, 4)], client=[FENCED]
    )
    assert right.severity is Severity.NOTE


def test_zombies_are_silent_where_the_partition_was_read(tmp_path):
    log = Log()
    log.append(data(77, 4, 0))
    assert not reported(producer_fenced, tmp_path, server=[append_error("orders-0", STALE)], log=log)


def test_what_coordinator_and_client_say_of_one_instance_shows_no_other(tmp_path):
    client = [line("[Producer clientId=app-1, transactionalId=app] ProducerId set to 7 with epoch 3", 1), FENCED]
    (found,) = reported(producer_fenced, tmp_path, server=[initialized("app", 7, 3)], client=client)
    assert found.severity is Severity.ERROR
