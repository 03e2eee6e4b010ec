"""The coordinator by itself: epochs, fencing, transaction version 2. Expected values are from the sources named."""

from copy import deepcopy
from functools import cache
from itertools import permutations

import pytest

from kaudit.broker.attempts import StartBroker
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from tests.attempts import attempt_of
from tests.broker.client import negotiated


class Client:
    """A producer of transactional id `tx` on topic t; `at` advances a millisecond a request."""

    def __init__(self, version, **config):
        self.broker = Broker()
        self.at = 0
        self.broker.answer(StartBroker(index=0, broker_version=version, config=config))

    def ask(self, op, **fields):
        self.at += 1
        attempt = {"index": self.at, "op": op, "topic": "t", "partition": 0, "at": self.at, "transactional_id": "tx"}
        return self.broker.answer(attempt_of(attempt | negotiated(self.broker, op, fields))).fields

    def init(self, held=(-1, -1), api_version=3, timeout_ms=60_000, **fields):
        answer = self.ask(
            "init_producer_id", producer_id=held[0], producer_epoch=held[1], api_version=api_version,
            timeout_ms=timeout_ms, **fields,
        )  # fmt: skip
        return (answer["producer_id"], answer["producer_epoch"]) if answer["outcome"] == "ok" else answer["error_code"]

    def add(self, producer, api_version=0):
        return self.code("add_partitions", producer, api_version=api_version)

    def end(self, producer, commit=True, api_version=0, **fields):
        return self.code("end_txn", producer, commit=commit, api_version=api_version, **fields)

    def code(self, op, producer, **fields):
        answer = self.ask(op, producer_id=producer[0], producer_epoch=producer[1], **fields)
        if "producer_epoch" in answer:
            return answer["producer_id"], answer["producer_epoch"]
        return answer["error_code"]

    def produce(self, producer, sequence, api_version=8, **fields):
        answer = self.ask(
            "produce", producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence, record_count=1,
            is_transactional=True, api_version=api_version, timestamp=self.at, **fields,
        )  # fmt: skip
        return answer.get("base_offset", answer["error_code"])

    def describe(self):
        return self.ask("describe")


def test_each_init_raises_the_epoch():
    client = Client("2.0.1")
    assert [client.init(), client.init(), client.init()] == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("version", "retried"),
    [("2.5.1", (0, 1)), ("2.6.0", 47), ("3.9.1", 47), ("4.0.0", 47), ("4.0.1", (0, 1)), ("4.2.0", (0, 1))],
)
def test_a_producer_that_comes_back_over_its_open_transaction(version, retried):
    client = Client(version)
    producer = client.init()
    client.add(producer)
    assert client.init(held=producer) == retried


@pytest.mark.parametrize(("version", "epoch"), [("2.0.1", 2), ("3.9.1", 2), ("4.0.0", 3), ("4.0.1", 2), ("4.3.1", 2)])
def test_init_over_an_open_transaction_aborts_it_with_an_epoch_of_its_own(version, epoch):
    client = Client(version)
    client.add(client.init())
    assert client.produce((0, 0), 0) == 0
    assert client.init() == (0, epoch)
    assert client.describe()["aborted"] == [{"producer_id": 0, "first_offset": 0}]
    assert client.produce((0, 0), 1) == 47


def test_kip_360_current_epoch_is_raised_previous_one_is_a_retry_older_is_fenced():
    client = Client("2.8.2")
    producer = client.init()
    assert client.init(held=producer) == (0, 1)
    assert client.init(held=producer) == (0, 1)
    assert client.init(held=(0, 1)) == (0, 2)
    assert client.init(held=producer) == 47
    assert client.init(held=producer, api_version=4) == 90
    assert client.init(held=(17, 0)) == 47


def test_half_an_identity_is_an_invalid_request():
    client = Client("2.8.2")
    assert client.init(held=(5, -1)) == 42
    assert client.init(held=(-1, 5)) == 42


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_have_limits(timeout_ms):
    assert Client("3.9.1").init(timeout_ms=timeout_ms) == 50


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced():
    client = Client("3.9.1")
    producer = client.init(timeout_ms=1000)
    client.add(producer)
    client.produce(producer, 0)
    client.at += 10_000
    assert client.produce(producer, 1) == 47
    assert client.end(producer) == 47
    assert client.end(producer, api_version=2) == 90
    assert client.describe()["last_stable_offset"] == 2


CHECK = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


