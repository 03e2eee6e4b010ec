"""Transactions that a coordinator rolled back after their timeout, or refused to end, by lines of logs."""

from kaudit.checks.broker_state.logged_losses import transaction_rolled_back
from kaudit.model.finding import Severity
from tests.checks.broker_state.lines import initialized, line, reported

COORDINATOR = "kafka.coordinator.transaction.TransactionCoordinator"


def timed_out(second: float, name: str = "app") -> str:
    return line(
        f"[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId {name} due to timeout",
        second,
        logger=COORDINATOR,
    )


def refused(second: float, asked: str = "COMMIT", name: str = "app") -> str:
    return line(
        f"[TransactionCoordinator id=1] TransactionalId: {name}'s state is COMPLETE_ABORT, but received transaction marker result "
        f"to send: {asked}",
        second,
        "WARN",
        COORDINATOR,
    )


def test_a_commit_after_the_timeout(tmp_path):
    # apache/kafka#23204, as brokers 4.1.0 logged it
    lines = [initialized("app", 8, 0), timed_out(2.772), refused(7.996), initialized("app", 8, 3, 9)]
    (found,) = reported(transaction_rolled_back, tmp_path, server=lines)
    assert found.severity is Severity.ERROR
    assert found.message == (
        "the coordinator rolled back a transaction of transactional id app after its timeout at 2026-08-18 10:00:02.772, and its "
        "COMMIT was refused with INVALID_TXN_STATE 5.2 s later: nothing of it was committed; 2 lines, 2026-08-18 10:00:02.772 to "
        "2026-08-18 10:00:07.996"
    )
    assert (found.producer_id, found.evidence.transactional_id) == (8, "app")
    assert [event.line for event in found.evidence.log_events] == [2, 3]
    assert found.next[0] == f"kaudit scan --server-log {tmp_path}/server.log __transaction_state-2"
    assert "describe --transactional-id app" in found.next[2]


def test_no_partition_is_named_that_no_line_names(tmp_path):
    (found,) = reported(transaction_rolled_back, tmp_path, server=[timed_out(1), refused(2)])
    assert [command.split()[:2] for command in found.next] == [
        ["#", "Kafka"],
        ["kafka-transactions.sh", "--bootstrap-server"],
        ["kaudit", "explain"],
    ]


def test_timeouts_alone_are_a_warning(tmp_path):
    (found,) = reported(transaction_rolled_back, tmp_path, server=[timed_out(1), timed_out(50)])
    assert found.severity is Severity.WARNING
    assert found.message.startswith(
        "the coordinator rolled back 2 transactions of transactional id app after their timeouts"
    )


def test_a_refusal_alone_names_the_timeout_as_the_likeliest_cause(tmp_path):
    client = [
        line(
            "[Producer clientId=app-1, transactionalId=app] Transiting to fatal error state due to "
            "org.apache.kafka.common.errors.InvalidTxnStateException: The producer attempted a transactional operation in an invalid "
            "state.",
            3,
            "ERROR",
            "org.apache.kafka.clients.producer.internals.TransactionManager",
        )
    ]
    (found,) = reported(transaction_rolled_back, tmp_path, client=client)
    assert found.severity is Severity.ERROR
    assert "timed out" in found.explanations[0].cause
    (joined,) = reported(transaction_rolled_back, tmp_path, server=[timed_out(1)], client=client)
    assert "and what it asked was refused with INVALID_TXN_STATE 2.0 s later" in joined.message


def test_each_transactional_id_has_its_own(tmp_path):
    found = reported(transaction_rolled_back, tmp_path, server=[timed_out(1, "a"), refused(2, "ABORT", "b")])
    assert [(one.severity, one.evidence.transactional_id) for one in found] == [
        (Severity.WARNING, "a"),
        (Severity.ERROR, "b"),
    ]
