"""What each fault of a scenario does to clients, brokers and logs, as real ones behave.

Expected: the classes of apache/kafka that the modules under kaudit/simulate name.
"""

from collections import Counter

import pytest

import kaudit
from kaudit.broker.attempts import Produce
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.trace import EventKind
from tests.simulate.test_scenarios import disagreements

ONE_AT_A_TIME = '"linger.ms" = 0, "batch.size" = 100'


def played(
    faults,
    *,
    config=ONE_AT_A_TIME,
    brokers=1,
    version="3.9.1",
    topic="",
    producer="records = 6\nevery_ms = 20",
    cluster="",
):
    text = f"""
[cluster]
version = "{version}"
brokers = {brokers}
detect_ms = 100
{cluster}
[[topics]]
name = "orders"
{topic}
[[producers]]
name = "shop"
{producer}
config = {{ {config} }}
[network]
delay_ms = 2
{faults}
"""
    simulation = Simulation(parse_scenario(text, "faults"), 1, trace_limit=5000).run()
    assert disagreements(simulation) == []
    return simulation


def fault(kind, **fields):
    values = {True: "true", False: "false"}
    lines = [
        f"{name} = {values[value] if isinstance(value, bool) else repr(value) if isinstance(value, int) else value}"
        for name, value in fields.items()
    ]
    return "\n".join(["[[faults]]", f'kind = "{kind}"', *lines, ""])


TRANSACTIONS = 'records = 6\nevery_ms = 5\ntransaction = { records = 2, outcomes = ["commit", "abort"] }'
TRANSACTIONAL = f'{ONE_AT_A_TIME}, "transactional.id" = "t"'


def transactional(faults, **more):
    return played(faults, producer=TRANSACTIONS, config=TRANSACTIONAL, **more)


def texts(simulation, *parts):
    return [event.text for event in simulation.trace.events if all(part in event.text for part in parts)]


def log_of(simulation, key=("orders", 0)):
    return simulation.cluster.partitions[key].leader_log().batches


def markers(simulation):
    return [stored.state for stored in log_of(simulation) if isinstance(stored.state, MarkerBatch)]


def alarms(simulation, directory):
    write_run(directory, simulation, Truth(simulation))
    return [f.code for f in kaudit.scan([directory]).findings if f.severity.value in ("error", "warning")]


def summary(simulation):
    counts = Truth(simulation).summary()
    return {name: counts[name] for name in ("sent", "acknowledged", "present", "duplicate_copies", "out_of_order")}


SIX_ONCE = {"sent": 6, "acknowledged": 6, "present": 6, "duplicate_copies": 0, "out_of_order": 0}


@pytest.mark.parametrize("error", ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "CORRUPT_MESSAGE"])
def test_an_error_before_the_batch_is_appended_only_costs_a_retry(error, tmp_path):
    simulation = played(fault("error-response", request=3, error=f'"{error}"'))
    assert len(texts(simulation, error)) == 1
    assert summary(simulation) == SIX_ONCE
    assert [stored.state.base_sequence for stored in log_of(simulation)] == [0, 1, 2, 3, 4, 5]
    assert alarms(simulation, tmp_path / "run") == []


@pytest.mark.parametrize("error", ["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"])
def test_after_an_error_behind_the_append_the_retry_is_a_duplicate(error):
    simulation = played(fault("error-response", request=3, error=f'"{error}"', after_append=True))
    answers = [line["outcome"] for attempt, line in simulation.recorder.lines if isinstance(attempt, Produce)]
    assert Counter(answers) == {"appended": 6, "duplicate": 1}
    assert summary(simulation) == SIX_ONCE


def test_without_idempotence_the_retry_behind_an_append_is_written_again(tmp_path):
    simulation = played(
        fault("error-response", request=3, error='"REQUEST_TIMED_OUT"', after_append=True),
        config=f'{ONE_AT_A_TIME}, "enable.idempotence" = false, acks = "all"',
    )
    assert Truth(simulation).summary()["duplicate_copies"] == 1
    assert "KA702" in alarms(simulation, tmp_path / "run")


