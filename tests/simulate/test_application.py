"""What an application hands to its producers and when, as the scenario says; and what becomes of it by the run's own logs."""

from collections import defaultdict
from itertools import pairwise

import pytest

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.simulate.application import TransactionEnding
from kaudit.simulate.output.record_outcomes import DeliveryOutcome, leader_log
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.simulation import Simulation
from tests.simulate.schedules import drawn_scenario
from tests.simulate.test_faults import fault

SCENARIO = """
duration_ms = {duration}
[cluster]
version = "3.9.1"
[[topics]]
name = "orders"
partitions = {partitions}
[[producers]]
name = "shop"
{producer}
config = {{ "linger.ms" = 0, "batch.size" = 100{config} }}
[network]
delay_ms = 2
{faults}
"""
TRANSACTIONAL = ', "transactional.id" = "t"'


def played(producer, faults="", *, partitions=1, config="", duration=600_000):
    text = SCENARIO.format(producer=producer, faults=faults, partitions=partitions, config=config, duration=duration)
    return Simulation(parse_scenario(text, "application"), 1, trace_limit=5000).run()


def sent(simulation):
    """Number, partition, time since the start, and session of each record that was handed over, in order."""
    found = [
        (batch.payload.session, number, batch.partition[1], timestamp - simulation.clock.base)
        for application in simulation.applications.values()
        for batch in application.batches
        for number, timestamp in zip(batch.numbers, batch.timestamps, strict=True)
    ]
    return [(number, partition, at, session) for session, number, partition, at in sorted(found)]


