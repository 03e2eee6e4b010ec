"""Transactions that a coordinator rolled back after their timeout, or refused to end, by lines of logs."""

import numpy as np
import pytest

from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.checks.broker_state.logged_losses import transaction_rolled_back
from kaudit.model.application_logs import LogEventKind
from kaudit.model.coordinator import CoordinatorEntry, TransactionStatus, TransactionValue
from kaudit.model.logged_incidents import AbortedRecords, Consequence, LoggedIncident, Outcome
from kaudit.model.severity import Severity
from kaudit.scanning.log_comparison import with_transaction
from kaudit.source.layout import PartitionDirectory
from tests.audits.log_events.made import event
from tests.checks.broker_state.lines import initialized, line, reported, sender
from tests.logs import Log, data, marker

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


def test_its_offsets_are_named_where_the_partition_was_read(tmp_path):
    log = Log()
    for one in (data(8, 0, 0, 5, transactional=True), marker(8, 1, commit=False), data(8, 1, 0, 3, transactional=True)):
        log.append(one)
    lines = [initialized("app", 8, 0), timed_out(2.772), refused(7.996)]
    (found,) = reported(transaction_rolled_back, tmp_path, server=lines, log=log)
    assert found.message.startswith(
        "the coordinator rolled back a transaction of transactional id app (offsets 0..4 of orders-0) after its timeout at "
    )
    assert found.evidence.to_dict()["aborted_offsets"] == "0..4 of orders-0"


AT = 1_000_000
ENDED = [(7, 0, 3, AT - 20), (8, 4, 5, AT - 90_000), (8, 6, 11, AT + 113), (8, 20, 21, AT + 61_000), (8, -1, 22, AT)]
"""Abort markers: producer id, first offset, offset and time."""


@pytest.mark.parametrize(
    ("zone_known", "at", "found"),
    [(True, AT, [(6, 10)]), (True, AT + 400_000, []), (False, AT, [])],
    ids=["nearest", "none-near", "no-clock"],
)
def test_of_several_aborts_the_nearest_to_the_line_is_meant(zone_known, at, found):
    rows = np.zeros(len(ENDED), dtype=ENDED_TRANSACTION)
    for number, (producer_id, first, offset, time) in enumerate(ENDED):
        rows[number]["producer_id"], rows[number]["first_offset"] = producer_id, first
        rows[number]["marker_offset"], rows[number]["timestamp"] = offset, time
    ended = event(LogEventKind.TRANSACTION_TIMEOUT, timestamp_ms=at, zone_known=zone_known)
    incident = LoggedIncident(
        consequence=Consequence.ROLLED_BACK,
        subject="8",
        events=[ended],
        error="",
        outcome=Outcome.UNKNOWN,
        producer_id=8,
    )
    value = TransactionValue(1, 8, 3, 3000, TransactionStatus.EMPTY, 0, None, AT, -1)
    markers = Markers(PartitionDirectory("tv2", 0, "d", "d", "d/tv2-0", "tv2-0", ()), rows)
    told = with_transaction(incident, [markers], {8: CoordinatorEntry("app", value, 5)})
    assert told.timeout_ms == 3000
    assert list(told.aborted) == [AbortedRecords("tv2", 0, *offsets) for offsets in found]


def test_a_thread_of_streams_and_its_client_are_one_producer(tmp_path):
    """apache/kafka#23204: the client says why it stops, and its thread what it was doing."""
    thread = "orders-app-StreamThread-1"
    error = "org.apache.kafka.common.errors.InvalidTxnStateException: The producer attempted a transactional operation in an invalid state."
    lines = [
        sender(f"Transiting to fatal error state due to {error}", 0, "ERROR", f"{thread}-producer"),
        line("stream-client [orders-app] Encountered the following exception", 1, "ERROR", "org.apache.kafka.streams.KafkaStreams"),
        f"org.apache.kafka.streams.errors.StreamsException: Error encountered trying to commit a transaction [stream-thread [{thread}]]",
        "\tat org.apache.kafka.streams.processor.internals.StreamsProducer.commitTransaction(StreamsProducer.java:270)",
        f"Caused by: {error}",
    ]  # fmt: skip
    (found,) = reported(transaction_rolled_back, tmp_path, client=lines)
    shown = found.evidence.to_dict()
    assert (shown["client_id"], shown["lines"]) == (f"{thread}-producer", 2)