def test_an_error_of_one_partition_leaves_the_others_of_the_request_alone():
    simulation = played(
        fault("error-response", request=1, error='"NOT_ENOUGH_REPLICAS"', partition='"orders-1"'),
        topic="partitions = 2",
        producer="records = 4\nburst = 4",
        config='"linger.ms" = 5',
    )
    refused = texts(simulation, "NOT_ENOUGH_REPLICAS")
    assert refused == ["ok, offset 0; NOT_ENOUGH_REPLICAS"]
    assert Truth(simulation).summary()["present"] == 4


def test_a_lost_response_to_init_producer_id_costs_an_id():
    simulation = played(fault("lose-response", api='"InitProducerId"', request=2))
    assert {stored.state.producer_id for stored in log_of(simulation)} == {1}


@pytest.mark.parametrize("api", ["InitProducerId", "AddPartitionsToTxn", "EndTxn"])
@pytest.mark.parametrize("kind", ["lose-request", "lose-response"])
@pytest.mark.parametrize("version", ["2.0.1", "3.9.1", "4.2.0"])
def test_lost_transactional_messages_are_sent_again(kind, api, version, tmp_path):
    simulation = transactional(fault(kind, api=f'"{api}"', request=1, times=2), version=version)
    ends = [end.value for _, _, end in simulation.applications["shop"].transactions]
    assert ends == ["committed", "aborted", "committed"]
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]
    assert summary(simulation) == SIX_ONCE
    lost = [event.kind for event in simulation.trace.events].count(EventKind.LOST)
    assert (lost > 0) == (api != "AddPartitionsToTxn" or version != "4.2.0")  # transaction version 2 sends none
    assert alarms(simulation, tmp_path / "run") == []


@pytest.mark.parametrize("error", ["COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS"])
def test_errors_of_the_coordinator_only_cost_a_retry(error):
    simulation = transactional(fault("error-response", api='"EndTxn"', request=2, times=3, error=f'"{error}"'))
    assert len(texts(simulation, error)) == 3
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]


def test_until_a_lost_marker_is_written_the_next_transaction_has_to_wait(tmp_path):
    simulation = transactional(fault("lose-marker", marker=1, times=2))
    lost = [event for event in simulation.trace.events if "WriteTxnMarkers is lost" in event.text]
    assert [(event.source, event.partitions) for event in lost] == [("broker 1", ("orders-0",))] * 2
    assert texts(simulation, "CONCURRENT_TRANSACTIONS")
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]
    assert simulation.recorder.ended_because == "WriteTxnMarkers of orders-0 was lost, and sent again later"
    assert alarms(simulation, tmp_path / "run") == []


def test_a_marker_whose_response_is_lost_is_written_twice(tmp_path):
    simulation = transactional(fault("lose-marker", marker=1, response=True))
    assert [marker.commit for marker in markers(simulation)] == [True, True, False, True]
    assert len(simulation.cluster.transactions.ended) == 3
    assert alarms(simulation, tmp_path / "run") == []


CUT = fault("disconnect-brokers", at_ms=150, brokers=[2], for_ms=3000)
LAGGING = 'config = { "min.insync.replicas" = 2, "replica.lag.time.max.ms" = 500 }'