@pytest.mark.parametrize(("burst", "every", "start"), [(1, 10, 0), (3, 25, 40)])
def test_bursts_of_records_round_robin(burst, every, start):
    simulation = played(
        f"records = 8\nburst = {burst}\nevery_ms = {every}\nstart_ms = {start}", partitions=3, config=""
    )
    assert sent(simulation) == [(number, number % 3, start + number // burst * every, 1) for number in range(8)]
    (application,) = simulation.applications.values()
    assert (application.sessions, application.transactions) == (1, [])


def test_sessions_share_the_records_and_each_has_a_producer_id_of_its_own():
    simulation = played("records = 8\nevery_ms = 20\nsessions = 3", config=', "enable.idempotence" = true')
    found = sent(simulation)
    assert [(number, session) for number, _, _, session in found] == [(number, 1 + number // 3) for number in range(8)]
    by_session = defaultdict(list)
    for number, _, at, session in found:
        by_session[session].append((number, at))
    for before, after in ((1, 2), (2, 3)):
        # the next one is opened when every record is acknowledged, as long after that as records are apart
        assert by_session[after][0][1] >= by_session[before][-1][1] + 20 + 4
    log = leader_log(simulation.cluster.partitions["orders", 0])
    ids = [state.producer_id for state in states(log) for _ in range(state.base_offset, state.last_offset + 1)]
    assert len(set(ids)) == 3
    assert [ids[number] == ids[number - 1] for number in range(1, 8)] == [number % 3 != 0 for number in range(1, 8)]


def clients_seen(simulation):
    """What the run's state says of the application: process, producer id and epoch, transactional id and state."""
    seen: dict[tuple[object, ...], None] = {}
    for event in simulation.trace.events:
        for client in event.state.clients:
            assert (client.name, client.max_in_flight) == ("shop", 5)
            seen[
                client.process, int(client.producer_id), client.epoch, client.transactional_id, client.transaction_state
            ] = None
    return list(seen)


def test_the_state_of_an_application_from_before_its_start_to_its_end():
    idempotent = ', "enable.idempotence" = true, "max.in.flight.requests.per.connection" = 5'
    ends = fault("kill-producer", at_ms=700) + fault("pause-broker", at_ms=10, broker=1, for_ms=5)
    pause = fault("pause-producer", at_ms=600, for_ms=50)
    producer = "records = 100\nevery_ms = 20\nstart_ms = 100"
    assert clients_seen(played(producer, ends + pause, config=idempotent)) == [
        ("not started", -1, -1, None, None),
        ("running", -1, -1, None, None),
        ("running", 0, 0, None, None),
        ("paused", 0, 0, None, None),
        ("killed", -1, -1, None, None),
    ]
    plain = ', "enable.idempotence" = false, "max.in.flight.requests.per.connection" = 5'
    assert clients_seen(played(producer, ends, config=plain)) == [
        ("not started", -1, -1, None, None),
        ("running", -1, -1, None, None),
        ("killed", -1, -1, None, None),
    ]
    states = clients_seen(played(producer + "\ntransaction = { records = 2 }", ends, config=TRANSACTIONAL))
    assert states[0] == ("not started", -1, -1, "t", None)
    assert states[-1] == ("killed", -1, -1, "t", None)
    running = [state for state in states if state[0] == "running"]
    assert {state[1:4] for state in running[1:]} <= {(-1, -1, "t"), (0, 0, "t")}
    assert all(isinstance(state[4], str) for state in running)


def test_an_event_of_nobody_in_particular_has_no_producer_id():
    simulation = played("records = 3", fault("pause-broker", at_ms=10, broker=1, for_ms=5))
    kinds = {event.kind.value: event for event in simulation.trace.events}
    assert (kinds["fault"].producer_id, kinds["fault"].partitions, kinds["fault"].omitted) == (-1, (), 0)
    assert {event.producer_id for event in simulation.trace.events if event.kind.value == "request"} >= {0}


def test_each_session_but_the_first_is_in_the_sequence_diagram():
    simulation = played("records = 6\nevery_ms = 20\nsessions = 3")
    notes = [(event.source, event.text) for event in simulation.trace.events if "begins" in event.text]
    assert notes == [("shop", "session 2 begins"), ("shop", "session 3 begins")]


def states(log):
    return [stored.state for stored in log.batches if isinstance(stored.state, DataBatch)]


def transactions(simulation):
    (application,) = simulation.applications.values()
    return [(first, last, ending.value) for first, last, ending in application.transactions]


def test_transactions_have_so_many_records_each_and_end_as_said():
    simulation = played(
        'records = 7\nevery_ms = 10\ntransaction = { records = 2, outcomes = ["commit", "abort", "abort"], pause_ms = 300 }',
        config=TRANSACTIONAL,
    )
    assert transactions(simulation) == [
        (0, 1, "committed"), (2, 3, "aborted"), (4, 5, "aborted"), (6, 6, "committed"),
    ]  # fmt: skip
    found = sent(simulation)
    assert [number for number, *_ in found] == list(range(7))  # what was to be aborted is not repeated
    times = [at for _, _, at, _ in found]
    assert [after - before >= 300 for before, after in pairwise(times)] == [number % 2 == 0 for number in range(1, 7)]
    assert all(after - before == 10 for before, after in zip(times[::2], times[1::2], strict=False))


def test_a_transaction_that_failed_is_aborted_and_repeated():
    simulation = played(
        "records = 4\ntransaction = { records = 2 }",
        fault("error-response", request=1, error='"INVALID_TXN_STATE"'),
        config=TRANSACTIONAL,
    )
    assert transactions(simulation) == [(0, 1, "aborted"), (0, 1, "committed"), (2, 3, "committed")]
    assert Truth(simulation).summary()["present"] >= 4


def test_a_producer_that_is_fenced_sends_nothing_more():
    simulation = played(
        "records = 40\ntransaction = { records = 2 }",
        fault("error-response", api='"EndTxn"', request=2, error='"PRODUCER_FENCED"'),
        config=TRANSACTIONAL,
    )
    assert transactions(simulation) == [(0, 1, "committed"), (2, 3, "unknown")]
    assert [number for number, *_ in sent(simulation)] == [0, 1, 2, 3]


def test_a_producer_that_is_fenced_within_a_transaction_hands_over_no_more_of_it():
    """The refusal of its second record arrives four ms after that was sent; the third would follow after twenty."""
    simulation = played(
        "records = 40\nevery_ms = 20\ntransaction = { records = 30 }",
        fault("error-response", request=2, error='"PRODUCER_FENCED"'),
        config=TRANSACTIONAL,
    )
    assert transactions(simulation) == [(0, 29, "unknown")]
    assert [number for number, *_ in sent(simulation)] == [0, 1]


@pytest.mark.parametrize(("resend", "again"), [(0, 5), (2, 3), (99, 0)])
def test_an_application_that_is_killed_goes_on_so_many_records_before(resend, again):
    """Records 0 to 4 were handed over by 145 ms; the process that follows is a producer of its own."""
    killed = fault("kill-producer", at_ms=145, restart_after_ms=500, resend=resend)
    simulation = played("records = 10\nevery_ms = 30\nstart_ms = 20", killed)
    found = sent(simulation)
    assert [number for number, *_, session in found if session == 1] == [0, 1, 2, 3, 4]
    assert [(number, at) for number, _, at, session in found if session == 2] == [
        (number, 645 + 30 * place) for place, number in enumerate(range(again, 10))
    ]
    assert {batch.payload.session for batch in simulation.applications["shop"].batches} == {1, 2}
    stays = played("records = 10\nevery_ms = 30\nstart_ms = 20", killed.replace("restart_after_ms = 500\n", ""))
    assert {session for *_, session in sent(stays)} == {1}


def test_an_application_that_is_killed_within_a_transaction_begins_it_again():
    killed = fault("kill-producer", at_ms=900, restart_after_ms=100)
    simulation = played(
        "records = 4\nevery_ms = 10\ntransaction = { records = 2, pause_ms = 500 }", killed, config=TRANSACTIONAL
    )
    ends = transactions(simulation)
    assert [end for end in ends if end[2] == "unknown"] == [(2, 3, "unknown")]
    assert ends[-1] == (2, 3, "committed")
    assert [number for number, *_, session in sent(simulation) if session == 2] == [2, 3]
    # a killed one that is killed again, or paused, does nothing
    twice = killed + fault("kill-producer", at_ms=950) + fault("pause-producer", at_ms=960, for_ms=10_000)
    again = played(
        "records = 4\nevery_ms = 10\ntransaction = { records = 2, pause_ms = 500 }", twice, config=TRANSACTIONAL
    )
    assert transactions(again) == ends


def test_a_paused_application_hands_nothing_over_until_it_goes_on():
    simulation = played("records = 6\nevery_ms = 50", fault("pause-producer", at_ms=120, for_ms=1000))
    assert [at for _, _, at, _ in sent(simulation)] == [0, 50, 100, 1120, 1170, 1220]
    assert Truth(simulation).summary()["acknowledged"] == 6


@pytest.mark.parametrize("times", [1, 2, 5])
def test_each_init_transactions_raises_the_epoch(times):
    simulation = played(
        f"records = 2\ninitializations = {times}\ntransaction = {{ records = 2 }}", config=TRANSACTIONAL
    )
    log = leader_log(simulation.cluster.partitions["orders", 0])
    assert {state.producer_epoch for state in states(log)} == {times - 1}
    assert transactions(simulation) == [(0, 1, "committed")]


@pytest.mark.parametrize("config", ["", TRANSACTIONAL])
def test_what_is_under_way_when_the_run_ends_has_no_answer(config):
    paused = fault("pause-broker", at_ms=200, broker=1, for_ms=5_000)
    transaction = "\ntransaction = { records = 1000 }" if config else ""
    simulation = played(f"records = 15\nevery_ms = 30{transaction}", paused, config=config, duration=700)
    summary = Truth(simulation).summary()
    assert summary["unanswered"] > 0
    assert summary["sent"] == summary["acknowledged"] + summary["unanswered"] == 15
    (application,) = simulation.applications.values()
    assert [ending for *_, ending in application.transactions] == [TransactionEnding.UNKNOWN] * bool(config)


# -- the truth of a run against its logs --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [400, 405, 410, 415])
def test_the_truth_counts_what_the_logs_hold(first):
    """By walking every leader's log: where each record lies, and which number of its session came before it."""
    for seed in range(first, first + 5):
        simulation = Simulation(drawn_scenario(seed, all_faults=True, unclean=seed % 2 == 0), seed, 0).run()
        truth = Truth(simulation)
        counts: dict[str, int] = defaultdict(int)
        for key, partition in simulation.cluster.partitions.items():
            log = leader_log(partition)
            offsets = defaultdict(list)
            late: set[tuple[str, int, int]] = set()
            highest: dict[tuple[str, int], int] = defaultdict(lambda: -1)
            for stored in log.batches:
                if stored.sent is None:
                    continue
                offsets[id(stored.sent)].append(stored.base_offset)
                if len(offsets[id(stored.sent)]) == 1:
                    session = stored.sent.payload.producer, stored.sent.payload.session
                    late |= {(*session, number) for number in stored.sent.numbers if number < highest[session]}
                    highest[session] = max(highest[session], *stored.sent.numbers)
            elsewhere = {
                (id(stored.sent), stored.base_offset)
                for other in partition.logs.values()
                for stored in other.batches
                if stored.sent is not None and stored.base_offset not in offsets[id(stored.sent)]
            }
            counts["out_of_order"] += len(late)
            reported = set()
            for outcome in truth.outcomes[key]:
                batch, count = outcome.batch, outcome.batch.record_count
                reported |= {(batch.payload.producer, batch.payload.session, number) for number in outcome.out_of_order}
                assert outcome.copies == offsets[id(batch)]
                lost = {offset for one, offset in elsewhere if one == id(batch)}
                assert {offset for found in outcome.elsewhere.values() for offset in found} == lost
                counts["on_a_replica_only"] += count * bool(lost)
                deleted = bool(outcome.copies) and max(outcome.copies) + count <= log.log_start
                expected = (
                    DeliveryOutcome.DELETED if deleted
                    else [DeliveryOutcome.NOWHERE, DeliveryOutcome.ONCE, DeliveryOutcome.TWICE][min(len(outcome.copies), 2)]
                )  # fmt: skip
                assert outcome.delivery is expected
                for offset in outcome.copies if len(outcome.copies) < 3 else ():
                    assert str(offset) in outcome.why
                counts["sent"] += count
                acknowledged = batch.finished and batch.error is None
                counts["acknowledged" if acknowledged else "failed" if batch.finished else "unanswered"] += count
                counts["deleted" if deleted else "present" if outcome.copies else "absent"] += count
                counts["acknowledged_but_lost"] += count * (acknowledged and not outcome.copies)
                counts["written_but_not_acknowledged"] += count * (bool(outcome.copies) and not acknowledged)
                counts["duplicate_copies"] += count * max(len(outcome.copies) - 1, 0)
            assert reported == late
        summary = truth.summary()
        assert {name: summary[name] for name in counts} == counts, seed
