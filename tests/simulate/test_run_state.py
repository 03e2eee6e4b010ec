"""What the page of a run shows after an event: every field of clients, logs, remembered producers and transactions."""

from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, ProducerStateEntry
from kaudit.simulate.clock import BASE_TIMESTAMP
from kaudit.simulate.simulation import Observer
from kaudit.simulate.trace import (
    Client,
    ClientPartition,
    Partition,
    QueuedBatch,
    RememberedProducer,
    Replica,
    RunState,
    Transaction,
)
from tests.simulate.test_application import TRANSACTIONAL, played
from tests.simulate.test_faults import fault

PLAIN = ', "enable.idempotence" = false, "acks" = "1", "retries" = 0, "max.in.flight.requests.per.connection" = {}'
IDEMPOTENT = ', "enable.idempotence" = true'


def state_after(simulation, kind: str, at: int, text: str) -> RunState:
    """The state after the one event of this kind, time and text; each message takes 2 ms, each record is a batch."""
    found: RunState
    (found,) = (
        event.state
        for event in simulation.trace.events
        if (event.kind.value, event.at) == (kind, at) and event.text.startswith(text)
    )
    return found


def test_a_transaction_that_is_half_acknowledged():
    """Asked for an id at 0 and, its coordinator loading then, 100 ms after the answer at 4: granted at 108, five records from 109 on."""
    producer = "records = 5\nevery_ms = 1\ntransaction = { records = 5, pause_ms = 50 }"
    simulation = played(producer, config=TRANSACTIONAL, duration=200)
    in_flight = tuple(QueuedBatch(str(number), str(number), 0, 0) for number in (2, 3, 4))
    remembered = tuple(BatchMetadata(number, number, 0, BASE_TIMESTAMP + 109 + number) for number in range(5))
    assert state_after(simulation, "response", 117, "ok, offset 1") == RunState(
        (
            Client(
                "shop",
                "running",
                "0",
                0,
                5,
                "t",
                "IN_TRANSACTION",
                (ClientPartition("orders-0", (), 0, in_flight, 3, False, False, 5, 1),),
            ),
        ),
        (Partition("orders-0", 1, 0, 1, "0", (Replica(1, "running", True, "0", "5", "5"),)),),
        (RememberedProducer("orders-0", 0, ProducerStateEntry(0, -1, BASE_TIMESTAMP + 113, remembered, 0)),),
        (Transaction("t", "0", 0, "Ongoing", ("orders-0",), 111, 60_000),),
    )
    begun = state_after(simulation, "response", 4, "COORDINATOR_LOAD_IN_PROGRESS")
    assert (begun.producers, begun.transactions, begun.clients[0].transaction_state) == ((), (), "INITIALIZING")
    ended = state_after(simulation, "response", 167, "ok")
    assert ended.transactions == (Transaction("t", "0", 0, "CompleteCommit", (), None, 60_000),)
    # the marker lies after the records
    assert ended.partitions == (Partition("orders-0", 1, 0, 1, "6", (Replica(1, "running", True, "0", "6", "6"),)),)


def test_a_partition_is_muted_while_the_only_request_of_a_producer_without_id_is_under_way():
    simulation = played("records = 3\nevery_ms = 1", config=PLAIN.format(1), duration=60)
    (client,) = state_after(simulation, "request", 2, "orders-0 #0").clients
    waiting, sent = (QueuedBatch(number, "", -1, 0) for number in ("1", "0"))
    assert client.partitions == (ClientPartition("orders-0", (waiting,), 1, (sent,), 1, True, False, -1, -1),)
    (client,) = state_after(simulation, "response", 12, "ok, offset 2").clients
    assert client.partitions == (ClientPartition("orders-0", (), 0, (), 0, False, False, -1, -1),)


def test_twelve_batches_are_described_and_all_counted():
    sent = played("records = 20\nburst = 20", config=PLAIN.format(20), duration=60)
    (at_once,) = state_after(sent, "request", 2, "orders-0 #7").clients[0].partitions
    assert (at_once.queue, at_once.queued, at_once.sent) == ((), 0, 20)
    waiting = played("records = 20\nburst = 20", config=IDEMPOTENT, duration=60)
    (none_yet,) = state_after(waiting, "response", 4, "COORDINATOR").clients[0].partitions
    assert (none_yet.in_flight, none_yet.queued, none_yet.sent) == ((), 20, 0)
    for found in (at_once.in_flight, none_yet.queue):
        assert [batch.records for batch in found] == [str(number) for number in range(12)]


def test_two_partitions_and_a_batch_that_nobody_knows_the_end_of():
    simulation = played("records = 4\nburst = 4", partitions=2, config=IDEMPOTENT, duration=110)
    (application,) = simulation.applications.values()
    producer = application.producer
    assert producer is not None
    assert producer.manager is not None
    for batch in list(producer.in_flight):
        if batch.partition == ("orders", 1):
            producer.manager.mark_unresolved(batch)
    partitions = (
        Observer(simulation.applications, simulation.cluster, simulation.clock.base).read().clients[0].partitions
    )
    assert [(each.partition, each.sent, each.unresolved, each.next_sequence) for each in partitions] == [
        ("orders-0", 2, False, 2),
        ("orders-1", 2, True, 2),
    ]
    assert [batch.sequences for each in partitions for batch in each.in_flight] == ["0", "1", "0", "1"]


def test_what_the_last_leader_remembered_is_shown_while_there_is_none():
    killed = fault("kill-broker", at_ms=150, broker=1)
    simulation = played("records = 2\nevery_ms = 1", killed, config=IDEMPOTENT, duration=3000)
    # noticed 1000 ms after it died
    found = state_after(simulation, "fault", 1150, "orders-0 has no leader")
    assert found.partitions == (Partition("orders-0", None, 1, 1, None, (Replica(1, "killed", True, "0", "2", "2"),)),)
    assert [(each.partition, each.producer_id, len(each.entry.batches)) for each in found.producers] == [
        ("orders-0", 0, 2)
    ]