def test_cut_off_followers_leave_the_isr_and_come_back(tmp_path):
    simulation = played(CUT, brokers=2, topic=LAGGING, producer="records = 100\nevery_ms = 20", version="3.9.1")
    partition = simulation.cluster.partitions["orders", 0]
    assert texts(simulation, "broker 2 lags, ISR [1]")
    # what was written while the ISR was whole in name only, and what came after it had shrunk
    assert texts(simulation, "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    assert [text for text in texts(simulation, "NOT_ENOUGH_REPLICAS") if "AFTER" not in text]
    assert sorted(partition.isr) == [1, 2]
    assert partition.logs[1].batches == partition.logs[2].batches
    assert Truth(simulation).summary()["duplicate_copies"] == 0
    assert alarms(simulation, tmp_path / "run") == []


@pytest.mark.parametrize(("version", "asks"), [("3.9.1", True), ("2.8.2", False)])
def test_a_leader_that_cannot_ask_the_coordinator_begins_no_transaction(version, asks):
    # the transaction log is on brokers 1 to 3, broker 4 leads orders-3
    cut = fault("disconnect-brokers", at_ms=1, brokers=[4], for_ms=3000)
    ways = {"brokers": 4, "topic": "partitions = 4\nreplication_factor = 1", "config": TRANSACTIONAL}
    producer = "records = 12\nburst = 4\ntransaction = { records = 4 }"
    simulation = played(cut, producer=producer, version=version, **ways)
    assert bool(texts(simulation, "NOT_ENOUGH_REPLICAS")) == asks
    # before 3.6 nobody asks: the marker has to wait instead, and the next transaction for it
    assert bool(texts(simulation, "CONCURRENT_TRANSACTIONS")) != asks
    assert Truth(simulation).summary()["present"] == 12
    together = cut.replace("[4]", "[1, 2, 3, 4]")
    assert not texts(played(together, producer=producer, **ways), "NOT_ENOUGH_REPLICAS")


def test_a_coordinator_that_cannot_replicate_its_log_is_not_available():
    cut = fault("disconnect-brokers", at_ms=120, brokers=[2], for_ms=1000)
    simulation = transactional(cut, brokers=2, topic="replication_factor = 1")
    assert texts(simulation, "COORDINATOR_NOT_AVAILABLE")
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]


def test_a_slow_disk_of_a_follower_shrinks_the_isr_and_one_of_the_leader_slows_its_clients():
    lagging = 'config = { "replica.lag.time.max.ms" = 300 }'
    long = "records = 60\nevery_ms = 20"
    follower = played(
        fault("slow-disk", at_ms=150, broker=2, for_ms=2000, delay_ms=700), brokers=2, topic=lagging, producer=long
    )
    assert texts(follower, "broker 2 lags, ISR [1]")
    assert Truth(follower).summary()["duplicate_copies"] == 0
    leader = played(
        fault("slow-disk", at_ms=150, broker=1, for_ms=2000, delay_ms=700),
        producer=long,
        config=f'{ONE_AT_A_TIME}, "request.timeout.ms" = 500, "enable.idempotence" = false, acks = "all"',
    )
    assert texts(leader, "request.timeout.ms: closes the connection")
    assert Truth(leader).summary()["duplicate_copies"] > 0  # written, but too late for the client


def test_what_a_slow_disk_holds_up_is_handled_when_a_paused_broker_goes_on():
    slow = fault("slow-disk", at_ms=100, broker=1, for_ms=5000, delay_ms=60)
    paused = fault("pause-broker", at_ms=250, broker=1, for_ms=900)
    simulation = played(
        slow + paused,
        producer="records = 6\nevery_ms = 20\nstart_ms = 200",
        config=f'{ONE_AT_A_TIME}, "enable.idempotence" = true',
    )
    assert summary(simulation) == SIX_ONCE
    answered = [event.at for event in simulation.trace.events if event.text.startswith("ok, offset")]
    assert len(answered) == 6
    assert min(answered) > 250 + 900


@pytest.mark.parametrize(("before", "start"), [(-1, 6), (0, 0), (1, 1), (4, 4), (6, 6), (1000, 6)])
def test_records_are_deleted_up_to_the_high_watermark_at_most(before, start):
    deleted = fault("delete-records", at_ms=2000, partition='"orders-0"', before_offset=before)
    simulation = played(deleted, brokers=2)
    logs = simulation.cluster.partitions["orders", 0].logs.values()
    assert [(log.log_start, log.log_end) for log in logs] == [(start, 6)] * 2
    assert texts(simulation, "deletes up to") == [f"orders-0: deletes up to {start}"]
    assert Truth(simulation).summary()["deleted"] == start


