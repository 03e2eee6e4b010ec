"""The sender and its transactional requests against a broker that answers by script.

What has to follow is taken from Sender, TransactionManager and RecordAccumulator of the Java releases named.
"""

from itertools import count
from random import Random

import pytest

import kaudit
from kaudit.broker.attempts import Produce
from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.version import Version
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Network
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.producer.config import negotiate_versions
from kaudit.simulate.producer.kafka_producer import KafkaProducer
from kaudit.simulate.producer.network_client import Metadata, NetworkClient
from kaudit.simulate.producer.txn_request_handler import TransactionManagerState as State
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    ConnectionClosed,
    CoordinatorResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.trace import EventKind, Trace

SCENARIO = """
[[topics]]
name = "t"
partitions = 3
[[producers]]
name = "p"
client = "{client}"
config = {{ "linger.ms" = 0, "batch.size" = 100, {config} }}
{more}
"""
TRANSACTIONAL = '"transactional.id" = "tid"'
DELAY = 1
NO_ID = (-1, -1)


class NoFaults:
    """Nothing is lost on the way."""

    def request(self, client, request, number):
        return None

    def response(self, client, request, number):
        return None

    def error(self, client, request, number):
        return None

    def marker(self, partition, number):
        return None


class ScriptedBroker:
    """Answers the nth request of a kind by script, others with success; keeps those of the types `hold` unanswered."""

    number = 1
    name = "broker 1"
    is_up = True
    is_running = True

    def __init__(self):
        self.received = []
        self.script = {}
        self.held = []
        self.hold: type | tuple[type, ...] = ()
        self._counts = {}
        self._offsets = count()

    def handle(self, request, respond):
        kind = type(request)
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        self.received.append(request)
        if isinstance(request, self.hold):
            self.held.append((request, respond))
        else:
            respond(self.answer(request, self.script.get((kind, number), KafkaError.NONE)))

    def answer(self, request, error):
        if not isinstance(request, ProduceRequest):
            granted = (7, 0) if isinstance(request, InitProducerIdRequest) and error is KafkaError.NONE else NO_ID
            return CoordinatorResponse(error, granted)
        if request.acks == 0:
            return ConnectionClosed(error.name) if error is not KafkaError.NONE else None
        return ProduceResponse(
            tuple(
                PartitionProduceResponse(part, error, next(self._offsets) if error is KafkaError.NONE else -1, 0)
                for part in request.parts
            )
        )

    def release(self, error=KafkaError.NONE):
        """Answer the oldest request that was held."""
        request, respond = self.held.pop(0)
        respond(self.answer(request, error))

    def of(self, kind):
        return [request for request in self.received if isinstance(request, kind)]


class OneBroker:
    """A cluster of that broker."""

    coordinator = 1

    def __init__(self):
        self.broker = ScriptedBroker()
        self.brokers = {1: self.broker}
        self.asked = 0

    def leaders(self):
        self.asked += 1
        return {("t", number): 1 for number in range(3)}


class Played:
    """One producer of a client release, played in simulated time."""

    def __init__(self, client="java 3.9.1", config='"enable.idempotence" = true', broker="3.9.1"):
        more = "transaction = {}" if "transactional.id" in config else ""
        (spec,) = parse_scenario(SCENARIO.format(client=client, config=config, more=more), "test").producers
        self.clock = Clock()
        self.cluster = OneBroker()
        self.broker = self.cluster.broker
        self.trace = Trace()
        network = Network(self.clock, (DELAY, DELAY), Random(1), NoFaults(), self.trace)
        versions = negotiate_versions(client_for(client), Version.parse(broker))
        self.done: list[ProducerBatch] = []
        self.producer = KafkaProducer(
            NetworkClient(spec.name, spec.config, versions, self.cluster, network, Random(1)),
            ("t", 0),
            count(1),
            self.done.append,
        )
        self._transactions = self.producer.transactions

    @property
    def transactions(self):
        """The idempotent producer's requests to the coordinator."""
        assert self._transactions is not None
        return self._transactions

    def send(self, number, partition=0):
        self.producer.send(("t", partition), Payload("p", 60, "p", 1), number)

    def run(self, until):
        self.clock.run(until)
        self.clock.now = until

    def begin(self):
        """Initialise and begin a transaction."""
        self.transactions.initialize()
        self.run(10)
        self.transactions.begin()

    @property
    def notes(self):
        return [event.text for event in self.trace.events if event.kind is EventKind.NOTE]

    @property
    def sequences(self):
        """(epoch, base sequence) of each batch that arrived, in order."""
        return [
            (part.epoch, part.base_sequence) for request in self.broker.of(ProduceRequest) for part in request.parts
        ]