@pytest.mark.parametrize(
    ("version", "config", "looks_every"),
    [
        ("0.11.0.1", {CHECK: "500"}, 60_000),
        ("0.11.0.2", {CHECK: "500"}, 500),
        ("2.4.1", {}, 60_000),
        ("2.5.0", {}, 10_000),
    ],
)
def test_timeouts_are_looked_for_now_and_then(version, config, looks_every):
    """TransactionCoordinator.startup; 0.11.0.0 was recorded with 500 ms configured."""
    client = Client(version, **config)
    first = client.at + 1  # the broker is taken to have started then
    producer = client.init(timeout_ms=1)
    client.add(producer)
    client.produce(producer, 0)
    client.at = first + looks_every - 2
    assert client.describe()["high_watermark"] == 1
    assert client.describe()["high_watermark"] == 2


def test_a_timeout_is_over_when_more_time_has_passed():
    """TransactionStateManager.timedOutTransactions: its start plus its timeout is before now."""
    client = Client("3.9.1", **{CHECK: "1"})
    producer = client.init(timeout_ms=1000)
    begun = client.at + 1
    client.add(producer)
    client.produce(producer, 0)
    client.at = begun + 999
    assert client.describe()["high_watermark"] == 1
    assert client.describe()["high_watermark"] == 2


@pytest.mark.parametrize(("spare", "aborted_at"), [(1, 10_500), (0, 20_500)])
def test_who_is_as_old_as_the_timeout_when_looked_for_has_until_the_next_time(spare, aborted_at):
    client = Client("3.9.1")
    looked_for = client.at + 1 + 10_000
    producer = client.init(timeout_ms=looked_for - (client.at + 2) - spare)
    client.add(producer)
    client.produce(producer, 0)
    for at in (9_500, 10_500, 19_500, 20_500):
        client.at = at
        assert client.describe()["high_watermark"] == (2 if at >= aborted_at else 1)


@pytest.mark.parametrize("timeouts", list(permutations((15_000, 35_000, 55_000))))
def test_open_transactions_of_one_partition_have_timeouts_of_their_own(timeouts):
    """They are looked for every ten seconds."""
    client = Client("3.9.1")
    producers = {}
    for timeout_ms in timeouts:
        owner = {"transactional_id": f"tx{timeout_ms}"}
        producer = producers[timeout_ms] = client.init(timeout_ms=timeout_ms, **owner)
        client.code("add_partitions", producer, api_version=0, **owner)
        client.produce(producer, 0, **owner)
    for at, still_open in (
        (19_000, {15_000, 35_000, 55_000}),
        (21_000, {35_000, 55_000}),
        (39_000, {35_000, 55_000}),
        (41_000, {55_000}),
        (59_000, {55_000}),
        (61_000, set()),
    ):
        client.at = at
        found = {
            each["producer_id"] for each in client.describe()["producers"] if each["current_txn_start_offset"] >= 0
        }
        assert found == {producers[timeout_ms][0] for timeout_ms in still_open}


def test_until_0_11_0_1_a_timeout_did_not_fence():
    client = Client("0.11.0.1")
    producer = client.init(timeout_ms=1000)
    client.add(producer)
    client.produce(producer, 0)
    client.at += 60_000
    assert client.produce(producer, 1) == 2  # behind the abort marker, in a new transaction nobody began


def test_ending_what_never_began():
    client = Client("3.9.1")
    producer = client.init()
    assert client.end(producer) == 48
    client.add(producer)
    assert [client.end(producer), client.end(producer), client.end(producer, commit=False)] == [0, 0, 48]
    assert client.end((9, 0)) == 49


@pytest.mark.parametrize(("version", "afterwards"), [("2.5.1", 51), ("2.6.0", 0)])
def test_an_epoch_above_the_coordinators_is_refused_and_until_2_5_leaves_the_transaction_stuck(version, afterwards):
    """TransactionCoordinator.handleEndTransaction of 2.5.1 checks equality only after PrepareCommit was logged."""
    client = Client(version)
    producer = client.init()
    client.add(producer)
    assert client.end((producer[0], 5)) == 47
    assert client.end(producer) == afterwards


def test_idle_transactional_ids_are_forgotten_by_the_hourly_cleanup():
    config = {"transactional.id.expiration.ms": "1000"}
    client = Client("3.9.1", **config)
    producer = client.init()
    client.at += 2000
    assert client.add(producer) == 0
    client.end(producer)
    client.at += 3_600_000
    assert client.add(producer) == 49