@pytest.mark.parametrize(("records", "deleted", "ends"), [(6, 6, True), (6, 5, False), (0, 0, False)])
def test_a_broker_whose_log_is_deleted_to_its_end_forgets_open_transactions(records, deleted, ends):
    """UnifiedLog.rebuildProducerState reads from the log start on; attempts know one replica. An empty log has none to forget."""
    faults = fault("delete-records", at_ms=2000, partition='"orders-0"', before_offset=deleted)
    faults += fault("kill-broker", at_ms=2500, broker=2, restart_after_ms=500)
    producer = f"records = {records or 6}\nevery_ms = 20\nstart_ms = {0 if records else 4000}"
    simulation = played(faults, brokers=2, producer=producer)
    log = simulation.cluster.partitions["orders", 0].logs[2]
    assert (log.log_start, log.log_end) == (deleted, 6)
    assert simulation.recorder.ended_because == (
        "broker 2 starts with orders-0 deleted to its end: it forgets open transactions" if ends else None
    )
    alone = fault("delete-records", at_ms=2000, partition='"orders-0"') + fault(
        "kill-broker", at_ms=2500, broker=1, restart_after_ms=500
    )
    assert played(alone).recorder.ended_because is None


def test_a_transaction_that_the_run_leaves_open_hangs_only_where_the_coordinator_will_not_end_it():
    text = """
duration_ms = 3000
[cluster]
version = "3.9.1"
[[topics]]
name = "orders"
[[producers]]
name = "shop"
records = 1
transaction = { records = 1, pause_ms = 86400000 }
config = { "linger.ms" = 0, "transactional.id" = "t" }
"""
    simulation = Simulation(parse_scenario(text, "open"), 1).run()
    transactions = simulation.cluster.transactions
    assert list(transactions.under_way()) == [(("orders", 0), 0)]
    assert list(Truth(simulation).open_transactions()) == [(("orders", 0), 0, 0)]
    counts = Truth(simulation).summary()
    assert (counts["open_transactions"], counts["hanging_transactions"]) == (1, 0)
    known = transactions.coordinator.transaction("t")
    assert known is not None
    known.partitions.clear()
    counts = Truth(simulation).summary()
    assert (counts["open_transactions"], counts["hanging_transactions"]) == (1, 1)


DAY = 86_400_000


def test_a_brokers_clock_that_jumps_ahead_makes_it_forget_producers():
    config = f'{ONE_AT_A_TIME}, "retry.backoff.ms" = 1000'
    lost = fault("lose-response", request=3, behind=False)
    restarted = fault("jump-broker-clock", at_ms=200, broker=1, by_ms=2 * DAY)
    checks = 'config = { "producer.id.expiration.check.interval.ms" = 100 }'
    steady = played(lost, config=config, cluster=checks)
    jumped = played(lost + restarted, config=config, cluster=checks)
    assert Truth(steady).summary()["duplicate_copies"] == 0
    assert Truth(jumped).summary()["duplicate_copies"] > 0
    assert jumped.recorder.ended_because == "the clock of broker 1 jumped: attempts know of one clock"


@pytest.mark.parametrize(("by_ms", "aborts_at"), [(0, 10_000), (3_600_000, 10_000), (-7_000, 70_000)])
def test_a_transaction_times_out_by_the_clock_of_its_coordinator(by_ms, aborts_at):
    jump = fault("jump-broker-clock", at_ms=500, broker=1, by_ms=by_ms)
    timeout = 5000 if by_ms == 0 else 60_000
    simulation = played(
        jump,
        config=f'{ONE_AT_A_TIME}, "transactional.id" = "t", "transaction.timeout.ms" = {timeout}',
        producer="records = 1\ntransaction = { records = 1, pause_ms = 86400000 }",
    )
    (ended,) = simulation.cluster.transactions.ended
    assert ended.by_timeout
    assert ended.at == aborts_at
    following: list[int | None] = []
    simulation.cluster.brokers[1].producer_ids.generate(following.append)
    assert following == [1]  # its epoch was raised, no producer id was taken for it


