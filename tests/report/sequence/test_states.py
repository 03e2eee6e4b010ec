"""The state of a run after a message, as the page has it: every field in its place, equal ones once."""

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, ProducerStateEntry
from kaudit.broker.releases.profile import profile_for
from kaudit.report.sequence.decisions import Interned, decision, window
from kaudit.report.sequence.page_model import Window
from kaudit.report.sequence.simulated import _Steps
from kaudit.simulate.trace import (
    BrokerAnswer,
    Client,
    ClientPartition,
    Copy,
    EventKind,
    Partition,
    QueuedBatch,
    RememberedProducer,
    Replica,
    RunState,
    TraceEvent,
    Transaction,
    numbers_text,
)

PROFILE = profile_for("2.8.2")
ENTRY = ProducerStateEntry(3, 7, 5, (BatchMetadata(4, 104, 4, 5), BatchMetadata(5, 105, 0, 6)), 104)
STATE = RunState(
    clients=(
        Client(
            "p", "up", str(2**62), 3, 5, "pay", "IN_TRANSACTION",
            (
                ClientPartition(
                    "orders-0", (QueuedBatch("9", "", 3, 0),), 12, (QueuedBatch("7 to 8", "0 to 1", 3, 2),), 4,
                    muted=True, unresolved=False, next_sequence=6, last_acknowledged=5,
                ),
            ),
        ),
    ),
    partitions=(
        Partition("orders-0", 2, 4, 1, "0", (
            Replica(1, "down", False, "5", "90", "80"), Replica(2, "up", True, "6", "91", "81"),
        )),
        Partition("orders-1", None, 5, 2, None, ()),
    ),
    producers=(RememberedProducer("orders-0", 2**62, ENTRY),),
    transactions=(Transaction("pay", str(2**62), 3, "Ongoing", ("orders-0",), 11, 60_000),),
)  # fmt: skip


def steps():
    return _Steps(PROFILE, ["p", "broker 1"])


def response(*answers, is_error=False, kind=EventKind.RESPONSE, **more):
    return TraceEvent(kind, 10, 12, "broker 1", "p", "text", is_error=is_error, answers=answers, **more)


def test_every_field():
    made = steps()
    step = made.step(5, response(state=STATE, producer_id=2**62, partitions=("orders-0",)))
    (client,) = made.clients.items
    assert (client.name, client.process, client.producer_id, client.epoch) == ("p", "up", str(2**62), 3)
    assert (client.max_in_flight, client.transactional_id, client.transaction_state) == (5, "pay", "IN_TRANSACTION")
    (held,) = client.partitions
    assert (held.partition, held.queued, held.sent, held.muted, held.unresolved) == ("orders-0", 12, 4, True, False)
    assert (held.next_sequence, held.last_acknowledged) == (6, 5)
    (waiting,), (sent,) = held.queue, held.in_flight
    assert (waiting.records, waiting.sequences, waiting.epoch, waiting.attempts) == ("9", "", 3, 0)
    assert (sent.records, sent.sequences, sent.epoch, sent.attempts) == ("7 to 8", "0 to 1", 3, 2)
    first, second = made.partitions.items
    assert (first.name, first.leader, first.leader_epoch, first.min_insync_replicas) == ("orders-0", 2, 4, 1)
    assert (first.last_stable_offset, second.last_stable_offset, second.leader) == ("0", None, None)
    assert [
        (one.broker, one.process, one.in_sync, one.log_start, one.log_end, one.high_watermark) for one in first.replicas
    ] == [(1, "down", False, "5", "90", "80"), (2, "up", True, "6", "91", "81")]
    (transaction,) = made.transactions.items
    assert (transaction.transactional_id, transaction.producer_id, transaction.epoch) == ("pay", str(2**62), 3)
    assert (transaction.status, transaction.partitions) == ("Ongoing", ("orders-0",))
    assert (transaction.started_at, transaction.timeout_ms) == (11, 60_000)
    (remembered,) = made.windows.items
    assert (remembered.partition, remembered.producer_id, remembered.epoch) == ("orders-0", str(2**62), 3)
    assert (remembered.coordinator_epoch, remembered.capacity, remembered.next_sequence) == (7, 5, 6)
    assert remembered.transaction_from == "104"
    assert [(slot.sequences, slot.offsets) for slot in remembered.slots] == [("0 to 4", "100 to 104"), ("5", "105")]
    assert (step.number, step.at, step.sent_at, step.source, step.target) == (5, 12, 10, 1, 0)
    assert (step.arrow, step.text, step.partitions, step.producer_id) == ("response", "text", ("orders-0",), str(2**62))
    assert (step.state.clients, step.state.partitions, step.state.windows, step.state.transactions) == (
        [0],
        [0, 1],
        [0],
        [0],
    )


def test_a_state_seen_before_is_not_held_again():
    made = steps()
    made.step(1, response(state=STATE))
    again = made.step(2, response(state=STATE))
    assert (len(made.clients.items), len(made.partitions.items), len(made.windows.items)) == (1, 2, 1)
    assert list(again.state.partitions) == [0, 1]


@pytest.mark.parametrize(("number", "shown"), [(-1, None), (0, "0"), (5, "5")])
def test_a_producer_id(number, shown):
    assert steps().step(1, response(producer_id=number)).producer_id == shown


COPIED = BrokerAnswer("t-0", None, copies=(Copy(5, 1, 0),))


@pytest.mark.parametrize(("event", "tone"), [
    (response(), "ok"), (response(is_error=True), "refused"), (response(COPIED), "repeated"), (response(COPIED, is_error=True), "refused"),
    (response(COPIED, kind=EventKind.REQUEST), "request"), (response(kind=EventKind.LOST), "lost"),
    (response(kind=EventKind.REPLICATION), "replication"), (response(kind=EventKind.NOTE), "note"), (response(kind=EventKind.FAULT), "fault"),
])  # fmt: skip
def test_tones(event, tone):
    assert steps().step(1, event).tone == tone


@pytest.mark.parametrize(("error", "outcome", "name"), [
    (KafkaError.NONE, "ok", ""), (KafkaError.INVALID_PRODUCER_EPOCH, "rejected", "INVALID_PRODUCER_EPOCH"),
])  # fmt: skip
def test_a_coordinators_decision(error, outcome, name):
    windows: Interned[Window] = Interned()
    made = decision(BrokerAnswer("", None, error, "why"), PROFILE, windows, "before")
    assert (made.partition, made.outcome, made.error, made.rule, made.history) == ("", outcome, name, "why", "before")
    assert (made.expected, made.got, made.incoming, made.before, made.after, made.matched) == (
        "",
        "",
        "",
        None,
        None,
        None,
    )


def test_windows():
    nobody = window("t-0", 5, ProducerStateEntry(), PROFILE)
    assert (nobody.producer_id, nobody.epoch, nobody.next_sequence, nobody.slots) == ("5", -1, 0, ())
    assert nobody.transaction_from is None
    assert window("t-0", 5, ProducerStateEntry(current_txn_first_offset=0), PROFILE).transaction_from == "0"
    wrapped = window("t-0", 5, ProducerStateEntry(batches=(BatchMetadata(2**31 - 1, 9, 0, 0),)), PROFILE)
    assert (wrapped.next_sequence, wrapped.slots[0].sequences) == (0, str(2**31 - 1))
    assert [numbers_text(3, 3), numbers_text(3, 4)] == ["3", "3 to 4"]