class TestTransactionVersion2:
    """KIP-890 part 2: producing adds the partition, ending gives the next epoch."""

    def test_every_transaction_has_its_epoch(self):
        client = Client("4.2.0")
        producer = client.init()
        assert client.produce(producer, 0, api_version=12) == 0
        assert client.end(producer, api_version=5) == (0, 1)
        assert client.produce(producer, 1, api_version=12) == 47
        assert client.produce((0, 1), 0, api_version=12) == 2

    def test_a_retried_end_is_recognised_by_the_epoch_before(self):
        client = Client("4.2.0")
        producer = client.init()
        client.produce(producer, 0, api_version=12)
        assert client.end(producer, api_version=5) == (0, 1)
        assert client.end(producer, api_version=5) == (0, 1)
        assert client.end(producer, commit=False, api_version=5) == 48

    def test_an_abort_needs_no_transaction_a_commit_does(self):
        client = Client("4.2.0")
        producer = client.init()
        assert client.end(producer, api_version=5) == 48
        assert client.end(producer, commit=False, api_version=5) == (0, 1)
        assert client.describe()["high_watermark"] == 0

    def test_the_last_epoch_leads_to_a_new_producer_id(self):
        client = Client("4.2.0")
        producer = client.init()
        for _ in range(32766):
            producer = client.end(producer, commit=False, api_version=5)
        assert producer == (0, 32766)
        client.produce(producer, 0, api_version=12)
        assert client.end(producer, api_version=5, granted_producer_id=77) == (77, 0)
        assert client.end(producer, api_version=5) == (77, 0)
        (described,) = client.describe()["producers"]
        assert described["producer_epoch"] == 32767
        # once the new id has ended a transaction, the old one's retry is nobody's (TransactionCoordinator.endTransaction)
        assert client.end((77, 0), commit=False, api_version=5) == (77, 1)
        assert client.end(producer, api_version=5) == 49

    @pytest.mark.parametrize(("version", "answer"), [("4.0.0", 0), ("4.1.0", 45), ("4.2.0", 45)])
    def test_the_first_sequence_of_a_producer_nobody_knows(self, version, answer):
        client = Client(version)
        assert client.produce(client.init(), 3, api_version=12) == answer

    @pytest.mark.parametrize(("version", "code"), [("3.7.2", 48), ("3.8.0", 120), ("4.2.0", 120)])
    def test_clients_that_understand_it_are_answered_transaction_abortable(self, version, code):
        client = Client(version)
        assert client.produce(client.init(), 0, api_version=11) == code

    @pytest.mark.parametrize(("version", "code"), [("4.1.2", 0), ("4.2.0", 47)])
    def test_a_marker_of_the_same_epoch_must_not_end_an_open_transaction(self, version, code):
        client = Client(version)
        producer = client.init()
        client.produce(producer, 0, api_version=12)
        marker = {"commit": False, "coordinator_epoch": 0, "api_version": 2, "transaction_version": 2}
        assert client.code("write_marker", producer, **marker) == code

    def test_a_repeated_marker_is_written_again(self):
        client = Client("4.2.0")
        producer = client.init()
        client.produce(producer, 0, api_version=12)
        client.end(producer, api_version=5)
        marker = {"commit": True, "coordinator_epoch": 0, "api_version": 2, "transaction_version": 2}
        assert client.code("write_marker", (0, 1), **marker) == 0
        assert client.describe()["high_watermark"] == 3


@pytest.mark.parametrize(("version", "epoch"), [("2.8.2", 0), ("3.9.1", 2), ("4.2.0", 2)])
def test_a_clean_restart_raises_the_coordinator_epoch_without_zookeeper(version, epoch):
    client = Client(version)
    producer = client.init()
    client.ask("restart", clean=True)
    client.add(producer)
    client.produce(producer, 0)
    client.end(producer)
    (described,) = client.describe()["producers"]
    assert described["coordinator_epoch"] == epoch


def test_what_the_broker_is_configured_for_decides_about_zookeeper():
    client = Client("3.9.1", **{"zookeeper.connect": "localhost:2181"})
    producer = client.init()
    client.ask("restart", clean=True)
    client.add(producer)
    client.produce(producer, 0)
    client.end(producer)
    assert client.describe()["producers"][0]["coordinator_epoch"] == 0
    assert profile_for("3.9.1").kraft