ITS_LAST_EPOCH = """records = 1
initializations = 32766
transaction = {{ records = 1, pause_ms = 100 }}
config = {{ {config} }}
[[producers]]
name = "again"
start_ms = 1000
records = 1
transaction = {{ records = 1, pause_ms = 86400000 }}
config = {{ {config} }}
[[producers]]
name = "other"
start_ms = 12000
records = 1
transaction = {{ records = 1, pause_ms = 86400000 }}"""
"""InitProducerId raises the epoch to 32766, in which a transaction is left open."""
ITS_LAST_TRANSACTION = """records = 2
initializations = 32766
transaction = {{ records = 1, pause_ms = 8000 }}
config = {{ {config} }}
[[producers]]
name = "other"
start_ms = 8500
records = 1
transaction = {{ records = 1, pause_ms = 86400000 }}"""
"""The end of the first transaction raises it."""


@pytest.mark.parametrize(
    ("version", "producers", "ended", "following"),
    [
        ("2.8.2", ITS_LAST_EPOCH, (0, 32767), 2),
        ("3.9.1", ITS_LAST_EPOCH, (0, 32767), 2),
        ("4.2.0", ITS_LAST_TRANSACTION, (2, 0), 3),
    ],
)
def test_a_timeout_takes_a_producer_id_of_its_own_where_epochs_are_used_up_and_each_transaction_raises_them(
    version, producers, ended, following
):
    """KIP-890: endTransaction takes one with version 2 only; fencing reaches 32767. Id 1 is another application's."""
    config = f'{ONE_AT_A_TIME}, "transactional.id" = "t", "transaction.timeout.ms" = 1000'
    simulation = played(
        "",
        version=version,
        config=f'{ONE_AT_A_TIME}, "transactional.id" = "u"',
        producer=producers.format(config=config),
    )
    (at,) = [
        each.at for each in simulation.cluster.transactions.ended if each.by_timeout and each.transactional_id == "t"
    ]
    assert at == 10_000
    known = simulation.cluster.transactions.coordinator.transaction("t")
    assert known is not None
    assert (known.producer_id, known.epoch) == ended
    raised = [(marker.producer_id, marker.producer_epoch) for marker in markers(simulation)]
    assert (0, 32767) in raised
    others: list[int | None] = []
    simulation.cluster.brokers[1].producer_ids.generate(others.append)
    assert others == [following]


@pytest.mark.parametrize(("late", "aborts_at"), [(0, 10_000), (1, 20_000), (9_999, 20_000), (10_000, 20_000)])
def test_a_transaction_is_aborted_at_the_first_look_after_its_timeout(late, aborts_at):
    """TransactionStateManager.timedOutTransactions: older than its timeout, looked for every 10 s."""
    timeout = 5000

    def run():
        config = f'{ONE_AT_A_TIME}, "transactional.id" = "t", "transaction.timeout.ms" = {timeout}'
        producer = "records = 1\ntransaction = { records = 1, pause_ms = 86400000 }"
        return played("", config=config, producer=producer)

    (started,) = [
        event.at
        for event in run().trace.events
        if event.text.startswith("AddPartitions") and event.kind.value == "request"
    ]
    timeout = 10_000 - 1 - started + late
    (ended,) = run().cluster.transactions.ended
    assert ended.at == aborts_at


def test_a_clients_clock_gives_records_their_times_and_ends_deliveries():
    jump = fault("jump-producer-clock", at_ms=170, by_ms=DAY)
    simulation = played(jump, producer="records = 12\nevery_ms = 20")
    times = [stored.max_timestamp - simulation.clock.base for stored in log_of(simulation)]
    assert times[0] < 1000
    assert times[-1] > DAY
    waiting = played(
        fault("pause-broker", at_ms=150, broker=1, for_ms=500) + jump, producer="records = 12\nevery_ms = 20"
    )
    # the new clock says that request.timeout.ms and delivery.timeout.ms are over
    assert Truth(waiting).summary()["failed"] > 0


def test_the_coordinator_moves_with_the_leader_of_its_partition(tmp_path):
    move = fault("move-leader", at_ms=140, partition='"__transaction_state-0"')
    simulation = transactional(move, brokers=3)
    assert simulation.cluster.coordinator == 2
    (refused, *_) = [event for event in simulation.trace.events if event.text == "NOT_COORDINATOR"]
    assert refused.source == "broker 1"
    assert [answer.why for answer in refused.answers] == [
        "broker 1 does not coordinate this transactional id: broker 2 does"
    ]
    assert sorted({marker.coordinator_epoch for marker in markers(simulation)}) == [0, 1]
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]
    assert alarms(simulation, tmp_path / "run") == []


