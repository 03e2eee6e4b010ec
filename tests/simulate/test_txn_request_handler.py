"""The state machine of a transactional producer where answers come late. Expected: TransactionManager of kafka-clients 2.8 and 3.6."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version
from kaudit.simulate.producer.client_profile import java_client
from kaudit.simulate.producer.txn_request_handler import TransactionManagerState, TxnRequestHandler
from kaudit.simulate.requests import CoordinatorResponse

PRODUCER = (7, 0)


class Connection:
    """Keeps what is sent, to be answered later."""

    can_send = True

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, request, size, timeout_ms, answered, lost):
        self.sent.append(answered)


def handler_of(version):
    notes: list[str] = []
    connection = Connection()
    client = SimpleNamespace(
        clock=SimpleNamespace(now=0),
        config=SimpleNamespace(
            client=java_client(Version.parse(version)), transactional_id="w", transaction_timeout_ms=60_000, request_timeout_ms=300,
            retry_backoff_ms=100,
        ),
        versions=SimpleNamespace(
            init_producer_id=2, add_partitions=1, end_txn=1, transaction_version2=False,
        ),
        metadata=SimpleNamespace(coordinator=1, request_update=lambda: None),
        process=SimpleNamespace(run=lambda call: call()),
        connect=lambda node: connection,
        note=notes.append,
    )  # fmt: skip
    manager: Any = SimpleNamespace(
        transactional=True, producer=PRODUCER, partitions_in_transaction={}, has_producer_id=True, failed=False
    )
    return TxnRequestHandler(client, manager, ("__transaction_state", 0), lambda: None), connection, notes  # type: ignore[arg-type]


def state_of(handler: TxnRequestHandler) -> TransactionManagerState:
    """Its state now."""
    return handler.state


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.7.0", TransactionManagerState.READY), ("3.6.0", TransactionManagerState.FATAL_ERROR)],
)
def test_a_commit_that_succeeds_after_the_application_began_to_abort(version, state):
    handler, connection, notes = handler_of(version)
    handler.state = TransactionManagerState.IN_TRANSACTION
    handler._started = True
    handler.end(commit=True)
    handler.send_next(has_incomplete=False)
    (answered,) = connection.sent
    # a batch that had been given up is refused while EndTxn is under way, and the application aborts
    handler.batch_failed(KafkaError.REQUEST_TIMED_OUT)
    assert state_of(handler) is TransactionManagerState.ABORTABLE_ERROR
    handler.end(commit=False)
    answered(CoordinatorResponse(KafkaError.NONE, (-1, -1)))
    assert state_of(handler) is TransactionManagerState.READY
    handler.send_next(has_incomplete=False)  # nothing was begun since: the abort is not sent
    assert len(connection.sent) == 1
    assert state_of(handler) is state
    assert notes[0] == "IllegalStateException in the I/O thread: from READY to READY"
    # a client before 3.6 goes on where it is
    if state is TransactionManagerState.READY:
        handler.begin()
        assert state_of(handler) is TransactionManagerState.IN_TRANSACTION