class TestMarkersThatArePartlyRefused:
    """A partition that knows a higher epoch, or a higher coordinator epoch, refuses its marker.

    The coordinator then gives up (TransactionMarkerRequestCompletionHandler: INVALID_PRODUCER_EPOCH and
    TRANSACTION_COORDINATOR_FENCED) and nothing goes on with that transactional id until the coordinator is loaded
    again. Seen on live brokers 2.5.1, 3.6.2, 4.0.0 and 4.3.1.
    """

    @staticmethod
    def stuck(version):
        client = Client(version)
        producer = client.init()
        client.add(producer)
        client.produce(producer, 0)
        marker = {"commit": True, "coordinator_epoch": 9}
        assert client.code("write_marker", producer, **marker) == 0
        assert client.end(producer) == 0
        return client, producer

    @pytest.mark.parametrize("version", ["1.0.2", "2.5.1", "3.9.1", "4.3.1"])
    def test_all_requests_are_answered_concurrent_transactions(self, version):
        client, producer = self.stuck(version)
        assert client.init() == 51
        assert client.add(producer) == 51
        assert client.end(producer) == 51
        assert client.end(producer, commit=False) == 51

    def test_strangers_are_answered_invalid_mapping_until_3_9(self):
        """AddPartitionsToTxn looks at the pending transition first from 4.0 on."""
        for version, code in (("3.9.1", 49), ("4.0.0", 51)):
            client, producer = self.stuck(version)
            assert client.add((producer[0] + 1, 0)) == code

    def test_a_verification_meanwhile_is_answered_as_a_passing_trouble(self):
        client, producer = self.stuck("3.9.1")
        assert client.produce(producer, 1) == 19

    def test_a_restarted_coordinator_sends_them_again(self):
        client = Client("3.9.1")
        producer = client.init()
        client.add(producer)
        client.produce(producer, 0)
        assert client.code("write_marker", producer, commit=True, coordinator_epoch=1) == 0
        assert [client.end(producer), client.add(producer)] == [0, 51]
        client.ask("restart", clean=True)  # leader epoch 2 is the new coordinator epoch
        assert client.describe()["high_watermark"] == 3
        assert client.add(producer) == 0


@pytest.mark.parametrize(
    ("version", "unbegun", "other_way", "same_way"), [("2.4.1", 48, 48, 0), ("2.5.1", 48, 48, 0), ("2.6.0", 47, 47, 47)]
)
def test_until_2_5_an_epoch_above_the_coordinators_only_matters_while_a_transaction_is_open(
    version, unbegun, other_way, same_way
):
    """TransactionCoordinator.handleEndTransaction of 2.5.1 refuses lower epochs alone before it looks at the state."""
    client = Client(version)
    producer, above = client.init(), (0, 7)
    assert client.end(above) == unbegun
    client.add(producer)
    assert client.end(producer) == 0
    assert [client.end(above, commit=False), client.end(above)] == [other_way, same_way]


@pytest.mark.parametrize(("version", "epoch"), [("3.9.1", 0), ("4.0.0", 2), ("4.3.1", 2)])
def test_a_killed_broker_raises_the_coordinator_epoch_from_4_0_on(version, epoch):
    """Seen on live brokers 3.9.1, 4.0.0, 4.2.0 and 4.3.1."""
    client = Client(version)
    producer = client.init()
    client.ask("restart", clean=False)
    client.add(producer)
    client.produce(producer, 0)
    client.end(producer)
    (described,) = client.describe()["producers"]
    assert described["coordinator_epoch"] == epoch


class TestVerification:
    """KIP-890 part 1 beside a fenced producer (UnifiedLog.maybeStartTransactionVerification)."""

    @pytest.mark.parametrize(("version", "answer"), [("4.0.0", 45), ("4.0.2", 45), ("4.1.0", 2), ("4.2.0", 2)])
    def test_a_stale_request_leaves_no_trace_once_its_epoch_is_looked_at_first(self, version, answer):
        """KAFKA-19690; on 4.3.1 live: epoch 0 is refused, then epoch 2 goes on."""
        client = Client(version)
        client.init()
        producer = client.init()
        client.produce(producer, 0, api_version=12)
        client.produce(producer, 1, api_version=12)
        assert client.produce((0, 0), 0, api_version=12) == 47
        assert client.produce(producer, 2, api_version=12) == answer

    @pytest.mark.parametrize(("version", "code"), [("4.2.0", 47), ("4.3.0", 0)])
    def test_the_last_epoch_of_all_may_be_repeated_by_a_marker(self, version, code):
        client = Client(version)
        marker = {"commit": True, "coordinator_epoch": 0, "api_version": 2, "transaction_version": 2}
        client.ask(
            "restart", clean=False,
            found_on_disk=[{"base_offset": 0, "producer_id": 9, "producer_epoch": 32767, "is_transactional": True}],
        )  # fmt: skip
        assert client.code("write_marker", (9, 32767), **marker) == code