@pytest.mark.parametrize(("version", "verified"), [("3.5.2", False), ("3.9.1", True)])
def test_without_a_coordinator_no_transaction_is_verified(version, verified):
    """AddPartitionsToTxnManager: COORDINATOR_NOT_AVAILABLE, which ReplicaManager makes NOT_ENOUGH_REPLICAS."""
    faults = fault("kill-broker", at_ms=10, broker=2) + fault("kill-broker", at_ms=1000, broker=1)
    simulation = played(
        faults + fault("start-broker", at_ms=1200, broker=2),
        version=version,
        brokers=2,
        topic='config = { "unclean.leader.election.enable" = true }',
        producer="records = 80\nevery_ms = 20\nstart_ms = 500\ntransaction = { records = 80 }",
        config=TRANSACTIONAL,
    )
    assert simulation.cluster.coordinator is None
    refused = [
        answer
        for event in simulation.trace.events
        for answer in event.answers
        if event.source == "broker 2" and answer.error is KafkaError.NOT_ENOUGH_REPLICAS
    ]
    assert {answer.why for answer in refused} == (
        {"broker 2 cannot ask a coordinator whether the transaction is open"} if verified else set()
    )
    assert simulation.cluster.partitions["orders", 0].leader == 2
    assert any(isinstance(stored.state, DataBatch) for stored in log_of(simulation)) is not verified


def test_the_coordinator_that_was_has_no_producer_id_for_a_transactional_id():
    """The client asks whom it knew when it began; the request arrives two ms later."""
    move = fault("move-leader", at_ms=101, partition='"__transaction_state-0"', broker=2)
    simulation = transactional(move, brokers=3, cluster="")
    assert simulation.cluster.coordinator == 2
    late = TRANSACTIONS + "\nstart_ms = 100"
    simulation = played(move, producer=late, config=TRANSACTIONAL, brokers=3)
    (refused, *_) = [event for event in simulation.trace.events if event.text == "NOT_COORDINATOR"]
    assert (refused.source, refused.sent_at) == ("broker 1", 102)
    assert [marker.commit for marker in markers(simulation)] == [True, False, True]


def test_a_leader_moves_to_the_broker_named_and_to_none_that_is_out_of_sync():
    move = fault("move-leader", at_ms=150, partition='"orders-0"', broker=3)
    simulation = played(move, brokers=3)
    assert simulation.cluster.partitions["orders", 0].leader == 3
    assert summary(simulation) == SIX_ONCE
    down = fault("stop-broker", at_ms=120, broker=3) + move
    assert played(down, brokers=3).cluster.partitions["orders", 0].leader == 1


@pytest.mark.parametrize(("version", "config"), [("2.0.1", ', "enable.idempotence" = true'), ("3.9.1", "")])
def test_a_block_of_producer_ids_that_is_used_up_is_followed_by_the_next(version, config):
    used = fault("use-producer-ids", at_ms=0, broker=1, count=1500)
    simulation = played(used, version=version, config=ONE_AT_A_TIME + config, producer="records = 3\nstart_ms = 2000")
    (producer_id,) = {stored.state.producer_id for stored in log_of(simulation) if isinstance(stored.state, DataBatch)}
    assert producer_id == 1500
    assert len(simulation.cluster.granted_blocks.text().splitlines()) == 2


def test_without_an_answer_of_the_controller_a_broker_out_of_ids_lets_clients_wait():
    used = fault("use-producer-ids", at_ms=0, broker=1, count=1000)
    lost = fault("lose-allocation", at_ms=0, broker=1) + fault("lose-allocation", at_ms=0, broker=1)
    simulation = played(lost + used, producer="records = 3\nstart_ms = 100")
    assert texts(simulation, "COORDINATOR_LOAD_IN_PROGRESS")
    assert min(stored.state.producer_id for stored in log_of(simulation)) >= 1000