class TestRetries:
    @pytest.mark.parametrize("error", [KafkaError.NOT_LEADER_OR_FOLLOWER, KafkaError.NOT_ENOUGH_REPLICAS])
    def test_a_retriable_error_is_sent_again_after_its_backoff_with_the_same_sequence(self, error):
        played = Played("java 2.8.2")
        played.broker.script[ProduceRequest, 1] = error
        played.send(0)
        played.run(60)
        assert played.sequences == [(0, 0)]
        played.run(200)
        assert played.sequences == [(0, 0), (0, 0)]
        assert [batch.error for batch in played.done] == [None]

    def test_retries_end_and_the_sequence_is_not_given_to_another_batch(self):
        """It may have been written: Sender.failBatch does not adjust sequences after the last retry (1.0)."""
        played = Played("java 2.0.1", '"enable.idempotence" = true, retries = 1')
        played.broker.script = {(ProduceRequest, number): KafkaError.NOT_ENOUGH_REPLICAS for number in (1, 2)}
        played.send(0)
        played.run(500)
        played.send(1)
        played.run(600)
        assert [batch.error for batch in played.done] == [KafkaError.NOT_ENOUGH_REPLICAS, None]
        assert played.sequences == [(0, 0), (0, 0), (0, 1)]

    def test_0_11_gives_the_sequence_of_a_batch_given_up_to_the_next_one(self):
        """Sender.completeBatch of 0.11 raises the sequence when a batch is acknowledged, not when it is sent."""
        played = Played("java 0.11.0.3", '"enable.idempotence" = true, retries = 1')
        played.broker.script = {(ProduceRequest, number): KafkaError.NOT_ENOUGH_REPLICAS for number in (1, 2)}
        played.send(0)
        played.run(500)
        played.send(1)
        played.run(600)
        assert played.sequences == [(0, 0), (0, 0), (0, 0)]

    @pytest.mark.parametrize(("client", "attempts"), [("java 1.0.0", 1), ("java 4.0.0", 1), ("java 0.11.0.3", 2)])
    def test_a_duplicate_is_success_since_1_0_and_sent_again_before(self, client, attempts):
        """DuplicateSequenceNumberException of 0.11 is a RetriableException."""
        played = Played(client)
        played.broker.script[ProduceRequest, 1] = KafkaError.DUPLICATE_SEQUENCE_NUMBER
        played.send(0)
        played.run(300)
        assert [batch.error for batch in played.done] == [None]
        assert played.sequences == [(0, 0)] * attempts

    def test_what_came_too_early_is_sent_again_one_by_one_in_order(self):
        """TransactionManager.canRetry, and shouldStopDrainBatchesForPartition: first the lowest sequence in flight."""
        played = Played()
        played.send(0)
        played.run(20)
        script = {2: KafkaError.NOT_ENOUGH_REPLICAS, 3: KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER}
        played.broker.script = {(ProduceRequest, number): error for number, error in script.items()}
        for number in (1, 2):
            played.send(number)
        played.run(1000)
        assert played.sequences == [(0, 0), (0, 1), (0, 2), (0, 1), (0, 2)]
        assert [batch.error for batch in played.done] == [None] * 3

    @pytest.mark.parametrize(
        ("client", "sequences"),
        [
            ("java 2.4.1", [(0, 0), (0, 1), (0, 0)]),  # a new producer id
            ("java 2.5.0", [(0, 0), (0, 1), (1, 0), (1, 1)]),
            ("java 4.0.0", [(0, 0), (0, 1), (1, 0), (1, 1)]),
            ("librdkafka 2.14.1", [(0, 0), (0, 1)]),  # fatal
            ("franz-go 1.21.5", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ],
    )
    def test_a_gap_behind_what_was_acknowledged(self, client, sequences):
        played = Played(client)
        played.send(0)
        played.run(100)
        played.broker.script[ProduceRequest, 2] = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        played.send(1)
        played.run(1000)
        played.send(2)
        played.run(2000)
        assert played.sequences == sequences
        if client == "java 2.4.1":
            assert len(played.broker.of(InitProducerIdRequest)) == 2

    def test_what_was_sent_under_a_producer_id_given_back_is_not_sent_again(self):
        """Sender.reenqueueBatch until 2.4: "the producer id changed", an OutOfOrderSequenceException."""
        played = Played("java 2.4.1")
        played.send(0)
        played.run(20)
        played.broker.hold = ProduceRequest
        for number in (1, 2):
            played.send(number)
            played.run(30 + number)
        played.broker.release(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        played.run(50)
        played.broker.release(KafkaError.NOT_LEADER_OR_FOLLOWER)
        played.run(500)
        gap = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [batch.error for batch in played.done] == [None, gap, gap]
        assert played.sequences == [(0, 0), (0, 1), (0, 2)]

    def test_who_bumps_its_epoch_says_as_what_it_goes_on(self):
        played = Played("java 3.9.1")
        played.send(0)
        played.run(20)
        manager = played.producer.manager
        assert manager is not None
        for producer, note in (
            ((0, 3), "continues with id 0, epoch 4"),
            ((7, 2**15 - 1), "continues with a new producer id"),
        ):
            manager.producer = producer
            manager.request_bump(("t", 0))
            played.producer.wake()
            played.run(played.clock.now + 1)
            assert played.notes[-1] == note

    def test_before_12152_an_idle_partition_keeps_its_sequence_in_the_new_epoch(self):
        """KAFKA-12152: fixed in 2.7.1 and 2.8.0."""
        for client, following in (("java 2.7.0", (1, 1)), ("java 2.7.1", (1, 0)), ("java 3.9.1", (1, 0))):
            played = Played(client)
            played.send(0, partition=1)
            played.run(100)
            played.broker.script[ProduceRequest, 2] = KafkaError.MESSAGE_TOO_LARGE
            played.send(1, partition=0)
            played.run(200)
            played.send(2, partition=1)
            played.run(300)
            assert played.sequences[-1] == following, client


class TestMetadata:
    def test_metadata_is_asked_for_at_most_every_100_ms_and_kept_where_nobody_answers(self):
        """Metadata.requestUpdate, refreshBackoffMs."""
        clock, cluster, updated = Clock(), OneBroker(), list[int]()
        metadata = Metadata(clock, cluster, lambda: DELAY)
        metadata.on_update = lambda: updated.append(clock.now)
        assert metadata.leaders == cluster.leaders()
        for _ in range(2):
            metadata.request_update()
        clock.run(50)
        assert updated == [2 * DELAY]
        clock.now = 50
        metadata.request_update()
        cluster.coordinator = 2
        cluster.leaders = lambda: None  # type: ignore[method-assign]
        clock.run(500)
        assert updated == [2 * DELAY, 2 * DELAY + 100 + 2 * DELAY]
        assert (metadata.leaders, metadata.coordinator) == (OneBroker().leaders(), 1)

    def test_a_partition_without_a_leader_is_asked_about_until_it_has_one(self):
        played = Played("java 2.0.1", 'acks = "1"')
        leaders = played.cluster.leaders()
        played.producer._client.metadata.leaders = {**leaders, ("t", 0): None}
        asked = played.cluster.asked
        played.send(0)
        played.run(50)
        assert played.cluster.asked == asked + 1
        assert [batch.error for batch in played.done] == [None]


class TestDraining:
    @pytest.mark.parametrize(
        ("client", "following"),
        [("java 2.0.1", []), ("java 2.8.2", [1, 2]), ("java 3.9.1", [])],
    )
    def test_a_request_ends_at_a_partition_that_has_to_wait(self, client, following):
        """RecordAccumulator.drain breaks off; where the next one begins is KAFKA-5886's and KAFKA-13834's."""
        played = Played(client)
        played.send(0)
        played.run(100)
        manager = played.producer.manager
        assert manager is not None
        manager.unresolved[("t", 0)] = 1
        accumulator = played.producer.accumulator
        accumulator._drain_index.clear()
        for partition in range(3):
            accumulator.append(("t", partition), Payload("p", 60, "p", 1), 1, 0, 100)
        leaders = {("t", number): 1 for number in range(3)}
        assert accumulator.drain(leaders, 1, manager, 100) == []
        again = accumulator.drain(leaders, 1, manager, 100)
        assert [batch.partition[1] for batch in again] == following


class TestTransactions:
    def test_nothing_is_sent_while_a_partition_is_being_added_and_each_is_added_once(self):
        played = Played(config=TRANSACTIONAL)
        played.begin()
        played.broker.hold = AddPartitionsToTxnRequest
        played.send(0)
        played.run(20)
        played.send(1)
        played.run(40)
        assert played.broker.of(ProduceRequest) == []
        played.broker.hold = ()
        played.broker.release()
        played.run(100)
        assert [request.partitions for request in played.broker.of(AddPartitionsToTxnRequest)] == [(("t", 0),)]
        assert played.sequences == [(0, 0), (0, 1)]

    def test_batches_of_added_partitions_wait_for_another_to_be_added(self):
        """Sender.maybeSendAndPollTransactionalRequest returns before sendProducerData while one is in flight."""
        played = Played(config=TRANSACTIONAL)
        played.begin()
        played.send(0)
        played.run(40)
        played.broker.hold = AddPartitionsToTxnRequest
        played.send(1, partition=1)
        played.run(45)
        played.send(2)
        played.run(60)
        assert len(played.broker.of(ProduceRequest)) == 1
        played.broker.hold = ()
        played.broker.release()
        played.run(100)
        assert len(played.sequences) == 3

    def test_partitions_not_added_yet_are_none_of_a_transaction_that_is_aborted(self):
        """TransactionManager.beginAbort: newPartitionsInTransaction.clear()."""
        played = Played(config=TRANSACTIONAL)
        played.begin()
        played.broker.hold = AddPartitionsToTxnRequest
        played.send(0)
        played.run(20)
        played.send(1, partition=1)
        played.transactions.end(commit=False)
        played.broker.hold = ()
        played.broker.release()
        played.run(300)
        assert [request.partitions for request in played.broker.of(AddPartitionsToTxnRequest)] == [(("t", 0),)]
        assert [request.commit for request in played.broker.of(EndTxnRequest)] == [False]
        assert played.transactions.state is State.READY
        assert [batch.error for batch in played.done] == [KafkaError.INVALID_TXN_STATE] * 2

    def test_with_transaction_version_2_no_partition_is_added_beforehand(self):
        played = Played("java 4.0.0", TRANSACTIONAL, broker="4.0.0")
        played.begin()
        played.send(0)
        played.run(40)
        assert played.broker.of(AddPartitionsToTxnRequest) == []
        assert len(played.sequences) == 1

    @pytest.mark.parametrize(("first", "wait"), [(True, 20), (False, 100)])
    def test_concurrent_transactions_are_waited_for_shortly_by_the_first_addition_only(self, first, wait):
        """AddPartitionsToTxnHandler.maybeOverrideRetryBackoffMs: 20 ms while the transaction has no partition yet."""
        played = Played("java 2.8.2", TRANSACTIONAL)
        played.begin()
        if not first:
            played.send(0)
            played.run(50)
        sent = len(played.broker.of(AddPartitionsToTxnRequest))
        played.broker.script[AddPartitionsToTxnRequest, sent + 1] = KafkaError.CONCURRENT_TRANSACTIONS
        start = played.clock.now
        played.send(1, partition=1)
        played.run(start + 2 * DELAY + wait)
        assert len(played.broker.of(AddPartitionsToTxnRequest)) == sent + 1
        played.run(start + 2 * DELAY + wait + DELAY)
        assert len(played.broker.of(AddPartitionsToTxnRequest)) == sent + 2

    @pytest.mark.parametrize(
        ("client", "error", "state"),
        [
            ("java 2.6.3", KafkaError.INVALID_PRODUCER_EPOCH, State.FATAL_ERROR),
            ("java 2.7.0", KafkaError.INVALID_PRODUCER_EPOCH, State.ABORTABLE_ERROR),
            ("java 3.9.1", KafkaError.PRODUCER_FENCED, State.FATAL_ERROR),
            ("java 3.9.1", KafkaError.INVALID_PRODUCER_ID_MAPPING, State.ABORTABLE_ERROR),
            ("java 4.0.0", KafkaError.INVALID_PRODUCER_ID_MAPPING, State.FATAL_ERROR),
            ("java 3.9.1", KafkaError.TRANSACTION_ABORTABLE, State.ABORTABLE_ERROR),
            ("java 3.9.1", KafkaError.INVALID_TXN_STATE, State.ABORTABLE_ERROR),
            ("java 2.4.1", KafkaError.MESSAGE_TOO_LARGE, State.ABORTABLE_ERROR),
        ],
    )
    def test_what_a_failed_batch_does_to_its_transaction(self, client, error, state):
        """TransactionManager.maybeTransitionToErrorState."""
        played = Played(client, TRANSACTIONAL)
        played.begin()
        played.broker.script[ProduceRequest, 1] = error
        played.send(0)
        played.run(100)
        assert played.transactions.state is state
        assert [batch.error for batch in played.done] == [error]

    @pytest.mark.parametrize(
        ("client", "error", "state"),
        [
            ("java 2.4.1", KafkaError.INVALID_PRODUCER_ID_MAPPING, State.FATAL_ERROR),
            ("java 3.9.1", KafkaError.INVALID_PRODUCER_ID_MAPPING, State.ABORTABLE_ERROR),
            ("java 4.0.0", KafkaError.INVALID_PRODUCER_ID_MAPPING, State.FATAL_ERROR),
            ("java 3.9.1", KafkaError.INVALID_PRODUCER_EPOCH, State.FATAL_ERROR),
            ("java 3.9.1", KafkaError.INVALID_TXN_STATE, State.FATAL_ERROR),
            ("java 3.8.0", KafkaError.TRANSACTION_ABORTABLE, State.ABORTABLE_ERROR),
            ("java 3.9.1", KafkaError.UNKNOWN_PRODUCER_ID, State.ABORTABLE_ERROR),
        ],
    )
    def test_errors_of_adding_partitions(self, client, error, state):
        """TransactionManager.AddPartitionsToTxnHandler.handleResponse."""
        played = Played(client, TRANSACTIONAL)
        played.begin()
        played.broker.script[AddPartitionsToTxnRequest, 1] = error
        played.send(0)
        played.run(100)
        assert played.transactions.state is state
        assert played.broker.of(ProduceRequest) == []

    @pytest.mark.parametrize(
        ("client", "commit", "error", "state"),
        [
            ("java 3.9.1", True, KafkaError.TRANSACTION_ABORTABLE, State.ABORTABLE_ERROR),
            ("java 4.1.0", False, KafkaError.TRANSACTION_ABORTABLE, State.FATAL_ERROR),
            ("java 3.7.1", True, KafkaError.TRANSACTION_ABORTABLE, State.FATAL_ERROR),
            ("java 3.9.1", True, KafkaError.INVALID_PRODUCER_EPOCH, State.FATAL_ERROR),
            ("java 2.0.1", True, KafkaError.INVALID_TXN_STATE, State.FATAL_ERROR),
            ("java 2.4.1", True, KafkaError.UNKNOWN_PRODUCER_ID, State.FATAL_ERROR),
            ("java 2.5.0", True, KafkaError.UNKNOWN_PRODUCER_ID, State.ABORTABLE_ERROR),
        ],
    )
    def test_errors_of_ending_a_transaction(self, client, commit, error, state):
        """TransactionManager.EndTxnHandler.handleResponse."""
        played = Played(client, TRANSACTIONAL)
        played.begin()
        played.send(0)
        played.run(50)
        played.broker.script[EndTxnRequest, 1] = error
        played.transactions.end(commit=commit)
        played.run(150)
        assert played.transactions.state is state

    @pytest.mark.parametrize(("committing", "requests"), [(False, 2), (True, 1)])
    def test_a_batch_that_fails_raises_the_epoch_unless_the_transaction_is_being_committed(self, committing, requests):
        """maybeTransitionToErrorState: needToTriggerEpochBumpFromClient() && !isCompleting()."""
        played = Played("java 3.9.1", TRANSACTIONAL)
        played.begin()
        played.broker.hold = ProduceRequest
        played.send(0)
        played.run(50)
        if committing:
            played.transactions.end(commit=True)
            played.run(60)
        played.broker.release(KafkaError.MESSAGE_TOO_LARGE)
        played.run(100)
        played.transactions.end(commit=False)
        played.run(400)
        assert [request.commit for request in played.broker.of(EndTxnRequest)] == [False]
        assert len(played.broker.of(InitProducerIdRequest)) == requests
        assert played.transactions.state is State.READY

    def test_a_transaction_that_added_nothing_is_ended_without_a_request(self):
        played = Played(config=TRANSACTIONAL)
        played.begin()
        played.transactions.end(commit=False)
        played.run(100)
        assert played.broker.of(EndTxnRequest) == []
        assert played.transactions.state is State.READY

    def test_a_fatal_error_fails_everything_that_waits(self):
        """Sender.runOnce: hasFatalError, maybeAbortBatches."""
        played = Played(config=TRANSACTIONAL)
        played.begin()
        played.broker.script[AddPartitionsToTxnRequest, 1] = KafkaError.PRODUCER_FENCED
        played.send(0)
        played.send(1, partition=2)
        played.run(100)
        assert [batch.error for batch in played.done] == [KafkaError.PRODUCER_FENCED] * 2

    def test_an_idempotent_producer_that_is_fenced_stops_too_until_2_6(self):
        """maybeTransitionToErrorState asks for ProducerFencedException before it asks whether there are transactions."""
        played = Played("java 2.6.3")
        played.broker.script[ProduceRequest, 1] = KafkaError.INVALID_PRODUCER_EPOCH
        played.send(0)
        played.run(50)
        played.send(1)
        played.run(150)
        assert played.transactions.state is State.FATAL_ERROR
        assert len(played.broker.of(ProduceRequest)) == 1
        assert len(played.done) == 2


class TestTime:
    def test_a_batch_fails_at_its_delivery_timeout_though_its_response_is_still_to_come(self):
        """Sender.getExpiredInflightBatches (KIP-91), and no epoch is raised before a late response."""
        played = Played(
            "java 3.9.1", '"enable.idempotence" = true, "request.timeout.ms" = 500, "delivery.timeout.ms" = 500'
        )
        played.send(0)
        played.broker.hold = ProduceRequest
        played.run(499)
        assert played.done == []
        played.run(520)
        assert [batch.error for batch in played.done] == [KafkaError.REQUEST_TIMED_OUT]

    def test_before_kip_91_only_what_waits_expires_by_the_request_timeout(self):
        """ProducerBatch.maybeExpire of 2.0: a batch in flight is not among the accumulator's."""
        played = Played("java 2.0.1", 'retries = 0, acks = "1", "request.timeout.ms" = 500')
        played.broker.hold = ProduceRequest
        played.send(0)
        played.run(400)
        assert played.done == []
        played.run(700)
        assert [batch.error for batch in played.done] == [KafkaError.NETWORK_EXCEPTION]

    def test_an_error_with_acks_0_closes_the_connection_and_metadata_is_asked_for(self):
        """KafkaApis.handleProduceRequest closes it; NetworkClient asks for metadata whenever a connection ends."""
        played = Played(config='acks = "0"')
        played.broker.script[ProduceRequest, 1] = KafkaError.NOT_LEADER_OR_FOLLOWER
        asked = played.cluster.asked
        played.send(0)
        played.run(400)
        assert [(batch.error, batch.offset) for batch in played.done] == [(None, -1)]
        assert played.cluster.asked == asked + 1
        played.send(1)
        played.run(500)
        assert len(played.broker.of(ProduceRequest)) == 2


WRAP = """
[cluster]
version = "{version}"
[[topics]]
name = "orders"
[[producers]]
name = "shop"
records = 5
every_ms = 20
first_sequence = 2147483646
config = {{ "linger.ms" = 0, "batch.size" = 100, "enable.idempotence" = true }}
"""


def test_sequences_wrap_to_0_and_nothing_is_wrong_with_it(tmp_path):
    """DefaultRecordBatch.incrementSequence; brokers take any first sequence of a producer they do not know (KIP-360)."""
    simulation = Simulation(parse_scenario(WRAP.format(version="3.9.1"), "wrap"), 1).run()
    produced = [attempt for attempt, _ in simulation.recorder.lines if isinstance(attempt, Produce)]
    assert [attempt.base_sequence for attempt in produced] == [2147483646, 2147483647, 0, 1, 2]
    truth = Truth(simulation)
    write_run(tmp_path / "run", simulation, truth)
    assert truth.summary()["acknowledged"] == 5
    assert [finding for finding in kaudit.scan([tmp_path / "run"]).findings if finding.severity.value != "note"] == []


def test_older_brokers_refuse_a_producer_that_does_not_begin_at_0():
    simulation = Simulation(parse_scenario(WRAP.format(version="2.4.1"), "wrap"), 1).run()
    _, answer = next(line for line in simulation.recorder.lines if isinstance(line[0], Produce))
    assert answer["error_code"] == KafkaError.UNKNOWN_PRODUCER_ID