@cache
def _used_up(version):
    client = Client(version)
    for _ in range(32766):
        client.init()
    return client


def at_the_last_epoch(version):
    """A client whose epochs are used up, and its producer id and epoch."""
    client = deepcopy(_used_up(version))
    producer = client.init()
    assert producer == (0, 32766)
    return client, producer


@pytest.mark.parametrize(("version", "granted"), [("3.9.1", (77, 0)), ("4.1.0", (77, 1)), ("4.3.1", (77, 1))])
def test_fencing_the_last_epoch_takes_the_next_producer_id_at_once_under_version_2(version, granted):
    """TransactionMetadata.prepareAbortOrCommit with nextProducerId; then InitProducerId raises the new id's epoch."""
    client, producer = at_the_last_epoch(version)
    client.add(producer)
    client.produce(producer, 0)
    assert client.init(granted_producer_id=77) == granted


@pytest.mark.parametrize("stranger", [(0, 0), (0, 32765), (5, 32766), (5, 0)])
def test_only_its_last_epoch_makes_a_used_up_producer_id_known(stranger):
    """TransactionCoordinator.isValidProducerId: of the id before, only the epoch with which it was exchanged."""
    client, producer = at_the_last_epoch("3.9.1")
    assert client.init(held=(5, 32766), api_version=4) == 90
    assert client.init(held=producer, api_version=4, granted_producer_id=77) == (77, 0)
    assert client.init(held=producer, api_version=4) == (77, 0)
    assert client.init(held=stranger, api_version=4) == 90
    assert client.init(held=(77, 0), api_version=4) == (77, 1)


@pytest.mark.parametrize(("version", "refusal"), [("2.6.3", 47), ("4.1.0", 90), ("4.1.1", 90)])
def test_a_refused_init_changes_nothing(version, refusal):
    """Not the timeout either, recorded: TransactionMetadata.prepareIncrementProducerEpoch sets it with the epoch."""
    client = Client(version)
    first = client.init(timeout_ms=600_000)
    producer = client.init(held=first, timeout_ms=600_000)
    assert client.init(held=(producer[0], 6), api_version=4, timeout_ms=1500) == refusal
    client.add(producer)
    client.produce(producer, 0)
    client.at += 60_000
    assert client.end(producer) == 0


def test_an_id_given_out_while_the_time_is_unknown_does_not_expire_at_once():
    client = Client("3.9.1")
    unknown = {"topic": "t", "partition": 0, "transactional_id": "tx"}
    client.broker.answer(attempt_of(unknown | {"op": "init_producer_id", "api_version": 3}))
    client.at = 1_700_000_000_000
    assert client.add((0, 0)) == 0


@pytest.mark.parametrize(("version", "code"), [("0.11.0.0", 47), ("0.11.0.1", 47), ("0.11.0.2", 48), ("2.6.0", 47)])
def test_0_11_0_0_and_0_11_0_1_want_the_exact_epoch_too(version, code):
    """TransactionCoordinator.handleEndTransaction of those releases: 48 is the state's answer."""
    client = Client(version)
    client.init()
    assert client.end((0, 7)) == code


def test_4_1_0_refuses_a_fenced_epoch_before_it_asks_about_the_transactional_id():
    """Recorded on 4.1.0: another id would be 49."""
    client = Client("4.1.0")
    producer = client.init()
    client.add(producer)
    client.produce(producer, 0)
    client.init()
    assert client.produce(producer, 0, transactional_id="nobody") == 47


@pytest.mark.parametrize(
    ("config", "coordinator_epochs"),
    [({"zookeeper.connect": "localhost"}, [0, 0]), ({"process.roles": "broker,controller"}, [0, 52])],
)
def test_the_configuration_says_whether_a_release_runs_with_zookeeper(config, coordinator_epochs):
    """With KRaft a clean restart raises the coordinator's epoch, so a hand-written marker of epoch 0 is fenced then."""
    client = Client("3.4.1", **config)
    producer = client.init()
    answered: list[int] = []
    for _ in range(2):
        client.add(producer)
        client.produce(producer, len(answered))
        client.end(producer)
        marker = {"producer_id": producer[0], "producer_epoch": producer[1], "commit": True, "coordinator_epoch": 0}
        answered.append(client.ask("write_marker", **marker)["error_code"])
        client.ask("restart", clean=True)
    assert answered == coordinator_epochs
